//! The rules of `model`, searched exhaustively: every order in which things can happen in a set of small worlds.
//!
//! Two of our processes, a ledger and a Document Server that loses callbacks and answers, repeats, overtakes, crashes and
//! revives keys. What the server does is in `server.rs`, what we do in `host.rs`, `ledger.rs` and `collecting.rs`; every
//! decision is asked of the real functions of the crate. `promises.rs` says what must hold, `worlds.rs` what is searched.
//!
//! Guarantees: with all guards no promise breaks in any order; without any one of them a promise does break, so each is
//! needed. A broken promise is shown with a shortest list of moves that leads to it.
//! Does not do: bytes, disks, SQL and HTTP. The torture harness does, with the same guards.

mod collecting;
mod ending;
mod few;
mod host;
mod ledger;
mod limits;
mod moves;
mod mutants;
mod promises;
mod search;
mod server;
mod telling;
mod world;
mod worlds;

use model::Guards;
use worlds::Case;

/// With all guards no promise breaks in this world.
fn check(case: Case) {
    let outcome = search::search(case.start(), &case.setting(Guards::ALL));

    assert!(outcome.violation.is_none(), "{}", outcome.violation.map_or(String::new(), |it| it.to_string()));
    // A world without room for anything would be quiet too.
    assert!(outcome.states > 500 && outcome.depth > 12, "{} states, {} moves", outcome.states, outcome.depth);
}

#[test]
fn two_force_saves_and_a_final_save_in_any_order() {
    check(worlds::SIX_SIX_TWO);
}

#[test]
fn two_force_saves_and_a_final_save_while_a_process_crashes() {
    check(worlds::SIX_SIX_TWO_AND_A_CRASH);
}

#[test]
fn two_processes_work_on_one_save() {
    check(worlds::TWO_PROCESSES);
}

#[test]
fn closed_without_changes_and_opened_again_under_the_same_key() {
    check(worlds::FOUR_ONE_TWO);
}

#[test]
fn answers_are_lost_and_people_come_back() {
    check(worlds::LOST_ANSWERS);
}

#[test]
fn files_are_forgotten_and_opened_again() {
    check(worlds::FORGOTTEN);
}

#[test]
fn a_process_crashes_while_it_collects_a_forgotten_file() {
    check(worlds::FORGOTTEN_AND_A_CRASH);
}

#[test]
fn a_spent_key_is_revived() {
    check(worlds::REVIVED);
}

#[test]
fn the_server_cannot_assemble_the_file() {
    check(worlds::STATUS_THREE);
}

#[test]
fn the_server_crashes() {
    check(worlds::SERVER_CRASH);
}

#[test]
fn a_file_comes_out_damaged() {
    check(worlds::DAMAGED);
}

#[test]
fn the_server_loses_its_database() {
    check(worlds::AMNESIA);
}

#[test]
fn a_final_save_is_repeated_after_a_newer_one() {
    check(worlds::OVERTAKEN);
}

#[test]
fn changes_made_after_an_unheard_answer_are_brought_back_when_the_server_crashes() {
    check(worlds::UNHEARD_AND_STRANDED);
}
