//! Results are built from the cached copy and the log.
//!
//! Guarantees: a final save takes all changes in the log when the conversion reads it, a force save exactly those
//! that were there when it was asked for; `history` runs from the start of the log, one entry per run of changes
//! by one author; the result is kept under its path until the cache expires.
//!
//! Does not build: that is work for [`crate::office`], outside the machine.

use super::event::{Built, Recipe};
use super::state::{
    Author, Change, ChangeId, Content, Conversion, History, HistoryChange, HistoryUser, Op, Purpose, Save,
    Saved, Status, Task, TaskId,
};
use super::{Effect, Machine};
use crate::journal::Note;

impl Machine {
    /// The converter takes a save up and reads what it needs.
    pub(super) fn convert(&mut self, id: TaskId) {
        let Some(Task::Save(save)) = self.durable.tasks.get(&id).cloned() else { return };
        let useless = match &save.purpose {
            Purpose::Final { tag, .. } => self.status_of(&save.key) != Some(Status::SaveVersion(*tag)),
            Purpose::Force(_) => false,
        };
        let base = self.durable.record(&save.key).and_then(|record| record.base.clone());
        let Some(base) = base.filter(|_| !useless) else {
            return self.useless(id, &save);
        };
        let changes = self.changes_for(&save);
        let row_type =
            self.durable.row(&save.key).map(|row| row.file_type.clone()).filter(|ext| !ext.is_empty());
        let ext = row_type.unwrap_or_else(|| base.content.ext.clone());
        let forced = match &save.purpose {
            Purpose::Force(forced) => Some(forced.clone()),
            Purpose::Final { .. } => None,
        };
        let form_data = save.form_data.clone();
        let recipe = Recipe { key: save.key.clone(), base, changes, ext, forced, form_data };
        self.effects.push(Effect::Build { task: id, recipe: Box::new(recipe) });
    }

    /// Nobody waits for this result any more: the key was opened again, or its copy is gone.
    fn useless(&mut self, id: TaskId, save: &Save) {
        self.set_task(id, None);
        match &save.purpose {
            Purpose::Final { .. } => {
                let why = "the key was opened again";
                let (key, path) = (save.key.clone(), save.path.clone());
                self.note(Note::CallbackDropped { key, path, why: why.to_owned() });
            }
            Purpose::Force(_) => self.drop_force(save, None),
        }
    }

    fn changes_for(&self, save: &Save) -> Vec<Change> {
        let all = self.durable.changes(&save.key);
        match &save.purpose {
            Purpose::Final { .. } => all.to_vec(),
            Purpose::Force(forced) => {
                let time_s = forced.time_ms / 1000;
                all.iter().take(forced.index).filter(|change| change.time_s <= time_s).cloned().collect()
            }
        }
    }

    /// The converter is done, or failed.
    pub(super) fn built(&mut self, id: TaskId, outcome: Built) {
        let Some(Task::Save(mut save)) = self.durable.tasks.get(&id).cloned() else { return };
        let changes = self.changes_for(&save);
        let base_sha256 = self.durable.record(&save.key).and_then(|record| record.base.as_ref());
        let base_sha256 = base_sha256.map(|base| base.content.sha256.clone()).unwrap_or_default();
        let pretended = match &save.purpose {
            Purpose::Force(forced) => forced.changed_by.clone(),
            Purpose::Final { .. } => None,
        };
        save.conversion = Some(outcome.conversion);
        save.author = last_author(&changes, pretended.as_ref());
        let history =
            history_of(&changes, pretended.as_ref(), (&base_sha256, &self.rules.version, self.now_ms));
        let forms = save.form_data.as_ref().map(|data| {
            let bytes = serde_json::to_vec(data).unwrap_or_default();
            Content::new(bytes.into(), "json", std::sync::Arc::new([]))
        });
        if let Some(file) = &outcome.file {
            self.remember(file);
        }
        self.note_content(&save, &outcome);
        let saved = Saved {
            key: save.key.clone(),
            since_ms: self.now_ms,
            file: outcome.file.filter(|_| outcome.conversion != Conversion::Failed),
            changes_zip: outcome.changes_zip,
            forms,
            history,
            expires_last_s: 0,
        };
        self.durable.change(Op::Saved { path: save.path.clone(), saved: Some(Box::new(saved)) });
        self.set_task(id, Some(Task::Save(save)));
        self.limit_results();
        self.deliver(id, None);
    }

    fn note_content(&mut self, save: &Save, outcome: &Built) {
        let file = outcome.file.as_ref();
        let holds: std::sync::Arc<[ChangeId]> =
            file.map_or_else(|| std::sync::Arc::new([]) as _, |file| file.holds.clone());
        self.note(Note::ContentProduced {
            key: save.key.clone(),
            path: save.path.clone(),
            conversion: outcome.conversion,
            sha256: file.map(|file| file.sha256.clone()),
            size_bytes: file.map(|file| file.size_bytes),
            holds,
        });
    }
}

fn last_author(changes: &[Change], pretended: Option<&Author>) -> Option<(String, u32)> {
    let author = changes.last().map(|change| &change.author).or(pretended)?;
    Some((author.id.clone(), author.index))
}

/// One entry per run of changes by one author, from the start of the log.
fn history_of(changes: &[Change], pretended: Option<&Author>, facts: (&str, &str, u64)) -> History {
    let (base_sha256, version, now_ms) = facts;
    let entry = |author: &Author, time_s: u64| HistoryChange {
        document_sha256: base_sha256.to_owned(),
        created: crate::times::sql_style(time_s),
        user: HistoryUser { id: author.id.clone(), name: author.name.clone() },
    };
    let mut runs: Vec<HistoryChange> = Vec::new();
    for change in changes {
        if runs.last().is_none_or(|run| run.user.id != change.author.id) {
            runs.push(entry(&change.author, change.time_s));
        }
    }
    if let (true, Some(author)) = (changes.is_empty(), pretended) {
        runs.push(entry(author, now_ms / 1000));
    }
    History { server_version: Some(version.to_owned()), changes: Some(runs) }
}
