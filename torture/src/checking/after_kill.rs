//! After a kill, before the next start: whatever was answered 0 is there.
//!
//! This is the sharpest form of the promise: no recovery has run yet, nothing can be fetched again.

use std::collections::BTreeSet;

use anyhow::Result;

use super::facts::{Facts, document_of};
use super::ledger::Ledger;
use crate::chronicle::{Class, Violation};
use crate::world::World;

/// Checks the promises, and returns the documents whose publication was noted.
pub(crate) async fn check_after_kill(world: &World) -> Result<BTreeSet<String>> {
    // Before the ledger: other instances go on, and what is promised from now on may come after it.
    let (facts, papers) = (Facts::of(world.editor.journal()), world.papers());
    let Some(ledger) = Ledger::of(world).await? else {
        return Ok(BTreeSet::new());
    };
    let has = |document: &str, sha256: &str| {
        ledger.contents_of(document).any(|content| content.sha256 == sha256)
            || ledger.kept_of(document).any(|kept| kept.sha256 == sha256)
    };
    for (delivery, produced) in facts.promises() {
        let Some(document) = document_of(&delivery.key) else { continue };
        if !has(&document, &produced.sha256) {
            let what = format!(
                "delivery {} (status {}) was answered 0 and its content {} is in no row after a kill",
                delivery.number, delivery.status, produced.sha256
            );
            let violation = Violation::new(Class::Lost, what).of_document(&document).of_key(&delivery.key);
            world.chronicle.accuse(violation.of_changes(&produced.holds));
        }
    }
    for (id, paper) in papers {
        if !has(&id, &paper.sha256) {
            let what = "an upload was answered 201 and is in no row after a kill";
            world.chronicle.accuse(Violation::new(Class::Lost, what).of_document(&id));
        }
    }
    let published = ledger.documents.iter().filter(|document| document.is_published);
    Ok(published.map(|document| document.id.clone()).collect())
}
