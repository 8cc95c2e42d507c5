//! Somebody opens a key, or comes back to it.
//!
//! Guarantees: the order of the real server: the row is upserted first (a new opening number, the callback
//! address, the base address), then its status decides whether this is an editor, a viewer told to refresh, or a
//! revival; the join is told to the host later and does not wait for the source. A source is fetched only if the
//! row has none: a forgotten copy comes first, a cached copy is never renewed.
//!
//! Does not check who may open; [`crate::admission`] did.

use serde_json::{Value, json};

use super::event::{Fetched, Open, Restore};
use super::state::{Author, Base, Conn, ConnId, Content, Op, Row, Source, Status, Task, TaskId};
use super::telling::Ask;
use super::{Action, Effect, Leaving, Machine, Timer};
use crate::journal::Note;
use crate::office;

/// Codes that reach clients.
pub(super) mod code {
    pub(crate) const SHUTDOWN: u16 = 4001;
    pub(crate) const ACCESS_DENIED: u16 = 4004;
    pub(crate) const UPDATE_VERSION: u16 = 4008;
    pub(crate) const NO_CACHE: u16 = 4009;
    pub(crate) const RESTORE: u16 = 4010;
    /// An editor opened a forgotten copy.
    pub(crate) const FILE_NOT_ASSEMBLED: i32 = -201;
    pub(crate) const UNKNOWN: i32 = -1;
    pub(crate) const CONVERT: i32 = -80;
    pub(crate) const DOWNLOAD: i32 = -81;
    pub(crate) const LIMITS: i32 = -93;
}

/// Whether a key had a row before this opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowWas {
    Absent,
    There,
}

impl Machine {
    pub(super) fn open(&mut self, open: Open) {
        if self.shutdown {
            return self.turn_away(open.conn, code::SHUTDOWN, "server shutdown");
        }
        let before = self.status_of(&open.key);
        let (index, row) = match &open.restore {
            Some(restore) => (restore.index, RowWas::There),
            None => self.upsert(&open),
        };
        let mut conn = self.newcomer(&open, index);
        if let Some(restore) = open.restore.as_ref().filter(|restore| restore.closed) {
            self.forget_session(&restore.session);
            conn.closed = true;
            conn.view = true;
            self.conns.insert(open.conn, conn);
            self.send_auth(open.conn, None);
            if restore.wants_document {
                self.open_document(&open, RowWas::There);
            }
            return;
        }
        if let Err(refusal) = self.settle_row(&open, &mut conn, before) {
            return self.file_error(&open, conn, refusal);
        }
        self.note_opening(&open, &conn, before);
        self.admit(&open, conn);
        if open.restore.as_ref().is_none_or(|restore| restore.wants_document) {
            self.open_document(&open, row);
        }
    }

    /// One more opening of the row, or the first; returns its number.
    fn upsert(&mut self, open: &Open) -> (u32, RowWas) {
        let old = self.durable.row(&open.key).cloned();
        let was = if old.is_none() { RowWas::Absent } else { RowWas::There };
        let mut row = old.unwrap_or_else(|| Row {
            status: Status::None,
            user_index: 0,
            callbacks: Vec::new(),
            base_url: String::new(),
            file_type: open.source.as_ref().map(|source| source.file_type.clone()).unwrap_or_default(),
            last_open_ms: 0,
        });
        row.user_index += 1;
        row.base_url.clone_from(&open.base_url);
        row.last_open_ms = self.now_ms;
        if let Some(callback) = &open.callback {
            row.callbacks.push((row.user_index, callback.clone()));
        }
        let index = row.user_index;
        self.durable.change(Op::Row { key: open.key.clone(), row: Some(row) });
        (index, was)
    }

    fn newcomer(&self, open: &Open, index: u32) -> Conn {
        let restore = open.restore.as_ref();
        Conn {
            key: open.key.clone(),
            user: Author { id: open.user_id.clone(), index, name: open.user_name.clone() },
            view: open.view,
            closed: false,
            live_viewer: open.view && open.live_viewer,
            session: restore.map_or_else(|| format!("s{}", open.conn.0), |restore| restore.session.clone()),
            since_ms: restore.map_or(self.now_ms, |restore| restore.since_ms),
            permissions: open.permissions.clone(),
        }
    }

    /// Lets the row's status decide what an editor becomes. `Err` carries description and code.
    fn settle_row(
        &mut self,
        open: &Open,
        conn: &mut Conn,
        before: Option<Status>,
    ) -> Result<(), (&'static str, Option<u16>)> {
        if conn.view {
            return Ok(());
        }
        let returning = open.restore.is_some();
        match before {
            Some(Status::Ok) => {}
            Some(Status::SaveVersion(_)) => self.set_status(&open.key, Status::Ok),
            Some(Status::UpdateVersion(minute)) if !returning && self.window_is_over(minute) => {
                self.set_status(&open.key, Status::None);
                let replayed =
                    self.durable.changes(&open.key).iter().map(|change| change.id.clone()).collect();
                self.note(Note::RowRevived { key: open.key.clone(), replayed });
            }
            Some(Status::UpdateVersion(_)) => {
                conn.view = true;
                conn.closed = true;
                if returning {
                    return Err(("Update Version error", Some(code::UPDATE_VERSION)));
                }
            }
            None if returning => return Err(("Other error", Some(code::NO_CACHE))),
            Some(_) if returning => return Err(("Other error", None)),
            _ => {}
        }
        match &open.restore {
            Some(restore) if !self.may_restore(open, conn, restore) => {
                Err(("Restore error. Document modified.", Some(code::RESTORE)))
            }
            _ => Ok(()),
        }
    }

    /// A session goes on only if the last change is its own, or one it has heard of.
    fn may_restore(&self, open: &Open, conn: &Conn, restore: &Restore) -> bool {
        let Some(last) = self.durable.changes(&open.key).last() else { return true };
        last.author.unique_id() == conn.user.unique_id() || restore.last_other_save_ms / 1000 == last.time_s
    }

    /// Counts the connection in and tells everybody who must know.
    fn admit(&mut self, open: &Open, conn: Conn) {
        let key = conn.key.clone();
        let user = conn.user.clone();
        let (edits, hears_changes) = (!conn.view, conn.edits() || conn.live_viewer);
        if open.restore.is_some() {
            self.forget_session(&conn.session);
        }
        self.conns.insert(open.conn, conn);
        let mut has_forgotten = None;
        if edits {
            let action = Action::new(Action::JOINED, &user.id);
            let url = open.callback.clone().filter(|_| open.restore.is_none());
            let ask = Ask { url, ..Ask::about(&key, Some(action), Some(user.index)) };
            self.in_ms(self.rules.timings.status_lag_ms, Timer::Tell(ask));
            if open.restore.is_none() {
                let forgotten = self.durable.forgotten(&key).is_some();
                has_forgotten = Some(forgotten);
                if forgotten {
                    let message = json!({"type": "warning", "code": code::FILE_NOT_ASSEMBLED, "message": "File not assembled"});
                    self.send(open.conn, message);
                }
            }
        }
        if open.restore.is_none() && hears_changes && !self.durable.changes(&key).is_empty() {
            let changes = self.change_messages(&key, 0);
            self.send(open.conn, json!({"type": "authChanges", "changes": changes}));
        }
        self.send_auth(open.conn, has_forgotten);
        self.tell_participants(&key, Some(&user.unique_id()));
    }

    /// Answers the request for the document itself, now or when the source is there.
    fn open_document(&mut self, open: &Open, row: RowWas) {
        let key = open.key.as_str();
        let returning = open.restore.is_some();
        let Some(conn) = self.conns.get(&open.conn).cloned() else { return };
        let status = self.status_of(key);
        if row == RowWas::There {
            let has_base = self.durable.record(key).is_some_and(|record| record.base.is_some());
            match status {
                Some(Status::Ok | Status::SaveVersion(_) | Status::UpdateVersion(_)) if !has_base => {
                    self.set_status(key, Status::None);
                }
                Some(Status::Ok) => return self.send_open(open.conn, "ok", None),
                Some(Status::SaveVersion(_) | Status::UpdateVersion(_)) if conn.closed => {
                    return self.send_open(open.conn, "updateversion", None);
                }
                Some(Status::SaveVersion(_) | Status::UpdateVersion(_)) if conn.view => {
                    return self.send_open(open.conn, "ok", None);
                }
                Some(Status::UpdateVersion(minute)) if returning || !self.window_is_over(minute) => {
                    return self.send_open(open.conn, "updateversion", None);
                }
                Some(Status::SaveVersion(_) | Status::UpdateVersion(_)) => {
                    self.set_status(key, Status::Ok);
                    return self.send_open(open.conn, "ok", None);
                }
                Some(Status::Err(code)) => return self.send_open(open.conn, "err", Some(code)),
                Some(Status::WaitQueue) => return,
                Some(Status::None) | None => {}
            }
        }
        self.set_status(key, Status::WaitQueue);
        let id = self.durable.next_task();
        let task = Task::Open { key: key.to_owned(), source: open.source.clone(), attempt: 0 };
        self.set_task(id, Some(task));
        self.fetch(id);
    }

    /// Brings the bytes of a key here: from its forgotten copy, else from the host.
    pub(super) fn fetch(&mut self, id: TaskId) {
        let Some(Task::Open { key, source, attempt }) = self.durable.tasks.get(&id).cloned() else { return };
        if let Some(forgotten) = self.durable.forgotten(&key).cloned() {
            let base = Base { content: forgotten, from_forgotten: true };
            return self
                .in_ms(self.rules.timings.conversion_ms, Timer::Opened { task: id, outcome: Ok(base) });
        }
        let Some(source) = source else {
            return self.in_ms(0, Timer::Opened { task: id, outcome: Err(code::UNKNOWN) });
        };
        let task = Task::Open { key, source: Some(source.clone()), attempt: attempt + 1 };
        self.set_task(id, Some(task));
        self.effects.push(Effect::Fetch { task: id, source });
    }

    pub(super) fn fetched(&mut self, id: TaskId, outcome: Fetched) {
        let Some(Task::Open { key, source: Some(source), attempt }) = self.durable.tasks.get(&id).cloned()
        else {
            return;
        };
        let timings = &self.rules.timings;
        let (conversion_ms, retry_ms) = (timings.conversion_ms, timings.fetch_retry_ms);
        let last = attempt >= timings.fetch_attempts;
        let outcome = match outcome {
            Fetched::Bytes(bytes) => self.read_source(&source, bytes),
            Fetched::Failed if !last => return self.in_ms(retry_ms, Timer::FetchAgain(id)),
            Fetched::Failed | Fetched::TimedOut => Err(code::DOWNLOAD),
            Fetched::TooLarge => Err(code::LIMITS),
        };
        let sha256 = outcome.as_ref().ok().map(|base| base.content.sha256.clone());
        self.note(Note::SourceFetched { key, attempts: attempt, sha256 });
        let wait_ms = if outcome.is_ok() { conversion_ms } else { 0 };
        self.in_ms(wait_ms, Timer::Opened { task: id, outcome });
    }

    /// An empty file becomes a blank document, without a word: so does the real server.
    fn read_source(&self, source: &Source, bytes: bytes::Bytes) -> Result<Base, i32> {
        let bytes = if bytes.is_empty() { office::blank(&source.file_type) } else { bytes };
        if !office::can_open(&bytes, &source.file_type) {
            return Err(code::CONVERT);
        }
        let mut content = Content::new(bytes, &source.file_type, std::sync::Arc::new([]));
        if let Some(holds) = self.lineage.get(&content.sha256) {
            content.holds = holds.clone();
        }
        Ok(Base { content, from_forgotten: false })
    }

    pub(super) fn opened(&mut self, id: TaskId, outcome: Result<Base, i32>) {
        let Some(Task::Open { key, .. }) = self.durable.tasks.get(&id).cloned() else { return };
        self.set_task(id, None);
        if self.durable.row(&key).is_none() {
            return;
        }
        match outcome {
            Ok(base) => {
                let (sha256, holds) = (base.content.sha256.clone(), base.content.holds.clone());
                let from_forgotten = base.from_forgotten;
                self.durable.change(Op::Base { key: key.clone(), base: Some(base) });
                self.set_status(&key, Status::Ok);
                self.note(Note::CopyOpened { key: key.clone(), sha256, holds, from_forgotten });
                self.send_open_to_all(&key, "ok", None);
            }
            // Worth another try by the next opener, so not kept under the key.
            Err(code @ (code::DOWNLOAD | code::LIMITS)) => {
                self.set_status(&key, Status::None);
                self.send_open_to_all(&key, "err", Some(code));
            }
            Err(code) => {
                self.set_status(&key, Status::Err(code));
                self.send_open_to_all(&key, "err", Some(code));
            }
        }
    }

    fn send_open_to_all(&mut self, key: &str, status: &str, code: Option<i32>) {
        let all: Vec<ConnId> = self.conns_of(key).map(|(id, _)| id).collect();
        for conn in all {
            self.send_open(conn, status, code);
        }
    }

    fn send_open(&mut self, conn: ConnId, status: &str, code: Option<i32>) {
        let Some(key) = self.conns.get(&conn).map(|conn| conn.key.clone()) else { return };
        let data = match code {
            Some(code) => json!(code),
            None => {
                let base_url = self.durable.row(&key).map(|row| row.base_url.clone()).unwrap_or_default();
                let links = &self.rules.links;
                let link = |name: &str| links.session_link(&base_url, (&key, name), self.now_ms);
                // The file as it was opened; our own name for it.
                let ext = self.durable.row(&key).map(|row| row.file_type.as_str()).unwrap_or_default();
                json!({"Editor.bin": link("Editor.bin"), "origin": link(&format!("origin.{ext}"))})
            }
        };
        let data = json!({"type": "open", "status": status, "data": data});
        self.send(conn, json!({"type": "documentOpen", "data": data}));
    }

    /// Tells a client who it is and who else is in.
    fn send_auth(&mut self, id: ConnId, has_forgotten: Option<bool>) {
        let Some(conn) = self.conns.get(&id).cloned() else { return };
        let participants = self.participants(&conn.key);
        let jwt = self.rules.sessions.sign(&conn, self.now_ms);
        let message = json!({
            "type": "auth",
            "result": 1,
            "sessionId": conn.session,
            "sessionTimeConnect": conn.since_ms,
            "participants": participants,
            "locks": {},
            "indexUser": conn.user.index,
            "hasForgotten": has_forgotten,
            "jwt": jwt,
            "buildVersion": self.rules.version,
            "buildNumber": 1,
            "licenseType": 3,
            "settings": {"reconnection": {"attempts": 50, "delay": 2000}, "websocketMaxPayloadSize": 1_572_864},
            "syncChangesIndex": self.durable.changes(&conn.key).len(),
        });
        self.send(id, message);
    }

    pub(super) fn participants(&self, key: &str) -> Vec<Value> {
        let here = self.conns_of(key).filter(|(_, conn)| !conn.closed);
        here.map(|(id, conn)| conn.describe(id)).collect()
    }

    /// Tells everybody but one who is in.
    pub(super) fn tell_participants(&mut self, key: &str, except: Option<&str>) {
        let participants = self.participants(key);
        let message = json!({
            "type": "connectState",
            "participantsTimestamp": self.now_ms,
            "participants": participants,
            "waitAuth": false,
        });
        self.broadcast(key, except, &message);
    }

    /// Sends to everybody on a key who is not closed, except one user's tab.
    pub(super) fn broadcast(&mut self, key: &str, except: Option<&str>, message: &Value) {
        let to: Vec<ConnId> = self
            .conns_of(key)
            .filter(|(_, conn)| !conn.closed && Some(conn.user.unique_id().as_str()) != except)
            .map(|(id, _)| id)
            .collect();
        for conn in to {
            self.send(conn, message.clone());
        }
    }

    /// Closes a connection with a reason.
    pub(super) fn turn_away(&mut self, conn: ConnId, code: u16, description: &str) {
        self.send(conn, json!({"type": "disconnectReason", "code": code, "description": description}));
        self.effects.push(Effect::Disconnect { conn });
    }

    /// Ends a connection that misbehaved.
    pub(super) fn throw_out(&mut self, conn: ConnId, code: u16, description: &str) {
        self.turn_away(conn, code, description);
        self.leave(conn, Leaving::Lost);
    }

    /// A returning client that cannot go on: it stays, as a viewer.
    fn file_error(&mut self, open: &Open, mut conn: Conn, (description, code): (&'static str, Option<u16>)) {
        if let Some(restore) = &open.restore {
            self.forget_session(&restore.session);
        }
        conn.view = true;
        conn.closed = true;
        let token = self.rules.sessions.sign(&conn, self.now_ms);
        self.conns.insert(open.conn, conn);
        self.send(open.conn, json!({"type": "refreshToken", "messages": token}));
        self.send(open.conn, json!({"type": "error", "description": description, "code": code}));
    }

    /// A new connection of a session takes the place of the old one, without anybody having left.
    fn forget_session(&mut self, session: &str) {
        self.conns.retain(|_, conn| conn.session != session);
    }

    fn note_opening(&mut self, open: &Open, conn: &Conn, before: Option<Status>) {
        let as_what = match (conn.closed, conn.view) {
            (true, _) => "refresh",
            (false, true) => "viewer",
            (false, false) => "editor",
        };
        self.note(Note::Opened {
            key: open.key.clone(),
            user: open.user_id.clone(),
            conn: open.conn.0,
            as_what: as_what.to_owned(),
            found: before.map(|status| format!("{status:?}")),
        });
    }
}
