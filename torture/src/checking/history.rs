//! What clients were told about each document while the round went on, and whether one order of everything explains it.
//!
//! Guarantees: times of reads and of keys are the harness's own, those of saves the understudy's, both of one clock. Which saves became
//! the head is read in the ledger; when they began and when they were acknowledged is the journal's word.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use super::facts::{Delivery, Facts, folder_of};
use super::ledger::{ContentRow, Ledger};
use super::order::{Label, Look, Saw, Write, find_order};
use crate::chronicle::{Class, Violation};
use crate::watching::parse_label;
use crate::world::{Grant, World};

/// What clients were told, by document.
#[derive(Debug, Default)]
pub(crate) struct History {
    looks: Mutex<BTreeMap<String, Vec<Look>>>,
}

impl History {
    /// Somebody read the head.
    pub(crate) fn note_head(&self, document: &str, times: (u64, u64), (label, sha256): (Label, String)) {
        self.note(document, times, Saw::Head(label, sha256));
    }

    /// Somebody was handed a key.
    pub(crate) fn note_base(&self, document: &str, times: (u64, u64), grant: &Grant) {
        self.note(document, times, Saw::Base(parse_label(&grant.base)));
    }

    fn note(&self, document: &str, (invoked_ms, returned_ms): (u64, u64), saw: Saw) {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.entry(document.to_owned()).or_default().push(Look { invoked_ms, returned_ms, saw });
    }
}

/// Accuses every document with a gap in its numbers.
pub(crate) fn check_numbers(world: &World, ledger: &Ledger) {
    for document in &ledger.documents {
        if let Some(gap) = gap(ledger, &document.id) {
            let what = format!("a number of a version or checkpoint is missing before {gap}");
            world.chronicle.accuse(Violation::new(Class::Damaged, what).of_document(&document.id));
        }
    }
}

/// Accuses every document whose history has no order.
pub(crate) fn check_order(world: &World, ledger: &Ledger) {
    let facts = Facts::of(world.editor.journal());
    let saves = Saves::of(&facts);
    let looks = world.history.looks.lock().unwrap_or_else(PoisonError::into_inner).clone();
    check_numbers(world, ledger);
    for document in &ledger.documents {
        let moved = ledger.contents_of(&document.id).filter(|content| !content.is_filed_beside);
        let writes: Vec<Write> = moved.map(|content| saves.write(content)).collect();
        let looks = looks.get(&document.id).map(Vec::as_slice).unwrap_or_default();
        world.chronicle.count("operations with an order", (writes.len() + looks.len()) as u64);
        if let Err(disorder) = find_order(&writes, looks) {
            let what = format!("what clients were told has no order: {disorder}");
            world.chronicle.accuse(Violation::new(Class::Damaged, what).of_document(&document.id));
        }
    }
}

/// The first number that follows none of its predecessors.
fn gap(ledger: &Ledger, document: &str) -> Option<String> {
    let rows: Vec<&ContentRow> = ledger.contents_of(document).collect();
    let follows = |older: &ContentRow, newer: &ContentRow| {
        let is_checkpoint = newer.version == older.version && newer.checkpoint == older.checkpoint + 1;
        is_checkpoint || (newer.version == older.version + 1 && newer.checkpoint == 0)
    };
    let first = rows.first().filter(|first| (first.version, first.checkpoint) != (1, 0));
    let later = rows.windows(2).filter(|pair| !follows(pair[0], pair[1])).map(|pair| pair[1]);
    first.copied().into_iter().chain(later).next().map(ContentRow::label)
}

/// When each save began and when somebody was told that it was kept.
struct Saves<'a> {
    /// By key and file: several deliveries of one save.
    deliveries: HashMap<(&'a str, &'a str), Vec<&'a Delivery>>,
}

impl<'a> Saves<'a> {
    fn of(facts: &'a Facts) -> Self {
        let mut deliveries: HashMap<_, Vec<&Delivery>> = HashMap::new();
        for delivery in facts.deliveries.values() {
            if let (true, Some(path)) = (delivery.brings_content(), delivery.path.as_deref()) {
                deliveries.entry((delivery.key.as_str(), path)).or_default().push(delivery);
            }
        }
        Self { deliveries }
    }

    /// A content as a write. What was uploaded is there from the beginning; a file that was collected, or that nobody was told
    /// of, took effect at any time.
    fn write(&self, content: &ContentRow) -> Write {
        let path = content.identity.as_ref().and_then(|(_, path, _)| folder_of(path.as_deref()?));
        let saved = content.key.as_deref().zip(path).and_then(|name| self.deliveries.get(&name));
        let acknowledged = |delivery: &&Delivery| {
            let told = delivery.answered.as_ref().filter(|_| delivery.is_acknowledged());
            told.map(|(at_ms, ..)| *at_ms)
        };
        let saved = saved.map(Vec::as_slice).unwrap_or_default();
        let is_first = (content.version, content.checkpoint) == (1, 0);
        Write {
            label: (content.version, content.checkpoint),
            sha256: content.sha256.clone(),
            invoked_ms: saved.iter().map(|delivery| delivery.sent_ms).min().unwrap_or(0),
            returned_ms: if is_first { Some(0) } else { saved.iter().filter_map(acknowledged).min() },
        }
    }
}
