//! The small world that the search walks through: one document, our ledger, two processes of ours, one Document Server,
//! and the callbacks between them.
//!
//! A [`World`] is a plain value: small numbers in fixed places, so that a million of them fit into memory and two of
//! them are equal exactly when nothing could tell them apart ([`World::tidy`] sees to that).
//!
//! Guarantees: nothing here decides. `server.rs` moves the Document Server, `host.rs`, `ledger.rs` and `collecting.rs` move
//! us, and those ask the real rules of `model`.
//! Does not do: bytes, disks, clocks. A content is the set of the changes in it, a time is a number of seconds.

use model::callbacks::Answer;
use model::opening::{Quiet, ServerKnowledge};

use crate::few::Few;
use crate::promises::Promise;
use crate::worlds::Budget;

/// Keys that can be issued.
pub(crate) const KEYS: usize = 3;
/// Our processes.
pub(crate) const PROCESSES: usize = 2;
/// Callbacks that can be written down.
pub(crate) const ROWS: usize = 9;
/// Callbacks on their way at once.
pub(crate) const POSTS: usize = 5;
/// Contents in the history or kept aside.
pub(crate) const STORED: usize = 12;
/// Changes that people can make.
pub(crate) const CHANGES: usize = 4;

/// What a file is made of. Equal contents have equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Content {
    /// The changes in it, one bit each.
    pub(crate) holds: u8,
    /// Those that are in it twice: replayed on a file that already had them.
    pub(crate) twice: u8,
    /// The converter broke it.
    pub(crate) is_damaged: bool,
}

impl Content {
    /// The file after changes were replayed on it.
    pub(crate) fn with(self, changes: u8) -> Self {
        Self {
            holds: self.holds | changes,
            twice: self.twice | (self.holds & changes),
            is_damaged: self.is_damaged,
        }
    }

    /// Whether nothing of the other is missing here.
    pub(crate) fn contains(self, other: Self) -> bool {
        other.holds & !self.holds == 0
    }
}

/// What the server's `history` tells of the changes in a file: nothing if it was opened from its forgotten copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct History {
    /// The second of the session's first change; 0 if unknown.
    pub(crate) start: u8,
    /// How many runs of changes by one author; 0 if unknown.
    pub(crate) runs: u8,
}

/// One save as the order sees it; number 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Mark {
    pub(crate) number: u8,
    /// The second of its last change; 0 if unknown.
    pub(crate) last_save: u8,
    pub(crate) history: History,
    pub(crate) content: Content,
}

/// The state of a key's row at the Document Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Row {
    #[default]
    Absent,
    /// Known, but nothing could be opened.
    Blank,
    /// In use, or idle with its copy in the cache.
    Ok,
    /// The last editor left; opening the key again calls the save off.
    Saving,
    /// The final save was sent; an opener is told to ask for another key.
    Spent,
    /// The same, so long ago that an opener revives the key.
    SpentLong,
}

/// How far force saving has come for the present state of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Force {
    /// Nothing is known: no change yet, or the server was restarted.
    #[default]
    None,
    /// There are changes that no force save holds.
    Possible,
    /// Sent under this path, not answered.
    Sent(u8),
    /// Not taken by us: asking again sends the same file once more.
    Cached(u8),
    /// Taken.
    Done,
}

/// Where a final save stands at the Document Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Stage {
    /// The save delay runs; forgotten if the server dies.
    #[default]
    Delay,
    /// Sent; waiting for our answer.
    Posted,
    /// To be sent again.
    Pause,
}

/// A final save on its way; path 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Task {
    pub(crate) path: u8,
    pub(crate) content: Content,
    pub(crate) history: History,
    pub(crate) attempt: u8,
    pub(crate) stage: Stage,
    /// The file could not be assembled: status 3, no link.
    pub(crate) failed: bool,
}

/// What the Document Server has under one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct ServerKey {
    pub(crate) row: Row,
    /// The path of the save that the row is `Saving` or `Spent` for.
    pub(crate) owner: u8,
    pub(crate) base: Content,
    pub(crate) base_is_forgotten: bool,
    /// Changes not yet acknowledged.
    pub(crate) log: u8,
    pub(crate) forgotten: Option<Content>,
    pub(crate) users: u8,
    pub(crate) force: Force,
    /// Up to two: one of an earlier session may still wait for its answer when the key is revived.
    pub(crate) tasks: [Task; 2],
}

/// Where a callback is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Place {
    #[default]
    ToHost,
    /// In this process, which works on this row (an index).
    Waiting(u8, u8),
    /// Our answer is on its way back.
    ToServer(Reply),
}

/// Our answer, in an order that sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Reply {
    Saved,
    NotSaved,
    TryAgain,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Saved => Self::Saved,
            Answer::NotSaved => Self::NotSaved,
            Answer::TryAgain => Self::TryAgain,
        }
    }
}

/// A callback on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Post {
    pub(crate) key: u8,
    pub(crate) status: u8,
    pub(crate) path: u8,
    pub(crate) content: Content,
    pub(crate) last_save: u8,
    pub(crate) history: History,
    /// The session ran on the forgotten copy.
    pub(crate) from_forgotten: bool,
    /// The server still listens for the answer.
    pub(crate) is_heard: bool,
    /// Older than the server's patience with a 0.
    pub(crate) is_late: bool,
    pub(crate) place: Place,
}

/// How a callback ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum End {
    #[default]
    Open,
    Answered(Reply),
    Expired,
}

/// A callback written down. Its number is its index plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Written {
    pub(crate) key: u8,
    pub(crate) status: u8,
    /// 0 if it brought no link.
    pub(crate) path: u8,
    pub(crate) content: Content,
    pub(crate) last_save: u8,
    pub(crate) history: History,
    pub(crate) end: End,
    /// Fifteen minutes passed: its link is dead and its identity no longer counts.
    pub(crate) is_old: bool,
    pub(crate) bytes: Bytes,
}

/// Whether the bytes that a row names are in the vault. Always, unless the guard `blob_before_row` is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Bytes {
    #[default]
    Safe,
    /// This process is about to store them.
    Coming(u8),
    Missing,
}

/// A content that is kept for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Stored {
    /// The key it came under plus one; 0 for the upload.
    pub(crate) key: u8,
    pub(crate) content: Content,
    /// A conflict copy or in quarantine, so that people see it.
    pub(crate) is_aside: bool,
}

/// Where an edit key stands with us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Standing {
    #[default]
    NotIssued,
    Live,
    Retired,
}

/// The ledger's row of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct KeyRow {
    pub(crate) standing: Standing,
    pub(crate) base: Content,
    pub(crate) saves_received: u8,
    pub(crate) last_received_final: u8,
    pub(crate) newest_final: Mark,
    pub(crate) newest_checkpoint: Mark,
    pub(crate) has_first_save: bool,
    pub(crate) base_fetched_again: bool,
    pub(crate) is_settled: bool,
    /// Retired, and the server was heard to hold nothing under it.
    pub(crate) is_confirmed: bool,
    /// How many callbacks had been written down when it was issued.
    pub(crate) issued_after: u8,
    /// Somebody holds a configuration for it and may open it at any time.
    pub(crate) is_handed_out: bool,
    /// A truth the ledger does not know: we told the server 0 to a final save, or collected the forgotten file.
    pub(crate) is_over: bool,
}

/// The document's newest content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Head {
    pub(crate) is_version: bool,
    /// The key it came under plus one; 0 for the upload.
    pub(crate) key: u8,
    pub(crate) mark: Mark,
}

/// How far a process has come with finishing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) enum Collecting {
    #[default]
    Idle,
    /// The forgotten file is in the vault.
    Fetched(Asked, Content),
    /// It is committed and may be deleted at the server.
    Committed(Asked, Content),
    /// The key is retired if no save came since.
    Retire(Asked),
}

/// What a process knew of a key when it asked the server about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Asked {
    pub(crate) key: u8,
    pub(crate) saves_received: u8,
    pub(crate) aim: Aim,
}

/// What a process wants with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Aim {
    /// Its forgotten file.
    Collect,
    /// The same, and to retire it in the end.
    Finish,
}

/// What an opener learnt from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Knowledge {
    pub(crate) key: u8,
    pub(crate) saves_received: u8,
    pub(crate) server: ServerKnowledge,
    /// Whether neither a save of the key nor our answer to one was on its way when the server was asked.
    pub(crate) quiet: Quiet,
}

/// Everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct World {
    pub(crate) budget: Budget,
    /// The Document Server's clock, in seconds.
    pub(crate) clock: u8,
    /// When each change was made; 0 if not yet.
    pub(crate) made_at: [u8; CHANGES],
    /// The changes by another author than the one before.
    pub(crate) author_changes: u8,
    /// Changes the server lost by itself: nobody can promise those.
    pub(crate) lost_by_server: u8,
    /// Paths drawn so far.
    pub(crate) paths: u8,
    /// Paths whose content got a place of its own.
    pub(crate) placed: u16,
    pub(crate) server: [ServerKey; KEYS],
    pub(crate) posts: Few<Post, POSTS>,
    pub(crate) head: Head,
    pub(crate) keys: [KeyRow; KEYS],
    pub(crate) rows: Few<Written, ROWS>,
    pub(crate) stored: Few<Stored, STORED>,
    /// What each process is doing about forgotten files and finished keys.
    pub(crate) collecting: [Collecting; PROCESSES],
    pub(crate) knowledge: Option<Knowledge>,
    pub(crate) broken: Option<Promise>,
}

impl World {
    /// A document that was uploaded, and nothing else.
    pub(crate) fn new(budget: Budget) -> Self {
        let mut world = Self { budget, clock: 1, ..Self::default() };
        world.head.is_version = true;
        world.stored.push(Stored::default());
        world
    }

    /// Notes the first promise that was broken on the way here.
    pub(crate) fn breaks(&mut self, promise: Promise) {
        self.broken = self.broken.or(Some(promise));
    }

    /// The order of callbacks on their way and the names of our processes mean nothing: one form for all equal worlds.
    pub(crate) fn tidy(&mut self) {
        self.posts.sort();
        self.stored.sort();
        let mut renamed = self.posts;
        for post in renamed.as_mut_slice() {
            if let Place::Waiting(process, _) = &mut post.place {
                *process = 1 - *process;
            }
        }
        renamed.sort();
        if (self.collecting[1], renamed.as_slice()) < (self.collecting[0], self.posts.as_slice()) {
            self.collecting.swap(0, 1);
            self.posts = renamed;
            for row in self.rows.as_mut_slice() {
                if let Bytes::Coming(process) = &mut row.bytes {
                    *process = 1 - *process;
                }
            }
        }
    }

    /// The changes people made so far.
    pub(crate) fn accepted(&self) -> u8 {
        let count = self.made_at.iter().filter(|at| **at > 0).count();
        (0..count).fold(0, |set, change| set | 1 << change)
    }

    /// What a history of these changes says.
    pub(crate) fn history_of(&self, changes: u8) -> History {
        let Some(first) = changes.checked_ilog2().map(|_| changes.trailing_zeros()) else {
            return History::default();
        };
        let turns = (self.author_changes & changes & !(1 << first)).count_ones();
        History { start: self.made_at[first as usize], runs: u8::try_from(turns + 1).expect("few changes") }
    }

    /// The second of the last of these changes; 0 if there is none.
    pub(crate) fn last_time(&self, changes: u8) -> u8 {
        let last = changes.checked_ilog2().map(|bit| bit as usize);
        last.and_then(|bit| self.made_at.get(bit)).copied().unwrap_or(0)
    }

    /// The key we would hand out without issuing a new one.
    pub(crate) fn live_key(&self) -> Option<u8> {
        (0..).zip(&self.keys).find(|(_, key)| key.standing == Standing::Live).map(|(number, _)| number)
    }
}
