//! What only a real disk can get wrong: leftovers, links that lead out, files replaced by other programs.

use std::io::Cursor;
use std::path::Path;

use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, EditorKey, Guards, ProjectId};
use vault::local::LocalVault;
use vault::local::tree::LocalTree;
use vault::tree::{Place, Publication};
use vault::{BlobReader, Sidecar, Spool, Tree as _, Vault as _};

fn place() -> Place {
    Place {
        company: CompanyId::parse("acme").unwrap(),
        project: ProjectId::parse("plans").unwrap(),
        document: DocumentId::parse("12345").unwrap(),
        name: FileName::parse("report.docx").unwrap(),
    }
}

fn publication(bytes: &[u8]) -> Publication {
    Publication { place: place(), digest: Digest::of(bytes), backup_suffix: ".t-v1.bak".to_owned() }
}

fn content(bytes: &[u8]) -> BlobReader {
    BlobReader { size_bytes: bytes.len() as u64, reader: Box::pin(Cursor::new(bytes.to_vec())) }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn cleaning_the_vault_removes_half_written_blobs_and_keeps_whole_ones() {
    let folder = tempfile::tempdir().unwrap();
    let spooled = Spool::hold(bytes::Bytes::from_static(b"whole"));
    let sidecar = Sidecar::Saved { key: EditorKey::parse("k").unwrap(), status: 2 };
    LocalVault::open(folder.path(), &Guards::ALL).unwrap().put(&spooled, &sidecar).await.unwrap();
    std::fs::write(folder.path().join("tmp/half"), b"ha").unwrap();

    let vault = LocalVault::open(folder.path(), &Guards::ALL).unwrap();
    vault.clean().unwrap();

    assert_eq!(names(&folder.path().join("tmp")), [""; 0]);
    assert_eq!(vault.size_of(&spooled.digest).await.unwrap(), Some(5));
}

#[test]
fn instances_that_start_at_once_share_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let all = std::sync::Barrier::new(8);
    let open = || {
        all.wait();
        LocalVault::open(folder.path(), &Guards::ALL).map(drop)
    };

    let opened: Vec<_> = std::thread::scope(|scope| {
        let openings: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        openings.into_iter().map(|opening| opening.join().unwrap()).collect()
    });

    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
}

#[tokio::test]
async fn a_truncated_blob_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let vault = LocalVault::open(folder.path(), &Guards::ALL).unwrap();
    let spooled = Spool::hold(bytes::Bytes::from_static(b"whole"));
    let path = folder.path().join("blobs").join(spooled.digest.short(2)).join(spooled.digest.to_string());
    std::fs::write(&path, b"who").unwrap();

    let sidecar = Sidecar::Brought { document: DocumentId::parse("12345").unwrap() };
    vault.put(&spooled, &sidecar).await.unwrap();

    assert_eq!(std::fs::read(&path).unwrap(), b"whole");
}

#[tokio::test]
async fn a_file_changed_by_another_program_becomes_the_backup() {
    let folder = tempfile::tempdir().unwrap();
    let tree = LocalTree::open(folder.path(), &Guards::ALL).unwrap();
    tree.publish(&publication(b"one"), content(b"one")).await.unwrap();
    std::fs::write(folder.path().join("acme/plans/12345/report.docx"), b"outside").unwrap();

    let replaced = tree.publish(&publication(b"two"), content(b"two")).await.unwrap().unwrap();

    assert_eq!(replaced.digest, Digest::of(b"outside"));
    assert_eq!(tree.shown(&place()).await.unwrap().unwrap().0, Digest::of(b"two"));
}

#[tokio::test]
async fn an_interrupted_publication_is_tidied_and_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let tree = LocalTree::open(folder.path(), &Guards::ALL).unwrap();
    tree.publish(&publication(b"one"), content(b"one")).await.unwrap();
    let document = folder.path().join("acme/plans/12345");
    // As if the process had ended after the link and before the rename.
    std::fs::write(document.join(format!("report.docx.tmp.{}", "0".repeat(32))), b"tw").unwrap();
    std::fs::hard_link(document.join("report.docx"), document.join("report.docx.t-v1.bak")).unwrap();

    tree.tidy(&place()).await.unwrap();
    tree.publish(&publication(b"two"), content(b"two")).await.unwrap();

    assert_eq!(names(&document), ["report.docx", "report.docx.t-v1.bak"]);
    assert_eq!(std::fs::read(document.join("report.docx.t-v1.bak")).unwrap(), b"one");
}

#[tokio::test]
async fn a_publication_that_fails_leaves_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let tree = LocalTree::open(folder.path(), &Guards::ALL).unwrap();
    tree.publish(&publication(b"one"), content(b"one")).await.unwrap();

    tree.publish(&publication(b"two"), content(b"torn")).await.unwrap_err();

    assert_eq!(names(&folder.path().join("acme/plans/12345")), ["report.docx"]);
}

#[tokio::test]
async fn backups_are_only_ever_opened_by_their_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let tree = LocalTree::open(folder.path(), &Guards::ALL).unwrap();

    for name in ["../x", "/etc/passwd", "..", "a/b"] {
        assert!(tree.open_backup(&place(), name).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn what_is_not_the_blob_its_name_says_is_replaced_and_kept_aside() {
    let folder = tempfile::tempdir().unwrap();
    let vault = LocalVault::open(folder.path(), &Guards::ALL).unwrap();
    let spooled = Spool::hold(bytes::Bytes::from_static(b"whole"));
    let sidecar = Sidecar::Saved { key: EditorKey::parse("k").unwrap(), status: 2 };
    vault.put(&spooled, &sidecar).await.unwrap();
    let file = folder.path().join("blobs").join(spooled.digest.short(2)).join(spooled.digest.to_string());

    std::fs::write(&file, b"whale").unwrap();
    vault.mend(&spooled).await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"whole");
    std::fs::write(&file, b"who").unwrap();
    vault.put(&spooled, &sidecar).await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"whole");

    vault.clean().unwrap();
    let aside = folder.path().join("damaged");
    let mut kept: Vec<_> =
        names(&aside).iter().map(|name| std::fs::read(aside.join(name)).unwrap()).collect();
    kept.sort();
    assert_eq!(kept, [b"whale".to_vec(), b"who".to_vec()], "nothing is thrown away");
}
