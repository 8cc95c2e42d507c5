//! What the server knows about a key, in two halves: what survives its death and what does not.
//!
//! Guarantees: everything durable changes through [`Durable::change`], which also records the step, so that a
//! folder can replay it; replaying the recorded steps gives an equal [`Durable`]. Presence and force-save state
//! ([`Live`], [`Conn`]) are never recorded: the real memory build loses them too.
//!
//! Does not decide anything; the sibling modules do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Names one change for ever; harnesses put it into the text as a visible marker.
pub type ChangeId = Arc<str>;

/// Bytes with their hash, their extension and the changes known to be inside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub sha256: String,
    pub size_bytes: u64,
    pub ext: String,
    pub holds: Arc<[ChangeId]>,
    /// Not recorded: a folder keeps bytes under their hash and puts them back when it replays.
    #[serde(skip)]
    pub bytes: Bytes,
}

impl Content {
    pub fn new(bytes: Bytes, ext: &str, holds: Arc<[ChangeId]>) -> Content {
        let sha256 = crate::office::sha256_hex(&bytes);
        Content { sha256, size_bytes: bytes.len() as u64, ext: ext.to_owned(), holds, bytes }
    }
}

/// Row status, with the tag the real server keeps beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    None,
    Ok,
    WaitQueue,
    /// Could not be converted; stays under the key.
    Err(i32),
    /// The last editor has left; the tag tells one such moment from another.
    SaveVersion(u64),
    /// The key is spent; since which minute.
    UpdateVersion(u64),
}

/// One row of the server's table, by key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub status: Status,
    /// Counts openings; an editor's number is the value at its opening.
    pub user_index: u32,
    /// Callback addresses by opening number, oldest first.
    pub callbacks: Vec<(u32, String)>,
    /// Where the last opener found this server: the start of every link.
    pub base_url: String,
    pub file_type: String,
    pub last_open_ms: u64,
}

impl Row {
    /// The address of that opener, else the last one registered.
    pub fn callback_of(&self, index: Option<u32>) -> Option<&str> {
        let own = self.callbacks.iter().find(|(opener, _)| Some(*opener) == index);
        own.or(self.callbacks.last()).map(|(_, url)| url.as_str())
    }
}

/// The cached copy a session works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub content: Content,
    pub from_forgotten: bool,
}

/// Who did something: the id the host knows, the opening number, the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    pub id: String,
    pub index: u32,
    pub name: String,
}

impl Author {
    /// The id that tells two tabs of one user apart.
    pub fn unique_id(&self) -> String {
        format!("{}{}", self.id, self.index)
    }
}

/// One row of the change log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub id: ChangeId,
    /// As the editor sent it; [`crate::office::Edit`] in JSON, or anything (kept, without effect on the text).
    pub data: String,
    pub author: Author,
    pub time_s: u64,
}

/// All that survives under one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub row: Option<Row>,
    pub base: Option<Base>,
    pub changes: Vec<Change>,
    pub forgotten: Option<Content>,
}

impl Record {
    fn is_empty(&self) -> bool {
        self.row.is_none() && self.base.is_none() && self.changes.is_empty() && self.forgotten.is_none()
    }
}

/// `history` of a save, in the order of keys the real server uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    #[serde(rename = "serverVersion", default, skip_serializing_if = "Option::is_none")]
    pub server_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<HistoryChange>>,
}

/// One run of changes by one author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryChange {
    #[serde(rename = "documentSha256")]
    pub document_sha256: String,
    pub created: String,
    pub user: HistoryUser,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryUser {
    pub id: String,
    pub name: String,
}

/// How a conversion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conversion {
    Done,
    /// Failed, but left a file (code -86).
    Corrupted,
    Failed,
}

/// The files of one save, served under `<key>_<number>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    pub key: String,
    pub since_ms: u64,
    pub file: Option<Content>,
    pub changes_zip: Option<Content>,
    pub forms: Option<Content>,
    pub history: History,
    /// The last `expires` given out, so that the next link differs even within one second.
    pub expires_last_s: u64,
}

/// A force save as the server remembers it while converting and in its cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forced {
    /// Milliseconds, but always whole seconds: the time of the last change included.
    pub time_ms: u64,
    /// How many changes are included.
    pub index: usize,
    pub kind: ForceKind,
    /// Who pressed the button or submitted the form.
    pub by: Option<(String, u32)>,
    /// Stands for the author when a form is submitted without any change.
    pub changed_by: Option<Author>,
}

/// `forcesavetype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForceKind {
    Command = 0,
    Button = 1,
    Timer = 2,
    Form = 3,
    /// For the editor itself (a copy to download): never reaches the host.
    Internal = 4,
}

impl ForceKind {
    /// A copy with its own purpose: it says nothing about the document being saved.
    pub fn is_aside(self) -> bool {
        matches!(self, ForceKind::Form | ForceKind::Internal)
    }
}

/// What a save is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// The tag of the row and who left last.
    Final {
        tag: u64,
        leaver: Option<(String, u32)>,
    },
    Force(Forced),
}

/// A save on its way: a message in the real server's queue, which survives the death of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Save {
    pub key: String,
    /// `<key>_<number>`.
    pub path: String,
    pub purpose: Purpose,
    pub conversion: Option<Conversion>,
    /// Author of the last change inside, once converted.
    pub author: Option<(String, u32)>,
    pub attempt: u32,
    pub userdata: Option<String>,
    pub form_data: Option<serde_json::Value>,
    /// The connection that waits for the outcome, with its own name for the question.
    pub asker: Option<(ConnId, Option<serde_json::Value>)>,
    /// A cached force save sent again says `"encrypted": false`.
    pub resent: bool,
}

/// Work that survives the death of the server.
#[expect(clippy::large_enum_variant, reason = "nearly all tasks are saves")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    Open { key: String, source: Option<Source>, attempt: u32 },
    Save(Save),
}

/// Where a document comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub url: String,
    pub file_type: String,
    /// Whether the opener came with a valid token: only then the GET carries one.
    pub vouched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId(pub u64);

/// One durable step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    Row {
        key: String,
        row: Option<Row>,
    },
    Base {
        key: String,
        base: Option<Base>,
    },
    ChangesAdded {
        key: String,
        changes: Vec<Change>,
    },
    /// Drops the changes from this position on.
    ChangesCut {
        key: String,
        from: usize,
    },
    Forgotten {
        key: String,
        file: Option<Content>,
    },
    Saved {
        path: String,
        saved: Option<Box<Saved>>,
    },
    Task {
        id: TaskId,
        task: Option<Box<Task>>,
    },
}

/// Everything that survives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    pub(super) records: BTreeMap<String, Record>,
    pub(super) saves: BTreeMap<String, Saved>,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    task_last: u64,
    steps: Vec<Op>,
}

impl Durable {
    /// Takes a step and records it.
    pub fn change(&mut self, op: Op) {
        self.replay(op.clone());
        self.steps.push(op);
    }

    /// Takes a step that is already recorded.
    pub fn replay(&mut self, op: Op) {
        match op {
            Op::Row { key, row } => self.with_record(key, |record| record.row = row),
            Op::Base { key, base } => self.with_record(key, |record| record.base = base),
            Op::ChangesAdded { key, changes } => {
                self.with_record(key, |record| record.changes.extend(changes));
            }
            Op::ChangesCut { key, from } => self.with_record(key, |record| record.changes.truncate(from)),
            Op::Forgotten { key, file } => self.with_record(key, |record| record.forgotten = file),
            Op::Saved { path, saved: Some(saved) } => drop(self.saves.insert(path, *saved)),
            Op::Saved { path, saved: None } => drop(self.saves.remove(&path)),
            Op::Task { id, task } => {
                self.task_last = self.task_last.max(id.0);
                match task {
                    Some(task) => drop(self.tasks.insert(id, *task)),
                    None => drop(self.tasks.remove(&id)),
                }
            }
        }
    }

    /// The steps taken since the last call.
    pub fn take_steps(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.steps)
    }

    /// The fewest steps that lead here from nothing.
    pub fn as_steps(&self) -> Vec<Op> {
        let mut steps = Vec::new();
        for (key, record) in &self.records {
            let key = || key.clone();
            if record.row.is_some() {
                steps.push(Op::Row { key: key(), row: record.row.clone() });
            }
            if record.base.is_some() {
                steps.push(Op::Base { key: key(), base: record.base.clone() });
            }
            if !record.changes.is_empty() {
                steps.push(Op::ChangesAdded { key: key(), changes: record.changes.clone() });
            }
            if record.forgotten.is_some() {
                steps.push(Op::Forgotten { key: key(), file: record.forgotten.clone() });
            }
        }
        let saves = self.saves.iter();
        steps.extend(
            saves.map(|(path, saved)| Op::Saved { path: path.clone(), saved: Some(Box::new(saved.clone())) }),
        );
        let tasks = self.tasks.iter();
        steps.extend(tasks.map(|(id, task)| Op::Task { id: *id, task: Some(Box::new(task.clone())) }));
        steps
    }

    pub fn next_task(&mut self) -> TaskId {
        self.task_last += 1;
        TaskId(self.task_last)
    }

    /// Keys with anything under them.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(String::as_str)
    }

    pub fn record(&self, key: &str) -> Option<&Record> {
        self.records.get(key)
    }

    pub fn row(&self, key: &str) -> Option<&Row> {
        self.records.get(key)?.row.as_ref()
    }

    pub fn changes(&self, key: &str) -> &[Change] {
        self.records.get(key).map_or(&[], |record| &record.changes)
    }

    pub fn saved(&self, path: &str) -> Option<&Saved> {
        self.saves.get(path)
    }

    pub fn forgotten(&self, key: &str) -> Option<&Content> {
        self.records.get(key)?.forgotten.as_ref()
    }

    fn with_record(&mut self, key: String, step: impl FnOnce(&mut Record)) {
        let mut record = self.records.remove(&key).unwrap_or_default();
        step(&mut record);
        if !record.is_empty() {
            self.records.insert(key, record);
        }
    }
}

/// One editor or viewer.
#[derive(Clone, Debug)]
pub struct Conn {
    pub key: String,
    pub user: Author,
    pub view: bool,
    /// Turned into a viewer for good: dropped, closed, or opened a spent key.
    pub closed: bool,
    /// A viewer that is told about changes.
    pub live_viewer: bool,
    pub session: String,
    pub since_ms: u64,
    pub permissions: Option<serde_json::Value>,
}

impl Conn {
    /// As other clients are told.
    pub(super) fn describe(&self, id: ConnId) -> serde_json::Value {
        serde_json::json!({
            "id": self.user.unique_id(),
            "idOriginal": self.user.id,
            "username": self.user.name,
            "indexUser": self.user.index,
            "view": self.view,
            "connectionId": id.0.to_string(),
            "isCloseCoAuthoring": self.closed,
            "isLiveViewer": self.live_viewer,
            "encrypted": false,
        })
    }

    pub fn edits(&self) -> bool {
        !self.view && !self.closed
    }
}

/// What is forgotten when the server dies, by key.
#[derive(Clone, Debug, Default)]
pub struct Live {
    pub force: Option<ForceState>,
    pub autosave_at_ms: Option<u64>,
    /// A `saved` command vetoes the next acknowledgement.
    pub veto: bool,
    /// Which editor may save now, until when.
    pub save_lock: Option<(String, u64)>,
}

/// How far force saving has come.
#[derive(Clone, Debug)]
pub struct ForceState {
    pub time_ms: u64,
    pub index: usize,
    pub changed_by: Author,
    pub started: bool,
    pub ended: bool,
    /// The built file, to be sent again if the host refused it.
    pub cache: Option<Save>,
}
