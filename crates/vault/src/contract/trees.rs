//! The contract of published trees.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, ProjectId};
use tokio::io::AsyncReadExt as _;

use crate::tree::{Place, Publication};
use crate::{BlobReader, Tree};

type Store = Arc<dyn Tree>;

fn place(name: &str) -> Place {
    Place {
        company: CompanyId::parse("acme").unwrap(),
        project: ProjectId::parse("plans").unwrap(),
        document: DocumentId::parse("12345").unwrap(),
        name: FileName::parse(name).unwrap(),
    }
}

fn publication(place: &Place, bytes: &[u8], version: u32) -> Publication {
    Publication {
        place: place.clone(),
        digest: Digest::of(bytes),
        backup_suffix: format!(".20261115T101500.123Z-v{version}.bak"),
    }
}

fn content(bytes: &[u8]) -> BlobReader {
    BlobReader { size_bytes: bytes.len() as u64, reader: Box::pin(Cursor::new(bytes.to_vec())) }
}

async fn backup(tree: &Store, place: &Place, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    tree.open_backup(place, name).await.unwrap().reader.read_to_end(&mut out).await.unwrap();
    out
}

pub async fn the_first_publication_replaces_nothing(tree: Store) {
    let place = place("report.docx");
    assert_eq!(tree.shown(&place).await.unwrap(), None);

    let replaced = tree.publish(&publication(&place, b"one", 1), content(b"one")).await.unwrap();

    assert_eq!(replaced, None);
    assert_eq!(tree.shown(&place).await.unwrap(), Some((Digest::of(b"one"), 3)));
}

pub async fn what_is_replaced_becomes_a_backup(tree: Store) {
    let place = place("report.docx");
    tree.publish(&publication(&place, b"one", 1), content(b"one")).await.unwrap();

    let replaced = tree.publish(&publication(&place, b"two", 1), content(b"two")).await.unwrap().unwrap();

    assert_eq!(replaced.backup, "report.docx.20261115T101500.123Z-v1.bak");
    assert_eq!((replaced.digest, replaced.size_bytes), (Digest::of(b"one"), 3));
    assert_eq!(backup(&tree, &place, &replaced.backup).await, b"one");
    assert_eq!(tree.shown(&place).await.unwrap(), Some((Digest::of(b"two"), 3)));
}

pub async fn what_is_withdrawn_becomes_a_backup_and_the_name_is_free(tree: Store) {
    let (place, suffix) = (place("report.docx"), ".20261115T101500.123Z-v1.bak");
    assert_eq!(tree.withdraw(&place, suffix).await.unwrap(), None, "nothing is there");
    tree.publish(&publication(&place, b"one", 1), content(b"one")).await.unwrap();

    let withdrawn = tree.withdraw(&place, suffix).await.unwrap().unwrap();

    assert_eq!((withdrawn.digest, tree.shown(&place).await.unwrap()), (Digest::of(b"one"), None));
    assert_eq!(backup(&tree, &place, &withdrawn.backup).await, b"one");
    assert_eq!(tree.withdraw(&place, suffix).await.unwrap(), None, "once is enough");
    tree.publish(&publication(&place, b"two", 1), content(b"two")).await.unwrap();
    let again = tree.withdraw(&place, suffix).await.unwrap().unwrap();
    assert_ne!(again.backup, withdrawn.backup, "no backup is overwritten");
}

pub async fn two_backups_of_one_instant_do_not_collide(tree: Store) {
    let place = place("report.docx");
    let mut backups = Vec::new();
    for bytes in [b"one", b"two", b"six"] {
        let replaced = tree.publish(&publication(&place, bytes, 1), content(bytes)).await.unwrap();
        backups.extend(replaced.map(|replaced| replaced.backup));
    }

    assert_eq!(backups.len(), 2);
    assert_eq!(backup(&tree, &place, &backups[0]).await, b"one");
    assert_eq!(backup(&tree, &place, &backups[1]).await, b"two");
}

pub async fn publishing_the_wrong_bytes_is_refused_and_changes_nothing(tree: Store) {
    let place = place("report.docx");
    tree.publish(&publication(&place, b"one", 1), content(b"one")).await.unwrap();

    let refused = tree.publish(&publication(&place, b"two", 1), content(b"torn")).await;
    tree.tidy(&place).await.unwrap();

    assert!(refused.is_err());
    assert_eq!(tree.shown(&place).await.unwrap(), Some((Digest::of(b"one"), 3)));
}

pub async fn names_as_long_as_they_may_be_are_published_and_backed_up(tree: Store) {
    let place = place(&format!("{}.docx", "é".repeat(125)));
    assert_eq!(place.name.as_str().len(), 255);
    tree.publish(&publication(&place, b"one", 1), content(b"one")).await.unwrap();

    let replaced = tree.publish(&publication(&place, b"two", 1), content(b"two")).await.unwrap().unwrap();

    assert!(replaced.backup.len() <= 255 && replaced.backup.ends_with("-v1.bak"));
    assert_eq!(tree.shown(&place).await.unwrap(), Some((Digest::of(b"two"), 3)));
}

pub async fn backups_are_listed_and_removed_and_nothing_else_is(tree: Store) {
    let place = place("report.docx");
    assert_eq!(tree.backups(&place).await.unwrap(), [] as [&str; 0]);
    for (version, bytes) in [(1, b"one"), (2, b"two"), (3, b"six")] {
        tree.publish(&publication(&place, bytes, version), content(bytes)).await.unwrap();
    }
    let backups = tree.backups(&place).await.unwrap();
    assert_eq!(backups.len(), 2);

    tree.remove_backup(&place, &backups[0]).await.unwrap();
    tree.remove_backup(&place, &backups[0]).await.unwrap();
    let _ = tree.remove_backup(&place, "report.docx").await;
    let _ = tree.remove_backup(&place, "../12345/report.docx").await;
    tree.leave(&place).await.unwrap();

    assert_eq!(tree.backups(&place).await.unwrap(), backups[1..]);
    assert_eq!(
        tree.shown(&place).await.unwrap(),
        Some((Digest::of(b"six"), 3)),
        "and it stays while something is there"
    );
}

pub async fn a_glance_tells_what_is_shown_without_reading_it(tree: Store) {
    let place = place("report.docx");
    assert_eq!(tree.glance(&place).await.unwrap(), None);

    tree.publish(&publication(&place, b"some bytes", 1), content(b"some bytes")).await.unwrap();

    assert_eq!(tree.glance(&place).await.unwrap().map(|glance| glance.size_bytes), Some(10));
}

pub async fn the_name_never_vanishes(tree: Store) {
    let place = place("report.docx");
    let first = vec![0_u8; 100_000];
    tree.publish(&publication(&place, &first, 1), content(&first)).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let (tree, place, is_done) = (Arc::clone(&tree), place.clone(), Arc::clone(&is_done));
        async move {
            let mut seen = 0_u32;
            while !is_done.load(Ordering::Relaxed) {
                let (_, size_bytes) =
                    tree.shown(&place).await.unwrap().expect("the published name is always there");
                assert_eq!(size_bytes, 100_000, "and never half written");
                seen += 1;
                tokio::task::yield_now().await;
            }
            seen
        }
    });

    for round in 1..100_u8 {
        let bytes = vec![round; 100_000];
        tree.publish(&publication(&place, &bytes, u32::from(round)), content(&bytes)).await.unwrap();
        tokio::task::yield_now().await;
    }
    is_done.store(true, Ordering::Relaxed);

    assert!(reader.await.unwrap() > 0);
}
