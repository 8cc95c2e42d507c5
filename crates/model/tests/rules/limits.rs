//! What is known not to be promised: each needs several rare things at once, and none of them loses a save we answered.
//!
//! Guarantees: each of these is still true. Once a rule or a flow covers it, its test fails, and the trouble moves to a world
//! of `worlds.rs` where it must never happen again.

use model::Guards;

use crate::promises::Promise;
use crate::search::search;
use crate::worlds::{self, Case};

fn check_limit(case: Case, promise: Promise) {
    let violation = search(case.start(), &case.setting(Guards::ALL)).violation;

    let violation = violation.expect("a limit that no longer exists: make it a world that must hold");
    assert_eq!(violation.promise, promise, "{violation}");
}

/// The first delivery of a final save is lost, somebody goes on and force-saves, and the server repeats the old save with
/// the time of the newest change. Nothing in it tells that it is old. Both are kept, in the wrong order.
#[test]
fn a_repeat_that_carries_the_time_of_a_force_save_is_taken_for_newer() {
    check_limit(worlds::OVERTAKEN_BY_A_FORCE_SAVE, Promise::TheHeadKeepsItsContent);
}

/// Two force saves of one second, the younger overtaking the older on the wire: times are in whole seconds, so the order of
/// arrival decides. Both are kept, and the final save holds everything.
#[test]
fn force_saves_of_one_second_go_by_their_arrival() {
    check_limit(worlds::SWAPPED_WITHIN_A_SECOND, Promise::TheHeadKeepsItsContent);
}
