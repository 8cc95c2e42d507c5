//! The small worlds that are searched through, one for each trouble a save can meet.
//!
//! One world with every trouble in it would be too large to search; each of these is small, and searched to its end. All of
//! them begin with somebody inside a document under its first key.

use model::Guards;

use crate::moves::{self, Move};
use crate::search::Setting;
use crate::world::World;

/// How often each thing may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Budget {
    pub(crate) keys: u8,
    pub(crate) joins: u8,
    pub(crate) changes: u8,
    pub(crate) force_saves: u8,
    /// Changes by somebody else than the one before.
    pub(crate) authors: u8,
    /// Two changes may fall into one second.
    pub(crate) ties: u8,
    /// Callbacks or answers that get lost.
    pub(crate) losses: u8,
    pub(crate) duplicates: u8,
    /// A caller hangs up, waits longer than we let it, or its file cannot be fetched just now.
    pub(crate) timeouts: u8,
    /// One of our processes ends at any step.
    pub(crate) host_crashes: u8,
    /// The Document Server is killed.
    pub(crate) server_crashes: u8,
    /// Saves that the server cannot assemble: status 3.
    pub(crate) failures: u8,
    /// Files that come out damaged.
    pub(crate) damages: u8,
    /// A spent key gets old enough to be revived.
    pub(crate) windows: u8,
    /// Fifteen minutes pass: links die.
    pub(crate) expiries: u8,
    /// A cached row expires.
    pub(crate) sweeps: u8,
    /// The server loses what it had under a key.
    pub(crate) amnesias: u8,
}

/// A world, and the liberties that are taken in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) budget: Budget,
    /// Recovery may take up rows that another process works on.
    pub(crate) recovery_is_eager: bool,
    /// A repeat of a final save survives that its key is opened again.
    pub(crate) repeats_linger: bool,
    /// Force saves of one second may overtake each other.
    pub(crate) seconds_are_swapped: bool,
}

const NOTHING: Budget = Budget {
    keys: 0,
    joins: 0,
    changes: 0,
    force_saves: 0,
    authors: 0,
    ties: 0,
    losses: 0,
    duplicates: 0,
    timeouts: 0,
    host_crashes: 0,
    server_crashes: 0,
    failures: 0,
    damages: 0,
    windows: 0,
    expiries: 0,
    sweeps: 0,
    amnesias: 0,
};

/// Two changes; who closed may come back once, and once a new key can be issued.
const REOPENED: Budget = Budget { changes: 2, joins: 1, keys: 1, ..NOTHING };

const fn plain(budget: Budget) -> Case {
    Case { budget, recovery_is_eager: false, repeats_linger: false, seconds_are_swapped: false }
}

/// Two force saves and a final save on the way at once, some in one second, one of them doubled.
pub(crate) const SIX_SIX_TWO: Case =
    plain(Budget { changes: 2, force_saves: 2, ties: 1, authors: 1, duplicates: 1, ..NOTHING });

/// The same three, callbacks and answers lost, and one of two processes ends at any step.
pub(crate) const SIX_SIX_TWO_AND_A_CRASH: Case =
    plain(Budget { changes: 2, force_saves: 2, host_crashes: 1, losses: 1, ..NOTHING });

/// Two processes on one save: doubled on the way, one of them crashes, recovery is early, people come back.
pub(crate) const TWO_PROCESSES: Case = Case {
    recovery_is_eager: true,
    ..plain(Budget { force_saves: 1, duplicates: 1, host_crashes: 1, keys: 0, ..REOPENED })
};

/// Closed without changes, opened again under the same key, changed and closed: 4-1-2, with an answer lost.
pub(crate) const FOUR_ONE_TWO: Case = plain(Budget { joins: 2, losses: 1, ..REOPENED });

/// Answers are lost or wait too long, force saves come between, people come back.
pub(crate) const LOST_ANSWERS: Case =
    plain(Budget { force_saves: 1, losses: 1, timeouts: 1, keys: 0, ..REOPENED });

/// Every delivery fails, twice over: files are forgotten, collected, and opened again.
pub(crate) const FORGOTTEN: Case = plain(Budget { losses: 4, ..REOPENED });

/// Forgotten files, and a process that ends while it collects or finishes them.
pub(crate) const FORGOTTEN_AND_A_CRASH: Case = plain(Budget { losses: 2, host_crashes: 1, ..REOPENED });

/// The answer takes so long that the server revives the key.
pub(crate) const REVIVED: Case = plain(Budget { windows: 1, timeouts: 1, losses: 1, ..REOPENED });

/// The server cannot assemble the file: status 3.
pub(crate) const STATUS_THREE: Case = plain(Budget { failures: 1, force_saves: 1, ..REOPENED });

/// The server is killed and started again; a save that could not be assembled is part of it.
pub(crate) const SERVER_CRASH: Case =
    plain(Budget { server_crashes: 1, failures: 1, force_saves: 1, ..REOPENED });

/// A file comes out damaged; links and cached rows expire.
pub(crate) const DAMAGED: Case = plain(Budget { damages: 1, losses: 1, expiries: 1, sweeps: 1, ..REOPENED });

/// The server loses its database while saves are on their way.
pub(crate) const AMNESIA: Case = plain(Budget { amnesias: 1, force_saves: 1, ..REOPENED });

/// An older final save is repeated after a newer one.
pub(crate) const OVERTAKEN: Case =
    Case { repeats_linger: true, ..plain(Budget { losses: 2, authors: 1, duplicates: 1, ..REOPENED }) };

/// The 0 to a final save is lost, somebody comes back before its repeat and types, and the server crashes. The key retired
/// with that 0.
pub(crate) const UNHEARD_AND_STRANDED: Case = plain(Budget { losses: 1, server_crashes: 1, ..REOPENED });

/// Known limits: see `limits.rs`.
pub(crate) const OVERTAKEN_BY_A_FORCE_SAVE: Case =
    Case { repeats_linger: true, ..plain(Budget { losses: 1, force_saves: 1, ..REOPENED }) };
pub(crate) const SWAPPED_WITHIN_A_SECOND: Case =
    Case { seconds_are_swapped: true, ..plain(Budget { changes: 2, force_saves: 2, ties: 1, ..NOTHING }) };

impl Case {
    /// What stands in a search through this world.
    pub(crate) fn setting(&self, guards: Guards) -> Setting {
        let Self { recovery_is_eager, repeats_linger, seconds_are_swapped, .. } = *self;
        Setting { guards, recovery_is_eager, repeats_linger, seconds_are_swapped }
    }

    /// Somebody opened the document and is in.
    pub(crate) fn start(&self) -> World {
        let Budget { keys, joins, .. } = self.budget;
        let mut world = World::new(Budget { keys: keys + 1, joins: joins + 1, ..self.budget });
        let setting = self.setting(Guards::ALL);
        moves::make(&mut world, &setting, Move::Open);
        moves::make(&mut world, &setting, Move::Join(0));
        world
    }
}
