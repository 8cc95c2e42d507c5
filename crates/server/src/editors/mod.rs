//! The other side: a Document Server, as the flows see it.
//!
//! One trait with what we ask of it, one implementation ([`onlyoffice`]; Euro-Office speaks the same protocol).
//!
//! Guarantees: no call is made while holding a lane, a lock or a connection that its callback needs; every call has a
//! deadline. Does not do: decide anything about saves.

pub mod onlyoffice;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use async_trait::async_trait;
use model::EditorKey;
use model::opening::ServerKnowledge;
use vault::{Spool, Spooled};

/// What we ask of a Document Server.
#[async_trait]
pub trait DocumentServer: Send + Sync {
    /// Fetches a result into the spool: whole, or not at all.
    async fn fetch(&self, link: &str, spool: &Spool) -> Result<Spooled, FetchError>;
    /// The same for what is only worth so many bytes.
    async fn fetch_at_most(&self, wanted: &Wanted<'_>, spool: &Spool) -> Result<Spooled, FetchError> {
        let fetched = self.fetch(wanted.link, spool).await?;
        let limit_bytes = wanted.bytes_max;
        if fetched.size_bytes > limit_bytes { Err(FetchError::TooLarge { limit_bytes }) } else { Ok(fetched) }
    }
    /// The same for a link that somebody's browser gave us, and not the server itself: it must lead to a result of the server.
    async fn fetch_for_browser(&self, wanted: &Wanted<'_>, spool: &Spool) -> Result<Spooled, FetchError>;
    /// What it knows of a key.
    async fn knowledge_of(&self, key: &EditorKey) -> ServerKnowledge;
    /// The keys it keeps forgotten files under.
    async fn forgotten_keys(&self) -> Result<Vec<String>, CommandError>;
    /// A link to the forgotten file of a key; `None` if there is none.
    async fn forgotten_link(&self, key: &EditorKey) -> Result<Option<String>, CommandError>;
    /// Deletes the forgotten file of a key. One that is gone already is fine.
    async fn delete_forgotten(&self, key: &EditorKey) -> Result<(), CommandError>;
    /// Asks the browsers of these users to leave a key.
    async fn drop_users(&self, key: &EditorKey, users: &[String]) -> Result<(), CommandError>;
    /// Asks it to save what is being typed. Accepted is no promise: the save comes with a callback that carries the word.
    async fn force_save(&self, key: &EditorKey, word: &str) -> Result<ForceSave, CommandError>;
    /// Tells those who have a key open that its document has another name.
    async fn rename(&self, key: &EditorKey, title: &str) -> Result<(), CommandError>;
    /// Its version, by a command that proves the shared secret.
    async fn version(&self) -> Result<String, CommandError>;
}

/// Asks the users of a retired key to leave, in the background: the server may call back before it answers.
pub(crate) fn ask_to_leave(editor: &Arc<dyn DocumentServer>, key: EditorKey, users: Vec<String>) {
    let editor = Arc::clone(editor);
    tokio::spawn(async move {
        tracing::info!("users of a retired key are asked to leave");
        if let Err(cause) = editor.drop_users(&key, &users).await {
            tracing::warn!(error = %cause, "users of a retired key could not be dropped");
        }
    });
}

/// Something to be fetched.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Where it lies.
    pub link: &'a str,
    /// The largest that is taken.
    pub bytes_max: u64,
}

/// What a Document Server says when it is asked to save.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForceSave {
    /// A save was begun.
    Begun,
    /// There is nothing that is not saved, or a save is under way.
    #[default]
    NothingNew,
    /// It does not know the key.
    NobodyThere,
}

/// Why a result could not be fetched, by what can be done about it.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The link is dead or was never good: 403, 404, 410.
    #[error("the Document Server answered {status} for its own link")]
    Gone {
        /// The HTTP status.
        status: u16,
    },
    /// It answered with something else than the file.
    #[error("the Document Server answered with {what} instead of the file")]
    NotTheFile {
        /// What it was.
        what: String,
    },
    /// The transfer broke or was too slow: try again.
    #[error("the transfer from the Document Server broke")]
    Broken {
        /// What happened.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file is larger than the limit.
    #[error("the file is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The link cannot be used at all.
    #[error("the link cannot be used: {what}")]
    BadLink {
        /// Why.
        what: String,
    },
    /// The spool cannot take it.
    #[error("the spool cannot take the file")]
    Spool(#[source] vault::VaultError),
}

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No answer, or none that makes sense.
    #[error("the Document Server did not answer the command `{command}`")]
    Away {
        /// The command.
        command: &'static str,
        /// What happened.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It refused.
    #[error("the Document Server refused the command `{command}` with error {code}")]
    Refused {
        /// The command.
        command: &'static str,
        /// Its error code: 1 unknown key, 6 bad token …
        code: i64,
    },
}
