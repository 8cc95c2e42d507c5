//! The depot before a far vault: the contract with the far side up and with it taking no writes, and everything in between.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::{Digest, DocumentId, EditorKey, Guards};
use tokio::io::AsyncReadExt as _;
use tokio::sync::Notify;
use vault::depot::{Depot, Fill, Room};
use vault::local::LocalVault;
use vault::local::tree::LocalTree;
use vault::{BlobReader, Result, Sidecar, Spool, Spooled, StoredBlob, Tree, Vault, VaultError};

const MIB: u64 = 1024 * 1024;
const UP: u8 = 0;
/// As a server whose disk is full.
const READ_ONLY: u8 = 1;
const AWAY: u8 = 2;
/// Takes what it is sent and says nothing.
const SILENT: u8 = 3;
/// No state is good enough.
const NEVER: u8 = u8::MAX;

/// A far vault whose line can be cut.
#[derive(Clone)]
struct Far {
    vault: Arc<LocalVault>,
    state: Arc<AtomicU8>,
    /// Told when a put or a removal was met with silence.
    asked: Arc<Notify>,
    /// What it never takes.
    refused: Arc<Mutex<BTreeSet<Digest>>>,
}

impl Far {
    fn set(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
    }

    fn check(&self, highest: u8) -> Result<()> {
        if highest != NEVER && self.state.load(Ordering::SeqCst) <= highest {
            return Ok(());
        }
        Err(VaultError::Unavailable {
            attempt: "reach it",
            cause: std::io::ErrorKind::ConnectionRefused.into(),
        })
    }
}

#[async_trait]
impl Vault for Far {
    fn kind(&self) -> &'static str {
        "far"
    }
    async fn put(&self, spooled: &Spooled, sidecar: &Sidecar) -> Result<()> {
        if self.state.load(Ordering::SeqCst) == SILENT {
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        self.check(if self.refused.lock().unwrap().contains(&spooled.digest) { NEVER } else { UP })?;
        self.vault.put(spooled, sidecar).await
    }
    async fn mend(&self, spooled: &Spooled) -> Result<()> {
        self.check(UP)?;
        self.vault.mend(spooled).await
    }
    async fn open(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<BlobReader> {
        self.check(READ_ONLY)?;
        self.vault.open(digest, range).await
    }
    async fn size_of(&self, digest: &Digest) -> Result<Option<u64>> {
        self.check(READ_ONLY)?;
        self.vault.size_of(digest).await
    }
    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>> {
        self.check(READ_ONLY)?;
        self.vault.list(after, limit).await
    }
    async fn sidecars(&self, digests: &[Digest]) -> Result<Vec<Vec<Sidecar>>> {
        self.check(READ_ONLY)?;
        self.vault.sidecars(digests).await
    }
    async fn remove(&self, digest: &Digest, life: u64) -> Result<()> {
        if self.state.load(Ordering::SeqCst) == SILENT {
            self.asked.notify_one();
            std::future::pending::<()>().await;
        }
        self.check(UP)?;
        self.vault.remove(digest, life).await
    }
    async fn probe(&self) -> Result<()> {
        self.check(UP)?;
        self.vault.probe().await
    }
}

struct Stage {
    far: Far,
    depot: Arc<Depot>,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new(room: Room) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vault = Arc::new(LocalVault::open(&folder.path().join("far"), &Guards::ALL).unwrap());
        let far = Far { vault, state: Arc::default(), asked: Arc::default(), refused: Arc::default() };
        let depot = Self::depot(&far, folder.path(), room);
        Self { far, depot, folder }
    }

    fn depot(far: &Far, folder: &std::path::Path, room: Room) -> Arc<Depot> {
        let near = Arc::new(LocalVault::open(&folder.join("near"), &Guards::ALL).unwrap());
        let spool = Spool::open(&folder.join("spool")).unwrap();
        Arc::new(Depot::before(Arc::new(far.clone()), near, (spool, room)))
    }

    /// As after a restart.
    fn again(&self, room: Room) -> Arc<Depot> {
        Self::depot(&self.far, self.folder.path(), room)
    }
}

fn fresh_tree() -> (Arc<dyn Tree>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Arc::new(LocalTree::open(folder.path(), &Guards::ALL).unwrap()), folder)
}

fn fresh(state: u8) -> (Arc<dyn Vault>, Stage) {
    let stage = Stage::new(Room::Bytes(100 * MIB));
    stage.far.set(state);
    (Arc::clone(&stage.depot) as Arc<dyn Vault>, stage)
}

mod far_side_up {
    vault::contract_tests!(super::super::fresh(super::super::UP), super::super::fresh_tree());
}

mod far_side_takes_no_writes {
    vault::contract_tests!(super::super::fresh(super::super::READ_ONLY), super::super::fresh_tree());
}

fn content(number: u64) -> Spooled {
    Spool::hold(Bytes::from(format!("content {number}")))
}

fn saved(key: &str) -> Sidecar {
    Sidecar::Saved { key: EditorKey::parse(key).unwrap(), status: 2 }
}

async fn read(vault: &dyn Vault, digest: &Digest) -> Vec<u8> {
    let mut out = Vec::new();
    vault.open(digest, None).await.unwrap().reader.read_to_end(&mut out).await.unwrap();
    out
}

#[tokio::test]
async fn what_comes_while_the_far_side_is_away_waits_and_is_delivered_with_all_that_was_said_of_it() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.depot.put(&content(1), &saved("before")).await.unwrap();
    stage.far.set(AWAY);
    for number in 2..12 {
        stage.depot.put(&content(number), &saved("k1")).await.unwrap();
        stage.depot.put(&content(number), &saved("k2")).await.unwrap();
    }
    let fill = stage.depot.fill().await.unwrap();
    assert_eq!((fill.blobs, fill.oldest.is_some()), (10, true));
    assert_eq!(fill.bytes, (2..12).map(|number| content(number).size_bytes).sum::<u64>());
    assert_eq!(read(stage.depot.as_ref(), &content(5).digest).await, b"content 5");
    let delivered = stage.depot.deliver().await.unwrap();
    assert_eq!(
        (delivered.blobs, delivered.refused),
        (0, 3),
        "nobody is there to take it, and not all are tried"
    );
    assert_eq!(stage.depot.fill().await.unwrap().blobs, 10);

    stage.far.set(UP);
    let delivered = stage.depot.deliver().await.unwrap();

    assert_eq!((delivered.blobs, delivered.damaged), (10, 0));
    assert_eq!(stage.depot.fill().await.unwrap(), Fill::default());
    let listed = stage.far.list(None, 100).await.unwrap();
    assert_eq!(listed.len(), 11);
    assert_eq!(stage.far.sidecars(&[content(5).digest]).await.unwrap()[0].len(), 2);
    assert_eq!(read(stage.depot.as_ref(), &content(5).digest).await, b"content 5");
}

#[tokio::test]
async fn what_cannot_be_known_while_the_far_side_is_away_is_not_made_up() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.depot.put(&content(1), &saved("k")).await.unwrap();
    stage.far.set(AWAY);
    stage.depot.put(&content(2), &saved("k")).await.unwrap();

    let unknown = [
        stage.depot.size_of(&content(1).digest).await.map(|_| ()).unwrap_err(),
        stage.depot.open(&content(1).digest, None).await.map(|_| ()).unwrap_err(),
        stage.depot.list(None, 10).await.map(|_| ()).unwrap_err(),
        stage.depot.remove(&content(2).digest, 0).await.unwrap_err(),
    ];

    for cause in unknown {
        assert!(matches!(cause, VaultError::Unavailable { .. }), "{cause}");
    }
    assert_eq!(stage.depot.size_of(&content(2).digest).await.unwrap(), Some(9), "and nothing was removed");
    stage.depot.probe().await.unwrap();
}

#[tokio::test]
async fn with_the_depot_forbidden_the_error_goes_through_and_what_was_left_in_it_is_still_delivered() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.far.set(AWAY);
    stage.depot.put(&content(1), &saved("k")).await.unwrap();
    let depot = stage.again(Room::None);

    assert!(depot.put(&content(2), &saved("k")).await.is_err());
    assert!(depot.probe().await.is_err());
    assert_eq!(depot.fill().await.unwrap().blobs, 1, "found again after a restart");
    assert_eq!(read(depot.as_ref(), &content(1).digest).await, b"content 1");

    stage.far.set(UP);
    assert_eq!(depot.deliver().await.unwrap().blobs, 1);
    depot.put(&content(2), &saved("k")).await.unwrap();
    assert_eq!(stage.far.list(None, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_full_depot_refuses_and_many_at_once_do_not_overfill_it() {
    let stage = Stage::new(Room::Bytes(10_000));
    stage.far.set(AWAY);
    let putting: Vec<_> = (0..20_u8)
        .map(|number| {
            let depot = Arc::clone(&stage.depot);
            let spooled = Spool::hold(Bytes::from(vec![number; 1000]));
            tokio::spawn(async move { depot.put(&spooled, &saved("k")).await.is_ok() })
        })
        .collect();
    let mut taken = 0;
    for each in putting {
        taken += u32::from(each.await.unwrap());
    }

    assert_eq!(taken, 10);
    assert_eq!(stage.depot.fill().await.unwrap().bytes, 10_000);
    assert!(stage.depot.probe().await.is_err(), "no more is taken, and that is said");
    stage.far.set(UP);
    stage.depot.deliver().await.unwrap();
    stage.depot.put(&Spool::hold(Bytes::from(vec![99; 1000])), &saved("k")).await.unwrap();
}

#[tokio::test]
async fn a_blob_that_is_damaged_in_the_depot_is_not_delivered_and_the_others_are() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.far.set(AWAY);
    for number in 1..4 {
        stage.depot.put(&content(number), &saved("k")).await.unwrap();
    }
    let digest = content(2).digest;
    let file = stage.folder.path().join("near/blobs").join(digest.short(2)).join(digest.to_string());
    std::fs::write(file, b"kontent 2").unwrap();
    stage.far.set(UP);

    let delivered = stage.depot.deliver().await.unwrap();

    assert_eq!((delivered.blobs, delivered.damaged), (2, 1));
    assert_eq!(stage.far.size_of(&digest).await.unwrap(), None);
    assert_eq!(stage.depot.fill().await.unwrap().blobs, 1, "it stays for a person to look at");
}

#[tokio::test]
async fn a_blob_that_is_damaged_on_the_far_side_is_mended_from_the_depot_and_holds_up_nothing() {
    let stage = Stage::new(Room::Bytes(MIB));
    let digest = content(1).digest;
    stage.depot.put(&content(1), &saved("k1")).await.unwrap();
    let folder = stage.folder.path().join("far");
    let file = folder.join("blobs").join(digest.short(2)).join(digest.to_string());
    std::fs::write(&file, b"kontent 1").unwrap();
    stage.far.set(AWAY);
    for number in 1..4 {
        stage.depot.put(&content(number), &saved("k2")).await.unwrap();
    }
    stage.far.set(UP);

    let delivered = stage.depot.deliver().await.unwrap();

    assert_eq!((delivered.blobs, delivered.damaged), (3, 0));
    assert_eq!(std::fs::read(&file).unwrap(), b"content 1");
    let aside: Vec<_> = std::fs::read_dir(folder.join("damaged")).unwrap().collect();
    assert_eq!(std::fs::read(aside[0].as_ref().unwrap().path()).unwrap(), b"kontent 1");
    assert_eq!(aside.len(), 1);
}

#[tokio::test]
async fn what_is_mended_is_mended_where_it_is_read_from() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.far.set(AWAY);
    stage.depot.put(&content(1), &saved("k")).await.unwrap();
    let digest = content(1).digest;
    let file = stage.folder.path().join("near/blobs").join(digest.short(2)).join(digest.to_string());
    std::fs::write(&file, b"kontent").unwrap();

    stage.depot.mend(&content(1)).await.unwrap();

    assert_eq!(read(stage.depot.as_ref(), &digest).await, b"content 1");
    assert_eq!(stage.depot.fill().await.unwrap().bytes, 9);
    stage.far.set(UP);
    assert_eq!(stage.depot.deliver().await.unwrap().blobs, 1);
}

#[tokio::test]
async fn nothing_is_lost_while_the_line_comes_and_goes_and_deliveries_run_beside_puts() {
    let stage = Stage::new(Room::Bytes(10 * MIB));
    let document =
        |number: u64| Sidecar::Brought { document: DocumentId::parse(&number.to_string()).unwrap() };
    let putting = tokio::spawn({
        let depot = Arc::clone(&stage.depot);
        async move {
            for number in 0..300_u64 {
                // The same bytes come again and again, each time for another document.
                depot.put(&content(number % 20), &document(number)).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    let mut turn = 0_u8;
    while !putting.is_finished() {
        stage.far.set(turn % 3);
        turn = turn.wrapping_add(1);
        let _ = stage.depot.deliver().await;
        tokio::task::yield_now().await;
    }
    putting.await.unwrap();

    stage.far.set(UP);
    stage.depot.deliver().await.unwrap();

    let listed = stage.far.list(None, 100).await.unwrap();
    assert_eq!((listed.len(), stage.depot.fill().await.unwrap()), (20, Fill::default()));
    let digests: Vec<Digest> = listed.iter().map(|blob| blob.digest).collect();
    assert_eq!(stage.far.sidecars(&digests).await.unwrap().concat().len(), 300, "none was lost on the way");
}

/// A process was killed between the bytes and their sidecar.
#[tokio::test]
async fn a_blob_in_the_depot_without_a_sidecar_is_delivered_too() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.far.set(AWAY);
    for number in 0..3 {
        stage.depot.put(&content(number), &saved("k1")).await.unwrap();
    }
    let digest = content(1).digest;
    let folder = stage.folder.path().join(format!("near/blobs/{}", &digest.to_string()[..2]));
    std::fs::remove_file(folder.join(format!("{digest}~k1~2"))).unwrap();

    stage.far.set(UP);
    let delivered = stage.depot.deliver().await.unwrap();

    assert_eq!(delivered.blobs, 3);
    assert_eq!(stage.far.sidecars(&[digest]).await.unwrap(), [Sidecar::or_nobodys(Vec::new())]);
}

#[tokio::test]
async fn a_far_side_that_is_silent_holds_up_one_save_and_not_all_and_that_one_not_for_long() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.far.set(AWAY);
    stage.depot.put(&content(0), &saved("k1")).await.unwrap();
    stage.far.set(SILENT);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();

    let depot = Arc::clone(&stage.depot);
    let held_up = tokio::spawn(async move { depot.put(&content(1), &saved("k1")).await });
    stage.far.asked.notified().await;
    for number in 2..5 {
        stage.depot.put(&content(number), &saved("k1")).await.unwrap();
    }

    assert_eq!(stage.depot.fill().await.unwrap().blobs, 4);
    assert!(!held_up.is_finished());
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    held_up.await.unwrap().unwrap();
    assert_eq!(stage.depot.fill().await.unwrap().blobs, 5);
}

#[tokio::test]
async fn what_the_far_side_never_takes_holds_up_nothing_else() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.far.set(AWAY);
    let mut digests: Vec<Digest> = (0..12).map(|number| content(number).digest).collect();
    for number in 0..12 {
        stage.depot.put(&content(number), &saved("k1")).await.unwrap();
    }
    digests.sort();
    // The first ones of every round, more than are tried in a row.
    stage.far.refused.lock().unwrap().extend(&digests[..4]);
    stage.far.set(UP);

    let mut left = 12;
    for _ in 0..4 {
        let delivered = stage.depot.deliver().await.unwrap();
        assert!(delivered.refused > 0 && stage.depot.last_refusal().unwrap().contains("reach it"));
        left = stage.depot.fill().await.unwrap().blobs;
    }
    assert_eq!(left, 4, "all others are there");

    stage.far.refused.lock().unwrap().clear();
    for _ in 0..2 {
        stage.depot.deliver().await.unwrap();
    }
    assert_eq!((stage.depot.fill().await.unwrap(), stage.depot.last_refusal()), (Fill::default(), None));
}

#[tokio::test]
async fn nobody_who_stores_waits_for_a_removal_that_the_far_side_does_not_answer() {
    let stage = Stage::new(Room::Bytes(MIB));
    stage.depot.put(&content(0), &saved("k1")).await.unwrap();
    stage.far.set(AWAY);
    stage.depot.put(&content(1), &saved("k1")).await.unwrap();
    stage.far.set(SILENT);

    let depot = Arc::clone(&stage.depot);
    let removing = tokio::spawn(async move { depot.remove(&content(0).digest, 0).await });
    stage.far.asked.notified().await;
    stage.depot.put(&content(2), &saved("k1")).await.unwrap();

    assert_eq!(stage.depot.fill().await.unwrap().blobs, 2);
    assert!(!removing.is_finished());
    removing.abort();
}
