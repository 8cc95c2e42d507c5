//! The contract against real S3 servers, and what only a bucket can get wrong.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, EditorKey, ProjectId};
use test_stores::S3Server;
use test_stores::s3::{ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY};
use tokio::io::AsyncReadExt as _;
use vault::s3::tree::S3Tree;
use vault::s3::{Addressing, Credentials, PlainHttp, S3Vault, Settings};
use vault::tree::{Place, Publication};
use vault::{BlobReader, Sidecar, Spool, Spooled, Tree, Vault};

pub(crate) fn settings(endpoint: String) -> Settings {
    Settings {
        bucket: BUCKET.to_owned(),
        prefix: "some/where/".to_owned(),
        region: "us-east-1".to_owned(),
        endpoint: Some(endpoint),
        addressing: Addressing::Path,
        plain_http: PlainHttp::Allowed,
        ca_file: None,
        credentials: Credentials::Given {
            access_key_id: ACCESS_KEY_ID.to_owned(),
            secret_access_key: SECRET_ACCESS_KEY.to_owned(),
        },
        silence_max: Duration::from_secs(30),
    }
}

pub(crate) fn saved() -> Sidecar {
    Sidecar::Saved { key: EditorKey::parse("prod_12345_edit_42.k7q2mz4hxw3t").unwrap(), status: 2 }
}

/// A content that goes up in several parts.
pub(crate) async fn large(folder: &std::path::Path) -> Spooled {
    let mut writer = Spool::open(folder).unwrap().begin();
    for number in 0..20_u8 {
        writer.write(&vec![number; 1024 * 1024]).await.unwrap();
    }
    writer.finish().await.unwrap()
}

fn tree(server: &S3Server) -> (S3Tree, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path()).unwrap();
    (S3Tree::open(&settings(server.endpoint()), spool).unwrap(), folder)
}

mod moto {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, S3Server) {
        let server = S3Server::in_memory();
        (Arc::new(S3Vault::open(&settings(server.endpoint())).unwrap()), server)
    }

    fn fresh_tree() -> (Arc<dyn Tree>, (S3Server, tempfile::TempDir)) {
        let server = S3Server::in_memory();
        let (tree, folder) = tree(&server);
        (Arc::new(tree), (server, folder))
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}

pub(crate) fn place() -> Place {
    Place {
        company: CompanyId::parse("acme").unwrap(),
        project: ProjectId::parse("plans").unwrap(),
        document: DocumentId::parse("12345").unwrap(),
        name: FileName::parse("report.docx").unwrap(),
    }
}

pub(crate) fn publication(digest: Digest, version: u32) -> Publication {
    Publication { place: place(), digest, backup_suffix: format!(".t-v{version}.bak") }
}

pub(crate) fn content(bytes: &Bytes) -> BlobReader {
    BlobReader { size_bytes: bytes.len() as u64, reader: Box::pin(std::io::Cursor::new(bytes.clone())) }
}

async fn read(mut blob: BlobReader) -> Vec<u8> {
    let mut out = Vec::new();
    blob.reader.read_to_end(&mut out).await.unwrap();
    out
}

#[tokio::test]
async fn a_blob_of_several_parts_reads_back_whole() {
    let server = S3Server::in_memory();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spooled = large(folder.path()).await;

    vault.put(&spooled, &saved()).await.unwrap();
    vault.put(&spooled, &saved()).await.unwrap();

    let whole = read(vault.open(&spooled.digest, None).await.unwrap()).await;
    assert_eq!(Digest::of(&whole), spooled.digest);
}

#[tokio::test]
async fn a_blob_of_another_length_is_written_again() {
    let server = S3Server::on_disk();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    let spooled = Spool::hold(Bytes::from_static(b"whole"));
    vault.put(&spooled, &saved()).await.unwrap();
    let file = server.folder().unwrap().join(format!("some/where/blobs/{}", spooled.digest));
    std::fs::write(&file, b"who").unwrap();

    vault.put(&spooled, &saved()).await.unwrap();

    assert_eq!(std::fs::read(&file).unwrap(), b"whole");
    assert_eq!(set_aside(&server), [b"who"], "nothing is thrown away");
}

/// What is kept of damaged blobs.
fn set_aside(server: &S3Server) -> Vec<Vec<u8>> {
    let folder = server.folder().unwrap().join("some/where/damaged");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect()
}

#[tokio::test]
async fn damaged_bytes_are_replaced_by_sound_ones_and_kept_aside() {
    let server = S3Server::on_disk();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    let spooled = Spool::hold(Bytes::from_static(b"whole"));
    vault.put(&spooled, &saved()).await.unwrap();
    let file = server.folder().unwrap().join(format!("some/where/blobs/{}", spooled.digest));
    std::fs::write(&file, b"whale").unwrap();
    vault.put(&spooled, &saved()).await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"whole", "whoever brings the same bytes mends it");
    assert_eq!(set_aside(&server), [b"whale"]);
    std::fs::write(&file, b"whelk").unwrap();

    vault.mend(&spooled).await.unwrap();

    assert_eq!(std::fs::read(&file).unwrap(), b"whole");
    let mut aside = set_aside(&server);
    aside.sort();
    assert_eq!(aside, [b"whale", b"whelk"]);
    assert_eq!(vault.sidecars(&[spooled.digest]).await.unwrap(), [[saved()]]);
}

/// The objects under `blobs/`, without what the server keeps for itself.
fn objects(server: &S3Server) -> Vec<String> {
    let folder = server.folder().unwrap().join("some/where/blobs");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| !name.starts_with('.')).collect()
}

#[tokio::test]
async fn the_first_sidecar_goes_with_the_bytes_and_later_ones_are_objects() {
    let server = S3Server::on_disk();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    let spooled = Spool::hold(Bytes::from_static(b"whole"));
    let other = Sidecar::Brought { document: DocumentId::parse("other").unwrap() };

    vault.put(&spooled, &saved()).await.unwrap();
    vault.put(&spooled, &saved()).await.unwrap();

    assert_eq!(objects(&server), [spooled.digest.to_string()]);
    assert_eq!(vault.sidecars(&[spooled.digest]).await.unwrap(), [[saved()]]);

    vault.put(&spooled, &other).await.unwrap();
    vault.mend(&spooled).await.unwrap();

    assert_eq!(objects(&server).len(), 2);
    assert_eq!(vault.sidecars(&[spooled.digest]).await.unwrap(), [[other, saved()]]);
}

#[tokio::test]
async fn a_blob_of_several_parts_has_its_sidecar_with_it() {
    let server = S3Server::on_disk();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Spool::open(folder.path()).unwrap().begin();
    for number in 0..33_u8 {
        writer.write(&vec![number; 1024 * 1024]).await.unwrap();
    }
    let spooled = writer.finish().await.unwrap();

    vault.put(&spooled, &saved()).await.unwrap();

    assert_eq!(objects(&server), [spooled.digest.to_string()]);
    assert_eq!(vault.sidecars(&[spooled.digest]).await.unwrap(), [[saved()]]);
}

#[tokio::test]
async fn sidecars_of_earlier_releases_are_objects_and_are_told() {
    let server = S3Server::on_disk();
    let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
    let digest = Digest::of(b"whole");
    let folder = server.folder().unwrap().join("some/where/blobs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(digest.to_string()), b"whole").unwrap();
    std::fs::write(folder.join(format!("{digest}~{}", saved().to_word())), b"").unwrap();

    assert_eq!(vault.sidecars(&[digest]).await.unwrap(), [[saved()]]);
    vault.put(&Spool::hold(Bytes::from_static(b"whole")), &saved()).await.unwrap();

    assert_eq!(vault.sidecars(&[digest]).await.unwrap(), [[saved()]]);
    assert_eq!(vault.list(None, 10).await.unwrap().len(), 1);
}

/// A byte of the spool turned over on the disk, between arriving and sending.
#[tokio::test]
async fn what_is_not_the_blob_any_more_does_not_get_its_name() {
    for server in [S3Server::on_disk(), S3Server::in_memory()] {
        let vault = S3Vault::open(&settings(server.endpoint())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let spooled = large(folder.path()).await;
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[4711] ^= 1;
        std::fs::write(&file, bytes).unwrap();

        assert!(vault.put(&spooled, &saved()).await.is_err());

        assert_eq!(vault.size_of(&spooled.digest).await.unwrap(), None);
    }
}

#[tokio::test]
async fn large_files_are_published_and_what_they_replace_is_kept() {
    let server = S3Server::in_memory();
    let (tree, _folder) = tree(&server);
    let (one, two) = (Bytes::from(vec![1; 9 * 1024 * 1024]), Bytes::from(vec![2; 10 * 1024 * 1024]));
    tree.publish(&publication(Digest::of(&one), 1), content(&one)).await.unwrap();

    let replaced = tree.publish(&publication(Digest::of(&two), 1), content(&two)).await.unwrap().unwrap();
    let withdrawn = tree.withdraw(&place(), ".t-v2.bak").await.unwrap().unwrap();

    assert_eq!((replaced.digest, replaced.size_bytes), (Digest::of(&one), one.len() as u64));
    assert_eq!(withdrawn.digest, Digest::of(&two));
    assert_eq!(tree.shown(&place()).await.unwrap(), None);
    assert_eq!(read(tree.open_backup(&place(), &replaced.backup).await.unwrap()).await, one);
}

#[tokio::test]
async fn of_many_that_replace_one_file_at_once_every_content_is_kept() {
    let server = S3Server::in_memory();
    let (tree, _folder) = tree(&server);
    let contents: Vec<Bytes> = (0..4_u8).map(|number| Bytes::from(vec![number; 1000])).collect();

    let publishing: Vec<_> = contents
        .iter()
        .map(|bytes| {
            let (tree, bytes) = (tree.clone(), bytes.clone());
            tokio::spawn(
                async move { tree.publish(&publication(Digest::of(&bytes), 1), content(&bytes)).await },
            )
        })
        .collect();
    for each in publishing {
        each.await.unwrap().unwrap();
    }

    let mut kept = vec![tree.shown(&place()).await.unwrap().unwrap().0];
    for backup in tree.backups(&place()).await.unwrap() {
        kept.push(Digest::of(&read(tree.open_backup(&place(), &backup).await.unwrap()).await));
    }
    kept.sort();
    let mut expected: Vec<Digest> = contents.iter().map(|bytes| Digest::of(bytes)).collect();
    expected.sort();
    assert_eq!(kept, expected, "each is shown or a backup, and none is there twice");
}

#[tokio::test]
async fn a_backup_that_an_interrupted_publication_left_is_the_backup() {
    let server = S3Server::on_disk();
    let (tree, _folder) = tree(&server);
    let (one, two) = (Bytes::from_static(b"one"), Bytes::from_static(b"two"));
    tree.publish(&publication(Digest::of(&one), 1), content(&one)).await.unwrap();
    // As if the process had ended after the backup and before the name was replaced.
    let folder = server.folder().unwrap().join("some/where/acme/plans/12345");
    std::fs::write(folder.join("report.docx.t-v1.bak"), b"one").unwrap();

    let replaced = tree.publish(&publication(Digest::of(&two), 1), content(&two)).await.unwrap().unwrap();

    assert_eq!(replaced.backup, "report.docx.t-v1.bak");
    assert_eq!(tree.backups(&place()).await.unwrap(), ["report.docx.t-v1.bak"]);
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_unavailable_and_not_empty() {
    let server = S3Server::in_memory();
    let settings = Settings { bucket: "elsewhere".to_owned(), ..settings(server.endpoint()) };
    let vault = S3Vault::open(&settings).unwrap();

    assert!(vault.size_of(&Digest::of(b"x")).await.is_err());
    assert!(vault.open(&Digest::of(b"x"), None).await.is_err());
    assert!(vault.probe().await.is_err());
    assert!(vault.put(&Spool::hold(Bytes::from_static(b"x")), &saved()).await.is_err());
    assert!(vault.list(None, 1).await.is_err());
}
