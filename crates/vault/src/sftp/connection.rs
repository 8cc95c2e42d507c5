//! One connection: requests in our words, each with a known outcome or [`Failure::Lost`].
//!
//! Guarantees: dropped, its line is cut at once, so that nothing that still waits to be sent reaches the server later. One user at
//! a time and a handful of open files: the library garbles the handles of OpenSSH from the 129th open file on.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use jiff::Timestamp;
use russh::client::Handle;
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error;
use russh_sftp::extensions::{FSYNC, HARDLINK, HardlinkExtension, LIMITS};
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};

use super::failure::{Failure, Outcome, if_there};
use super::host_key::Gatekeeper;

const POSIX_RENAME: &str = "posix-rename@openssh.com";
/// What every server must take in one packet.
const CHUNK_BYTES_MIN: u64 = 32 * 1024;
/// What OpenSSH takes; the library reads no longer packets.
const CHUNK_BYTES_MAX: u64 = 255 * 1024;
/// On their way at once, of one file.
const IN_FLIGHT_BYTES: u64 = 2 * 1024 * 1024;

/// What a server can do beyond the protocol itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abilities {
    /// Renames over an existing file.
    pub(crate) replaces: bool,
    /// Flushes files.
    pub(crate) flushes: bool,
    /// Flushes folders: OpenSSH does if they are opened like files.
    pub(crate) flushes_folders: bool,
    /// Gives a file a second name.
    pub(crate) links: bool,
    /// The most that may be written and read by one request.
    pub(crate) chunk_bytes: usize,
    /// How many such requests go out before the first answer.
    pub(crate) in_flight: usize,
}

impl Abilities {
    /// Asks the server.
    pub(crate) async fn probe(
        session: &RawSftpSession,
        extensions: &HashMap<String, String>,
    ) -> Result<Self, String> {
        let has = |name: &str| extensions.contains_key(name);
        let mut chunk_bytes = CHUNK_BYTES_MIN;
        if has(LIMITS) {
            let limits = session.limits().await.map_err(|error| error.to_string())?;
            // 0 means that the server does not say.
            let told = limits.max_write_len.min(limits.max_read_len);
            chunk_bytes = if told == 0 { CHUNK_BYTES_MIN } else { told.min(CHUNK_BYTES_MAX) };
        }
        let flushes = has(FSYNC);
        Ok(Self {
            replaces: has(POSIX_RENAME),
            flushes,
            flushes_folders: flushes && flushes_folders(session).await,
            links: has(HARDLINK),
            chunk_bytes: usize::try_from(chunk_bytes).map_err(|error| error.to_string())?,
            in_flight: usize::try_from((IN_FLIGHT_BYTES / chunk_bytes).max(1))
                .map_err(|error| error.to_string())?,
        })
    }
}

/// Whether the user's own folder can be flushed, and so any other.
async fn flushes_folders(session: &RawSftpSession) -> bool {
    let Ok(handle) = session.open(".", OpenFlags::READ, FileAttributes::empty()).await else { return false };
    let flushed = session.fsync(&*handle.handle).await;
    session.close(handle.handle).await.is_ok() && flushed.is_ok()
}

/// What can be told of a remote file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) size_bytes: u64,
    pub(crate) modified_at: Timestamp,
    pub(crate) is_folder: bool,
}

impl Seen {
    fn from_attributes(attributes: &FileAttributes) -> Self {
        let modified_at = attributes.mtime.and_then(|at| Timestamp::from_second(i64::from(at)).ok());
        Self {
            size_bytes: attributes.size.unwrap_or_default(),
            modified_at: modified_at.unwrap_or_default(),
            is_folder: attributes.is_dir(),
        }
    }
}

/// An open file of the server.
#[derive(Debug)]
pub(crate) struct RemoteFile(pub(super) String);

/// One session over one connection.
pub(crate) struct Connection {
    pub(super) session: RawSftpSession,
    pub(crate) abilities: Abilities,
    /// How long nothing at all may be heard while something is asked.
    pub(super) patience: Duration,
    ssh: Handle<Gatekeeper>,
    line: TcpStream,
}

impl Connection {
    pub(super) fn new(
        session: RawSftpSession,
        (abilities, patience): (Abilities, Duration),
        (ssh, line): (Handle<Gatekeeper>, TcpStream),
    ) -> Self {
        Self { session, abilities, patience, ssh, line }
    }

    /// Sends a request and waits for its answer, not for ever.
    pub(super) async fn ask<T>(
        &self,
        request: &'static str,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Outcome<T> {
        self.patiently(request, answer).await?.map_err(Failure::of(request))
    }

    /// Waits for something to be heard, not for ever.
    pub(super) async fn patiently<T>(
        &self,
        request: &'static str,
        heard: impl Future<Output = T>,
    ) -> Outcome<T> {
        let cause = || format!("nothing was heard for {} s", self.patience.as_secs_f32());
        tokio::time::timeout(self.patience, heard)
            .await
            .map_err(|_| Failure::Lost { request, cause: cause() })
    }

    /// Whether it is known to be of no use.
    pub(crate) fn is_closed(&self) -> bool {
        self.ssh.is_closed()
    }

    /// Opens a file or, for flushing, a folder.
    pub(crate) async fn open(&self, path: &str) -> Outcome<RemoteFile> {
        self.open_with(path, OpenFlags::READ).await
    }

    /// Opens a file for writing, making it as needed. What is in it stays.
    pub(crate) async fn open_to_write(&self, path: &str) -> Outcome<RemoteFile> {
        self.open_with(path, OpenFlags::WRITE | OpenFlags::CREATE).await
    }

    async fn open_with(&self, path: &str, flags: OpenFlags) -> Outcome<RemoteFile> {
        let opened = self.session.open(path, flags, FileAttributes::empty());
        let handle = self.ask("open a file", opened).await?.handle;
        if handle.contains(char::REPLACEMENT_CHARACTER) {
            // It was not UTF-8 and is garbled now: to write to it would be to write to another file.
            return Err(Failure::Lost {
                request: "open a file",
                cause: "a handle that is not text".to_owned(),
            });
        }
        Ok(RemoteFile(handle))
    }

    /// Closes a file. Some servers tell only now that something was not written.
    pub(crate) async fn close(&self, file: RemoteFile) -> Outcome<()> {
        self.ask("close a file", self.session.close(file.0)).await.map(drop)
    }

    /// Makes what was written durable. Only if the server can.
    pub(crate) async fn flush(&self, file: &RemoteFile) -> Outcome<()> {
        self.ask("flush a file", self.session.fsync(&*file.0)).await.map(drop)
    }

    /// Makes the names in a folder durable, if the server can.
    pub(crate) async fn flush_folder(&self, path: &str) -> Outcome<()> {
        if !self.abilities.flushes_folders {
            return Ok(());
        }
        let folder = self.open(path).await?;
        let flushed = self.flush(&folder).await;
        self.close(folder).await?;
        flushed
    }

    /// What a name shows.
    pub(crate) async fn look(&self, path: &str) -> Outcome<Option<Seen>> {
        let found = self.ask("look at a file", self.session.stat(path)).await;
        if_there(found.map(|found| Seen::from_attributes(&found.attrs)))
    }

    /// How long an open file is.
    pub(crate) async fn size_of(&self, file: &RemoteFile) -> Outcome<u64> {
        let found = self.ask("look at an open file", self.session.fstat(&*file.0)).await?;
        Ok(found.attrs.size.unwrap_or_default())
    }

    /// Renames to a name that nothing has; "no" may mean that something has it.
    pub(crate) async fn rename(&self, from: &str, to: &str) -> Outcome<()> {
        self.ask("rename a file", self.session.rename(from, to)).await.map(drop)
    }

    /// Renames over whatever has the name, in one step. Only if the server can.
    pub(crate) async fn replace(&self, from: &str, to: &str) -> Outcome<()> {
        let request = "rename a file over another";
        let names = HardlinkExtension { oldpath: from.to_owned(), newpath: to.to_owned() };
        // Both extensions take two paths.
        let data: Vec<u8> =
            names.try_into().map_err(|_| Failure::ours("a path is too long for the protocol"))?;
        match self.ask(request, self.session.extended(POSIX_RENAME, data)).await? {
            Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
            Packet::Status(status) => Err(Failure::from_status(request, &status)),
            _ => Err(Failure::Lost { request, cause: "an answer of the wrong kind".to_owned() }),
        }
    }

    /// Gives a file a second name that nothing has. Only if the server can.
    pub(crate) async fn link(&self, from: &str, to: &str) -> Outcome<()> {
        self.ask("link a file", self.session.hardlink(from, to)).await.map(drop)
    }

    /// Removes a file; one that is not there is fine.
    pub(crate) async fn remove(&self, path: &str) -> Outcome<()> {
        if_there(self.ask("remove a file", self.session.remove(path)).await).map(drop)
    }

    /// Removes a folder.
    pub(crate) async fn remove_folder(&self, path: &str) -> Outcome<()> {
        self.ask("remove a folder", self.session.rmdir(path)).await.map(drop)
    }

    /// Makes a folder and those above it, each durable in the one above.
    pub(crate) async fn make_folders(&self, path: &str) -> Outcome<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let folders: Vec<&str> = ends.map(|end| &path[..end]).filter(|folder| !folder.is_empty()).collect();
        let mut missing = Vec::new();
        for folder in folders.into_iter().rev() {
            if self.look(folder).await?.is_some() {
                break;
            }
            missing.push(folder);
        }
        for folder in missing.into_iter().rev() {
            self.make_folder(folder).await?;
            let above = folder.rsplit_once('/').map_or(".", |(above, _)| above);
            self.flush_folder(if above.is_empty() { "/" } else { above }).await?;
        }
        Ok(())
    }

    /// Makes a folder; one that is there is fine.
    pub(crate) async fn make_folder(&self, path: &str) -> Outcome<()> {
        let made = self.session.mkdir(path, FileAttributes::empty());
        match self.ask("make a folder", made).await {
            Err(Failure::Refused { request, cause }) => match self.look(path).await? {
                Some(seen) if seen.is_folder => Ok(()),
                _ => Err(Failure::Refused { request, cause }),
            },
            other => other.map(drop),
        }
    }

    /// What is in a folder. Names that are not text are left out.
    pub(crate) async fn list(&self, path: &str) -> Outcome<Vec<(String, Seen)>> {
        let request = "list a folder";
        let handle = self.ask(request, self.session.opendir(path)).await?.handle;
        let mut found = Vec::new();
        let ended = loop {
            match self.patiently(request, self.session.readdir(&*handle)).await? {
                Ok(names) => found.extend(
                    names.files.into_iter().map(|file| (file.filename, Seen::from_attributes(&file.attrs))),
                ),
                Err(Error::Status(status)) if status.status_code == StatusCode::Eof => {
                    break Ok(());
                }
                Err(error) => break Err(Failure::of(request)(error)),
            }
        };
        self.close(RemoteFile(handle)).await?;
        ended?;
        found.retain(|(name, _)| {
            !matches!(name.as_str(), "." | "..") && !name.contains(char::REPLACEMENT_CHARACTER)
        });
        Ok(found)
    }

    /// Whether it still answers.
    pub(crate) async fn check(&self) -> Outcome<()> {
        self.ask("say that it lives", self.session.realpath(".")).await.map(drop)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // An error means that it is cut already.
        let _ = self.line.shutdown(Shutdown::Both);
    }
}
