//! Each guard is needed: without it, a promise breaks.
//!
//! Guarantees: every mutant of [`Guards::MUTANTS`] is either caught here or in [`OUT_OF_REACH`] with the reason why a
//! model without bytes cannot catch it.

use std::collections::BTreeSet;

use model::Guards;

use crate::promises::Promise;
use crate::search::search;
use crate::worlds::{self, Case};

/// Which promise breaks first without a guard, and in which world.
const CAUGHT: [(&str, Case, Promise); 13] = [
    ("no-order-guard", worlds::SIX_SIX_TWO, Promise::TheHeadKeepsItsContent),
    ("no-inbox", worlds::OVERTAKEN, Promise::OneContentPerSave),
    ("answer-before-commit", worlds::FOUR_ONE_TWO, Promise::AnAnsweredSaveIsKept),
    ("row-before-blob", worlds::TWO_PROCESSES, Promise::AnAnsweredSaveIsKept),
    ("no-collector", worlds::FORGOTTEN, Promise::EverythingArrives),
    ("key-bumped-on-status-4", worlds::STATUS_THREE, Promise::NoChangeIsNowhere),
    ("error-0-while-another-works", worlds::TWO_PROCESSES, Promise::AnAnsweredSaveIsKept),
    ("error-0-to-status-3", worlds::STATUS_THREE, Promise::AFailedSaveIsNeverConfirmed),
    ("no-content-comparison", worlds::AMNESIA, Promise::TheHeadKeepsItsContent),
    ("no-open-barrier", worlds::FORGOTTEN, Promise::AnOpenedKeyHidesNoSave),
    ("head-served-to-a-live-key", worlds::REVIVED, Promise::FilesAreSound),
    ("late-error-0", worlds::REVIVED, Promise::NoChangeIsNowhere),
    ("no-quarantine", worlds::DAMAGED, Promise::FilesAreSound),
];

/// What a model without bytes cannot show, and why.
const OUT_OF_REACH: [(&str, &str); 9] = [
    (
        "no-fsync",
        "power that fails between a write and its flush: there are no disks here, the torture harness has them",
    ),
    ("no-basis-check", SUBMISSIONS),
    ("head-moves-first", SUBMISSIONS),
    ("readers-see-unfinished", SUBMISSIONS),
    ("no-fencing", SUBMISSIONS),
    ("submit-without-state-check", SUBMISSIONS),
    ("no-clearing", SUBMISSIONS),
    ("supersede-ignored", SUBMISSIONS),
    ("no-taking-up", SUBMISSIONS),
];

const SUBMISSIONS: &str =
    "there are only documents here; `torture --flow submissions` has summary logs and records";

#[test]
fn every_guard_is_proven_or_out_of_reach() {
    let caught = CAUGHT.map(|(mutant, ..)| mutant);
    let out_of_reach = OUT_OF_REACH.map(|(mutant, _)| mutant);

    let known: BTreeSet<&str> = caught.into_iter().chain(out_of_reach).collect();
    assert_eq!(known, Guards::MUTANTS.iter().copied().collect());
    assert_eq!(known.len(), caught.len() + out_of_reach.len(), "no mutant is listed twice");
}

#[test]
fn without_any_one_guard_a_promise_breaks() {
    for (mutant, case, promise) in CAUGHT {
        let guards = Guards::without(mutant).unwrap();

        let violation = search(case.start(), &case.setting(guards)).violation;

        let violation = violation.unwrap_or_else(|| panic!("{mutant}: nothing broke"));
        assert_eq!(violation.promise, promise, "{mutant}: {violation}");
    }
}

#[test]
fn a_broken_promise_is_told_with_a_shortest_way_there() {
    let case = worlds::SIX_SIX_TWO;
    let guards = Guards::without("no-order-guard").unwrap();

    let violation = search(case.start(), &case.setting(guards)).violation.unwrap();

    assert_eq!(
        violation.to_string(),
        "broken after 8 moves: the head never loses what it held
   1. somebody under key 0 changes something
   2. somebody force-saves key 0
   3. somebody under key 0 changes something
   4. somebody force-saves key 0
   5. 6 of key 0, changes {1} arrives at process 0
   6. 6 of key 0, changes {1 2} arrives at process 0
   7. process 0 finishes row 2, 6 of key 0, changes {1 2}
   8. process 0 finishes row 1, 6 of key 0, changes {1}
"
    );
}
