//! What every vault and every tree must do, as shipped code: an adapter is done when these pass.
//!
//! [`contract_tests!`](crate::contract_tests) makes one test of each check, on a fresh store each.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

pub mod blobs;
pub mod sshd;
pub mod trees;

/// Makes a test of every check. The expressions give a fresh `Arc<dyn Vault>` and, where there is one, a fresh `Arc<dyn Tree>`,
/// each with something that keeps its store alive.
#[macro_export]
macro_rules! contract_tests {
    ($vault:expr, $tree:expr) => {
        $crate::contract_tests!($vault);
        $crate::contract_tests!(@ $tree, trees, [
            the_first_publication_replaces_nothing,
            what_is_replaced_becomes_a_backup,
            what_is_withdrawn_becomes_a_backup_and_the_name_is_free,
            two_backups_of_one_instant_do_not_collide,
            publishing_the_wrong_bytes_is_refused_and_changes_nothing,
            names_as_long_as_they_may_be_are_published_and_backed_up,
            backups_are_listed_and_removed_and_nothing_else_is,
            a_glance_tells_what_is_shown_without_reading_it,
            the_name_never_vanishes,
        ]);
    };
    ($vault:expr) => {
        $crate::contract_tests!(@ $vault, blobs, [
            a_blob_reads_back_whole_and_in_parts,
            storing_twice_is_harmless,
            an_absent_blob_is_not_found,
            blobs_are_listed_in_order,
            sidecars_are_told_in_the_order_in_which_blobs_are_asked_for,
            large_blobs_pass_through_the_spool,
            many_writers_of_one_blob_all_succeed,
            a_removed_blob_is_gone_with_its_sidecars_and_may_come_again,
            a_removal_that_comes_late_leaves_what_came_again_since,
            what_is_mended_reads_back_and_keeps_its_sidecars,
            the_vault_proves_that_it_takes_writes,
        ]);
    };
    (@ $make:expr, $area:ident, [$($name:ident,)*]) => {
        mod $area {
            $(#[tokio::test]
            async fn $name() {
                let (store, _alive) = $make;
                $crate::contract::$area::$name(store).await;
            })*
        }
    };
}
