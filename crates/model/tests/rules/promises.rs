//! What must hold in every world the search can reach.
//!
//! Promises about a step are watched where the step is made ([`World::breaks`]); promises about a state are checked in
//! [`broken_in`]; promises about the end are checked by letting everything come to rest (`ending.rs`).
//!
//! Guarantees: the promises are those of DESIGN.md section 6 that a model without bytes can break.
//! Does not do: performance, limits, submissions.

use std::fmt;

use crate::ending;
use crate::search::Setting;
use crate::world::{Bytes, Content, End, Standing, World};

/// A promise of DESIGN.md section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Promise {
    AnAnsweredSaveIsKept,
    NoChangeIsNowhere,
    TheHeadKeepsItsContent,
    FilesAreSound,
    OneContentPerSave,
    OneLiveKey,
    AFailedSaveIsNeverConfirmed,
    AnAnsweredKeyIsRetired,
    ASpentKeyHasNoSource,
    AnOpenedKeyHidesNoSave,
    EverythingArrives,
    NothingStaysOpen,
    RecoveryChangesNothingTwice,
}

impl fmt::Display for Promise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::AnAnsweredSaveIsKept => {
                "a save answered 0 is a version, a checkpoint or a kept copy, and its bytes are there"
            }
            Self::NoChangeIsNowhere => "no accepted change is nowhere",
            Self::TheHeadKeepsItsContent => "the head never loses what it held",
            Self::FilesAreSound => "no file holds a change twice, and the head is no damaged one",
            Self::OneContentPerSave => "one content per save, however often it is delivered",
            Self::OneLiveKey => "at most one edit key is live",
            Self::AFailedSaveIsNeverConfirmed => "status 3 is never answered 0",
            Self::AnAnsweredKeyIsRetired => "a key whose final save is answered 0 is retired",
            Self::ASpentKeyHasNoSource => "a spent key's source is never served",
            Self::AnOpenedKeyHidesNoSave => "no key is issued past a final save that was received",
            Self::EverythingArrives => "at rest every accepted change is in the head or in a kept copy",
            Self::NothingStaysOpen => "at rest no callback is open and nothing is forgotten at the server",
            Self::RecoveryChangesNothingTwice => "running recovery again changes nothing",
        })
    }
}

/// The promise this world breaks, if any.
pub(crate) fn broken_in(world: &World, setting: &Setting) -> Option<Promise> {
    if world.broken.is_some() {
        return world.broken;
    }
    let head = world.head.mark.content;
    if world.keys.iter().filter(|key| key.standing == Standing::Live).count() > 1 {
        Some(Promise::OneLiveKey)
    } else if head.is_damaged || world.stored.as_slice().iter().any(|stored| stored.content.twice != 0) {
        Some(Promise::FilesAreSound)
    } else if is_a_row_naked(world) {
        Some(Promise::AnAnsweredSaveIsKept)
    } else if world.accepted() & !(somewhere(world) | world.lost_by_server) != 0 {
        Some(Promise::NoChangeIsNowhere)
    } else if ending::is_quiet(world) {
        ending::broken_at_rest(world, setting)
    } else {
        None
    }
}

/// A row names bytes that are not there, and nobody is about to store them.
fn is_a_row_naked(world: &World) -> bool {
    world.rows.as_slice().iter().any(|row| row.bytes == Bytes::Missing)
}

/// The changes that can still be found: by us, or at the server where we would look or it would send.
fn somewhere(world: &World) -> u8 {
    let with = |set: u8, content: Content| set | content.holds;
    let stored = world.stored.as_slice().iter().map(|stored| stored.content).fold(0, with);
    let is_open = |end: End| end == End::Open;
    let rows = world.rows.as_slice().iter().filter(|row| is_open(row.end) && !row.is_old);
    let rows = rows.map(|row| row.content).fold(0, with);
    let at_server = (0..).zip(&world.server).fold(0, |set, (key, state): (usize, _)| {
        let row = &world.keys[key];
        // A key that retired with its final save is asked about before another one is issued.
        let is_asked_about = row.standing == Standing::Retired && !row.is_confirmed;
        let is_findable = row.standing == Standing::Live || is_asked_about || state.users > 0;
        let log = if is_findable { state.log } else { 0 };
        let tasks = state.tasks.iter().filter(|task| !task.failed).map(|task| task.content).fold(0, with);
        set | log | tasks | state.forgotten.map_or(0, |content| content.holds)
    });
    stored | rows | at_server
}

/// The changes that people can see: in the head, or in a copy that was kept for them.
pub(crate) fn in_sight(world: &World) -> u8 {
    let kept = world.stored.as_slice().iter().filter(|stored| stored.is_aside);
    kept.fold(world.head.mark.content.holds, |set, stored| set | stored.content.holds)
}
