//! The server's disk: full, limited, killed in between, shared with other programs; and who looks at it meanwhile.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::Digest;
use vault::contract::sshd::{EXTENSIONS, SFTP_SERVER, Sshd};
use vault::{Spool, Tree as _, Vault as _, VaultError};

use super::{blob, blob_path, content, place, publication, sidecar, store, whole_blobs};

/// 32 KiB, the chunk of a server that does not tell its limits.
const CHUNK_BYTES: usize = 32 * 1024;
const CHUNKS: usize = 12;
/// How often the name is replaced while it is watched.
const PUBLICATIONS: u32 = 300;

/// A server whose files may not become longer than a limit, in blocks of 512 bytes: every write beyond it is refused.
fn limited(folder: &Path, blocks: usize) -> Sshd {
    let script = folder.join("sftp");
    let denied = EXTENSIONS.join(",");
    let text = format!("#!/bin/sh\ntrap '' XFSZ\nulimit -f {blocks}\nexec {SFTP_SERVER} -P {denied}\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    Sshd::start_running(&script.display().to_string())
}

#[tokio::test]
async fn whichever_write_fails_the_blob_is_refused_and_nothing_is_left() {
    let spooled = blob(CHUNKS * CHUNK_BYTES);
    for failing in 0..=CHUNKS {
        let folder = tempfile::tempdir().unwrap();
        let mut sshd = limited(folder.path(), failing * CHUNK_BYTES / 512);
        let vault = store(&sshd).vault();

        let stored = vault.put(&spooled, &sidecar()).await;

        assert_eq!(stored.is_ok(), failing == CHUNKS, "write {failing}: {stored:?}");
        assert_eq!(whole_blobs(&sshd.root()).len(), usize::from(failing == CHUNKS));
        assert_eq!(std::fs::read_dir(sshd.root().join("vault/tmp")).unwrap().count(), 0);
        limited_anew(folder.path());
        sshd.restart();
        vault.put(&spooled, &sidecar()).await.expect("with more room it comes through");
    }
}

fn limited_anew(folder: &Path) {
    let script = folder.join("sftp");
    let text = std::fs::read_to_string(&script).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("ulimit")).collect();
    std::fs::write(&script, lines.join("\n")).unwrap();
}

/// A disk of its own in memory; gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, size: &str) -> Self {
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).status();
        assert!(mounted.unwrap().success(), "a small disk needs root");
        Self(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_and_takes_again_when_there_is_room() {
    let sshd = Sshd::start();
    let _disk = SmallDisk::mount(&sshd.root(), "3m");
    let (vault, tree) = (store(&sshd).vault(), store(&sshd).tree());
    tree.publish(&publication(b"old"), content(b"old")).await.unwrap();
    let (fits, too_large) = (blob(1_000_000), blob(4_000_000));
    vault.put(&fits, &sidecar()).await.unwrap();

    assert!(vault.put(&too_large, &sidecar()).await.is_err());
    let large = vec![7; 4_000_000];
    assert!(tree.publish(&publication(&large), content(&large)).await.is_err());

    assert_eq!(whole_blobs(&sshd.root()), [fits.digest]);
    assert_eq!(std::fs::read(sshd.root().join("published/acme/plans/12345/report.docx")).unwrap(), b"old");
    vault.put(&blob(1_000_001), &sidecar()).await.expect("what failed gave its room back");
    tree.publish(&publication(b"new"), content(b"new")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_and_started_again_has_everything_it_acknowledged() {
    let mut sshd = Sshd::start();
    let vault = store(&sshd).vault();
    vault.ready().await.unwrap();
    for round in 0..5_usize {
        let writers: Vec<_> = (0..6_usize)
            .map(|writer| {
                let (vault, spooled) = (vault.clone(), blob(200_000 + round * 100 + writer));
                tokio::spawn(async move { (vault.put(&spooled, &sidecar()).await.is_ok(), spooled) })
            })
            .collect();
        // Somewhere in the middle: some of them are through, some not.
        while std::fs::read_dir(sshd.root().join("vault/tmp")).unwrap().count() == 0
            && writers.iter().any(|writer| !writer.is_finished())
        {
            tokio::task::yield_now().await;
        }
        sshd.kill();

        let mut outcomes = Vec::new();
        for writer in writers {
            outcomes.push(writer.await.unwrap());
        }

        let there = whole_blobs(&sshd.root());
        assert!(outcomes.iter().all(|(is_stored, spooled)| !is_stored || there.contains(&spooled.digest)));
        sshd.restart();
        for (_, spooled) in &outcomes {
            vault.put(spooled, &sidecar()).await.expect("a retry succeeds");
        }
    }
    vault.clean().await.unwrap();
    assert_eq!(whole_blobs(&sshd.root()).len(), 30);
    assert_eq!(std::fs::read_dir(sshd.root().join("vault/tmp")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_the_published_name_always_finds_a_whole_file() {
    let sshd = Sshd::start();
    let tree = store(&sshd).tree();
    let path = sshd.root().join("published/acme/plans/12345/report.docx");
    tree.publish(&publication(&version(0)), content(&version(0))).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let watchers = [watch(&path, &is_done, look), watch(&path, &is_done, read_whole)];

    for number in 1..=PUBLICATIONS {
        let bytes = version(number);
        let mut publication = publication(&bytes);
        publication.backup_suffix = format!(".v{number}.bak");
        let replaced = tree.publish(&publication, content(&bytes)).await.unwrap().unwrap();
        assert_eq!(replaced.digest, Digest::of(&version(number - 1)));
    }
    is_done.store(true, Ordering::Relaxed);

    for watcher in watchers {
        assert!(watcher.join().unwrap() > 0, "it did look");
    }
}

/// A content that tells whether it is whole.
fn version(number: u32) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(number % 251).unwrap(); 100_000];
    let digest = Digest::of(&bytes).to_string();
    bytes.extend_from_slice(digest.as_bytes());
    bytes
}

fn watch(path: &Path, is_done: &Arc<AtomicBool>, look: fn(&Path)) -> std::thread::JoinHandle<u64> {
    let (path, is_done) = (path.to_owned(), Arc::clone(is_done));
    std::thread::spawn(move || {
        let mut looks = 0;
        while !is_done.load(Ordering::Relaxed) {
            look(&path);
            looks += 1;
            // Two cores are all there is: the others want to work, too.
            std::thread::yield_now();
        }
        looks
    })
}

fn look(path: &Path) {
    let metadata = std::fs::metadata(path).expect("the published name is always there");
    assert_eq!(metadata.len(), 100_064);
}

fn read_whole(path: &Path) {
    let bytes = std::fs::read(path).expect("the published name is always there");
    let (body, digest) = bytes.split_at(bytes.len() - 64);
    assert_eq!(Digest::of(body).to_string().as_bytes(), digest, "and never torn");
}

#[tokio::test]
async fn a_truncated_blob_is_written_again() {
    for denied in [&EXTENSIONS[..0], &EXTENSIONS[..]] {
        let sshd = Sshd::start_without(denied);
        let vault = store(&sshd).vault();
        vault.ready().await.unwrap();
        let spooled = Spool::hold(bytes::Bytes::from_static(b"whole"));
        let path = blob_path(&sshd.root(), &spooled.digest);
        std::fs::write(&path, b"who").unwrap();

        vault.put(&spooled, &sidecar()).await.unwrap();

        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(set_aside(&sshd), [b"who"], "nothing is thrown away");
    }
}

/// What is kept of damaged blobs.
fn set_aside(sshd: &Sshd) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(sshd.root().join("vault/damaged")).unwrap();
    files.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[tokio::test]
async fn damaged_bytes_are_replaced_by_sound_ones_and_kept_aside() {
    // As it comes; without replacing renames; without links; with nothing.
    for denied in [&EXTENSIONS[..0], &EXTENSIONS[..1], &EXTENSIONS[2..3], &EXTENSIONS[..]] {
        let sshd = Sshd::start_without(denied);
        let vault = store(&sshd).vault();
        let spooled = Spool::hold(bytes::Bytes::from_static(b"whole"));
        vault.put(&spooled, &sidecar()).await.unwrap();
        let path = blob_path(&sshd.root(), &spooled.digest);
        std::fs::write(&path, b"whale").unwrap();

        vault.mend(&spooled).await.unwrap();

        assert_eq!(std::fs::read(&path).unwrap(), b"whole", "{denied:?}");
        assert_eq!(set_aside(&sshd), [b"whale"], "{denied:?}");
        assert_eq!(vault.sidecars(&[spooled.digest]).await.unwrap(), [[sidecar()]]);
        assert_eq!(std::fs::read_dir(sshd.root().join("vault/tmp")).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_blob_of_a_vault_that_is_not_there_is_not_absent() {
    let sshd = Sshd::start();
    let vault = store(&sshd).vault();
    let spooled = blob(1000);
    vault.put(&spooled, &sidecar()).await.unwrap();
    let absent = Digest::of(b"absent");
    assert_eq!(vault.size_of(&absent).await.unwrap(), None);

    // As if its disk were not mounted any more.
    std::fs::rename(sshd.root().join("vault"), sshd.root().join("elsewhere")).unwrap();

    for digest in [spooled.digest, absent] {
        let looked = vault.size_of(&digest).await;
        assert!(matches!(looked, Err(VaultError::Unavailable { .. })), "{looked:?}");
        let opened = vault.open(&digest, None).await;
        assert!(matches!(opened, Err(VaultError::Unavailable { .. })), "{opened:?}");
    }
}

#[tokio::test]
async fn a_file_changed_by_another_program_becomes_the_backup() {
    let sshd = Sshd::start();
    let tree = store(&sshd).tree();
    tree.publish(&publication(b"one"), content(b"one")).await.unwrap();
    std::fs::write(sshd.root().join("published/acme/plans/12345/report.docx"), b"outside").unwrap();

    let replaced = tree.publish(&publication(b"two"), content(b"two")).await.unwrap().unwrap();

    assert_eq!(replaced.digest, Digest::of(b"outside"));
    assert_eq!(tree.shown(&place()).await.unwrap().unwrap().0, Digest::of(b"two"));
}

#[tokio::test]
async fn an_interrupted_publication_is_tidied_and_done_again() {
    let sshd = Sshd::start();
    let tree = store(&sshd).tree();
    tree.publish(&publication(b"one"), content(b"one")).await.unwrap();
    let document = sshd.root().join("published/acme/plans/12345");
    // As if the process had ended after the link and before the rename.
    std::fs::write(document.join(format!("report.docx.tmp.{}", "0".repeat(32))), b"tw").unwrap();
    std::fs::hard_link(document.join("report.docx"), document.join("report.docx.t-v1.bak")).unwrap();

    tree.tidy(&place()).await.unwrap();
    tree.publish(&publication(b"two"), content(b"two")).await.unwrap();

    let mut names: Vec<_> =
        std::fs::read_dir(&document).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["report.docx", "report.docx.t-v1.bak"]);
    assert_eq!(std::fs::read(document.join("report.docx.t-v1.bak")).unwrap(), b"one");
}

#[tokio::test]
async fn backups_are_only_ever_opened_by_their_own_name() {
    let sshd = Sshd::start();
    let tree = store(&sshd).tree();

    for name in ["../x", "/etc/passwd", "..", "a/b"] {
        assert!(tree.open_backup(&place(), name).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn what_a_killed_service_was_writing_is_removed_a_day_later_and_what_another_writes_is_not() {
    let sshd = Sshd::start();
    store(&sshd).vault().ready().await.unwrap();
    let folder = sshd.root().join("vault/tmp");
    let (old, new) = (folder.join("old"), folder.join("new"));
    std::fs::write(&new, b"half").unwrap();
    let file = std::fs::File::create(&old).unwrap();
    let written_at = file.metadata().unwrap().modified().unwrap() - Duration::from_secs(25 * 3600);
    file.set_modified(written_at).unwrap();

    store(&sshd).vault().ready().await.unwrap();

    assert_eq!((old.exists(), new.exists()), (false, true));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}
