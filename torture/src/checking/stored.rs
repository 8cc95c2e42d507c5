//! The bytes behind every answer 0 lie on a disk: with the storage server, or in the depot before it.
//!
//! This is looked at while the storage is away and after each kill, when nothing can be brought from elsewhere.

use super::facts::{Facts, document_of};
use crate::chronicle::{Class, Violation};
use crate::world::World;

/// Checks that what was answered 0 is stored. Whether its bytes are right is checked at rest, when all have been delivered.
pub(crate) fn check_stored(world: &World) {
    if world.storage.is_none() {
        return;
    }
    let facts = Facts::of(world.editor.journal());
    let (far, near) = (world.shelf(), world.depot_shelf());
    for (delivery, produced) in facts.promises() {
        let sha256 = &produced.sha256;
        // The depot last: what leaves it is with the storage by then.
        let is_stored = far.file(sha256).exists() || near.file(sha256).exists() || far.file(sha256).exists();
        if !is_stored {
            let what = format!(
                "delivery {} (status {}) was answered 0 and its content {sha256} is neither with the storage nor in the depot",
                delivery.number, delivery.status
            );
            let document = document_of(&delivery.key).unwrap_or_default();
            let violation = Violation::new(Class::Lost, what).of_document(&document).of_key(&delivery.key);
            world.chronicle.accuse(violation.of_changes(&produced.holds));
        }
    }
}
