//! At rest: every editor is closed, every fault is over, recovery has had its rounds. Now everything must be right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use understudy::machine::Answer;
use understudy::office::sha256_hex;

use super::blobs::{Blob, Blobs};
use super::facts::{Facts, document_of};
use super::ledger::{ContentRow, KeptRow, Ledger};
use crate::chronicle::{Class, Violation};
use crate::watching::Seen;
use crate::world::{ANSWER_WITHIN, World};

/// A busy machine, and faults that hold a callback back before it leaves.
const ANSWER_MARGIN_MS: u64 = 5000;

/// All that is looked at.
pub(crate) struct Evidence {
    pub(crate) world: Arc<World>,
    pub(crate) facts: Facts,
    pub(crate) ledger: Ledger,
    pub(crate) seen: Arc<Seen>,
    blobs: Blobs,
    /// What each stored content holds, by hash.
    holds: HashMap<String, BTreeSet<String>>,
}

/// Checks everything. The service is dead, and recovery had nothing left to do.
pub(crate) fn check_at_rest(world: &Arc<World>, ledger: Ledger, seen: &Arc<Seen>) -> Evidence {
    let mut evidence = Evidence {
        facts: Facts::of(world.editor.journal()),
        blobs: Blobs::of(world.shelf()),
        world: Arc::clone(world),
        ledger,
        seen: Arc::clone(seen),
        holds: HashMap::new(),
    };
    evidence.read_blobs();
    evidence.check_heads();
    evidence.check_changes();
    evidence.check_history();
    evidence.check_conflicts();
    evidence.check_identities();
    evidence.check_keys();
    evidence.check_answers();
    evidence.check_published();
    evidence
}

impl Evidence {
    fn accuse(&self, violation: Violation) {
        self.world.chronicle.accuse(violation);
    }

    /// Every row's bytes are there, whole, and hold each change at most once.
    fn read_blobs(&mut self) {
        let contents = self.ledger.contents.iter();
        let named: Vec<(String, String, String, Option<String>)> = contents
            .map(|row| {
                (
                    row.document.clone(),
                    format!("content {}", row.label()),
                    row.sha256.clone(),
                    row.key.clone(),
                )
            })
            .chain(self.ledger.kept.iter().map(|row| {
                let document = row.document.clone().unwrap_or_default();
                (document, format!("{} copy {}", row.kind, row.number), row.sha256.clone(), row.key.clone())
            }))
            .collect();
        let mut known_doubled = BTreeSet::new();
        for (document, what, sha256, key) in named {
            let with = |class, text: String| {
                let violation = Violation::new(class, text).of_document(&document);
                match &key {
                    Some(key) => violation.of_key(key),
                    None => violation,
                }
            };
            let markers = match self.blobs.read(&sha256).clone() {
                Blob::Whole(markers) => markers,
                Blob::Missing => {
                    self.accuse(with(Class::Lost, format!("the blob of {what} is missing: {sha256}")));
                    continue;
                }
                Blob::Damaged => {
                    self.accuse(with(Class::Damaged, format!("the blob of {what} is damaged: {sha256}")));
                    continue;
                }
            };
            let doubled: Vec<_> =
                markers.iter().filter(|(_, count)| **count > 1).map(|(id, _)| id.clone()).collect();
            // Whatever is made from a file with a doubled change has it, too: the first one tells.
            let is_news = doubled.iter().any(|id| known_doubled.insert(id.clone()));
            // What is in quarantine was spoilt before it came to us.
            if is_news && !what.starts_with("quarantine") {
                let text = format!("{what} holds changes twice");
                self.accuse(with(Class::Duplicated, text).of_changes(doubled));
            }
            let mut holds: BTreeSet<String> = markers.into_keys().collect();
            // A damaged file that was kept may not be readable; the journal knows what is inside.
            holds.extend(self.facts.holds.get(&sha256).into_iter().flatten().cloned());
            self.holds.insert(sha256, holds);
        }
    }

    fn holds(&self, sha256: &str) -> BTreeSet<String> {
        self.holds.get(sha256).cloned().unwrap_or_default()
    }

    fn has(&self, document: &str, sha256: &str) -> bool {
        self.ledger.contents_of(document).any(|content| content.sha256 == sha256)
            || self.ledger.kept_of(document).any(|kept| kept.sha256 == sha256)
    }

    /// Every document that was brought in is there, and every version is a file that somebody made.
    fn check_heads(&self) {
        for (id, paper) in self.world.papers() {
            if !self.has(&id, &paper.sha256) {
                self.accuse(Violation::new(Class::Lost, "an upload is nowhere").of_document(&id));
            }
        }
        let papers = self.world.papers();
        for content in &self.ledger.contents {
            let is_uploaded =
                papers.get(&content.document).is_some_and(|paper| paper.sha256 == content.sha256);
            let is_produced = self.facts.holds.contains_key(&content.sha256);
            // The answer to the last upload may have been cut off when the curtain fell.
            let is_unheard = !papers.contains_key(&content.document);
            if !is_uploaded && !is_produced && !is_unheard {
                let what =
                    format!("content {} is a file that nobody made: {}", content.label(), content.sha256);
                self.accuse(of_content(Violation::new(Class::Damaged, what), content));
            }
            if is_produced && !self.is_readable(content) {
                let what = format!("content {} does not hold what was put into it", content.label());
                self.accuse(of_content(Violation::new(Class::Damaged, what), content));
            }
        }
    }

    /// Whether the changes the journal knows to be inside are readable in the stored bytes.
    fn is_readable(&self, content: &ContentRow) -> bool {
        let expected = self.facts.holds.get(&content.sha256);
        match self.blobs.known(&content.sha256) {
            Some(Blob::Whole(markers)) => {
                expected.is_none_or(|expected| expected.iter().all(|id| markers.contains_key(id)))
            }
            _ => true,
        }
    }

    /// Every change the Document Server ever accepted is in the head, or kept aside, or still where it can be got.
    fn check_changes(&self) {
        let heads: BTreeMap<&str, BTreeSet<String>> = self
            .ledger
            .documents
            .iter()
            .map(|document| (document.id.as_str(), self.holds(&document.head_sha256)))
            .collect();
        for (id, whereabouts) in &self.facts.changes {
            let Some(document) = document_of(&whereabouts.key) else { continue };
            if heads.get(document.as_str()).is_some_and(|head| head.contains(&**id)) {
                continue;
            }
            let is_kept = self.ledger.kept_of(&document).any(|kept| self.holds(&kept.sha256).contains(&**id));
            if is_kept {
                self.world.chronicle.count("changes kept aside", 1);
                continue;
            }
            if self.facts.lost_by_server.contains(&**id) {
                self.world.chronicle.count("changes the server itself lost", 1);
                continue;
            }
            if whereabouts.in_log && self.waits_for_a_person(&whereabouts.key) {
                self.world.chronicle.count("changes that wait for a person", 1);
                continue;
            }
            let older = self
                .ledger
                .contents_of(&document)
                .find(|content| self.holds(&content.sha256).contains(&**id));
            let (class, what) = match older {
                Some(content) => (
                    Class::Damaged,
                    format!(
                        "a change is in content {} but not in the head, and no copy was kept aside",
                        content.label()
                    ),
                ),
                None if whereabouts.in_log => (
                    Class::Lost,
                    "a change is held by the Document Server under a key that is not handed out".to_owned(),
                ),
                None if !whereabouts.forgotten_under.is_empty() => {
                    (Class::Stuck, "a change is in a forgotten file that nobody collects".to_owned())
                }
                None => (Class::Lost, format!("a change is nowhere: {:?}", whereabouts.deleted_because)),
            };
            let violation = Violation::new(class, format!("{what} [{id}]")).of_document(&document);
            self.accuse(violation.of_key(&whereabouts.key).of_changes([id]));
        }
        self.world.chronicle.count("changes", self.facts.changes.len() as u64);
    }

    /// The server holds the changes beside a file that it built damaged, and their key is still the document's own: they come
    /// back when a person takes that file away.
    fn waits_for_a_person(&self, key: &str) -> bool {
        let Some(forgotten) = self.facts.forgotten_now.get(key) else { return false };
        let is_live = self.ledger.live_keys.iter().any(|(live, _)| live == key);
        let is_quarantined = |kept: &KeptRow| kept.kind == "quarantine" && kept.sha256 == *forgotten;
        is_live && self.ledger.kept.iter().any(is_quarantined)
    }

    /// The head only ever grew: no content that became the head lacks what the one before it held.
    fn check_history(&self) {
        for document in &self.ledger.documents {
            let moved: Vec<&ContentRow> =
                self.ledger.contents_of(&document.id).filter(|content| !content.is_filed_beside).collect();
            for pair in moved.windows(2) {
                let [older, newer] = pair else { continue };
                let missing: Vec<String> =
                    self.holds(&older.sha256).difference(&self.holds(&newer.sha256)).cloned().collect();
                if missing.is_empty() || is_tie(older, newer) {
                    continue;
                }
                let what = format!(
                    "content {} replaced {} as the head and lacks changes of it",
                    newer.label(),
                    older.label()
                );
                self.accuse(of_content(Violation::new(Class::Damaged, what), newer).of_changes(missing));
            }
        }
    }

    /// A copy was kept aside only where the story gave a reason.
    fn check_conflicts(&self) {
        for kept in &self.ledger.kept {
            self.world.chronicle.count(&format!("{} copies ({})", kept.kind, kept.reason), 1);
            if kept.kind == "conflict" && !self.is_explained(kept) {
                let what = format!("a conflict copy ({}) was kept although nothing went wrong", kept.reason);
                let violation = Violation::new(Class::Duplicated, format!("{what} [{}]", kept.number));
                let document = kept.document.clone().unwrap_or_default();
                let key = kept.key.clone().unwrap_or_default();
                let changes = self.holds(&kept.sha256);
                self.accuse(violation.of_document(&document).of_key(&key).of_changes(changes));
            }
        }
    }

    fn is_explained(&self, kept: &KeptRow) -> bool {
        // A file that did not arrive whole at first may come when its key is no longer wanted.
        let was_damaged = |other: &KeptRow| other.kind == "quarantine" && other.key == kept.key;
        let is_late = |key: &String| {
            self.facts.timeless_keys.contains(key) && self.facts.was_force_saved(key, &kept.sha256)
        };
        kept.key.as_ref().is_some_and(|key| self.facts.continued_keys.contains(key) || is_late(key))
            || self.ledger.kept.iter().any(was_damaged)
            || self.is_built_twice(kept)
    }

    /// Somebody came back while the final save was being built, and left before it was there: the server builds two that name the same
    /// second, and which of them arrives first says nothing. Both are kept.
    fn is_built_twice(&self, kept: &KeptRow) -> bool {
        let names =
            |content: &ContentRow| content.identity.as_ref().and_then(|(_, _, last_save_ms)| *last_save_ms);
        kept.reason == "older-session"
            && kept.last_save_ms.is_some()
            && self
                .ledger
                .contents
                .iter()
                .any(|content| content.key == kept.key && names(content) == kept.last_save_ms)
    }

    /// One version or checkpoint per save, however often it was delivered or found again.
    fn check_identities(&self) {
        let mut seen: HashMap<(Option<&str>, &str), &ContentRow> = HashMap::new();
        let mut versions: HashMap<(&str, &str), &ContentRow> = HashMap::new();
        for content in &self.ledger.contents {
            let path = content.identity.as_ref().and_then(|(_, path, _)| path.as_deref());
            let first = path.and_then(|path| seen.insert((content.key.as_deref(), path), content));
            if let Some(first) = first {
                let what = format!("contents {} and {} are one save", first.label(), content.label());
                self.accuse(of_content(Violation::new(Class::Duplicated, what), content));
            }
            let Some(key) = content.key.as_deref().filter(|_| content.checkpoint == 0) else { continue };
            if let Some(first) = versions.insert((key, &content.sha256), content) {
                let what = format!("versions {} and {} are the same file", first.label(), content.label());
                self.accuse(of_content(Violation::new(Class::Duplicated, what), content));
            }
        }
    }

    /// No key was handed out after its final save was acknowledged, and at most one is live.
    fn check_keys(&self) {
        let mut spent: HashMap<&str, u64> = HashMap::new();
        for delivery in self.facts.deliveries.values() {
            if let (2, true, Some((at_ms, ..))) =
                (delivery.status, delivery.is_acknowledged(), &delivery.answered)
            {
                spent.entry(&delivery.key).or_insert(*at_ms);
            }
        }
        for handed in self.world.handed_out() {
            if spent.get(handed.key.as_str()).is_some_and(|at_ms| handed.asked_ms > *at_ms) {
                let what = "a spent key was handed out again";
                let violation = Violation::new(Class::Duplicated, what);
                self.accuse(violation.of_document(&handed.document).of_key(&handed.key));
            }
        }
        let mut live: BTreeMap<&str, u32> = BTreeMap::new();
        for (_, document) in &self.ledger.live_keys {
            *live.entry(document).or_default() += 1;
        }
        for (document, count) in live.into_iter().filter(|(_, count)| *count > 1) {
            let what = format!("{count} edit keys are live");
            self.accuse(Violation::new(Class::Duplicated, what).of_document(document));
        }
    }

    /// Every callback was answered, and in time.
    fn check_answers(&self) {
        let budget_ms = u64::try_from(ANSWER_WITHIN.as_millis()).unwrap_or(u64::MAX) + ANSWER_MARGIN_MS;
        for delivery in self.facts.deliveries.values() {
            self.world.chronicle.count(&format!("callbacks of status {}", delivery.status), 1);
            let Some((at_ms, answer, _)) = &delivery.answered else { continue };
            let held_up_ms = self.world.held_up_ms(delivery.sent_ms, *at_ms);
            let took_ms = at_ms.saturating_sub(delivery.sent_ms + held_up_ms);
            let timed_out = matches!(answer, Answer::Lost { why } if why == "timeout");
            if took_ms > budget_ms || timed_out {
                let what = format!(
                    "delivery {} (status {}) was answered after {took_ms} ms",
                    delivery.number, delivery.status
                );
                let document = document_of(&delivery.key).unwrap_or_default();
                self.accuse(Violation::new(Class::Stuck, what).of_document(&document).of_key(&delivery.key));
            }
        }
        self.world.chronicle.count("forgotten files", self.facts.forgotten);
    }

    /// People saw nothing but contents of the document, and see the head now.
    fn check_published(&self) {
        for (document, hashes) in self.seen.published() {
            for sha256 in hashes {
                if !self.ledger.contents_of(&document).any(|content| content.sha256 == sha256) {
                    let what =
                        format!("the published file was {sha256}, which is no content of the document");
                    self.accuse(Violation::new(Class::Damaged, what).of_document(&document));
                }
            }
        }
        for document in &self.ledger.documents {
            let file = self.world.published_file(&document.id, &document.name);
            let shown = std::fs::read(file).map(|bytes| sha256_hex(&bytes));
            if shown.as_ref().ok() != Some(&document.head_sha256) {
                let what = format!("the published file is {shown:?} and not the head");
                self.accuse(Violation::new(Class::Damaged, what).of_document(&document.id));
            }
        }
    }
}

fn of_content(violation: Violation, content: &ContentRow) -> Violation {
    let violation = violation.of_document(&content.document);
    match &content.key {
        Some(key) => violation.of_key(key),
        None => violation,
    }
}

/// Two saves of one second: `lastsave` has whole seconds, so nobody can tell two force saves that overtook each other apart,
/// and the repeat of an older final save carries the time of the newest change. The save that follows holds everything.
fn is_tie(older: &ContentRow, newer: &ContentRow) -> bool {
    older.key == newer.key && older.saved_ms == newer.saved_ms
}
