//! Which save may become the head: the order guard and the content comparison.
//!
//! The Document Server sends saves of one key side by side, repeats them, and can deliver an old one after a new one.
//! A lock cannot help there: a late worker gets the lock too. So the decision is made from facts read inside the
//! commit's own transaction, by this one function, for every engine.
//!
//! In words, for a save of key K:
//! 1. **Order.** A final save outranks every checkpoint (unless that checkpoint holds changes made after it, in a session
//!    that went on because the server never heard our answer); a final save outranks another of its session if it is
//!    known to hold more, by its history or by `lastsave`; checkpoints go by `lastsave`, ties and jumps of the server's
//!    clock by inbox number.
//! 2. **Same bytes** as K's newest save: nothing new. (A final save equal to the checkpoint that is the head makes
//!    that content a version, because a version is what people keep and checkpoints may be pruned.)
//! 3. **Older** than what K already saved: filed beside it, the head stays.
//! 4. **Nothing but the base**, and it cannot become the head: it is kept already.
//! 5. **Newer**: the head moves if it is K's base by content, or K's own earlier save and this one still contains it.
//!    Otherwise both contents are kept: this one becomes a conflict copy.
//!
//! Guarantees: total and pure. Does not do: judge damaged bytes (they never come this far), answer anybody.

use jiff::{SignedDuration, Timestamp};

use crate::checking::Extent;
use crate::{Digest, Guards, InboxNumber};

/// A callback can be late by the server's own patience (10 minutes) and its links die after 15. A `lastsave` that goes
/// back further than that was not overtaken on the way: the server's clock was set back.
const OVERTAKING_WINDOW: SignedDuration = SignedDuration::from_mins(15);

/// What kind of save it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SaveKind {
    /// The session is over: status 2, or a forgotten file.
    Final,
    /// A force save; the session goes on: status 6.
    Checkpoint,
}

/// One save as the order sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SaveMark {
    /// Its place in the order of arrival.
    pub inbox: InboxNumber,
    /// When the last change in it was made, by the server's clock, in whole seconds. Of a final save that is repeated, the
    /// server sends the time of its newest change instead; unknown when it only knew the present time.
    pub last_save: Option<Timestamp>,
    /// Its bytes.
    pub digest: Digest,
    /// When the first change in it was made. The server's `history` covers a session from its start, so a later start
    /// means that the server lost the session and began again from the base.
    pub session_start: Option<Timestamp>,
    /// How many runs of changes by one author its `history` lists: of one session, the save with more runs is newer.
    pub runs: Option<u32>,
}

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyStanding {
    /// The document's one live edit key.
    Live,
    /// Its session is over, as far as we know.
    Retired,
    /// We did not issue it in this history (a restored ledger); its document is known from the key itself.
    Adopted,
}

/// What is known of the key a save came under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts {
    /// Where the key stands.
    pub standing: KeyStanding,
    /// Whether some other edit key of the document is live.
    pub another_key_is_live: bool,
    /// The content the session started from; unknown for an adopted key.
    pub base: Option<Digest>,
    /// The newest final save of this key so far.
    pub newest_final: Option<SaveMark>,
    /// The newest checkpoint of this key so far.
    pub newest_checkpoint: Option<SaveMark>,
    /// Whether the server fetched the base again after a save of this key: it may have lost the session.
    pub base_fetched_again: bool,
    /// Whether these very bytes were already kept from this key, in whatever place.
    pub bytes_kept_before: bool,
    /// The callback that brought us the bytes which lie at the server as the key's forgotten file, asked when a save came
    /// without a history: its session was opened on that file.
    pub opened_on: Option<InboxNumber>,
}

/// What is known of the document's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadFacts {
    /// Its bytes.
    pub digest: Digest,
    /// Whether it is a version (and not a checkpoint).
    pub is_version: bool,
    /// The save that made it, if it came under the key in question.
    pub made_by_this_key: Option<SaveMark>,
    /// How much it holds, if that is known.
    pub extent: Option<Extent>,
}

/// A save that wants to be committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingSave {
    /// Final or checkpoint.
    pub kind: SaveKind,
    /// Its place, time and bytes.
    pub mark: SaveMark,
}

/// What happens to a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ruling {
    /// These bytes are already where they belong.
    NothingNew,
    /// The head moves to a new version.
    NewVersion,
    /// The head moves to a new checkpoint.
    NewCheckpoint,
    /// Older than what this key already saved: filed as a checkpoint, the head stays.
    FileBeside,
    /// Kept as a conflict copy, the head stays.
    KeepAside(ConflictReason),
}

/// Why a save could not become the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConflictReason {
    /// The head has moved since this key's session started.
    BaseMoved,
    /// The server lost the session and began again from the base, so this save lacks what was saved before.
    SessionBeganAgain,
    /// The key was retired before this save came.
    KeyRetired,
    /// The key was issued in a history this ledger does not have.
    KeyAdopted,
    /// Older than this key's newest save, and not contained in it.
    OlderSession,
    /// Found in the vault without any row that names it.
    Unnamed,
    /// The published file was changed from outside while the document went on.
    ExternalChange,
    /// Much of what the head holds is gone in it, and the operator wants a person to look first.
    ContentVanished,
}

impl ConflictReason {
    const ALL: [(Self, &'static str); 8] = [
        (Self::BaseMoved, "base-moved"),
        (Self::SessionBeganAgain, "session-began-again"),
        (Self::KeyRetired, "key-retired"),
        (Self::KeyAdopted, "key-adopted"),
        (Self::OlderSession, "older-session"),
        (Self::Unnamed, "unnamed"),
        (Self::ExternalChange, "external-change"),
        (Self::ContentVanished, "content-vanished"),
    ];

    /// The word used in the database and the API.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(reason, _)| *reason == self).map_or("", |(_, word)| word)
    }

    /// Reads the word back.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(reason, _)| *reason)
    }
}

/// Decides what happens to a save whose bytes are stored and sound.
pub fn rule_on_save(guards: &Guards, key: &KeyFacts, head: &HeadFacts, save: &IncomingSave) -> Ruling {
    if let Some(newest) = newest_of(key) {
        if !becomes_newest(guards, key, save) {
            return rule_on_older(key, newest, save);
        }
        if newest.digest == save.mark.digest && !makes_checkpoint_a_version(head, save) {
            return Ruling::NothingNew;
        }
    }
    match may_become_head(guards, key, head, &save.mark) {
        // A session that lost its changes sends back what it was given: that is a version already.
        Err(_) if key.base == Some(save.mark.digest) => Ruling::NothingNew,
        Err(reason) => Ruling::KeepAside(reason),
        Ok(()) if head.digest == save.mark.digest && head.is_version => Ruling::NothingNew,
        Ok(()) => match save.kind {
            SaveKind::Final => Ruling::NewVersion,
            SaveKind::Checkpoint => Ruling::NewCheckpoint,
        },
    }
}

/// Whether a save is the newest of its key: the order guard.
pub fn becomes_newest(guards: &Guards, key: &KeyFacts, save: &IncomingSave) -> bool {
    let older_than_final = key.newest_final.as_ref().is_some_and(|newest| match save.kind {
        SaveKind::Final => !is_later_final(&save.mark, newest),
        SaveKind::Checkpoint => !went_on_after(newest, &save.mark),
    });
    let older_than_checkpoint = key.newest_checkpoint.as_ref().is_some_and(|newest| {
        // Repeated, or taken up again after a crash, a final save can come after a checkpoint that holds more.
        let is_comparable = save.kind == SaveKind::Checkpoint || is_same_session(&save.mark, newest);
        is_comparable && is_older_than_checkpoint(save, newest)
    });
    !guards.order_guard || !(older_than_final || older_than_checkpoint)
}

/// Whether a final save is known to hold more than the newest one, or the same. Order of arrival does not tell: when a
/// delivery was lost and the session went on, the server may repeat the older save after it has sent the newer one.
fn is_later_final(save: &SaveMark, newest: &SaveMark) -> bool {
    if save.inbox < newest.inbox {
        return false;
    }
    let follows_forgotten = is_forgotten_file(newest) && !is_forgotten_file(save);
    if save.digest == newest.digest || follows_forgotten {
        return true;
    }
    match (save.session_start, newest.session_start) {
        // Another session altogether: whether it holds what was saved is looked at later.
        (Some(saved), Some(newest)) if saved != newest => true,
        _ => match (save.runs, newest.runs) {
            (Some(saved), Some(newest)) if saved != newest => saved > newest,
            _ => save.last_save.zip(newest.last_save).is_some_and(|(saved, newest)| saved > newest),
        },
    }
}

/// A forgotten file comes without a callback, when the server has given up repeating: what comes after it is newer.
fn is_forgotten_file(mark: &SaveMark) -> bool {
    mark.last_save.is_none() && mark.session_start.is_none()
}

/// The newest save of a key: its final save, unless a checkpoint was made after that.
fn newest_of(key: &KeyFacts) -> Option<&SaveMark> {
    match (&key.newest_final, &key.newest_checkpoint) {
        (Some(last), Some(checkpoint)) if went_on_after(last, checkpoint) => Some(checkpoint),
        (Some(last), _) => Some(last),
        (None, checkpoint) => checkpoint.as_ref(),
    }
}

/// A final save holds every change up to its `lastsave`. A checkpoint with later changes of the same session can only
/// exist because the server never heard that the final save was stored and let people go on.
fn went_on_after(last: &SaveMark, checkpoint: &SaveMark) -> bool {
    let changed_later = last.last_save.is_some() && checkpoint.last_save > last.last_save;
    is_same_session(last, checkpoint) && changed_later && checkpoint.inbox > last.inbox
}

/// Whether a checkpoint continues the session of a final save. One without history does: it was opened from the key's
/// forgotten file, which holds all that came before.
fn is_same_session(last: &SaveMark, checkpoint: &SaveMark) -> bool {
    checkpoint.session_start.is_none() || checkpoint.session_start == last.session_start
}

fn is_older_than_checkpoint(save: &IncomingSave, newest: &SaveMark) -> bool {
    let (kind, save) = (save.kind, &save.mark);
    let arrived_before = save.inbox < newest.inbox;
    let (Some(saved), Some(newest_saved)) = (save.last_save, newest.last_save) else {
        return arrived_before;
    };
    let apart = saved.duration_since(newest_saved);
    match kind {
        // Of one second: the final save was built after everybody had left, so it is the checkpoint that was held up.
        SaveKind::Final if apart.is_zero() => has_fewer_runs(save, newest),
        _ if apart.is_zero() || apart.abs() > OVERTAKING_WINDOW => arrived_before,
        _ => apart.is_negative(),
    }
}

fn has_fewer_runs(save: &SaveMark, newest: &SaveMark) -> bool {
    save.runs.zip(newest.runs).is_some_and(|(saved, newest)| saved < newest)
}

/// An older save that belongs to the same session is contained in the newer one; any other is news to somebody.
fn rule_on_older(key: &KeyFacts, newest: &SaveMark, save: &IncomingSave) -> Ruling {
    if key.bytes_kept_before {
        Ruling::NothingNew
    } else if key.standing == KeyStanding::Adopted {
        Ruling::KeepAside(ConflictReason::KeyAdopted)
    } else if is_contained(save, newest) && !key.base_fetched_again {
        Ruling::FileBeside
    } else {
        Ruling::KeepAside(ConflictReason::OlderSession)
    }
}

fn is_contained(save: &IncomingSave, newest: &SaveMark) -> bool {
    let (kind, save) = (save.kind, &save.mark);
    let started_together = match (save.session_start, newest.session_start) {
        (Some(saved), Some(newest)) => saved == newest,
        _ => true,
    };
    let times = save.last_save.zip(newest.last_save);
    let changed_before = match (kind, times) {
        // The time of a repeated final save may be later than its own last change, never earlier.
        (SaveKind::Final, times) => {
            has_fewer_runs(save, newest) || times.is_some_and(|(saved, newest)| saved < newest)
        }
        (SaveKind::Checkpoint, Some((saved, newest))) => saved <= newest,
        (SaveKind::Checkpoint, None) => save.inbox < newest.inbox,
    };
    started_together && changed_before
}

fn makes_checkpoint_a_version(head: &HeadFacts, save: &IncomingSave) -> bool {
    save.kind == SaveKind::Final
        && !head.is_version
        && head.digest == save.mark.digest
        && head.made_by_this_key.is_some()
}

fn may_become_head(
    guards: &Guards,
    key: &KeyFacts,
    head: &HeadFacts,
    save: &SaveMark,
) -> Result<(), ConflictReason> {
    if !guards.content_comparison {
        return Ok(());
    }
    if key.standing == KeyStanding::Adopted {
        return Err(ConflictReason::KeyAdopted);
    }
    if key.standing == KeyStanding::Retired && (key.another_key_is_live || head.made_by_this_key.is_none()) {
        return Err(ConflictReason::KeyRetired);
    }
    match &head.made_by_this_key {
        Some(own) if still_contains(key, own, save) => Ok(()),
        Some(_) => Err(ConflictReason::SessionBeganAgain),
        None if key.base == Some(head.digest) => Ok(()),
        None => Err(ConflictReason::BaseMoved),
    }
}

/// Whether a newer save of the same key still holds what the earlier one held.
fn still_contains(key: &KeyFacts, earlier: &SaveMark, save: &SaveMark) -> bool {
    if earlier.digest == save.digest {
        return true;
    }
    let is_another_session = match (earlier.session_start, save.session_start) {
        (Some(earlier), Some(later)) => later != earlier,
        // Opened from its forgotten file, the server sends no history. That file holds all that came before, unless it is an
        // older save, repeated and refused after the newer one was stored.
        (Some(_), None) => key.opened_on.is_some_and(|opened_on| opened_on < earlier.inbox),
        _ => false,
    };
    !is_another_session && !key.base_fetched_again
}

/// Decides what happens to a forgotten file of a key.
///
/// Its place in the order is that of the key's last *received* final save (the one that failed); a save received after
/// that one is newer, so the forgotten file is then kept aside. When no final save was ever received (we were away), it
/// is simply the newest.
pub fn rule_on_forgotten(
    guards: &Guards,
    key: &KeyFacts,
    head: &HeadFacts,
    found: &ForgottenFacts,
) -> Ruling {
    if is_known_forgotten(key, head, &found.digest) {
        return Ruling::NothingNew;
    }
    let place = found.last_received_final.unwrap_or(found.own_number);
    let later_save_exists = found.newest_save.is_some_and(|newest| newest > place);
    let mark =
        SaveMark { inbox: place, last_save: None, digest: found.digest, session_start: None, runs: None };
    let ruling = if later_save_exists && guards.order_guard {
        Ruling::KeepAside(ConflictReason::OlderSession)
    } else {
        rule_on_save(guards, key, head, &IncomingSave { kind: SaveKind::Final, mark })
    };
    match ruling {
        Ruling::KeepAside(_) if key.bytes_kept_before => Ruling::NothingNew,
        ruling => ruling,
    }
}

/// Whether a forgotten file needs no second look: its bytes are kept, and not just as a checkpoint that another one of the
/// key has replaced. Two force saves of one second can swap places; then the forgotten file is what holds everything.
pub fn is_known_forgotten(key: &KeyFacts, head: &HeadFacts, digest: &Digest) -> bool {
    let may_be_replaced =
        key.newest_final.is_none() && head.made_by_this_key.is_some() && head.digest != *digest;
    key.bytes_kept_before && !may_be_replaced
}

/// What is known of a forgotten file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgottenFacts {
    /// Its bytes.
    pub digest: Digest,
    /// The inbox number it was given when it was found.
    pub own_number: InboxNumber,
    /// The last final save received under this key, whatever became of it.
    pub last_received_final: Option<InboxNumber>,
    /// The newest save committed under this key.
    pub newest_save: Option<InboxNumber>,
}

/// What a final save does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAfterFinal {
    /// The server is told 0 and will forget the session: the key is spent.
    Retire,
    /// Nobody waits for this answer, so the server still holds the changes: the key must stay findable.
    StayLive,
}

/// A key retires with the commit of its final save only if that save is going to be answered 0.
pub fn key_after_final(someone_waits_for_the_answer: SomeoneWaits) -> KeyAfterFinal {
    match someone_waits_for_the_answer {
        SomeoneWaits::Yes => KeyAfterFinal::Retire,
        SomeoneWaits::No => KeyAfterFinal::StayLive,
    }
}

/// Whether a delivery of the save is still waiting for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SomeoneWaits {
    /// A connection is open and young enough to be answered 0.
    Yes,
    /// All deliveries were answered otherwise, closed or lost.
    No,
}

#[cfg(test)]
#[path = "saves_tests.rs"]
mod tests;
