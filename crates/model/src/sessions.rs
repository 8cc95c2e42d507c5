//! Sessions as people see them: who works under a key, whether work is unsaved, and when a session is over.
//!
//! The Document Server says who is inside (status 1), but it does not repeat itself, and it says nothing when it crashes. So a
//! session of which nothing was heard for a while is asked about (`info`), and the answer decides. Time alone decides
//! nothing: unsaved work may still be held under the key.
//!
//! Guarantees: total and pure; no session ends unless the server says that nobody is inside.
//! Does not do: retire keys. What may become of a key is the business of [`crate::opening`], and a key whose session is
//! over is still reused while its base is the head.

use jiff::SignedDuration;

use crate::opening::{Quiet, ServerKnowledge, may_retire};
use crate::saves::KeyStanding;

/// What is known of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFacts {
    /// Where its key stands.
    pub standing: KeyStanding,
    /// Whether anybody is inside, as the server last said.
    pub has_people: bool,
    /// Whether anybody ever was.
    pub was_entered: bool,
    /// Whether a final save of it was received and is not committed yet.
    pub is_being_saved: bool,
    /// What the server said when it was asked, if nothing was heard since.
    pub server: Option<ServerKnowledge>,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// Its key was handed out, and nobody came yet.
    Waiting,
    /// Somebody is inside.
    Editing,
    /// Everybody left; the key is handed out again to whoever comes next.
    Idle,
    /// Its final save is being stored.
    Saving,
    /// Nobody is inside, and the server holds changes that only opening the same key brings back.
    Stranded,
    /// Somebody is inside although the session is over: what they save is kept as a conflict copy.
    LeftBehind,
    /// Its key is retired.
    Over,
}

impl SessionState {
    /// The word used in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Editing => "editing",
            Self::Idle => "idle",
            Self::Saving => "saving",
            Self::Stranded => "stranded",
            Self::LeftBehind => "left-behind",
            Self::Over => "over",
        }
    }

    /// Whether work may be under way in it.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Editing | Self::Saving | Self::Stranded | Self::LeftBehind)
    }
}

/// Whether a session has changes that are not in the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unsaved {
    /// It has.
    Yes,
    /// It has none.
    No,
    /// Only the browsers of those inside know.
    Possible,
}

impl Unsaved {
    /// The word used in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Possible => "possible",
        }
    }
}

/// How a session stands.
pub fn state_of(facts: &SessionFacts) -> SessionState {
    if facts.is_being_saved {
        return SessionState::Saving;
    }
    match (facts.has_people, facts.standing) {
        (true, KeyStanding::Live) => SessionState::Editing,
        (true, _) => SessionState::LeftBehind,
        (false, _) if facts.server == Some(ServerKnowledge::ChangesHeld) => SessionState::Stranded,
        (false, KeyStanding::Live) if facts.was_entered => SessionState::Idle,
        (false, KeyStanding::Live) => SessionState::Waiting,
        (false, _) => SessionState::Over,
    }
}

/// Whether a session has changes that are not in the vault, as far as we know.
pub fn unsaved_in(facts: &SessionFacts) -> Unsaved {
    match state_of(facts) {
        SessionState::Saving | SessionState::Stranded => Unsaved::Yes,
        SessionState::Editing | SessionState::LeftBehind => Unsaved::Possible,
        SessionState::Waiting | SessionState::Over => Unsaved::No,
        SessionState::Idle if facts.server.is_some_and(may_retire) => Unsaved::No,
        SessionState::Idle => Unsaved::Possible,
    }
}

/// Whether the server should be asked about a session of which nothing was heard for so long. One that the server said to
/// be empty, and of which nothing was heard since, is not asked about again.
pub fn is_look_due(facts: &SessionFacts, silent_for: SignedDuration, every: SignedDuration) -> bool {
    let may_hide_something = facts.has_people || facts.was_entered && !facts.server.is_some_and(may_retire);
    may_hide_something && !facts.is_being_saved && silent_for >= every
}

/// What follows from the server's answer about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LookRuling {
    /// It goes on: somebody is inside, or a save may be on its way.
    GoesOn,
    /// Nobody is inside and nothing is held: it is over.
    Close,
    /// Nobody is inside, and changes are held. Alert.
    Strand,
    /// The server does not answer: nothing is known, so nothing changes.
    NotKnown,
}

/// Decides what becomes of a session that was asked about.
pub fn rule_on_look(server: ServerKnowledge, quiet: Quiet) -> LookRuling {
    match (server, quiet) {
        (ServerKnowledge::Away, _) => LookRuling::NotKnown,
        (ServerKnowledge::UsersInside, _) => LookRuling::GoesOn,
        // Within seconds of its last word it is busy saving them.
        (ServerKnowledge::ChangesHeld, Quiet::No) => LookRuling::GoesOn,
        (ServerKnowledge::ChangesHeld, Quiet::Yes) => LookRuling::Strand,
        (ServerKnowledge::Unknown | ServerKnowledge::NothingHeld, _) => LookRuling::Close,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: SessionFacts = SessionFacts {
        standing: KeyStanding::Live,
        has_people: false,
        was_entered: false,
        is_being_saved: false,
        server: None,
    };
    const ENTERED: SessionFacts = SessionFacts { was_entered: true, ..LIVE };
    const EDITED: SessionFacts = SessionFacts { has_people: true, ..ENTERED };
    const QUARTER: SignedDuration = SignedDuration::from_mins(15);

    #[test]
    fn a_session_says_how_it_stands_and_what_may_be_unsaved() {
        let said = |server| SessionFacts { server: Some(server), ..ENTERED };
        let retired = |facts| SessionFacts { standing: KeyStanding::Retired, ..facts };
        let table = [
            (LIVE, SessionState::Waiting, Unsaved::No),
            (EDITED, SessionState::Editing, Unsaved::Possible),
            (ENTERED, SessionState::Idle, Unsaved::Possible),
            (said(ServerKnowledge::NothingHeld), SessionState::Idle, Unsaved::No),
            (said(ServerKnowledge::Unknown), SessionState::Idle, Unsaved::No),
            (said(ServerKnowledge::Away), SessionState::Idle, Unsaved::Possible),
            (said(ServerKnowledge::ChangesHeld), SessionState::Stranded, Unsaved::Yes),
            (SessionFacts { is_being_saved: true, ..EDITED }, SessionState::Saving, Unsaved::Yes),
            (retired(EDITED), SessionState::LeftBehind, Unsaved::Possible),
            (retired(ENTERED), SessionState::Over, Unsaved::No),
            (retired(said(ServerKnowledge::ChangesHeld)), SessionState::Stranded, Unsaved::Yes),
        ];
        for (facts, state, unsaved) in table {
            assert_eq!((state_of(&facts), unsaved_in(&facts)), (state, unsaved), "{facts:?}");
        }
    }

    #[test]
    fn no_session_ends_unless_the_server_says_that_nobody_is_inside() {
        let rulings = [
            (ServerKnowledge::Away, LookRuling::NotKnown, LookRuling::NotKnown),
            (ServerKnowledge::UsersInside, LookRuling::GoesOn, LookRuling::GoesOn),
            (ServerKnowledge::ChangesHeld, LookRuling::GoesOn, LookRuling::Strand),
            (ServerKnowledge::NothingHeld, LookRuling::Close, LookRuling::Close),
            (ServerKnowledge::Unknown, LookRuling::Close, LookRuling::Close),
        ];
        for (server, busy, quiet) in rulings {
            assert_eq!(
                (rule_on_look(server, Quiet::No), rule_on_look(server, Quiet::Yes)),
                (busy, quiet),
                "{server:?}"
            );
        }
    }

    #[test]
    fn only_silent_sessions_that_may_hide_something_are_asked_about() {
        let empty = SessionFacts { server: Some(ServerKnowledge::NothingHeld), ..ENTERED };
        let stranded = SessionFacts { server: Some(ServerKnowledge::ChangesHeld), ..ENTERED };
        let table = [(LIVE, false), (EDITED, true), (ENTERED, true), (empty, false), (stranded, true)];
        for (facts, is_due) in table {
            assert_eq!(is_look_due(&facts, QUARTER, QUARTER), is_due, "{facts:?}");
            assert!(!is_look_due(&facts, SignedDuration::from_mins(14), QUARTER), "{facts:?}");
            let saving = SessionFacts { is_being_saved: true, ..facts };
            assert!(!is_look_due(&saving, QUARTER, QUARTER), "{saving:?}");
        }
    }
}
