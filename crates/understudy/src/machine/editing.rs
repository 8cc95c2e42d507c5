//! Changes arrive.
//!
//! Guarantees: a change is in the durable log before anybody hears of it; its time has whole seconds; a complete
//! batch makes everything force-saved so far old news (a running force save included).
//!
//! Does not look into a change beyond its id: a client whose opening failed may send changes, and they are kept.

use serde_json::{Value, json};

use super::Machine;
use super::event::{Edit, NewChange};
use super::opening::code;
use super::state::{Author, Change, ConnId, ForceState, Op};
use crate::journal::Note;

impl Machine {
    pub(super) fn edit(&mut self, edit: Edit) {
        let Some(conn) = self.conns.get(&edit.conn).cloned() else { return };
        if self.shutdown {
            return;
        }
        if !conn.edits() {
            return self.throw_out(edit.conn, code::ACCESS_DENIED, "access deny");
        }
        let (key, user) = (conn.key.as_str(), &conn.user);
        if let Some(from) = edit.delete_from.filter(|_| edit.starts) {
            self.cut_changes(key, from);
        }
        let start = self.durable.changes(key).len();
        self.accept(key, user, &edit.changes);
        let end = self.durable.changes(key).len();
        let index = if edit.starts && edit.delete_from.is_none() { json!(start) } else { json!(-1) };
        let changes = self.change_messages(key, start);
        let news = json!({
            "type": "saveChanges",
            "changes": changes,
            "changesIndex": end,
            "syncChangesIndex": end,
            "endSaveChanges": edit.ends,
            "locks": [],
            "excelAdditionalInfo": edit.extra,
        });
        self.tell_change(key, &user.unique_id(), &news);
        if !edit.ends {
            return self.send(
                edit.conn,
                json!({"type": "savePartChanges", "changesIndex": index, "syncChangesIndex": end}),
            );
        }
        let time_ms = self.clock_ms() / 1000 * 1000;
        self.live_mut(key).save_lock = None;
        self.send(
            edit.conn,
            json!({"type": "unSaveLock", "index": index, "time": time_ms, "syncChangesIndex": end}),
        );
        self.renew_force_state(key, user, time_ms);
    }

    /// Nothing that was force-saved before is complete any more.
    fn renew_force_state(&mut self, key: &str, user: &Author, time_ms: u64) {
        let index = self.durable.changes(key).len();
        let due_ms = self.now_ms / 1000 * 1000 + self.rules.timings.autosave_interval_ms;
        let autosave = self.rules.autosave;
        let live = self.live_mut(key);
        live.force = Some(ForceState {
            time_ms,
            index,
            changed_by: user.clone(),
            started: false,
            ended: false,
            cache: None,
        });
        if autosave && live.autosave_at_ms.is_none() {
            live.autosave_at_ms = Some(due_ms);
        }
    }

    fn accept(&mut self, key: &str, user: &Author, new: &[NewChange]) {
        if new.is_empty() {
            return;
        }
        let time_s = self.clock_ms() / 1000;
        let mut changes = Vec::with_capacity(new.len());
        for change in new {
            let id = change.id.clone().unwrap_or_else(|| format!("x{:016x}", self.draw(key)));
            self.note(Note::ChangeAccepted {
                id: id.as_str().into(),
                key: key.to_owned(),
                author: user.id.clone(),
                time_s,
            });
            changes.push(Change { id: id.into(), data: change.data.clone(), author: user.clone(), time_s });
        }
        self.durable.change(Op::ChangesAdded { key: key.to_owned(), changes });
    }

    /// Drops the changes from a position on: the editor took them back.
    fn cut_changes(&mut self, key: &str, from: usize) {
        let dropped = self.durable.changes(key).iter().skip(from).map(|change| change.id.clone()).collect();
        self.durable.change(Op::ChangesCut { key: key.to_owned(), from });
        self.note_deleted(key, dropped, "taken back by the editor");
    }

    /// Drops the whole log of a key.
    pub(super) fn delete_changes(&mut self, key: &str, why: &str) {
        let dropped = self.durable.changes(key).iter().map(|change| change.id.clone()).collect();
        self.durable.change(Op::ChangesCut { key: key.to_owned(), from: 0 });
        self.note_deleted(key, dropped, why);
    }

    fn note_deleted(&mut self, key: &str, ids: Vec<super::ChangeId>, why: &str) {
        if !ids.is_empty() {
            self.note(Note::ChangesDeleted { key: key.to_owned(), ids, why: why.to_owned() });
        }
    }

    /// Changes as clients are told of them.
    pub(super) fn change_messages(&self, key: &str, from: usize) -> Vec<Value> {
        let changes = self.durable.changes(key).iter().skip(from);
        let message = |change: &Change| {
            json!({
                "docid": key,
                "change": change.data,
                "time": change.time_s * 1000,
                "user": change.author.unique_id(),
                "useridoriginal": change.author.id,
            })
        };
        changes.map(message).collect()
    }

    /// Editors and live viewers hear of changes; other viewers keep what they opened.
    fn tell_change(&mut self, key: &str, author: &str, news: &Value) {
        let to: Vec<ConnId> = self
            .conns_of(key)
            .filter(|(_, conn)| conn.edits() || (conn.live_viewer && !conn.closed))
            .filter(|(_, conn)| conn.user.unique_id() != author)
            .map(|(id, _)| id)
            .collect();
        for conn in to {
            self.send(conn, news.clone());
        }
    }

    pub(super) fn show_cursor(&mut self, id: ConnId, cursor: Value) {
        let Some(conn) = self.conns.get(&id).cloned() else { return };
        let user = conn.user.unique_id();
        let place =
            json!({"cursor": cursor, "time": self.now_ms, "user": user, "useridoriginal": conn.user.id});
        self.broadcast(&conn.key, Some(&user), &json!({"type": "cursor", "messages": [place]}));
    }

    /// Only one editor at a time sends changes, and only one that has seen all others'.
    pub(super) fn ask_save_lock(&mut self, id: ConnId, seen_index: usize) {
        let Some(conn) = self.conns.get(&id).cloned() else { return };
        if self.shutdown {
            return;
        }
        if !conn.edits() {
            return self.throw_out(id, code::ACCESS_DENIED, "access deny");
        }
        let (now_ms, until_ms) = (self.now_ms, self.now_ms + self.rules.timings.save_lock_ms);
        let me = conn.user.unique_id();
        let live = self.live_mut(&conn.key);
        let unsynced = seen_index > 0 && live.force.as_ref().is_some_and(|force| force.index != seen_index);
        let taken = live.save_lock.as_ref().is_some_and(|(holder, until)| *holder != me && *until > now_ms);
        let refused = unsynced || taken;
        if !refused {
            live.save_lock = Some((me, until_ms));
        }
        self.send(id, json!({"type": "saveLock", "saveLock": refused}));
    }

    pub(super) fn give_save_lock(&mut self, id: ConnId) {
        let Some(conn) = self.conns.get(&id).cloned() else { return };
        self.release_save_lock(&conn.key, &conn.user.unique_id());
        self.send(id, json!({"type": "unSaveLock", "index": -1, "time": -1, "syncChangesIndex": -1}));
    }

    pub(super) fn release_save_lock(&mut self, key: &str, user: &str) {
        let Some(live) = self.live.get_mut(key) else { return };
        if live.save_lock.as_ref().is_some_and(|(holder, _)| holder == user) {
            live.save_lock = None;
        }
    }
}
