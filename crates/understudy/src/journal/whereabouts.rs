//! Where every accepted change still lives, followed note by note.
//!
//! Guarantees: at any time, for any change ever accepted: the keys whose log holds it, the keys whose forgotten
//! copy or open copy holds it, and whether the host ever acknowledged a content that holds it. A change for which
//! [`Whereabouts::is_lost`] holds is nowhere in this server and was never acknowledged.
//!
//! Does not know what the host did with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::note::Note;
use crate::machine::{ChangeId, Verdict, status};

/// Contents remembered by path; far more than can still be offered.
const CONTENTS_MAX: usize = 100_000;

/// One change and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Whereabouts {
    pub key: String,
    pub author: String,
    pub time_s: u64,
    /// In the change log under these keys (one, as a rule).
    pub in_log: bool,
    /// Keys whose forgotten copy holds it.
    pub forgotten_under: BTreeSet<String>,
    /// Keys whose open copy holds it: the session began from a file with it inside.
    pub open_under: BTreeSet<String>,
    /// Acknowledged deliveries of contents that hold it.
    pub acknowledged_by: Vec<u64>,
    /// Why it left the log.
    pub deleted_because: Option<String>,
}

impl Whereabouts {
    /// Neither here nor with the host.
    pub fn is_lost(&self) -> bool {
        !self.in_log
            && self.forgotten_under.is_empty()
            && self.open_under.is_empty()
            && self.acknowledged_by.is_empty()
    }

    /// Still here and not yet acknowledged.
    pub fn is_outstanding(&self) -> bool {
        self.acknowledged_by.is_empty() && !self.is_lost()
    }
}

/// Follows notes.
#[derive(Debug, Default)]
pub(super) struct Index {
    changes: BTreeMap<ChangeId, Whereabouts>,
    /// What a path contains, and which contents wait for an answer.
    contents: BTreeMap<String, Arc<[ChangeId]>>,
    deliveries: BTreeMap<u64, Arc<[ChangeId]>>,
    forgotten: BTreeMap<String, Arc<[ChangeId]>>,
    open: BTreeMap<String, Arc<[ChangeId]>>,
}

impl Index {
    pub(super) fn follow(&mut self, note: &Note) {
        match note {
            Note::ChangeAccepted { id, key, author, time_s } => {
                let change = self.changes.entry(id.clone()).or_default();
                change.key.clone_from(key);
                change.author.clone_from(author);
                change.time_s = *time_s;
                change.in_log = true;
            }
            Note::ChangesDeleted { ids, why, .. } => self.each(ids, |change| {
                change.in_log = false;
                change.deleted_because = Some(why.clone());
            }),
            Note::ContentProduced { path, holds, .. } => {
                if self.contents.len() >= CONTENTS_MAX {
                    self.contents.pop_first();
                }
                self.contents.insert(path.clone(), holds.clone());
            }
            Note::CallbackSent { delivery, body, .. } => self.sent(*delivery, body),
            Note::CallbackAnswered { delivery, verdict, .. } => self.answered(*delivery, *verdict),
            Note::ForgottenPut { key, holds, .. } => {
                self.forgotten_gone(key);
                self.each(holds, |change| {
                    change.forgotten_under.insert(key.clone());
                });
                self.forgotten.insert(key.clone(), holds.clone());
            }
            Note::ForgottenDeleted { key, .. } => self.forgotten_gone(key),
            Note::CopyOpened { key, holds, .. } => {
                self.copy_gone(key);
                self.each(holds, |change| {
                    change.open_under.insert(key.clone());
                });
                self.open.insert(key.clone(), holds.clone());
            }
            Note::RowRemoved { key, .. } => self.copy_gone(key),
            _ => {}
        }
    }

    pub(super) fn changes(&self) -> &BTreeMap<ChangeId, Whereabouts> {
        &self.changes
    }

    /// A save with a file counts; a 3 or 7 without one carries nothing.
    fn sent(&mut self, delivery: u64, body: &crate::machine::Body) {
        let saves = matches!(body.status, status::MUST_SAVE | status::MUST_FORCE_SAVE);
        let Some(path) = body.url.as_deref().filter(|_| saves).and_then(folder_of) else { return };
        if let Some(holds) = self.contents.get(path) {
            self.deliveries.insert(delivery, holds.clone());
        }
    }

    fn answered(&mut self, delivery: u64, verdict: Verdict) {
        let Some(holds) = self.deliveries.remove(&delivery) else { return };
        if verdict == Verdict::Acknowledged {
            self.each(&holds, |change| change.acknowledged_by.push(delivery));
        }
    }

    fn forgotten_gone(&mut self, key: &str) {
        if let Some(holds) = self.forgotten.remove(key) {
            self.each(&holds, |change| {
                change.forgotten_under.remove(key);
            });
        }
    }

    fn copy_gone(&mut self, key: &str) {
        if let Some(holds) = self.open.remove(key) {
            self.each(&holds, |change| {
                change.open_under.remove(key);
            });
        }
    }

    fn each(&mut self, ids: &[ChangeId], mut step: impl FnMut(&mut Whereabouts)) {
        for id in ids {
            if let Some(change) = self.changes.get_mut(id) {
                step(change);
            }
        }
    }
}

/// `<key>_<number>` out of a link.
fn folder_of(url: &str) -> Option<&str> {
    url.split("/files/data/").nth(1)?.split('/').next()
}
