//! The contract of vaults.

use std::sync::Arc;

use bytes::Bytes;
use model::{Digest, DocumentId, EditorKey};
use tokio::io::AsyncReadExt as _;

use crate::spool::MEMORY_BYTES_MAX;
use crate::{Sidecar, Spool, Vault, VaultError};

type Store = Arc<dyn Vault>;

fn saved(key: &str) -> Sidecar {
    Sidecar::Saved { key: EditorKey::parse(key).unwrap(), status: 2 }
}

fn bytes(size: usize) -> Bytes {
    (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

async fn read(vault: &Store, digest: &Digest, range: Option<std::ops::Range<u64>>) -> Vec<u8> {
    let mut out = Vec::new();
    vault.open(digest, range).await.unwrap().reader.read_to_end(&mut out).await.unwrap();
    out
}

async fn told_of(vault: &Store, digest: &Digest) -> Vec<Sidecar> {
    vault.sidecars(&[*digest]).await.unwrap().remove(0)
}

pub async fn a_blob_reads_back_whole_and_in_parts(vault: Store) {
    let content = bytes(1000);
    let spooled = Spool::hold(content.clone());

    vault.put(&spooled, &saved("k")).await.unwrap();

    assert_eq!(read(&vault, &spooled.digest, None).await, content);
    assert_eq!(read(&vault, &spooled.digest, Some(10..20)).await, content.slice(10..20));
    assert_eq!(read(&vault, &spooled.digest, Some(990..5000)).await, content.slice(990..));
    assert_eq!(vault.size_of(&spooled.digest).await.unwrap(), Some(1000));
    assert_eq!(vault.open(&spooled.digest, Some(1..2)).await.unwrap().size_bytes, 1000);
}

pub async fn storing_twice_is_harmless(vault: Store) {
    let spooled = Spool::hold(bytes(10));

    vault.put(&spooled, &saved("k")).await.unwrap();
    vault.put(&spooled, &saved("k")).await.unwrap();

    let listed = vault.list(None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(told_of(&vault, &spooled.digest).await, [saved("k")]);
    assert_eq!(read(&vault, &spooled.digest, None).await, bytes(10));
}

pub async fn an_absent_blob_is_not_found(vault: Store) {
    let digest = Digest::of(b"absent");

    assert_eq!(vault.size_of(&digest).await.unwrap(), None);
    assert!(matches!(vault.open(&digest, None).await, Err(VaultError::NotFound { .. })));
}

pub async fn blobs_are_listed_in_order(vault: Store) {
    let mut digests = Vec::new();
    for size in 0..20 {
        let spooled = Spool::hold(bytes(size));
        vault.put(&spooled, &saved("prod_12345_edit_1.k")).await.unwrap();
        digests.push(spooled.digest);
    }
    vault.put(&Spool::hold(bytes(3)), &saved("prod_12345_edit_2.k")).await.unwrap();
    digests.sort();

    let first = vault.list(None, 7).await.unwrap();
    let rest = vault.list(first.last().map(|blob| &blob.digest), 100).await.unwrap();

    let listed: Vec<_> = first.iter().chain(&rest).map(|blob| blob.digest).collect();
    assert_eq!(listed, digests);
    let mut sizes: Vec<_> = first.iter().chain(&rest).map(|blob| blob.size_bytes).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, (0..20).collect::<Vec<u64>>());
}

pub async fn sidecars_are_told_in_the_order_in_which_blobs_are_asked_for(vault: Store) {
    let brought = Sidecar::Brought { document: DocumentId::parse("other").unwrap() };
    let blobs: Vec<_> = (0..20).map(|size| Spool::hold(bytes(size))).collect();
    for (number, blob) in blobs.iter().enumerate() {
        vault.put(blob, &saved(&format!("prod_12345_edit_{number}.k"))).await.unwrap();
    }
    vault.put(&blobs[3], &brought).await.unwrap();
    let mut asked: Vec<Digest> = blobs.iter().map(|blob| blob.digest).collect();
    asked.insert(0, Digest::of(b"absent"));

    let mut told = vault.sidecars(&asked).await.unwrap();

    assert_eq!(told.remove(0), [], "of what is not there nothing is told");
    assert!(told[3].contains(&brought));
    told[3].retain(|sidecar| *sidecar != brought);
    for (number, told) in told.iter().enumerate() {
        assert_eq!(*told, [saved(&format!("prod_12345_edit_{number}.k"))]);
    }
    assert_eq!(vault.sidecars(&[]).await.unwrap(), Vec::<Vec<Sidecar>>::new());
}

pub async fn large_blobs_pass_through_the_spool(vault: Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Spool::open(folder.path()).unwrap().begin();
    let content = bytes(3 * MEMORY_BYTES_MAX + 1);
    for chunk in content.chunks(300_000) {
        writer.write(chunk).await.unwrap();
    }
    let spooled = writer.finish().await.unwrap();

    vault.put(&spooled, &saved("k")).await.unwrap();

    drop(spooled);
    assert_eq!(read(&vault, &Digest::of(&content), None).await, content);
}

pub async fn many_writers_of_one_blob_all_succeed(vault: Store) {
    let spooled = Spool::hold(bytes(5000));
    let writers = (0..16).map(|number| {
        let (vault, spooled) = (Arc::clone(&vault), spooled.clone());
        tokio::spawn(async move { vault.put(&spooled, &saved(&format!("k{number}"))).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }

    let listed = vault.list(None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(told_of(&vault, &spooled.digest).await.len(), 16);
    assert_eq!(read(&vault, &spooled.digest, None).await, bytes(5000));
}

pub async fn a_removed_blob_is_gone_with_its_sidecars_and_may_come_again(vault: Store) {
    let (gone, stays) = (Spool::hold(bytes(100)), Spool::hold(bytes(101)));
    vault.put(&gone, &saved("k1")).await.unwrap();
    vault.put(&gone, &saved("k2")).await.unwrap();
    vault.put(&stays, &saved("k1")).await.unwrap();

    vault.remove(&gone.digest, 0).await.unwrap();
    vault.remove(&gone.digest, 0).await.unwrap();

    assert_eq!(vault.size_of(&gone.digest).await.unwrap(), None);
    let listed = vault.list(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|blob| blob.digest).collect::<Vec<_>>(), [stays.digest]);
    vault.put(&gone, &saved("k3")).await.unwrap();
    assert_eq!(read(&vault, &gone.digest, None).await, bytes(100));
    let told = told_of(&vault, &gone.digest).await;
    assert_eq!(told, [saved("k3")], "what was said of it before is gone too");
}

pub async fn a_removal_that_comes_late_leaves_what_came_again_since(vault: Store) {
    let (first, other) = (Spool::hold(bytes(100)), Spool::hold(bytes(101)));
    let (second, third) = (first.in_life(1), first.in_life(2));
    vault.put(&first, &saved("k1")).await.unwrap();
    vault.put(&other, &saved("k1")).await.unwrap();
    vault.remove(&first.digest, 0).await.unwrap();
    vault.put(&second, &saved("k2")).await.unwrap();

    vault.remove(&first.digest, 0).await.unwrap();

    assert_eq!(read(&vault, &first.digest, None).await, bytes(100));
    assert_eq!(read(&vault, &first.digest, Some(10..20)).await, bytes(100)[10..20]);
    assert_eq!(vault.size_of(&first.digest).await.unwrap(), Some(100));
    assert_eq!(told_of(&vault, &first.digest).await, [saved("k2")]);
    vault.mend(&first).await.unwrap();
    vault.put(&third, &saved("k3")).await.unwrap();
    let lives: std::collections::BTreeMap<_, _> =
        vault.list(None, 10).await.unwrap().into_iter().map(|blob| (blob.digest, blob.life)).collect();
    assert_eq!((lives.len(), lives[&first.digest], lives[&other.digest]), (2, 2, 0), "each once, the latest");
    let (smaller, larger) = (first.digest.min(other.digest), first.digest.max(other.digest));
    let page = async |after, limit| {
        let page = vault.list(after, limit).await.unwrap();
        page.into_iter().map(|blob| blob.digest).collect::<Vec<_>>()
    };
    assert_eq!((page(None, 1).await, page(Some(&smaller), 1).await), (vec![smaller], vec![larger]));
    assert!(page(Some(&larger), 1).await.is_empty());

    vault.remove(&first.digest, 2).await.unwrap();

    assert_eq!(vault.size_of(&first.digest).await.unwrap(), None, "of this life and all before");
    assert_eq!(page(None, 10).await, [other.digest]);
}

pub async fn what_is_mended_reads_back_and_keeps_its_sidecars(vault: Store) {
    let spooled = Spool::hold(bytes(100));
    vault.put(&spooled, &saved("k1")).await.unwrap();

    vault.mend(&spooled).await.unwrap();
    vault.mend(&spooled).await.unwrap();

    assert_eq!(read(&vault, &spooled.digest, None).await, bytes(100));
    let listed = vault.list(None, 10).await.unwrap();
    assert_eq!(listed.len(), 1, "what is kept aside is no blob");
    assert_eq!(listed[0].size_bytes, 100);
    assert_eq!(told_of(&vault, &spooled.digest).await, [saved("k1")]);
}

pub async fn the_vault_proves_that_it_takes_writes(vault: Store) {
    vault.probe().await.unwrap();

    assert_eq!(vault.list(None, 10).await.unwrap(), []);
}
