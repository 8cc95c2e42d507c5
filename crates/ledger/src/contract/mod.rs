//! What every ledger must do, as shipped code: an adapter is done when these pass.
//!
//! Each check gets a fresh, empty ledger. [`contract_tests!`](crate::contract_tests) makes one test of each, so that a
//! failure has a name.

pub mod callers;
pub mod changes;
mod desk;
pub mod documents;
pub mod forgotten;
pub mod history;
pub mod keys;
pub mod logs;
pub mod operations;
pub mod outbox;
pub mod pruning;
pub mod publications;
pub mod records;
pub mod saves;
pub mod scopes;
pub mod sessions;
pub mod shares;
pub mod snapshots;
pub mod staging;
pub mod submitting;
pub mod templates;
pub mod trail;
mod workbooks;

pub use desk::{Desk, environment};

/// Makes a test of every check, or of those of some areas: `contract_tests!(fresh().await; documents keys)`. `$make` is an
/// expression that gives a fresh `Arc<dyn Ledger>`.
#[macro_export]
macro_rules! contract_tests {
    ($make:expr) => {
        $crate::contract_tests!($make; documents keys sessions saves forgotten changes history pruning callers shares publications trail operations outbox logs staging submitting records snapshots scopes templates);
    };
    ($make:expr; $($area:ident)+) => {
        $($crate::contract_tests!(@@ $area, $make);)+
    };
    (@@ documents, $make:expr) => {
        $crate::contract_tests!(@ $make, documents, [
            companies_and_projects_are_listed_and_unique,
            a_document_appears_with_its_first_version,
            a_document_needs_its_project_and_a_free_id,
            documents_are_listed_page_by_page_within_their_company,
            documents_are_found_by_words_and_sorted,
            a_blob_no_row_names_is_adopted_once,
        ]);
    };
    (@@ keys, $make:expr) => {
        $crate::contract_tests!(@ $make, keys, [
            an_idle_key_is_reused_while_its_base_is_the_head,
            two_openers_get_one_key,
            status_four_retires_nothing,
            a_key_whose_final_save_was_answered_is_replaced,
            a_key_that_retired_with_its_final_save_comes_back_if_the_server_did_not_hear_so,
            a_key_whose_final_save_nobody_heard_of_stays_live,
            opening_waits_while_a_final_save_is_open,
            an_answer_older_than_the_newest_save_counts_for_nothing,
            an_answer_older_than_a_repeat_of_the_final_save_counts_for_nothing,
            somebody_inside_a_retired_key_is_noticed,
            keys_are_never_issued_twice,
        ]);
    };
    (@@ sessions, $make:expr) => {
        $crate::contract_tests!(@ $make, sessions, [
            people_are_known_by_name_and_since_when,
            somebody_who_comes_back_is_there_since_then,
            a_session_says_how_it_stands,
            a_silent_session_is_closed_when_the_server_says_so_and_its_key_stays,
            a_server_that_is_away_or_sees_somebody_ends_nothing,
            changes_without_anybody_inside_are_told_once,
            an_answer_older_than_the_last_word_changes_nothing,
            sessions_are_listed_page_by_page,
            whoever_was_named_under_a_key_stays_named_whatever_comes,
        ]);
    };
    (@@ saves, $make:expr) => {
        $crate::contract_tests!(@ $make, saves, [
            a_final_save_becomes_the_next_version,
            a_force_save_is_a_checkpoint_and_keeps_the_version,
            six_six_two_ends_with_the_last_content_at_the_head,
            a_repeat_joins_the_first_and_gets_the_recorded_answer,
            a_repeat_after_the_window_is_judged_by_its_bytes,
            committing_twice_changes_nothing,
            a_late_checkpoint_is_filed_beside_the_final_save,
            a_save_of_an_unknown_key_is_adopted_and_kept_aside,
            a_save_whose_base_moved_is_kept_as_a_conflict_copy,
            a_save_of_an_unknown_document_is_an_orphan,
            damaged_content_goes_to_quarantine_and_leaves_the_head,
            a_failed_save_without_content_is_noted,
            a_dead_link_ends_as_expired_and_a_new_delivery_starts_anew,
            a_redelivery_retires_the_key_of_a_save_nobody_heard_of,
            a_save_another_process_committed_retires_the_key_where_somebody_waits,
            a_repeat_does_not_change_what_the_first_delivery_said_of_its_save,
            form_data_is_kept_with_its_save,
            what_vanished_since_the_head_marks_the_save,
            a_save_is_held_if_the_operator_wants_a_person_to_look,
            a_session_opened_on_an_older_forgotten_file_does_not_take_the_head_back,
            a_final_save_does_not_pass_an_earlier_one_of_its_session,
            a_key_with_a_save_on_its_way_is_not_retired,
            what_a_key_still_needs_of_the_server_is_known,
            the_audit_chain_holds_and_nothing_contradicts_itself,
        ]);
    };
    (@@ forgotten, $make:expr) => {
        $crate::contract_tests!(@ $make, forgotten, [
            a_forgotten_file_becomes_a_version_once,
            a_forgotten_file_that_is_already_kept_is_nothing_new,
            a_forgotten_file_that_is_a_replaced_checkpoint_becomes_a_version,
            a_key_whose_forgotten_file_was_collected_is_spent_and_stays_live,
            a_forgotten_file_is_left_alone_when_a_save_came_meanwhile,
            a_forgotten_file_is_left_alone_while_a_save_of_its_key_is_stored,
            a_session_that_went_on_from_its_forgotten_file_is_told_by_its_saves,
            a_checkpoint_that_was_overtaken_by_the_final_save_does_not_count_as_newer,
            a_damaged_forgotten_file_is_quarantined_once,
            the_bytes_of_a_forgotten_file_are_kept_once_and_nothing_else_changes,
        ]);
    };
    (@@ changes, $make:expr) => {
        $crate::contract_tests!(@ $make, changes, [
            a_new_version_is_put_on_a_document_nobody_edits,
            nothing_is_changed_past_somebody_who_edits,
            a_change_waits_for_a_final_save_and_finishes_its_key,
            a_change_of_another_head_is_refused,
            a_deleted_document_is_gone_its_saves_are_taken_and_it_comes_back,
            a_kept_copy_is_used_or_dismissed_once,
            what_came_after_a_save_is_told,
        ]);
    };
    (@@ history, $make:expr) => {
        $crate::contract_tests!(@ $make, history, [
            pages_of_contents_join_without_gap_or_repeat,
            a_record_of_changes_is_kept_with_its_version_and_with_nothing_else,
            a_renamed_document_owes_its_publication_until_only_the_new_name_is_shown,
            people_are_known_by_what_they_did_in_their_company,
            mentions_are_written_down_once_and_handed_out_in_order,
        ]);
    };
    (@@ pruning, $make:expr) => {
        $crate::contract_tests!(@ $make, pruning, [
            contents_the_policy_does_not_keep_are_let_go_and_that_is_told,
            what_a_session_or_a_link_needs_is_never_let_go,
            a_blob_some_row_needs_is_not_removed,
            bytes_that_come_again_are_named_only_if_they_are_there,
            bytes_that_came_again_and_were_never_named_are_adopted,
            a_deleted_document_is_purged_after_its_time_and_counts_no_more,
            a_deleted_document_with_work_left_is_not_purged,
            a_kept_copy_is_let_go_only_after_a_person_settled_it,
        ]);
    };
    (@@ callers, $make:expr) => {
        $crate::contract_tests!(@ $make, callers, [
            a_token_is_found_by_its_hash_and_by_nothing_else,
            a_token_needs_companies_that_exist,
            a_revoked_token_counts_for_nothing_and_stays_listed,
            the_last_use_of_a_token_only_moves_on,
            companies_and_projects_are_renamed_and_that_is_written_down,
            a_document_beyond_a_limit_is_refused_and_nothing_is_written,
            a_save_beyond_a_limit_is_taken_and_told,
        ]);
    };
    (@@ shares, $make:expr) => {
        $crate::contract_tests!(@ $make, shares, [
            a_share_link_is_found_by_its_hash_and_listed_with_its_document,
            a_use_is_counted_and_has_a_guest,
            a_share_link_that_ended_admits_and_seats_nobody,
            a_revocation_lists_who_may_be_inside_until_they_were_asked_twice,
            guests_of_revoked_links_are_unwelcome_and_nobody_else_is,
            what_happens_to_share_links_is_written_down,
        ]);
    };
    (@@ publications, $make:expr) => {
        $crate::contract_tests!(@ $make, publications, [
            a_moved_head_owes_its_publication,
            a_publication_overtaken_by_a_save_is_still_owed,
            what_is_owed_is_listed_page_by_page,
            what_nobody_publishes_is_found_by_when_anything_last_happened,
            an_external_change_on_the_head_becomes_a_version,
            an_external_change_during_editing_is_kept_aside,
            a_damaged_external_change_is_quarantined,
            what_the_tree_should_show_is_listed_without_what_it_owes,
        ]);
    };
    (@@ trail, $make:expr) => {
        $crate::contract_tests!(@ $make, trail, [
            acts_tell_who_did_what_from_where_and_what_came_of_it,
            a_new_document_is_anchored_at_once,
            a_deleted_document_is_anchored_at_once,
            chains_that_moved_are_anchored_once_a_minute,
            more_chains_than_one_anchor_holds_take_several,
            acts_are_found_by_document_person_time_and_kind,
            pages_of_acts_join_without_gap_or_repeat,
            a_number_that_nothing_can_have_finds_nothing,
            all_chains_of_a_company_are_listed_and_check,
            a_save_has_a_receipt,
            a_blob_remembers_when_it_was_last_read_back,
        ]);
    };
    (@@ operations, $make:expr) => {
        $crate::contract_tests!(@ $make, operations, [
            keys_that_may_hold_unsaved_work_are_told,
            an_act_on_the_installation_is_written_down,
        ]);
    };
    (@@ outbox, $make:expr) => {
        $crate::contract_tests!(@ $make, outbox, [
            an_act_is_told_to_whoever_wants_to_hear_of_it,
            deliveries_about_one_document_are_told_in_order,
            what_was_given_up_is_listed_lets_others_pass_and_can_be_tried_again,
            a_target_that_is_gone_is_not_waited_for,
        ]);
    };
    (@@ logs, $make:expr) => {
        $crate::contract_tests!(@ $make, logs, [
            an_upload_begins_as_preprocessing_and_is_found_in_its_scope_only,
            the_same_upload_again_is_the_same_log,
            the_last_upload_supersedes_whatever_is_not_submitted,
            an_upload_while_a_submission_runs_is_refused,
            previews_stand_side_by_side_if_the_template_says_so,
            a_stale_preview_is_compared_again_and_confirmed_again,
            a_stale_preview_may_be_validated_from_the_beginning,
            a_preview_counts_only_for_the_records_it_was_compared_with,
            nothing_is_validated_that_was_not_compared,
            a_wrong_workbook_is_invalid_and_frees_its_scope,
            a_scanner_may_refuse_before_anything_is_read,
            a_fault_of_ours_ends_a_validation_for_good,
            every_state_refuses_what_does_not_belong_to_it,
            a_validation_that_was_taken_over_begins_again_with_nothing,
            work_that_nobody_does_is_owed,
            an_operator_frees_a_scope,
            logs_are_listed_by_scope_state_and_page,
            the_bytes_of_a_workbook_are_needed_for_ever,
        ]);
    };
    (@@ staging, $make:expr) => {
        $crate::contract_tests!(@ $make, staging, [
            a_preview_tells_what_is_created_updated_unchanged_and_removed,
            changes_are_listed_by_page_and_filter_before_and_after_the_commit,
            an_unchanged_workbook_stores_nothing_and_still_commits,
            a_workbook_without_a_row_still_commits,
            a_row_that_counts_otherwise_is_changed,
            the_same_key_twice_is_told_with_both_places,
            removed_rows_follow_the_policy_of_their_kind,
            a_record_that_ended_begins_again_and_its_history_stays,
            problems_are_counted_exactly_and_kept_to_a_limit_the_worst_first,
            more_rows_than_one_step_takes_are_staged_compared_and_submitted,
            an_undone_submission_is_a_new_one_that_can_be_looked_at_first,
            what_a_preview_promises_is_what_the_records_show,
            what_a_preview_promises_is_what_the_records_show_of_other_workbooks,
        ]);
    };
    (@@ submitting, $make:expr) => {
        $crate::contract_tests!(@ $make, submitting, [
            a_submission_becomes_visible_at_once_and_whole,
            an_incomplete_submission_is_not_committed,
            a_submission_that_is_repeated_has_the_same_result,
            an_overtaken_run_changes_nothing,
            a_submission_that_fails_for_good_leaves_nothing_and_frees_the_scope,
            a_returned_submission_is_confirmed_again,
            races_have_one_winner,
            two_previews_submitted_at_once_have_one_winner,
            a_submission_is_finished_from_wherever_it_stopped,
            what_happens_to_a_scope_is_written_down_and_told,
        ]);
    };
    (@@ records, $make:expr) => {
        $crate::contract_tests!(@ $make, records, [
            records_are_read_as_they_are_and_as_they_were,
            the_history_of_a_record_is_in_the_order_of_commits,
            records_are_listed_by_page_and_filter,
            scopes_do_not_see_each_other_and_stand_in_a_list,
            only_what_was_previewed_is_appended,
            erased_values_are_gone_and_the_history_stays,
            commits_are_listed_the_newest_first,
        ]);
    };
    (@@ snapshots, $make:expr) => {
        $crate::contract_tests!(@ $make, snapshots, [
            a_snapshot_names_the_blobs_of_its_moment,
            a_snapshot_is_not_written_over_anything,
            after_a_restore_no_key_is_issued_again,
            after_a_restore_a_live_key_is_asked_about_first,
        ]);
    };
    (@@ scopes, $make:expr) => {
        $crate::contract_tests!(@ $make, scopes, [
            organisations_are_made_replaced_and_listed_page_by_page,
            a_registration_belongs_to_its_organisation_and_has_a_number_of_its_own,
            a_registration_has_days_and_a_template_that_counts,
            accreditations_stand_under_a_registration_by_their_first_day,
            deadlines_are_set_moved_and_taken_away_and_that_is_written_down,
            an_import_writes_all_once_and_leaves_what_it_does_not_name,
            an_import_with_one_wrong_line_writes_nothing_and_tells_all_of_them,
            a_registration_has_no_more_deadlines_than_are_listed,
        ]);
    };
    (@@ templates, $make:expr) => {
        $crate::contract_tests!(@ $make, templates, [
            a_version_of_a_template_is_added_once_and_never_changes,
            versions_are_listed_newest_first_and_a_retired_one_stays,
        ]);
    };
    (@ $make:expr, $area:ident, [$($name:ident,)*]) => {
        mod $area {
            $(#[tokio::test]
            async fn $name() {
                let ledger = $make;
                $crate::contract::$area::$name(&$crate::contract::Desk::new(ledger).await).await;
            })*
        }
    };
}
