//! What the understudy's journal says happened, arranged for questions.
//!
//! Guarantees: built from the journal alone, so that the service has no say in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use understudy::journal::{Entry, Journal, Note, Whereabouts};
use understudy::machine::{Answer, ChangeId, Verdict, status};

use crate::world::ANSWER_ZERO_WITHIN;

/// Why the server deletes changes that it could not deliver.
const MOVED: &str = "moved to the forgotten copy";
/// Why it deletes those that it has delivered.
const ACKNOWLEDGED: &str = "acknowledged";
/// Why it lets a final save go that it has to send again.
const OUT_OF_PLACE: &str = "somebody is in the document, or another save took its place";

/// A file the understudy built.
#[derive(Debug, Clone)]
pub(crate) struct Produced {
    pub(crate) sha256: String,
    pub(crate) holds: BTreeSet<String>,
}

/// One delivery of a callback.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) number: u64,
    pub(crate) key: String,
    pub(crate) status: u8,
    /// Whether it names somebody.
    has_users: bool,
    /// The file it offered.
    pub(crate) path: Option<String>,
    pub(crate) sent_ms: u64,
    /// When and how it was answered.
    pub(crate) answered: Option<(u64, Answer, Verdict)>,
}

impl Delivery {
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.answered.as_ref().is_some_and(|(.., verdict)| *verdict == Verdict::Acknowledged)
    }

    /// Whether it brought a content that an acknowledgement promises to keep.
    pub(crate) fn brings_content(&self) -> bool {
        matches!(self.status, status::MUST_SAVE | status::MUST_FORCE_SAVE) && self.path.is_some()
    }
}

/// Per key: the changes in saves that the server dropped while nobody was in, and what the file that was acknowledged last
/// holds.
#[derive(Debug, Default)]
struct Dropped {
    changes: HashMap<String, BTreeSet<String>>,
    acknowledged: HashMap<String, BTreeSet<String>>,
    /// Who is in which key, by connection.
    inside: HashMap<u64, String>,
}

/// The journal, arranged.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) deliveries: BTreeMap<u64, Delivery>,
    /// By path.
    pub(crate) produced: HashMap<String, Produced>,
    /// What a file holds, by its hash.
    pub(crate) holds: HashMap<String, BTreeSet<String>>,
    pub(crate) changes: BTreeMap<ChangeId, Whereabouts>,
    /// Keys somebody was let into although a final save of theirs was on its way and not acknowledged: after a lost
    /// answer the session goes on under a key that the service may have retired. Keys with a forgotten file, which
    /// may cross with saves of the same session.
    pub(crate) continued_keys: BTreeSet<String>,
    /// Keys whose final save came after a restart of the server, which then no longer knows the time of the last change:
    /// nobody can tell whether a force save that comes late is older.
    pub(crate) timeless_keys: BTreeSet<String>,
    /// The forgotten file that lies under a key, by its hash.
    pub(crate) forgotten_now: HashMap<String, String>,
    /// Changes that the server deleted from its log for a file that does not hold them, whatever it was answered: a
    /// forgotten file that it built damaged or took from an older save, or an older final save that was acknowledged
    /// after it had dropped the newer one by itself, with nobody in the document.
    pub(crate) lost_by_server: BTreeSet<String>,
    /// Saves, by path, that the server did not offer or did not offer again, because somebody was inside or another took their place.
    pub(crate) dropped: BTreeSet<String>,
    pub(crate) crashes: u64,
    pub(crate) forgotten: u64,
}

impl Facts {
    pub(crate) fn of(journal: &Journal) -> Self {
        let mut facts = Self { changes: journal.changes(), ..Self::default() };
        // Per key, the deliveries of final saves that nobody has acknowledged.
        let mut unheard: HashMap<String, BTreeSet<u64>> = HashMap::new();
        let mut forgotten: HashMap<String, BTreeSet<String>> = HashMap::new();
        let mut dropped = Dropped::default();
        for entry in journal.entries() {
            facts.take(&entry, &mut unheard);
            facts.follow_forgotten(&entry.note, &mut forgotten);
            facts.follow_dropped(&entry.note, &mut dropped);
        }
        facts
    }

    /// The newer of two final saves that were both under way may be dropped when both have to be sent again.
    fn follow_dropped(&mut self, note: &Note, dropped: &mut Dropped) {
        if let Note::CallbackDropped { path, .. } = note {
            self.dropped.insert(path.clone());
        }
        match note {
            Note::CallbackDropped { key, path, why }
                if why == OUT_OF_PLACE && !dropped.inside.values().any(|inside| inside == key) =>
            {
                let holds = self.produced.get(path).map(|file| file.holds.clone()).unwrap_or_default();
                dropped.changes.entry(key.clone()).or_default().extend(holds);
            }
            // Whoever comes in goes on with all changes, and leaves with a save of its own.
            Note::Opened { key, conn, .. } => {
                dropped.changes.remove(key);
                dropped.inside.insert(*conn, key.clone());
            }
            Note::Left { conn, .. } => drop(dropped.inside.remove(conn)),
            Note::Crashed => dropped.inside.clear(),
            Note::CallbackAnswered { delivery, verdict: Verdict::Acknowledged, .. } => {
                let Some(known) = self.deliveries.get(delivery) else { return };
                let holds = self.offered(known).map(|file| file.holds.clone()).unwrap_or_default();
                dropped.acknowledged.insert(known.key.clone(), holds);
            }
            Note::ChangesDeleted { key, ids, why } if why == ACKNOWLEDGED => {
                let (Some(changes), Some(holds)) = (dropped.changes.get(key), dropped.acknowledged.get(key))
                else {
                    return;
                };
                let ids = ids.iter().map(ToString::to_string);
                self.lost_by_server.extend(ids.filter(|id| changes.contains(id) && !holds.contains(id)));
            }
            _ => {}
        }
    }

    /// Changes leave the log for the forgotten file that was put down just before.
    fn follow_forgotten(&mut self, note: &Note, forgotten: &mut HashMap<String, BTreeSet<String>>) {
        match note {
            Note::ForgottenDeleted { key, .. } => drop(self.forgotten_now.remove(key)),
            Note::ForgottenPut { key, holds, sha256 } => {
                self.forgotten += 1;
                self.forgotten_now.insert(key.clone(), sha256.clone());
                self.continued_keys.insert(key.clone());
                forgotten.insert(key.clone(), holds.iter().map(ToString::to_string).collect());
            }
            Note::ChangesDeleted { key, ids, why } if why == MOVED => {
                let Some(holds) = forgotten.get(key) else { return };
                let ids = ids.iter().map(ToString::to_string);
                self.lost_by_server.extend(ids.filter(|id| !holds.contains(id)));
            }
            _ => {}
        }
    }

    fn take(&mut self, entry: &Entry, unheard: &mut HashMap<String, BTreeSet<u64>>) {
        match &entry.note {
            Note::ContentProduced { path, sha256: Some(sha256), holds, .. } => {
                let holds: BTreeSet<String> = holds.iter().map(ToString::to_string).collect();
                self.holds.insert(sha256.clone(), holds.clone());
                self.produced.insert(path.clone(), Produced { sha256: sha256.clone(), holds });
            }
            Note::CallbackSent { delivery, body, .. } => {
                if matches!(body.status, status::MUST_SAVE | status::CORRUPTED) {
                    unheard.entry(body.key.clone()).or_default().insert(*delivery);
                }
                if body.status == status::MUST_SAVE && body.notmodified == Some(None) {
                    self.timeless_keys.insert(body.key.clone());
                }
                let path = body.url.as_deref().and_then(folder_of).map(str::to_owned);
                let delivery = Delivery {
                    number: *delivery,
                    key: body.key.clone(),
                    status: body.status,
                    has_users: body.users.as_ref().is_some_and(|users| !users.is_empty()),
                    path,
                    sent_ms: entry.at_ms,
                    answered: None,
                };
                self.deliveries.insert(delivery.number, delivery);
            }
            Note::CallbackAnswered { delivery, answer, verdict, .. } => {
                let Some(known) = self.deliveries.get_mut(delivery) else { return };
                known.answered = Some((entry.at_ms, answer.clone(), *verdict));
                if *verdict == Verdict::Acknowledged
                    && known.status == status::MUST_SAVE
                    && let Some(open) = unheard.get_mut(&known.key)
                {
                    open.clear();
                }
            }
            Note::Opened { key, as_what, .. }
                if as_what == "editor" && unheard.get(key).is_some_and(|open| !open.is_empty()) =>
            {
                self.continued_keys.insert(key.clone());
            }
            Note::CopyOpened { key, from_forgotten: true, .. } => {
                // The service may collect the forgotten file at the same time.
                self.continued_keys.insert(key.clone());
            }
            Note::Crashed => self.crashes += 1,
            _ => {}
        }
    }

    /// The file a delivery offered.
    pub(crate) fn offered(&self, delivery: &Delivery) -> Option<&Produced> {
        self.produced.get(delivery.path.as_deref()?)
    }

    /// Whether a final save of this key was damaged and refused, or its connection was closed because the answer was late or
    /// somebody was seen to come in while it was stored: then the session goes on from its own base.
    pub(crate) fn goes_on(&self, key: &str) -> bool {
        let of_key = || self.deliveries.values().filter(|sent| sent.key == key);
        let somebody_came = |from_ms: u64, until_ms: u64| {
            let is_between = |at_ms: u64| (from_ms..=until_ms).contains(&at_ms);
            of_key().any(|sent| {
                let is_heard = sent.answered.as_ref().is_some_and(|(at_ms, ..)| is_between(*at_ms));
                sent.status == status::EDITING && sent.has_users && is_heard
            })
        };
        of_key().filter(|sent| sent.status == status::MUST_SAVE).any(|sent| match &sent.answered {
            Some((.., Verdict::Refused)) => true,
            Some((at_ms, Answer::Lost { why }, _)) if why == "closed" => {
                let is_late = u128::from(at_ms - sent.sent_ms) >= ANSWER_ZERO_WITHIN.as_millis();
                is_late || somebody_came(sent.sent_ms, *at_ms)
            }
            _ => false,
        })
    }

    /// Whether a force save offered this file.
    pub(crate) fn was_force_saved(&self, key: &str, sha256: &str) -> bool {
        let forced = |sent: &&Delivery| sent.key == key && sent.status == status::MUST_FORCE_SAVE;
        self.deliveries
            .values()
            .filter(forced)
            .any(|sent| self.offered(sent).is_some_and(|file| file.sha256 == sha256))
    }

    /// Acknowledged deliveries that brought a content.
    pub(crate) fn promises(&self) -> impl Iterator<Item = (&Delivery, &Produced)> {
        let acknowledged = |delivery: &&Delivery| delivery.is_acknowledged() && delivery.brings_content();
        self.deliveries
            .values()
            .filter(acknowledged)
            .filter_map(|delivery| self.offered(delivery).map(|produced| (delivery, produced)))
    }
}

/// `<key>_<number>` out of a link.
pub(super) fn folder_of(url: &str) -> Option<&str> {
    url.split("/files/data/").nth(1)?.split('/').next()
}

/// The document a key of ours names.
pub(crate) fn document_of(key: &str) -> Option<String> {
    Some(model::EditorKey::parse(key)?.parts()?.document.to_string())
}

/// Entries that concern a key or any of some changes, as lines for people.
pub(crate) fn lines_about(entries: &[Entry], key: Option<&str>, changes: &[String]) -> Vec<(u64, String)> {
    let concerns = |text: &str| {
        key.is_some_and(|key| text.contains(key))
            || changes.iter().any(|id| text.contains(&format!("\"{id}\"")))
    };
    let mut deliveries = BTreeSet::new();
    let mut lines = Vec::new();
    for entry in entries {
        let text = shorten(entry);
        let is_answer =
            matches!(&entry.note, Note::CallbackAnswered { delivery, .. } if deliveries.contains(delivery));
        if concerns(&text) || is_answer {
            if let Note::CallbackSent { delivery, .. } = &entry.note {
                deliveries.insert(*delivery);
            }
            lines.push((entry.at_ms, text));
        }
    }
    lines
}

/// An entry on one line, without the links and the history nobody reads.
fn shorten(entry: &Entry) -> String {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    if let Some(body) = value.get_mut("body").and_then(serde_json::Value::as_object_mut) {
        let path = body.get("url").and_then(|url| url.as_str()).and_then(folder_of).map(str::to_owned);
        for name in ["url", "changesurl", "history", "token", "actions"] {
            body.remove(name);
        }
        if let Some(path) = path {
            body.insert("path".to_owned(), path.into());
        }
    }
    value.as_object_mut().map(|entry| entry.remove("at_ms"));
    value.to_string()
}
