//! The guards that keep saves and submissions safe, each of which a test can switch off.
//!
//! A guard that can be removed without any test noticing is not proven to do anything. The exhaustive model and
//! the torture harness switch each one off in turn and must find the damage.
//!
//! Guarantees: [`Guards::ALL`] is what the product runs with; the binary can only deviate when it was built with
//! the feature `torture`.

macro_rules! guards {
    ($($(#[$doc:meta])* $field:ident = $mutant:literal,)*) => {
        /// Which guards stand. All of them, except in tests that prove each one is needed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Guards {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Guards {
            /// Every guard stands.
            pub const ALL: Self = Self { $($field: true,)* };

            /// The names under which a test can switch one guard off.
            pub const MUTANTS: &'static [&'static str] = &[$($mutant),*];

            /// All guards but the one the mutant's name removes.
            pub fn without(mutant: &str) -> Option<Self> {
                let mut guards = Self::ALL;
                match mutant {
                    $($mutant => guards.$field = false,)*
                    _ => return None,
                }
                Some(guards)
            }
        }
    };
}

guards! {
    /// An older save of a key never replaces a newer one.
    order_guard = "no-order-guard",
    /// A repeated callback is recognised and gets the recorded answer.
    inbox = "no-inbox",
    /// `{"error":0}` leaves only after the commit.
    answer_after_commit = "answer-before-commit",
    /// The bytes are durable before the row that names them.
    blob_before_row = "row-before-blob",
    /// Files and folders are flushed before they count as stored.
    fsync = "no-fsync",
    /// Forgotten files are collected.
    collector = "no-collector",
    /// Status 4 leaves the key alone.
    key_survives_status_4 = "key-bumped-on-status-4",
    /// Work in progress elsewhere is answered 503, never 0.
    busy_is_not_done = "error-0-while-another-works",
    /// Status 3 is never answered 0.
    status_3_refused = "error-0-to-status-3",
    /// A save whose base is no longer the head is kept aside.
    content_comparison = "no-content-comparison",
    /// Opening waits for a final save that is being stored.
    open_barrier = "no-open-barrier",
    /// `document.url` stays at the key's base while the server may replay changes on it.
    pinned_base = "head-served-to-a-live-key",
    /// No 0 is answered so late that the server may have revived the key.
    late_answer_closes = "late-error-0",
    /// A damaged file goes to quarantine and never becomes the head.
    quarantine = "no-quarantine",
    /// A preview counts only for the head it was compared with.
    basis_check = "no-basis-check",
    /// The head of a scope moves when all versions of a submission are written.
    versions_before_head = "head-moves-first",
    /// Readers of records look up to the head and no further.
    readers_stop_at_head = "readers-see-unfinished",
    /// Whoever takes up a log overtakes those who worked on it before.
    fencing = "no-fencing",
    /// A log that is being submitted, or was, does not begin again.
    submits_once = "submit-without-state-check",
    /// Before a submission is given back, what it wrote above the head goes.
    withdrawal = "no-clearing",
    /// A log that a newer one took the place of is never submitted.
    superseded_is_over = "supersede-ignored",
    /// Work on logs that stopped is taken up again.
    taking_up = "no-taking-up",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_removes_exactly_one_guard() {
        for mutant in Guards::MUTANTS {
            assert_ne!(Guards::without(mutant), Some(Guards::ALL), "{mutant}");
        }
        assert_eq!(Guards::without("unknown"), None);
    }
}
