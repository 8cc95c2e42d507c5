//! S3 servers that are killed, refuse, are silent or are cut off in the middle: nothing is wrongly reported stored, and a repeat succeeds.

use std::time::Duration;

use bytes::Bytes;
use model::Digest;
use test_stores::{Mode, Proxy, S3Server};
use tokio::io::AsyncReadExt as _;
use vault::s3::tree::S3Tree;
use vault::s3::{S3Vault, Settings};
use vault::{Spool, Spooled, Tree as _, Vault as _, VaultError};

use crate::s3::{content as blob, large, place, publication, saved, settings};

fn content(number: u64) -> Spooled {
    Spool::hold(Bytes::from(format!("content {number} {}", "x".repeat(100_000))))
}

async fn is_whole(vault: &S3Vault, digest: &Digest) -> bool {
    let mut blob = match vault.open(digest, None).await {
        Err(VaultError::NotFound { .. }) => return false,
        opened => opened.unwrap(),
    };
    let mut out = Vec::new();
    blob.reader.read_to_end(&mut out).await.unwrap();
    Digest::of(&out) == *digest
}

#[tokio::test]
async fn wherever_an_answer_is_cut_off_nothing_is_wrongly_reported_stored() {
    let server = S3Server::on_disk();
    let proxy = Proxy::before(server.port());
    let vault = S3Vault::open(&settings(proxy.endpoint())).unwrap();
    vault.probe().await.unwrap();
    let mut failures = 0;

    for cut in 0..8 {
        let spooled = content(cut);
        proxy.set(Mode::CutRepliesAfter(cut));
        let stored = vault.put(&spooled, &saved()).await;
        proxy.set(Mode::Pass);

        let is_there = is_whole(&vault, &spooled.digest).await;
        assert!(stored.is_err() || is_there, "cut after {cut}: reported and not there");
        failures += u32::from(stored.is_err());
        vault.put(&spooled, &saved()).await.unwrap();
        assert!(is_whole(&vault, &spooled.digest).await);
    }
    assert!(failures > 0, "no cut was felt");
}

#[tokio::test]
async fn wherever_a_request_is_cut_off_nothing_is_wrongly_reported_stored() {
    let server = S3Server::on_disk();
    let proxy = Proxy::before(server.port());
    let vault = S3Vault::open(&settings(proxy.endpoint())).unwrap();
    vault.probe().await.unwrap();

    let mut failures = 0;

    for cut in [0, 1, 300, 1_000, 50_000, 100_000, 101_000, 102_000] {
        let spooled = content(cut);
        proxy.set(Mode::CutRequestsAfter(cut));
        let stored = vault.put(&spooled, &saved()).await;
        proxy.set(Mode::Pass);

        let is_there = is_whole(&vault, &spooled.digest).await;
        assert!(stored.is_err() || is_there, "cut after {cut} bytes: reported and not there");
        failures += u32::from(stored.is_err());
        vault.put(&spooled, &saved()).await.unwrap();
        assert!(is_whole(&vault, &spooled.digest).await);
    }
    assert!(failures > 4, "the cuts were not felt");
}

#[tokio::test]
async fn an_upload_in_parts_that_is_cut_off_leaves_no_blob_and_may_be_repeated() {
    let server = S3Server::on_disk();
    let proxy = Proxy::before(server.port());
    let vault = S3Vault::open(&settings(proxy.endpoint())).unwrap();
    vault.probe().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spooled = large(folder.path()).await;

    for cut in [500, 1_000_000, 9_000_000, 20_000_000] {
        proxy.set(Mode::CutRequestsAfter(cut));
        let stored = vault.put(&spooled, &saved()).await;
        proxy.set(Mode::Pass);

        assert!(stored.is_err(), "cut after {cut} bytes");
        assert_eq!(vault.size_of(&spooled.digest).await.unwrap(), None);
        assert_eq!(vault.list(None, 10).await.unwrap(), []);
    }
    vault.put(&spooled, &saved()).await.unwrap();
    assert!(is_whole(&vault, &spooled.digest).await);
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_of_puts_has_what_it_acknowledged() {
    let mut server = S3Server::on_disk();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    vault.probe().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let large = large(folder.path()).await;

    let writers: Vec<_> = (0..20)
        .map(|number| {
            let (vault, spooled) = (vault.clone(), if number == 7 { large.clone() } else { content(number) });
            tokio::spawn(async move {
                let stored = vault.put(&spooled, &saved()).await;
                (spooled, stored.is_ok())
            })
        })
        .collect();
    server = tokio::task::spawn_blocking(move || {
        server.kill();
        server.start_again();
        server
    })
    .await
    .unwrap();

    for writer in writers {
        let (spooled, is_stored) = writer.await.unwrap();
        assert!(!is_stored || is_whole(&vault, &spooled.digest).await, "acknowledged and not there");
        vault.put(&spooled, &saved()).await.unwrap();
        assert!(is_whole(&vault, &spooled.digest).await);
    }
    drop(server);
}

#[tokio::test]
async fn a_store_that_is_away_says_so_and_is_found_when_it_is_back() {
    let server = S3Server::in_memory();
    let proxy = Proxy::before(server.port());
    proxy.set(Mode::Refuse);
    let vault = S3Vault::open(&settings(proxy.endpoint())).unwrap();
    let spooled = content(1);

    for refused in [
        vault.put(&spooled, &saved()).await.unwrap_err(),
        vault.open(&spooled.digest, None).await.unwrap_err(),
        vault.size_of(&spooled.digest).await.unwrap_err(),
        vault.list(None, 1).await.unwrap_err(),
        vault.remove(&spooled.digest, 0).await.unwrap_err(),
        vault.probe().await.unwrap_err(),
    ] {
        assert!(matches!(refused, VaultError::Unavailable { .. }), "{refused}");
    }

    proxy.set(Mode::Pass);
    vault.put(&spooled, &saved()).await.unwrap();
    assert!(is_whole(&vault, &spooled.digest).await);
}

#[tokio::test]
async fn a_store_that_never_answers_is_given_up() {
    let server = S3Server::in_memory();
    let proxy = Proxy::before(server.port());
    let settings = Settings { silence_max: Duration::from_secs(3), ..settings(proxy.endpoint()) };
    let vault = S3Vault::open(&settings).unwrap();
    let spooled = content(1);
    vault.put(&content(2), &saved()).await.unwrap();
    proxy.set(Mode::Silent);

    assert!(vault.put(&spooled, &saved()).await.is_err());

    proxy.set(Mode::Pass);
    assert!(!is_whole(&vault, &spooled.digest).await);
    vault.put(&spooled, &saved()).await.unwrap();
}

#[tokio::test]
async fn a_slow_line_is_no_silence() {
    let server = S3Server::on_disk();
    let proxy = Proxy::before(server.port());
    let settings = Settings { silence_max: Duration::from_secs(1), ..settings(proxy.endpoint()) };
    let vault = S3Vault::open(&settings).unwrap();
    vault.probe().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Spool::open(folder.path()).unwrap().begin();
    writer.write(&vec![7; 3 * 1024 * 1024]).await.unwrap();
    let spooled = writer.finish().await.unwrap();
    proxy.set(Mode::SlowRequests(1024 * 1024));

    vault.put(&spooled, &saved()).await.unwrap();

    proxy.set(Mode::Pass);
    assert!(is_whole(&vault, &spooled.digest).await);
}

/// A store behind a balancer may do what it is asked and be reported as failed; then it is asked again, under the same condition.
#[tokio::test]
async fn what_a_publication_replaced_is_kept_even_if_the_store_denies_what_it_did() {
    let server = S3Server::on_disk();
    let proxy = Proxy::before(server.port());
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path()).unwrap();
    let tree = S3Tree::open(&settings(proxy.endpoint()), spool).unwrap();
    let mut shown = Bytes::from_static(b"nobody else has these bytes");
    tree.publish(&publication(Digest::of(&shown), 0), blob(&shown)).await.unwrap();

    for denied in 0..6 {
        let next = Bytes::from(format!("version {denied}"));
        proxy.set(Mode::DenyReplyAfter(u64::from(denied)));
        let published = tree.publish(&publication(Digest::of(&next), denied + 1), blob(&next)).await;
        proxy.set(Mode::Pass);

        let replaced = published.unwrap().expect("something was shown");
        assert_eq!(replaced.digest, Digest::of(&shown), "reply {denied}");
        let mut kept = Vec::new();
        tree.open_backup(&place(), &replaced.backup)
            .await
            .unwrap()
            .reader
            .read_to_end(&mut kept)
            .await
            .unwrap();
        assert_eq!(kept, shown, "reply {denied}");
        assert_eq!(tree.shown(&place()).await.unwrap().unwrap().0, Digest::of(&next));
        shown = next;
    }
}

#[tokio::test]
async fn what_was_withdrawn_is_kept_even_if_the_store_denies_what_it_did() {
    let server = S3Server::on_disk();
    let proxy = Proxy::before(server.port());
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path()).unwrap();
    let tree = S3Tree::open(&settings(proxy.endpoint()), spool).unwrap();

    for denied in 0..6 {
        let shown = Bytes::from(format!("version {denied}"));
        tree.publish(&publication(Digest::of(&shown), denied), blob(&shown)).await.unwrap();
        proxy.set(Mode::DenyReplyAfter(u64::from(denied)));
        let withdrawn = tree.withdraw(&place(), &format!(".w-v{denied}.bak")).await;
        proxy.set(Mode::Pass);

        let withdrawn = withdrawn.unwrap().expect("something was shown");
        assert_eq!(withdrawn.digest, Digest::of(&shown), "reply {denied}");
        assert!(tree.backups(&place()).await.unwrap().contains(&withdrawn.backup), "reply {denied}");
        assert_eq!(tree.shown(&place()).await.unwrap(), None);
    }
}
