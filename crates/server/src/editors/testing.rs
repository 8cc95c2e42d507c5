//! A Document Server of a few lines for tests of flows, and a wrapper whose calls can be made to fail.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use model::EditorKey;
use model::opening::ServerKnowledge;
use steps::{Fault, Faults};
use vault::{Spool, Spooled};

use super::{CommandError, DocumentServer, FetchError, ForceSave, Wanted};

/// A Document Server of a few lines: files by path, forgotten files by key, and what it says of a key.
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeEditor {
    pub(crate) state: Arc<Mutex<EditorState>>,
}

#[derive(Debug, Default)]
pub(crate) struct EditorState {
    files: HashMap<String, Bytes>,
    pub(crate) forgotten: BTreeMap<String, Bytes>,
    pub(crate) knowledge: HashMap<String, ServerKnowledge>,
    pub(crate) dropped: Vec<String>,
    /// Keys whose editors were told another title.
    pub(crate) renamed: Vec<(String, String)>,
    /// What it says when it is asked to save, and what it was asked.
    pub(crate) force_save: ForceSave,
    pub(crate) force_saves: Vec<(EditorKey, String)>,
    /// How many of the next transfers lose their second half.
    damaged_transfers: u32,
    /// What the server says of a key once a file was fetched.
    said_on_fetch: Option<(EditorKey, ServerKnowledge)>,
    /// A file that is put aside as soon as somebody has looked for it.
    forgotten_after_look: Option<(EditorKey, Bytes)>,
    /// Where transfers wait for each other.
    meeting: Option<Arc<tokio::sync::Barrier>>,
}

impl EditorState {
    /// The bytes as they arrive.
    fn transferred(&mut self, bytes: Bytes) -> Bytes {
        if self.damaged_transfers == 0 {
            return bytes;
        }
        self.damaged_transfers -= 1;
        bytes.slice(..bytes.len() / 2)
    }
}

impl FakeEditor {
    pub(crate) fn offer(&self, path: &str, bytes: Bytes) {
        self.state.lock().unwrap().files.insert(path.to_owned(), bytes);
    }

    /// Its links die.
    pub(crate) fn forget_links(&self) {
        self.state.lock().unwrap().files.clear();
    }

    /// A final save could not be delivered.
    pub(crate) fn put_forgotten(&self, key: &EditorKey, bytes: Bytes) {
        self.state.lock().unwrap().forgotten.insert(key.to_string(), bytes);
    }

    /// A final save cannot be delivered, and ends right after somebody has looked whether it did.
    pub(crate) fn put_forgotten_after_look(&self, key: &EditorKey, bytes: Bytes) {
        self.state.lock().unwrap().forgotten_after_look = Some((key.clone(), bytes));
    }

    /// The next transfers arrive damaged, although what the server has is whole.
    pub(crate) fn damage_transfers(&self, count: u32) {
        self.state.lock().unwrap().damaged_transfers = count;
    }

    /// What the server knows of a key changes while a file is fetched.
    pub(crate) fn says_on_fetch(&self, key: &EditorKey, knowledge: ServerKnowledge) {
        self.state.lock().unwrap().said_on_fetch = Some((key.clone(), knowledge));
    }

    /// Takes part in the meeting of transfers, without one.
    pub(crate) async fn meet(&self) {
        let meeting = self.state.lock().unwrap().meeting.clone();
        meeting.unwrap().wait().await;
    }

    /// No transfer goes on before so many have begun.
    pub(crate) fn transfers_meet(&self, count: usize) {
        self.state.lock().unwrap().meeting = Some(Arc::new(tokio::sync::Barrier::new(count)));
    }

    /// Waits until a transfer waits for another, and lets those that follow pass. Whoever waits at what is returned sets it free.
    pub(crate) async fn held_transfer(&self) -> Arc<tokio::sync::Barrier> {
        let meeting = self.state.lock().unwrap().meeting.clone().unwrap();
        // Ours, the one of the state, and the one who waits.
        while Arc::strong_count(&meeting) < 3 {
            tokio::task::yield_now().await;
        }
        self.state.lock().unwrap().meeting = None;
        meeting
    }

    pub(crate) fn says(&self, key: &EditorKey, knowledge: ServerKnowledge) {
        self.state.lock().unwrap().knowledge.insert(key.to_string(), knowledge);
    }
}

#[async_trait]
impl DocumentServer for FakeEditor {
    async fn fetch(&self, link: &str, _spool: &Spool) -> Result<Spooled, FetchError> {
        let meeting = self.state.lock().unwrap().meeting.clone();
        if let Some(meeting) = meeting {
            meeting.wait().await;
        }
        let mut state = self.state.lock().unwrap();
        let path = link.trim_start_matches("http://ds").split('?').next().unwrap_or_default();
        let forgotten = path
            .strip_prefix("/forgotten/")
            .and_then(|key| state.forgotten.get(key.trim_end_matches(".docx")));
        let bytes = state.files.get(path).or(forgotten).ok_or(FetchError::Gone { status: 410 })?.clone();
        if let Some((key, knowledge)) = state.said_on_fetch.take() {
            state.knowledge.insert(key.to_string(), knowledge);
        }
        Ok(Spool::hold(state.transferred(bytes)))
    }

    async fn fetch_for_browser(&self, wanted: &Wanted<'_>, spool: &Spool) -> Result<Spooled, FetchError> {
        self.fetch_at_most(wanted, spool).await
    }

    async fn knowledge_of(&self, key: &EditorKey) -> ServerKnowledge {
        self.state.lock().unwrap().knowledge.get(key.as_str()).copied().unwrap_or(ServerKnowledge::Unknown)
    }

    async fn forgotten_keys(&self) -> Result<Vec<String>, CommandError> {
        Ok(self.state.lock().unwrap().forgotten.keys().cloned().collect())
    }

    async fn forgotten_link(&self, key: &EditorKey) -> Result<Option<String>, CommandError> {
        let mut state = self.state.lock().unwrap();
        let is_there = state.forgotten.contains_key(key.as_str());
        if let Some((key, bytes)) = state.forgotten_after_look.take() {
            state.forgotten.insert(key.to_string(), bytes);
        }
        Ok(is_there.then(|| format!("http://ds/forgotten/{key}.docx")))
    }

    async fn delete_forgotten(&self, key: &EditorKey) -> Result<(), CommandError> {
        self.state.lock().unwrap().forgotten.remove(key.as_str());
        Ok(())
    }

    async fn force_save(&self, key: &EditorKey, word: &str) -> Result<ForceSave, CommandError> {
        let mut state = self.state.lock().unwrap();
        state.force_saves.push((key.clone(), word.to_owned()));
        Ok(state.force_save)
    }

    async fn drop_users(&self, key: &EditorKey, _users: &[String]) -> Result<(), CommandError> {
        self.state.lock().unwrap().dropped.push(key.to_string());
        Ok(())
    }

    async fn rename(&self, key: &EditorKey, title: &str) -> Result<(), CommandError> {
        self.state.lock().unwrap().renamed.push((key.to_string(), title.to_owned()));
        Ok(())
    }

    async fn version(&self) -> Result<String, CommandError> {
        Ok("test".to_owned())
    }
}

/// A Document Server whose calls may fail.
pub(crate) struct FaultyEditor {
    pub(crate) inner: FakeEditor,
    pub(crate) faults: Arc<Faults>,
}

fn broken() -> FetchError {
    FetchError::Broken { cause: "injected by a test".into() }
}

fn away(command: &'static str) -> CommandError {
    CommandError::Away { command, cause: "injected by a test".into() }
}

#[async_trait]
impl DocumentServer for FaultyEditor {
    async fn fetch(&self, link: &str, spool: &Spool) -> Result<Spooled, FetchError> {
        match self.faults.next("editor.fetch") {
            Fault::None => self.inner.fetch(link, spool).await,
            Fault::Before | Fault::After => Err(broken()),
        }
    }

    async fn fetch_for_browser(&self, wanted: &Wanted<'_>, spool: &Spool) -> Result<Spooled, FetchError> {
        match self.faults.next("editor.fetch_for_browser") {
            Fault::None => self.inner.fetch_for_browser(wanted, spool).await,
            Fault::Before | Fault::After => Err(broken()),
        }
    }

    async fn knowledge_of(&self, key: &EditorKey) -> ServerKnowledge {
        match self.faults.next("editor.knowledge_of") {
            Fault::None => self.inner.knowledge_of(key).await,
            Fault::Before | Fault::After => ServerKnowledge::Away,
        }
    }

    async fn forgotten_keys(&self) -> Result<Vec<String>, CommandError> {
        match self.faults.next("editor.forgotten_keys") {
            Fault::None => self.inner.forgotten_keys().await,
            Fault::Before | Fault::After => Err(away("getForgottenList")),
        }
    }

    async fn forgotten_link(&self, key: &EditorKey) -> Result<Option<String>, CommandError> {
        match self.faults.next("editor.forgotten_link") {
            Fault::None => self.inner.forgotten_link(key).await,
            Fault::Before | Fault::After => Err(away("getForgotten")),
        }
    }

    async fn delete_forgotten(&self, key: &EditorKey) -> Result<(), CommandError> {
        match self.faults.next("editor.delete_forgotten") {
            Fault::None => self.inner.delete_forgotten(key).await,
            Fault::Before => Err(away("deleteForgotten")),
            Fault::After => self.inner.delete_forgotten(key).await.and(Err(away("deleteForgotten"))),
        }
    }

    async fn force_save(&self, key: &EditorKey, word: &str) -> Result<ForceSave, CommandError> {
        match self.faults.next("editor.force_save") {
            Fault::None => self.inner.force_save(key, word).await,
            Fault::Before | Fault::After => Err(away("forcesave")),
        }
    }

    async fn drop_users(&self, key: &EditorKey, users: &[String]) -> Result<(), CommandError> {
        match self.faults.next("editor.drop_users") {
            Fault::None => self.inner.drop_users(key, users).await,
            Fault::Before | Fault::After => Err(away("drop")),
        }
    }

    async fn rename(&self, key: &EditorKey, title: &str) -> Result<(), CommandError> {
        match self.faults.next("editor.rename") {
            Fault::None => self.inner.rename(key, title).await,
            Fault::Before | Fault::After => Err(away("meta")),
        }
    }

    async fn version(&self) -> Result<String, CommandError> {
        self.inner.version().await
    }
}
