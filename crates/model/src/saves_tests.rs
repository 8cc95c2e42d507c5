//! Tables for the rule on saves. The sequences come from PROTOCOL-like recordings of a real Document Server.

use super::*;

const BASE: Digest = Digest::new([0; 32]);
const OTHER: Digest = Digest::new([99; 32]);

fn digest(name: u8) -> Digest {
    Digest::new([name; 32])
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_770_000 + second).unwrap()
}

fn mark(inbox: u64, second: i64, bytes: u8) -> SaveMark {
    SaveMark {
        inbox: InboxNumber(inbox),
        last_save: Some(at(second)),
        digest: digest(bytes),
        session_start: Some(at(0)),
        runs: Some(1),
    }
}

fn live_key() -> KeyFacts {
    KeyFacts {
        standing: KeyStanding::Live,
        another_key_is_live: false,
        base: Some(BASE),
        newest_final: None,
        newest_checkpoint: None,
        base_fetched_again: false,
        bytes_kept_before: false,
        opened_on: None,
    }
}

fn head(digest: Digest) -> HeadFacts {
    HeadFacts { digest, is_version: true, made_by_this_key: None, extent: None }
}

fn checkpoint_head(own: &SaveMark) -> HeadFacts {
    HeadFacts { digest: own.digest, is_version: false, made_by_this_key: Some(own.clone()), extent: None }
}

fn version_head(own: &SaveMark) -> HeadFacts {
    HeadFacts { is_version: true, ..checkpoint_head(own) }
}

fn rule(key: &KeyFacts, head: &HeadFacts, kind: SaveKind, mark: SaveMark) -> Ruling {
    rule_on_save(&Guards::ALL, key, head, &IncomingSave { kind, mark })
}

#[test]
fn the_first_save_of_a_key_on_the_head_moves_the_head() {
    assert_eq!(rule(&live_key(), &head(BASE), SaveKind::Final, mark(1, 5, 1)), Ruling::NewVersion);
    assert_eq!(rule(&live_key(), &head(BASE), SaveKind::Checkpoint, mark(1, 5, 1)), Ruling::NewCheckpoint);
}

#[test]
fn a_save_whose_base_moved_is_kept_aside() {
    let ruling = rule(&live_key(), &head(OTHER), SaveKind::Final, mark(1, 5, 1));

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::BaseMoved));
}

#[test]
fn the_final_save_follows_its_own_checkpoint() {
    let checkpoint = mark(1, 5, 1);
    let key = KeyFacts { newest_checkpoint: Some(checkpoint.clone()), ..live_key() };

    let ruling = rule(&key, &checkpoint_head(&checkpoint), SaveKind::Final, mark(2, 9, 2));

    assert_eq!(ruling, Ruling::NewVersion);
}

#[test]
fn a_final_save_equal_to_the_checkpoint_at_the_head_makes_it_a_version() {
    let checkpoint = mark(1, 5, 1);
    let key = KeyFacts { newest_checkpoint: Some(checkpoint.clone()), bytes_kept_before: true, ..live_key() };

    assert_eq!(rule(&key, &checkpoint_head(&checkpoint), SaveKind::Final, mark(2, 5, 1)), Ruling::NewVersion);
    assert_eq!(
        rule(&key, &checkpoint_head(&checkpoint), SaveKind::Checkpoint, mark(2, 5, 1)),
        Ruling::NothingNew
    );
}

#[test]
fn a_checkpoint_that_arrives_after_the_final_save_is_filed_beside_it() {
    let last = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(last.clone()), ..live_key() };

    assert_eq!(rule(&key, &version_head(&last), SaveKind::Checkpoint, mark(1, 5, 1)), Ruling::FileBeside);
    assert_eq!(rule(&key, &version_head(&last), SaveKind::Checkpoint, mark(3, 5, 1)), Ruling::FileBeside);
}

#[test]
fn a_checkpoint_of_a_session_that_went_on_after_its_final_save_moves_the_head() {
    let last = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(last.clone()), ..live_key() };
    let checkpoint = mark(3, 40, 3);

    assert_eq!(
        rule(&key, &version_head(&last), SaveKind::Checkpoint, checkpoint.clone()),
        Ruling::NewCheckpoint
    );

    let key = KeyFacts { newest_checkpoint: Some(checkpoint.clone()), ..key };
    assert_eq!(
        rule(&key, &checkpoint_head(&checkpoint), SaveKind::Final, mark(4, 50, 4)),
        Ruling::NewVersion
    );
}

#[test]
fn a_checkpoint_of_another_session_under_the_same_key_is_kept_aside() {
    let last = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(last.clone()), standing: KeyStanding::Retired, ..live_key() };
    let mut revived = mark(3, 400, 3);
    revived.session_start = Some(at(390));

    let ruling = rule(&key, &version_head(&last), SaveKind::Checkpoint, revived);

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::OlderSession));
}

#[test]
fn a_final_save_outranks_a_checkpoint_of_the_same_second_that_was_held_up() {
    let held_up = mark(3, 9, 3);
    let key = KeyFacts { newest_checkpoint: Some(held_up.clone()), ..live_key() };

    // Received first, stored second: its download failed at first.
    let ruling = rule(&key, &checkpoint_head(&held_up), SaveKind::Final, mark(2, 9, 2));

    assert_eq!(ruling, Ruling::NewVersion);
}

#[test]
fn a_final_save_with_fewer_runs_than_a_checkpoint_of_the_same_second_is_the_older_one() {
    let later = SaveMark { runs: Some(2), ..mark(3, 9, 3) };
    let key = KeyFacts { newest_checkpoint: Some(later.clone()), ..live_key() };

    let ruling = rule(&key, &checkpoint_head(&later), SaveKind::Final, mark(2, 9, 2));

    assert_eq!(ruling, Ruling::FileBeside);
}

#[test]
fn checkpoints_go_by_the_time_of_their_last_change() {
    let newest = mark(2, 9, 2);
    let key = KeyFacts { newest_checkpoint: Some(newest.clone()), ..live_key() };
    let head = checkpoint_head(&newest);

    assert_eq!(rule(&key, &head, SaveKind::Checkpoint, mark(3, 10, 3)), Ruling::NewCheckpoint);
    assert_eq!(rule(&key, &head, SaveKind::Checkpoint, mark(3, 8, 3)), Ruling::FileBeside, "overtaken");
    assert_eq!(rule(&key, &head, SaveKind::Checkpoint, mark(3, 9, 3)), Ruling::NewCheckpoint, "a tie");
    assert_eq!(rule(&key, &head, SaveKind::Checkpoint, mark(1, 9, 3)), Ruling::FileBeside, "a tie");
}

#[test]
fn a_clock_that_was_set_back_does_not_hide_newer_checkpoints() {
    let newest = mark(2, 7200, 2);
    let key = KeyFacts { newest_checkpoint: Some(newest.clone()), ..live_key() };

    let ruling = rule(&key, &checkpoint_head(&newest), SaveKind::Checkpoint, mark(3, 3600, 3));

    assert_eq!(ruling, Ruling::NewCheckpoint);
}

#[test]
fn a_repeat_found_too_late_for_the_inbox_is_recognised_by_its_bytes() {
    let newest = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(newest.clone()), bytes_kept_before: true, ..live_key() };

    assert_eq!(rule(&key, &version_head(&newest), SaveKind::Final, mark(3, 9, 2)), Ruling::NothingNew);
    assert_eq!(rule(&key, &version_head(&newest), SaveKind::Checkpoint, mark(3, 5, 1)), Ruling::NothingNew);
}

#[test]
fn a_second_final_save_that_contains_the_first_moves_the_head() {
    let first = mark(2, 9, 2);
    for standing in [KeyStanding::Live, KeyStanding::Retired] {
        let key = KeyFacts { newest_final: Some(first.clone()), standing, ..live_key() };

        assert_eq!(rule(&key, &version_head(&first), SaveKind::Final, mark(5, 30, 5)), Ruling::NewVersion);
    }
}

#[test]
fn a_final_save_that_was_overtaken_by_a_newer_one_never_replaces_it() {
    // Its first delivery was lost; before the repeat somebody came, changed more and left. The repeat carries the time of
    // the newest change, or the present time if the newer save was acknowledged meanwhile.
    let newest = SaveMark { runs: Some(2), ..mark(5, 30, 5) };
    let key = KeyFacts { newest_final: Some(newest.clone()), standing: KeyStanding::Retired, ..live_key() };
    let head = version_head(&newest);

    for last_save in [Some(at(30)), None] {
        let overtaken = SaveMark { last_save, ..mark(6, 30, 2) };
        assert_eq!(
            rule(&key, &head, SaveKind::Final, overtaken.clone()),
            Ruling::FileBeside,
            "{last_save:?}"
        );

        let by_the_same_author = SaveMark { runs: Some(2), ..overtaken };
        assert_eq!(
            rule(&key, &head, SaveKind::Final, by_the_same_author),
            Ruling::KeepAside(ConflictReason::OlderSession),
            "{last_save:?}: nobody can tell, so both are kept"
        );
    }
}

#[test]
fn a_final_save_taken_up_again_after_a_newer_checkpoint_does_not_replace_it() {
    // It was written down, our process ended, and the session went on: recovery finishes it after the checkpoint. Or a
    // proxy held a copy of it back.
    let checkpoint = mark(2, 30, 3);
    let key = KeyFacts { newest_checkpoint: Some(checkpoint.clone()), ..live_key() };
    let head = checkpoint_head(&checkpoint);

    for inbox in [1, 3] {
        assert_eq!(rule(&key, &head, SaveKind::Final, mark(inbox, 9, 2)), Ruling::FileBeside, "row {inbox}");
    }
}

#[test]
fn a_final_save_older_than_a_checkpoint_of_its_reopened_forgotten_file_does_not_replace_it() {
    let reopened = SaveMark { session_start: None, runs: None, ..mark(2, 30, 3) };
    let key = KeyFacts { newest_checkpoint: Some(reopened.clone()), ..live_key() };

    let ruling = rule(&key, &checkpoint_head(&reopened), SaveKind::Final, mark(1, 9, 2));

    assert_eq!(ruling, Ruling::FileBeside);
}

#[test]
fn an_undated_final_save_that_came_before_a_checkpoint_is_kept_in_sight() {
    // Sent again after the server's restart: nobody can tell which of the two holds more.
    let checkpoint = mark(2, 30, 3);
    let key = KeyFacts { newest_checkpoint: Some(checkpoint.clone()), ..live_key() };
    let undated = SaveMark { last_save: None, ..mark(1, 9, 2) };

    let ruling = rule(&key, &checkpoint_head(&checkpoint), SaveKind::Final, undated);

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::OlderSession));
}

#[test]
fn a_checkpoint_of_a_reopened_forgotten_file_follows_the_final_save() {
    let last = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(last.clone()), ..live_key() };
    let reopened = SaveMark { session_start: None, runs: None, ..mark(3, 40, 3) };

    assert_eq!(rule(&key, &version_head(&last), SaveKind::Checkpoint, reopened), Ruling::NewCheckpoint);
}

#[test]
fn a_late_save_of_a_session_the_server_lost_never_erases_the_next_one() {
    // The server lost its database while the save was on its way, and began again from the base.
    let again = SaveMark { session_start: Some(at(350)), ..mark(1, 400, 5) };
    let key = KeyFacts { newest_checkpoint: Some(again.clone()), ..live_key() };

    let ruling = rule(&key, &checkpoint_head(&again), SaveKind::Final, mark(2, 9, 2));

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::SessionBeganAgain));
}

#[test]
fn a_final_save_with_more_history_is_newer_whatever_the_clock_says() {
    let first = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(first.clone()), ..live_key() };
    let more = SaveMark { runs: Some(3), last_save: None, ..mark(5, 9, 5) };

    assert_eq!(rule(&key, &version_head(&first), SaveKind::Final, more), Ruling::NewVersion);
}

#[test]
fn a_session_that_began_again_and_sends_back_its_base_brings_nothing_new() {
    let newest = mark(2, 9, 2);
    let key = KeyFacts { newest_checkpoint: Some(newest.clone()), ..live_key() };
    let emptied = SaveMark { digest: BASE, session_start: Some(at(10)), ..mark(3, 12, 3) };

    let ruling = rule(&key, &checkpoint_head(&newest), SaveKind::Checkpoint, emptied);

    assert_eq!(ruling, Ruling::NothingNew, "the base is a version");
}

#[test]
fn a_session_that_began_again_from_the_base_never_erases_what_was_saved() {
    let first = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(first.clone()), ..live_key() };
    let mut again = mark(5, 400, 5);
    again.session_start = Some(at(350));

    let by_history = rule(&key, &version_head(&first), SaveKind::Final, again);
    let refetched = KeyFacts { base_fetched_again: true, ..key };
    let by_fetch = rule(&refetched, &version_head(&first), SaveKind::Final, mark(5, 400, 5));

    assert_eq!(by_history, Ruling::KeepAside(ConflictReason::SessionBeganAgain));
    assert_eq!(by_fetch, Ruling::KeepAside(ConflictReason::SessionBeganAgain));
}

#[test]
fn an_older_save_of_a_lost_session_is_kept_aside_and_not_buried() {
    let mut newest = mark(5, 400, 5);
    newest.session_start = Some(at(350));
    let key = KeyFacts { newest_final: Some(newest.clone()), ..live_key() };

    let ruling = rule(&key, &version_head(&newest), SaveKind::Final, mark(2, 9, 2));

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::OlderSession));
}

#[test]
fn a_reopened_forgotten_file_has_no_history_and_still_contains_what_came_before() {
    let first = mark(2, 9, 2);
    let key = KeyFacts { newest_final: Some(first.clone()), ..live_key() };
    let reopened = SaveMark { session_start: None, runs: None, ..mark(5, 400, 5) };

    assert_eq!(rule(&key, &version_head(&first), SaveKind::Final, reopened), Ruling::NewVersion);
}

#[test]
fn a_session_opened_on_an_older_forgotten_file_does_not_take_the_head_back() {
    let newest = mark(3, 9, 3);
    let opened_on = |number| KeyFacts {
        newest_final: Some(newest.clone()),
        opened_on: Some(InboxNumber(number)),
        ..live_key()
    };
    let without_history = |inbox| SaveMark { session_start: None, runs: None, ..mark(inbox, 400, 5) };
    let head = version_head(&newest);

    let on_older = rule(&opened_on(2), &head, SaveKind::Final, without_history(5));
    let on_newest = rule(&opened_on(3), &head, SaveKind::Final, without_history(5));
    let went_on = version_head(&SaveMark { digest: digest(4), ..without_history(4) });
    let after_its_own = rule(&opened_on(3), &went_on, SaveKind::Final, without_history(5));

    assert_eq!(on_older, Ruling::KeepAside(ConflictReason::SessionBeganAgain));
    assert_eq!((on_newest, after_its_own), (Ruling::NewVersion, Ruling::NewVersion));
}

#[test]
fn saves_of_retired_and_adopted_keys_become_conflict_copies() {
    let retired = KeyFacts { standing: KeyStanding::Retired, ..live_key() };
    let adopted = KeyFacts { standing: KeyStanding::Adopted, base: None, ..live_key() };

    let of_retired = rule(&retired, &head(BASE), SaveKind::Final, mark(1, 5, 1));
    let of_adopted = rule(&adopted, &head(BASE), SaveKind::Final, mark(1, 5, 1));

    assert_eq!(of_retired, Ruling::KeepAside(ConflictReason::KeyRetired));
    assert_eq!(of_adopted, Ruling::KeepAside(ConflictReason::KeyAdopted));
}

#[test]
fn a_late_save_never_moves_the_head_under_another_live_session() {
    let first = mark(2, 9, 2);
    let key = KeyFacts {
        newest_final: Some(first.clone()),
        standing: KeyStanding::Retired,
        another_key_is_live: true,
        ..live_key()
    };

    let ruling = rule(&key, &version_head(&first), SaveKind::Final, mark(5, 30, 5));

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::KeyRetired));
}

#[test]
fn a_final_save_that_changed_nothing_makes_no_version() {
    let unchanged = SaveMark { digest: BASE, ..mark(1, 5, 1) };

    assert_eq!(rule(&live_key(), &head(BASE), SaveKind::Final, unchanged), Ruling::NothingNew);
}

fn forgotten(own: u64, last_received_final: Option<u64>, newest_save: Option<u64>) -> ForgottenFacts {
    ForgottenFacts {
        digest: digest(7),
        own_number: InboxNumber(own),
        last_received_final: last_received_final.map(InboxNumber),
        newest_save: newest_save.map(InboxNumber),
    }
}

#[test]
fn a_forgotten_file_nobody_told_us_of_becomes_a_version() {
    let ruling = rule_on_forgotten(&Guards::ALL, &live_key(), &head(BASE), &forgotten(9, None, None));

    assert_eq!(ruling, Ruling::NewVersion);
}

#[test]
fn a_forgotten_file_takes_the_place_of_the_final_save_that_failed() {
    let checkpoint = mark(3, 9, 3);
    let key = KeyFacts { newest_checkpoint: Some(checkpoint.clone()), ..live_key() };
    let head = checkpoint_head(&checkpoint);

    let after = rule_on_forgotten(&Guards::ALL, &key, &head, &forgotten(9, Some(4), Some(3)));
    let before = rule_on_forgotten(&Guards::ALL, &key, &head, &forgotten(9, Some(2), Some(3)));

    assert_eq!(after, Ruling::NewVersion);
    assert_eq!(before, Ruling::KeepAside(ConflictReason::OlderSession));
}

#[test]
fn a_forgotten_file_beside_a_final_save_that_was_taken_is_kept_aside() {
    // It may be an overtaken save whose repeats failed.
    let newest = mark(4, 9, 4);
    let key = KeyFacts { newest_final: Some(newest.clone()), standing: KeyStanding::Retired, ..live_key() };

    let ruling =
        rule_on_forgotten(&Guards::ALL, &key, &version_head(&newest), &forgotten(9, Some(4), Some(4)));

    assert_eq!(ruling, Ruling::KeepAside(ConflictReason::OlderSession));
}

#[test]
fn a_forgotten_file_that_is_a_replaced_checkpoint_becomes_a_version() {
    // Two force saves of one second: the older one came last and took the newer one's place.
    let older = mark(3, 9, 3);
    let key = KeyFacts { newest_checkpoint: Some(older.clone()), bytes_kept_before: true, ..live_key() };

    let ruling =
        rule_on_forgotten(&Guards::ALL, &key, &checkpoint_head(&older), &forgotten(9, None, Some(3)));

    assert_eq!(ruling, Ruling::NewVersion);
}

#[test]
fn a_forgotten_file_that_is_an_older_checkpoint_is_not_kept_twice() {
    let newest = mark(5, 20, 5);
    let key = KeyFacts { newest_checkpoint: Some(newest.clone()), bytes_kept_before: true, ..live_key() };

    // A final save failed at 4, and the session went on after it.
    let ruling =
        rule_on_forgotten(&Guards::ALL, &key, &checkpoint_head(&newest), &forgotten(9, Some(4), Some(5)));

    assert_eq!(ruling, Ruling::NothingNew);
}

#[test]
fn a_forgotten_file_already_kept_is_nothing_new() {
    let key = KeyFacts { bytes_kept_before: true, ..live_key() };

    let ruling = rule_on_forgotten(&Guards::ALL, &key, &head(OTHER), &forgotten(9, Some(4), Some(4)));

    assert_eq!(ruling, Ruling::NothingNew);
}

#[test]
fn a_key_retires_with_its_final_save_only_if_the_server_hears_of_it() {
    assert_eq!(key_after_final(SomeoneWaits::Yes), KeyAfterFinal::Retire);
    assert_eq!(key_after_final(SomeoneWaits::No), KeyAfterFinal::StayLive);
}

#[test]
fn conflict_reasons_read_back_what_they_show() {
    for (reason, word) in ConflictReason::ALL {
        assert_eq!(ConflictReason::parse(reason.as_str()), Some(reason), "{word}");
    }
}
