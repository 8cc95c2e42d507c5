//! Lines that break at every place. Nothing is wrongly reported as stored, nothing torn is ever visible, and a retry succeeds.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use model::{Digest, Guards};
use tokio::io::AsyncReadExt as _;
use vault::contract::sshd::Sshd;
use vault::sftp::{SftpTree, SftpVault, Store, Timeouts};
use vault::tree::Replaced;
use vault::{Spool, Spooled, Tree as _, Vault as _};

use super::proxy::{After, Plan, Proxy, Side};
use super::{blob, content, place, publication, sidecar, whole_blobs};

/// Beyond what any operation here needs.
const PACKETS_MAX: u64 = 200;

struct Scene {
    sshd: Sshd,
    proxy: Proxy,
    vault: SftpVault,
    tree: SftpTree,
}

async fn scene(request: Duration) -> Scene {
    let sshd = Sshd::start();
    let proxy = Proxy::to(sshd.port()).await;
    let mut settings = sshd.settings();
    settings.port = proxy.port;
    settings.connections_max = 2;
    settings.timeouts = Timeouts { request, ..settings.timeouts };
    let store = Store::open(settings, &Guards::ALL).unwrap();
    let (vault, tree) = (store.vault(), store.tree());
    vault.ready().await.unwrap();
    tree.ready().await.unwrap();
    Scene { sshd, proxy, vault, tree }
}

impl Scene {
    /// Every visible blob is what its name says; those that were promised are there.
    fn check_blobs(&self, promised: &[&Spooled]) {
        let there = whole_blobs(&self.sshd.root());
        for spooled in promised {
            assert!(there.contains(&spooled.digest), "it was said to be stored");
        }
    }

    fn shown(&self) -> Vec<u8> {
        std::fs::read(self.document().join("report.docx")).unwrap()
    }

    fn document(&self) -> std::path::PathBuf {
        self.sshd.root().join("published/acme/plans/12345")
    }
}

fn spooled(side: Side, at: u64, size_bytes: usize) -> Spooled {
    let mark = format!("{side:?} {at} ").into_bytes();
    Spool::hold(mark.into_iter().cycle().take(size_bytes).collect())
}

const PATIENT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_put_is_carried_through_wherever_its_connection_is_cut() {
    let scene = scene(PATIENT).await;
    for side in [Side::Client, Side::Server] {
        let mut at = 0;
        loop {
            at += 1;
            let spooled = spooled(side, at, 100_000);
            scene.proxy.plan(Plan::Cut { side, at, then: After::Pass });

            scene.vault.put(&spooled, &sidecar()).await.unwrap();

            scene.check_blobs(&[&spooled]);
            if !scene.proxy.has_struck() {
                break;
            }
        }
        assert!((5..PACKETS_MAX).contains(&at), "{side:?}: {at} packets were cut");
    }
    scene.proxy.plan(Plan::Pass);
    assert_eq!(
        std::fs::read_dir(scene.sshd.root().join("vault/tmp")).unwrap().count(),
        0,
        "nothing is left over"
    );
}

#[tokio::test]
async fn a_put_that_cannot_be_carried_through_is_refused_and_comes_through_later() {
    let scene = scene(PATIENT).await;
    for side in [Side::Client, Side::Server] {
        for at in 1..PACKETS_MAX {
            let spooled = spooled(side, at, 100_000);
            scene.proxy.plan(Plan::Cut { side, at, then: After::Refuse });

            let first = scene.vault.put(&spooled, &sidecar()).await;

            let has_struck = scene.proxy.has_struck();
            assert_eq!(first.is_err(), has_struck, "an unknown outcome is no success: {first:?}");
            scene.check_blobs(&[]);
            scene.proxy.plan(Plan::Pass);
            scene.vault.put(&spooled, &sidecar()).await.unwrap();
            scene.check_blobs(&[&spooled]);
            if !has_struck {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_publication_is_carried_through_wherever_its_connection_is_cut() {
    let scene = scene(PATIENT).await;
    let mut last = b"first".to_vec();
    scene.tree.publish(&publication(&last), content(&last)).await.unwrap();
    for side in [Side::Client, Side::Server] {
        let mut at = 0;
        loop {
            at += 1;
            let next = format!("{side:?} {at}").into_bytes();
            scene.proxy.plan(Plan::Cut { side, at, then: After::Pass });

            let replaced = scene.tree.publish(&publication(&next), content(&next)).await.unwrap().unwrap();

            let Replaced { backup, digest, size_bytes } = replaced;
            assert_eq!((digest, size_bytes), (Digest::of(&last), last.len() as u64));
            assert_eq!(std::fs::read(scene.document().join(&backup)).unwrap(), last);
            assert_eq!(scene.shown(), next);
            last = next;
            if !scene.proxy.has_struck() {
                break;
            }
        }
        assert!((5..PACKETS_MAX).contains(&at), "{side:?}: {at} packets were cut");
    }
    scene.proxy.plan(Plan::Pass);
    assert_eq!(temporaries(&scene.document()), [""; 0], "nothing is left over");
}

#[tokio::test]
async fn a_publication_that_cannot_be_carried_through_shows_the_old_or_the_new_file_whole() {
    let scene = scene(PATIENT).await;
    let mut last = b"first".to_vec();
    scene.tree.publish(&publication(&last), content(&last)).await.unwrap();
    for side in [Side::Client, Side::Server] {
        for at in 1..PACKETS_MAX {
            let next = format!("{side:?} {at}").into_bytes();
            scene.proxy.plan(Plan::Cut { side, at, then: After::Refuse });

            let first = scene.tree.publish(&publication(&next), content(&next)).await;

            let has_struck = scene.proxy.has_struck();
            assert_eq!(first.is_err(), has_struck, "an unknown outcome is no success: {first:?}");
            assert!([&last, &next].contains(&&scene.shown()));
            scene.proxy.plan(Plan::Pass);
            scene.tree.tidy(&place()).await.unwrap();
            scene.tree.publish(&publication(&next), content(&next)).await.unwrap();
            assert_eq!(scene.shown(), next);
            assert!(backups(&scene.document()).contains(&Digest::of(&last)), "nothing was thrown away");
            last = next;
            if !has_struck {
                break;
            }
        }
    }
    assert_eq!(temporaries(&scene.document()), [""; 0], "nothing is left over");
}

#[tokio::test]
async fn a_withdrawal_is_carried_through_wherever_its_connection_is_cut() {
    let scene = scene(PATIENT).await;
    for side in [Side::Client, Side::Server] {
        for at in 1..PACKETS_MAX {
            let bytes = format!("{side:?} {at}").into_bytes();
            scene.tree.publish(&publication(&bytes), content(&bytes)).await.unwrap();
            scene.proxy.plan(Plan::Cut { side, at, then: After::Pass });

            let withdrawn = scene.tree.withdraw(&place(), ".t.bak").await.unwrap().unwrap();

            assert_eq!(withdrawn.digest, Digest::of(&bytes));
            assert_eq!(scene.tree.shown(&place()).await.unwrap(), None);
            let has_struck = scene.proxy.has_struck();
            scene.proxy.plan(Plan::Pass);
            if !has_struck {
                break;
            }
        }
    }
}

#[tokio::test]
async fn what_a_dead_connection_does_late_harms_nothing() {
    let scene = scene(Duration::from_secs(1)).await;
    scene.tree.publish(&publication(b"first"), content(b"first")).await.unwrap();
    for at in 1..PACKETS_MAX {
        let (older, newer) = (format!("older {at}").into_bytes(), format!("newer {at}").into_bytes());
        let blob = spooled(Side::Client, at, 70_000);
        scene.proxy.plan(Plan::Hold { at });
        scene.vault.put(&blob, &sidecar()).await.unwrap();
        until_published(&scene.tree, &older).await;
        until_published(&scene.tree, &newer).await;
        if !scene.proxy.has_struck() {
            break;
        }

        scene.proxy.release().await;

        assert_eq!(scene.shown(), newer, "the late rename of packet {at} found nothing to rename");
        scene.check_blobs(&[&blob]);
    }
}

/// A busy machine may be slower than the short patience of this test: then it is refused, and published again.
async fn until_published(tree: &SftpTree, bytes: &[u8]) {
    while tree.publish(&publication(bytes), content(bytes)).await.is_err() {}
}

#[tokio::test]
async fn a_connection_cut_while_it_is_made_is_an_error_and_the_next_one_works() {
    let scene = scene(PATIENT).await;
    for at in (0..6000).step_by(487) {
        let mut settings = scene.sshd.settings();
        settings.port = scene.proxy.port;
        let vault = Store::open(settings, &Guards::ALL).unwrap().vault();
        scene.proxy.plan(Plan::CutByte { at });

        let first = vault.ready().await;

        assert!(first.is_err() || at > 2000, "cut after {at} bytes, and it worked");
        scene.proxy.plan(Plan::Pass);
        vault.probe().await.unwrap();
    }
}

#[tokio::test]
async fn while_nobody_is_there_everything_is_refused_and_afterwards_everything_works() {
    let scene = scene(PATIENT).await;
    let spooled = blob(1000);
    scene.vault.put(&spooled, &sidecar()).await.unwrap();

    scene.proxy.plan(Plan::Refuse);
    assert!(scene.vault.put(&blob(1001), &sidecar()).await.is_err());
    assert!(scene.vault.open(&spooled.digest, None).await.is_err());
    assert!(scene.vault.size_of(&spooled.digest).await.is_err(), "unknown is not absent");
    assert!(scene.vault.list(None, 10).await.is_err());
    assert!(scene.tree.shown(&place()).await.is_err(), "unknown is not absent");
    assert!(scene.tree.backups(&place()).await.is_err());

    scene.proxy.plan(Plan::Pass);
    scene.vault.put(&blob(1001), &sidecar()).await.unwrap();
    assert_eq!(scene.vault.list(None, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_slow_line_is_slow_and_nothing_worse() {
    let scene = scene(Duration::from_secs(1)).await;
    // Three seconds' worth, all of it on its way at once: more than the patience for a single answer.
    let spooled = blob(1_500_000);
    scene.proxy.plan(Plan::Throttle { bytes_per_s: 500_000 });

    scene.vault.put(&spooled, &sidecar()).await.unwrap();

    scene.proxy.plan(Plan::Pass);
    scene.check_blobs(&[&spooled]);
}

#[tokio::test]
async fn whoever_waits_too_long_for_a_connection_is_told_so() {
    let sshd = Sshd::start();
    let proxy = Proxy::to(sshd.port()).await;
    let mut settings = sshd.settings();
    settings.port = proxy.port;
    settings.connections_max = 1;
    settings.timeouts.wait = Duration::from_secs(1);
    let vault = Store::open(settings, &Guards::ALL).unwrap().vault();
    vault.ready().await.unwrap();
    proxy.plan(Plan::Hold { at: 1 });
    let (first, second) = (vault.clone(), blob(10));

    let held = tokio::spawn(async move { first.size_of(&Digest::of(b"x")).await });
    while !proxy.has_struck() {
        tokio::task::yield_now().await;
    }
    let refused = vault.put(&second, &sidecar()).await.unwrap_err();

    let words = std::error::Error::source(&refused).unwrap().to_string();
    assert_eq!(words, "all 1 connections to the SFTP server were in use for 1 s");
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    vault.put(&second, &sidecar()).await.expect("what was given up took its connection with it");
}

#[tokio::test]
async fn a_reader_outlives_its_connection_and_keeps_nobody_waiting() {
    let sshd = Sshd::start();
    let proxy = Proxy::to(sshd.port()).await;
    let mut settings = sshd.settings();
    settings.port = proxy.port;
    settings.connections_max = 1;
    let store = Store::open(settings, &Guards::ALL).unwrap();
    let (vault, tree) = (store.vault(), store.tree());
    let large = blob(5_000_000);
    vault.put(&large, &sidecar()).await.unwrap();
    let mut reader = vault.open(&large.digest, None).await.unwrap().reader;
    let mut bytes = vec![0; 1_000_000];
    reader.read_exact(&mut bytes).await.unwrap();

    vault.put(&blob(10), &sidecar()).await.unwrap();
    proxy.plan(Plan::Refuse);
    proxy.plan(Plan::Pass);
    reader.read_to_end(&mut bytes).await.unwrap();
    let source = vault.open(&large.digest, None).await.unwrap();
    let mut publication = publication(b"");
    publication.digest = large.digest;
    tree.publish(&publication, source)
        .await
        .expect("one connection is enough to copy from the server to itself");

    assert_eq!(Digest::of(&bytes), large.digest);
    assert_eq!(tree.shown(&place()).await.unwrap(), Some((large.digest, large.size_bytes)));
}

fn temporaries(folder: &Path) -> Vec<String> {
    let names =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".tmp.")).collect()
}

fn backups(folder: &Path) -> Vec<Digest> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let backups = files.filter(|path| path.extension().is_some_and(|extension| extension == "bak"));
    backups.map(|path| Digest::of(&std::fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn bytes_that_are_not_all_there_are_not_read_as_a_whole_blob() {
    let sshd = Sshd::start();
    let vault = super::store(&sshd).vault();
    let spooled = Spool::hold(Bytes::from_static(b"whole"));
    vault.put(&spooled, &sidecar()).await.unwrap();
    std::fs::write(super::blob_path(&sshd.root(), &spooled.digest), b"who").unwrap();

    let reader = vault.open(&spooled.digest, None).await.unwrap().reader;
    let read =
        std::pin::pin!(vault::read_verified(reader, spooled.digest)).read_to_end(&mut Vec::new()).await;

    assert!(read.is_err());
}
