//! What a callback of the Document Server asks for, and what it may be answered.
//!
//! The answer is a promise with teeth: on `{"error":0}` the server deletes its own copy of the changes; on
//! `{"error":1}` it puts the file into its forgotten store and never repeats; after 503 it repeats three times.
//!
//! Guarantees: every status, known or not, has a plan; none of them answers 0 for content that was not kept.
//! Does not do: verify signatures, parse JSON (the edge does), fetch or store anything (`saving` does).

use jiff::Timestamp;

use crate::saves::SaveKind;
use crate::{EditorKey, Guards};

/// A callback, made of verified fields only.
#[derive(Debug, Clone, PartialEq)]
pub struct Callback {
    /// The key the session runs under: the only address of a callback.
    pub key: EditorKey,
    /// The status as sent.
    pub status: u8,
    /// Where the result lies on the Document Server.
    pub url: Option<String>,
    /// Where the data of a submitted form lies.
    pub forms_data_url: Option<String>,
    /// Where the server's record of the changes lies.
    pub changes_url: Option<String>,
    /// The real type of the bytes, without a dot.
    pub file_type: Option<String>,
    /// In 1: who is editing now. In 2, 3, 6, 7: who changed last.
    pub users: Vec<String>,
    /// The name of the one who changed last, from `history`.
    pub author_name: Option<String>,
    /// Time of the last change, whole seconds.
    pub last_save: Option<Timestamp>,
    /// Time of the session's first change, from `history`.
    pub session_start: Option<Timestamp>,
    /// Version of the server that wrote `history`.
    pub server_version: Option<String>,
    /// The server's list of who changed what, as sent.
    pub history: Option<String>,
    /// 0 command, 1 button, 2 timer, 3 form.
    pub force_save_type: Option<u8>,
    /// What we gave to the command that caused this.
    pub user_data: Option<String>,
}

impl Callback {
    /// A callback that says nothing but its key and status.
    pub fn bare(key: EditorKey, status: u8) -> Self {
        Self {
            key,
            status,
            url: None,
            forms_data_url: None,
            changes_url: None,
            file_type: None,
            users: Vec::new(),
            author_name: None,
            last_save: None,
            session_start: None,
            server_version: None,
            history: None,
            force_save_type: None,
            user_data: None,
        }
    }

    /// The path of `url`: the same over all repeats of one save, while the query changes each time.
    pub fn url_path(&self) -> Option<&str> {
        self.url.as_deref().map(path_of)
    }
}

fn path_of(url: &str) -> &str {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    url[after_scheme..].find('/').map_or("", |at| &url[after_scheme + at..])
}

/// What to do with a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Note who is editing; answer 0.
    NotePresence,
    /// Nobody is editing any more and nothing changed; the key stays; answer 0.
    NoteIdle,
    /// Store the content; answer 0 after the commit.
    Store(SaveKind),
    /// Keep the content out of the head's way and alert; answer 1.
    KeepAside(AsideReason),
    /// A save failed on the server's side and brought nothing: alert, keep the key; answer 1.
    Alert(AsideReason),
    /// Nothing of value was carried; answer 0.
    Ignore,
}

/// Why a content goes to quarantine and never to the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AsideReason {
    /// Status 3: the server could not assemble the final file.
    FinalSaveFailed,
    /// Status 7: the server could not assemble a force save.
    ForceSaveFailed,
    /// A save without a link.
    NoLink,
    /// A status this version does not know.
    UnknownStatus,
    /// The bytes are not a whole Office file.
    Damaged,
}

impl AsideReason {
    const ALL: [(Self, &'static str); 5] = [
        (Self::FinalSaveFailed, "final-save-failed"),
        (Self::ForceSaveFailed, "force-save-failed"),
        (Self::NoLink, "no-link"),
        (Self::UnknownStatus, "unknown-status"),
        (Self::Damaged, "damaged"),
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

/// Decides what to do with a callback by its status and whether it brings content.
pub fn plan_for(status: u8, has_url: HasUrl) -> Plan {
    match (status, has_url) {
        (1, HasUrl::No) => Plan::NotePresence,
        (4, HasUrl::No) => Plan::NoteIdle,
        (2, HasUrl::Yes) => Plan::Store(SaveKind::Final),
        (6, HasUrl::Yes) => Plan::Store(SaveKind::Checkpoint),
        (2 | 6, HasUrl::No) => Plan::Alert(AsideReason::NoLink),
        (3, HasUrl::Yes) => Plan::KeepAside(AsideReason::FinalSaveFailed),
        (3, HasUrl::No) => Plan::Alert(AsideReason::FinalSaveFailed),
        (7, HasUrl::Yes) => Plan::KeepAside(AsideReason::ForceSaveFailed),
        (7, HasUrl::No) => Plan::Alert(AsideReason::ForceSaveFailed),
        (_, HasUrl::Yes) => Plan::KeepAside(AsideReason::UnknownStatus),
        (_, HasUrl::No) => Plan::Ignore,
    }
}

/// Whether the server lets go of all changes of the key once this is answered.
pub fn ends_session(status: u8) -> bool {
    matches!(status, 2 | 3)
}

/// Whether a callback brings content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HasUrl {
    /// It has a link.
    Yes,
    /// It has none.
    No,
}

/// What the Document Server is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// `{"error":0}`: it is stored; forget your copy.
    Saved,
    /// `{"error":1}`: it will not be taken this way; keep your copy. Never repeated by the server.
    NotSaved,
    /// 503: not now; repeat.
    TryAgain,
}

impl Answer {
    /// The word used in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::NotSaved => "not-saved",
            Self::TryAgain => "try-again",
        }
    }

    /// Reads the word back.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Saved, Self::NotSaved, Self::TryAgain].into_iter().find(|answer| answer.as_str() == word)
    }
}

/// The answer to a failed save that the server announced (statuses 3 and 7, or a save without a link).
pub fn answer_to_failure(guards: &Guards, reason: AsideReason) -> Answer {
    match reason {
        // Answered 0, the server would delete the very changes it could not assemble.
        AsideReason::FinalSaveFailed if !guards.status_3_refused => Answer::Saved,
        _ => Answer::NotSaved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_plan_and_content_is_never_ignored() {
        for status in 0..=u8::MAX {
            let plan = plan_for(status, HasUrl::Yes);
            assert!(matches!(plan, Plan::Store(_) | Plan::KeepAside(_)), "status {status}: {plan:?}");
        }
    }

    #[test]
    fn the_statuses_of_the_seed_mean_what_the_design_says() {
        let expected = [
            (1, HasUrl::No, Plan::NotePresence),
            (2, HasUrl::Yes, Plan::Store(SaveKind::Final)),
            (3, HasUrl::No, Plan::Alert(AsideReason::FinalSaveFailed)),
            (3, HasUrl::Yes, Plan::KeepAside(AsideReason::FinalSaveFailed)),
            (4, HasUrl::No, Plan::NoteIdle),
            (5, HasUrl::No, Plan::Ignore),
            (6, HasUrl::Yes, Plan::Store(SaveKind::Checkpoint)),
            (7, HasUrl::No, Plan::Alert(AsideReason::ForceSaveFailed)),
            (7, HasUrl::Yes, Plan::KeepAside(AsideReason::ForceSaveFailed)),
            (9, HasUrl::Yes, Plan::KeepAside(AsideReason::UnknownStatus)),
            (2, HasUrl::No, Plan::Alert(AsideReason::NoLink)),
        ];
        for (status, has_url, plan) in expected {
            assert_eq!(plan_for(status, has_url), plan, "status {status}");
        }
    }

    #[test]
    fn a_failed_save_is_never_answered_with_success() {
        for (reason, _) in AsideReason::ALL {
            assert_eq!(answer_to_failure(&Guards::ALL, reason), Answer::NotSaved);
        }
    }

    #[test]
    fn the_identity_of_a_save_is_the_path_of_its_link() {
        let url =
            "http://ds:80/cache/files/data/prod_1_edit_1.k_4095/output.docx/output.docx?md5=x&expires=1#f";

        assert_eq!(path_of(url), "/cache/files/data/prod_1_edit_1.k_4095/output.docx/output.docx");
        assert_eq!(path_of("http://ds"), "");
        assert_eq!(path_of("/only/a/path?x=http://y/z"), "/only/a/path");
    }
}
