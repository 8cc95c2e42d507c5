//! Somebody leaves; the last editor's leaving starts the final save.
//!
//! Guarantees: leaving twice counts once; a tab whose session already came back on another connection does not
//! count at all; the last editor's leaving is never told as status 1 when there is something to save, and is told
//! as 4 when there is not; without any callback address the changes are deleted.
//!
//! Does not look at viewers: they come and go unseen.

use serde_json::json;

use super::event::Leaving;
use super::state::{Author, ConnId, Status, TaskId};
use super::telling::Ask;
use super::{Action, Machine, Purpose, Save, Task, Timer};
use crate::journal::Note;

impl Machine {
    pub(super) fn leave(&mut self, id: ConnId, how: Leaving) {
        let Some(conn) = self.conns.get(&id).cloned() else { return };
        match how {
            Leaving::Lost => drop(self.conns.remove(&id)),
            Leaving::Explicit => self.make_closed_viewer(id),
        }
        if conn.closed {
            return;
        }
        let (key, user) = (conn.key.as_str(), &conn.user);
        let returned = how == Leaving::Lost
            && self.conns_of(key).any(|(_, other)| other.user.unique_id() == user.unique_id());
        if returned {
            return;
        }
        self.note(Note::Left { key: key.to_owned(), user: user.id.clone(), conn: id.0 });
        self.tell_participants(key, Some(&user.unique_id()));
        if !conn.view {
            self.release_save_lock(key, &user.unique_id());
            self.editor_left(key, user, how);
        }
    }

    /// An explicit close keeps the connection, as one that may only look.
    fn make_closed_viewer(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get_mut(&id).filter(|conn| conn.edits()) else { return };
        conn.view = true;
        conn.closed = true;
        let token = self.rules.sessions.sign(conn, self.now_ms);
        self.send(id, json!({"type": "refreshToken", "messages": token}));
    }

    fn editor_left(&mut self, key: &str, user: &Author, how: Leaving) {
        let left = Action::new(Action::LEFT, &user.id);
        let ask = Ask::about(key, Some(left), Some(user.index));
        let lag_ms = self.rules.timings.status_lag_ms;
        if self.has_editors(key) {
            return self.in_ms(lag_ms, Timer::Tell(ask));
        }
        let to_save = !self.durable.changes(key).is_empty() || self.durable.forgotten(key).is_some();
        if to_save {
            let at_once = how == Leaving::Explicit || self.shutdown;
            self.start_save_timer(key, user, if at_once { 0 } else { self.rules.timings.save_delay_ms });
        } else {
            self.in_ms(lag_ms, Timer::Tell(Ask { clean_up: true, ..ask }));
        }
    }

    /// Only a row that is in order and has somebody to report to is saved.
    fn start_save_timer(&mut self, key: &str, user: &Author, delay_ms: u64) {
        let has_callback = self.durable.row(key).is_some_and(|row| !row.callbacks.is_empty());
        let leaver = Some((user.id.clone(), user.index));
        if !has_callback {
            let ask = Ask::about(key, Some(Action::new(Action::LEFT, &user.id)), Some(user.index));
            return self.tell(Ask { clean_up: true, delete_changes: true, ..ask });
        }
        if self.status_of(key) != Some(Status::Ok) {
            // Somebody else's save is under way, or the document never opened: changes stay where they are.
            return;
        }
        let tag = self.fresh_tag(key);
        self.set_status(key, Status::SaveVersion(tag));
        self.in_ms(delay_ms, Timer::Assemble { key: key.to_owned(), tag, leaver });
    }

    /// Milliseconds of the hour, like the real server's, but never the same twice for one key.
    fn fresh_tag(&mut self, key: &str) -> u64 {
        let of_hour = self.now_ms % 3_600_000;
        of_hour * 1_000 + self.draw(key) % 1_000
    }

    /// The save delay is over; a key that was opened again meanwhile is left alone.
    pub(super) fn assemble(&mut self, key: &str, tag: u64, leaver: Option<(String, u32)>) {
        if self.status_of(key) != Some(Status::SaveVersion(tag)) {
            return;
        }
        self.queue_save(key, Purpose::Final { tag, leaver }, |save| save);
    }

    /// Draws a path and hands the save to the converter.
    pub(super) fn queue_save(
        &mut self,
        key: &str,
        purpose: Purpose,
        with: impl FnOnce(Save) -> Save,
    ) -> Option<TaskId> {
        let path = self.fresh_path(key)?;
        let save = Save {
            key: key.to_owned(),
            path,
            purpose,
            conversion: None,
            author: None,
            attempt: 0,
            userdata: None,
            form_data: None,
            asker: None,
            resent: false,
        };
        let id = self.durable.next_task();
        self.set_task(id, Some(Task::Save(with(save))));
        self.in_ms(self.rules.timings.conversion_ms, Timer::Convert(id));
        Some(id)
    }

    /// `<key>_<number>`: drawn until a number is found that no living save of the key has.
    fn fresh_path(&mut self, key: &str) -> Option<String> {
        const NUMBERS: u64 = 10_000;
        let taken = |machine: &Machine, path: &str| {
            let queued = |task: &Task| matches!(task, Task::Save(save) if save.path == path);
            machine.durable.saves.contains_key(path) || machine.durable.tasks.values().any(queued)
        };
        for _ in 0..NUMBERS {
            let path = format!("{key}_{}", self.draw(key) % NUMBERS);
            if !taken(self, &path) {
                return Some(path);
            }
        }
        (0..NUMBERS).map(|number| format!("{key}_{number}")).find(|path| !taken(self, path))
    }
}
