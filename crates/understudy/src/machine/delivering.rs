//! Saves are offered to the host: 2 and 3 until they are heard, 6 and 7 once.
//!
//! Guarantees: the key is spent before the POST leaves; the answer is acted on without looking at the status
//! again (an acknowledged 3 deletes the changes, a late acknowledgement deletes those of a revived session), as
//! the real server does; a repeat has the same path and a new query.
//!
//! Does not keep order: a 6 in flight is not waited for, a host that is slow sees them overlap.

use super::body::status;
use super::event::RequestId;
use super::forcing::ForceEnd;
use super::state::{Conversion, ForceKind, Op, Purpose, Row, Save, Saved, Status, Task, TaskId};
use super::{Action, Body, Machine, Timer, Verdict, Waiting};
use crate::journal::Note;
use crate::links::Link;
use crate::times;

/// A final save that awaits its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    /// How the row was left; if it is another now, somebody revived the key.
    expected: Status,
    /// The session ran on a forgotten copy.
    from_forgotten: bool,
}

impl Machine {
    /// Sends a built save, if it may still be sent. `then` waits for the outcome of a force save.
    pub(super) fn deliver(&mut self, id: TaskId, then: Option<RequestId>) {
        let Some(Task::Save(save)) = self.durable.tasks.get(&id).cloned() else { return };
        match save.purpose.clone() {
            Purpose::Final { tag, .. } => self.deliver_final(id, &save, tag),
            Purpose::Force(_) => self.deliver_force(id, &save, then),
        }
    }

    fn deliver_final(&mut self, id: TaskId, save: &Save, tag: u64) {
        let key = save.key.as_str();
        let Some(row) = self.durable.row(key).cloned() else {
            return self.set_task(id, None);
        };
        let Some(url) = self.address(&row, save) else {
            self.set_task(id, None);
            self.set_status(key, Status::SaveVersion(tag));
            return self.store_forgotten(save, Status::SaveVersion(tag), "no callback address");
        };
        let ours = row.status == Status::SaveVersion(tag);
        let again = matches!(row.status, Status::UpdateVersion(_));
        if self.has_editors(key) || !(ours || again) {
            let why = "somebody is in the document, or another save took its place";
            let (key, path) = (save.key.clone(), save.path.clone());
            self.note(Note::CallbackDropped { key, path, why: why.to_owned() });
            return self.set_task(id, None);
        }
        let spent = Status::UpdateVersion(self.minute());
        if ours {
            self.set_status(key, spent);
        }
        let mut body = self.save_body(save, &row);
        let force = self.live.get(key).and_then(|live| live.force.as_ref());
        // Without force-save state (a restart, a forgotten copy) the server only knows the present moment.
        body.lastsave = Some(times::iso(force.map_or(self.now_ms, |force| force.time_ms)));
        body.notmodified = Some(force.map(|force| force.ended));
        let from_forgotten = self.opened_from_forgotten(key);
        let offer = Offer { task: id, attempt: save.attempt, expected: spent, from_forgotten };
        self.post(url, body, Waiting::Final(offer));
    }

    fn deliver_force(&mut self, id: TaskId, save: &Save, then: Option<RequestId>) {
        let Purpose::Force(forced) = &save.purpose else { return };
        let row = self.durable.row(&save.key).cloned().filter(|row| row.status == Status::Ok);
        let address = row.and_then(|row| Some((self.address(&row, save)?, row)));
        let Some((url, row)) = address else {
            self.set_task(id, None);
            return self.drop_force(save, then);
        };
        let mut body = self.save_body(save, &row);
        if forced.kind == ForceKind::Internal {
            self.set_task(id, None);
            let end = ForceEnd { success: body.url.is_some(), url: body.url, then };
            return self.force_ended(save, end);
        }
        body.forcesavetype = Some(forced.kind as u8);
        body.lastsave = Some(times::iso(forced.time_ms));
        body.encrypted = save.resent.then_some(false);
        self.post(url, body, Waiting::Force { task: id, then });
    }

    /// The callback of whoever is concerned, and somebody to name; without either there is nothing to send.
    fn address(&self, row: &Row, save: &Save) -> Option<String> {
        let (leaver, presser) = match &save.purpose {
            Purpose::Final { leaver, .. } => (leaver.as_ref(), None),
            Purpose::Force(forced) => (None, forced.by.as_ref()),
        };
        let author = save.author.as_ref().or(leaver).or(presser)?;
        let index = presser.map_or(author.1, |presser| presser.1);
        row.callback_of(Some(index)).map(str::to_owned)
    }

    /// What a final and a force save have in common.
    fn save_body(&mut self, save: &Save, row: &Row) -> Body {
        let (leaver, presser) = match &save.purpose {
            Purpose::Final { leaver, .. } => (leaver.clone(), None),
            Purpose::Force(forced) => (None, forced.by.clone()),
        };
        let is_final = matches!(save.purpose, Purpose::Final { .. });
        let author = save.author.clone().or(leaver.clone()).or(presser.clone());
        let actions = if is_final {
            let left = leaver.or(save.author.clone());
            Some(left.into_iter().map(|(user, _)| Action::new(Action::LEFT, &user)).collect())
        } else {
            presser.map(|(user, _)| vec![Action::new(Action::PRESSED_SAVE, &user)])
        };
        let failed = save.conversion != Some(Conversion::Done);
        let status = match (is_final, failed) {
            (true, false) => status::MUST_SAVE,
            (true, true) => status::CORRUPTED,
            (false, false) => status::MUST_FORCE_SAVE,
            (false, true) => status::CORRUPTED_FORCE,
        };
        let mut body = Body {
            key: save.key.clone(),
            status,
            users: Some(author.into_iter().map(|(user, _)| user).collect()),
            actions,
            userdata: save.userdata.clone(),
            ..Body::default()
        };
        self.add_links(&mut body, save, row);
        body
    }

    /// Links to the files, if the conversion left any; each time with a new query.
    fn add_links(&mut self, body: &mut Body, save: &Save, row: &Row) {
        let Some(mut saved) = self.durable.saved(&save.path).cloned() else { return };
        let least_s =
            (self.now_ms.div_ceil(1000) + self.rules.timings.link_life_s).max(saved.expires_last_s + 1);
        saved.expires_last_s = least_s;
        let link = |name: &str| {
            let link = Link { base_url: &row.base_url, folder: &save.path, name, shard_key: &save.key };
            self.rules.links.sign(&link, least_s)
        };
        body.formsdataurl = save.form_data.as_ref().and(saved.forms.as_ref()).map(|_| link("formsdata.json"));
        if let Some(file) = &saved.file {
            body.url = Some(link(&format!("output.{}", file.ext)));
            body.filetype = Some(file.ext.clone());
            let has_history = !self.opened_from_forgotten(&save.key);
            body.history = Some(if has_history { saved.history.clone() } else { Default::default() });
            body.changesurl = has_history.then(|| link("changes.zip"));
        }
        self.durable.change(Op::Saved { path: save.path.clone(), saved: Some(Box::new(saved)) });
    }

    /// Whether the session runs on a forgotten copy that is still there.
    fn opened_from_forgotten(&self, key: &str) -> bool {
        let Some(record) = self.durable.record(key) else { return false };
        record.forgotten.is_some() && record.base.as_ref().is_some_and(|base| base.from_forgotten)
    }

    /// The host answered a final save. Returns what was done, for the journal.
    pub(super) fn final_answered(&mut self, offer: Offer, verdict: Verdict) -> String {
        let id = offer.task;
        let Some(Task::Save(mut save)) = self.durable.tasks.get(&id).cloned() else {
            return "too late: the save is gone".to_owned();
        };
        let key = save.key.clone();
        let veto = self.live.get_mut(&key).map(|live| std::mem::take(&mut live.veto));
        let vetoed = veto == Some(true);
        if verdict == Verdict::Acknowledged && !vetoed {
            self.set_task(id, None);
            self.acknowledged(&key, &offer);
            self.tell_update_version(&key, Verdict::Acknowledged);
            return "done".to_owned();
        }
        let Purpose::Final { tag, .. } = save.purpose else { return "not a final save".to_owned() };
        // Only if nobody revived the key meanwhile; otherwise it belongs to another session now.
        let mut expected = offer.expected;
        if self.status_of(&key) == Some(expected) {
            expected = Status::SaveVersion(tag);
            self.set_status(&key, expected);
        }
        let attempt = usize::try_from(save.attempt).unwrap_or(usize::MAX);
        let pause_ms = self.rules.timings.retry_delays_ms.get(attempt).copied();
        if let (Verdict::Unheard, Some(pause_ms), false) = (verdict, pause_ms, self.shutdown) {
            save.attempt += 1;
            self.set_task(id, Some(Task::Save(save)));
            self.in_ms(pause_ms, Timer::Deliver(id));
            return format!("again in {pause_ms} ms");
        }
        self.set_task(id, None);
        let has_file = self.durable.saved(&save.path).is_some_and(|saved| saved.file.is_some());
        let reaction = if has_file { "forgotten" } else { "kept the changes" };
        if has_file {
            self.store_forgotten(&save, expected, "not acknowledged");
        }
        self.tell_update_version(&key, Verdict::Refused);
        reaction.to_owned()
    }

    /// The host has it: the server forgets, without looking whose changes these are by now.
    fn acknowledged(&mut self, key: &str, offer: &Offer) {
        self.live.remove(key);
        self.delete_changes(key, "acknowledged");
        self.delete_forgotten(key, "acknowledged");
        if offer.from_forgotten {
            self.remove_row(key, "a forgotten copy was acknowledged");
        }
    }

    /// The only copy goes aside; row, log and cache go, if the row is still as this save left it.
    fn store_forgotten(&mut self, save: &Save, expected: Status, why: &str) {
        let Some(file) = self.durable.saved(&save.path).and_then(|saved| saved.file.clone()) else { return };
        let key = save.key.as_str();
        self.note(Note::ForgottenPut {
            key: key.to_owned(),
            sha256: file.sha256.clone(),
            holds: file.holds.clone(),
        });
        self.durable.change(Op::Forgotten { key: key.to_owned(), file: Some(file) });
        self.live.remove(key);
        if self.status_of(key) == Some(expected) {
            self.delete_changes(key, "moved to the forgotten copy");
            self.remove_row(key, why);
        }
    }

    pub(super) fn remove_row(&mut self, key: &str, why: &str) {
        self.durable.change(Op::Row { key: key.to_owned(), row: None });
        self.durable.change(Op::Base { key: key.to_owned(), base: None });
        self.note(Note::RowRemoved { key: key.to_owned(), why: why.to_owned() });
    }

    fn tell_update_version(&mut self, key: &str, end: Verdict) {
        let success = end == Verdict::Acknowledged;
        let message = serde_json::json!({"type": "updateVersion", "success": success});
        let to: Vec<_> = self.conns_of(key).map(|(id, _)| id).collect();
        for conn in to {
            self.send(conn, message.clone());
        }
    }

    /// The host answered a force save.
    pub(super) fn force_answered(
        &mut self,
        id: TaskId,
        verdict: Verdict,
        then: Option<RequestId>,
    ) -> &'static str {
        let Some(Task::Save(save)) = self.durable.tasks.get(&id).cloned() else {
            return "too late: the save is gone";
        };
        self.set_task(id, None);
        let taken = verdict == Verdict::Acknowledged && save.conversion == Some(Conversion::Done);
        self.force_ended(&save, ForceEnd { success: taken, url: None, then });
        match (taken, &save.purpose) {
            (true, _) => "done",
            (false, Purpose::Force(forced)) if forced.kind == ForceKind::Button => {
                "kept for the next time, warned the editor"
            }
            (false, _) => "kept for the next time",
        }
    }

    /// Keeps results within bounds: the oldest go first.
    pub(super) fn limit_results(&mut self) {
        let size = |saved: &Saved| saved.file.as_ref().map_or(0, |file| file.size_bytes);
        let mut total: u64 = self.durable.saves.values().map(size).sum();
        while total > self.rules.results_bytes_max {
            let queued: Vec<&str> = self.durable.tasks.values().filter_map(save_path).collect();
            let idle = self.durable.saves.iter().filter(|(path, _)| !queued.contains(&path.as_str()));
            let Some((path, saved)) = idle.min_by_key(|(_, saved)| saved.since_ms) else { return };
            total -= size(saved);
            let path = path.clone();
            self.durable.change(Op::Saved { path, saved: None });
        }
    }
}

fn save_path(task: &Task) -> Option<&str> {
    match task {
        Task::Save(save) => Some(&save.path),
        Task::Open { .. } => None,
    }
}
