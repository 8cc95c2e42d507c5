//! The SFTP adapter against a real OpenSSH server.

mod disk;
mod doors;
mod faults;
mod proxy;

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, EditorKey, Guards, ProjectId};
use vault::contract::sshd::{EXTENSIONS, Sshd};
use vault::sftp::Store;
use vault::tree::{Place, Publication};
use vault::{BlobReader, Sidecar, Spool, Spooled, Tree, Vault};

fn sidecar() -> Sidecar {
    Sidecar::Saved { key: EditorKey::parse("prod_12345_edit_1.k").unwrap(), status: 2 }
}

/// A content of a length that no other has.
fn blob(size_bytes: usize) -> Spooled {
    let mark = size_bytes.to_le_bytes();
    Spool::hold(
        mark.into_iter()
            .chain((0..size_bytes).map(|at| u8::try_from(at % 251).unwrap()))
            .take(size_bytes)
            .collect(),
    )
}

fn blob_path(root: &Path, digest: &Digest) -> PathBuf {
    root.join("vault/blobs").join(digest.short(2)).join(digest.to_string())
}

/// The blobs on the server's disk; each must be what its name says.
fn whole_blobs(root: &Path) -> Vec<Digest> {
    let folders = std::fs::read_dir(root.join("vault/blobs")).unwrap().map(|entry| entry.unwrap().path());
    let files =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let mut whole = Vec::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.contains('~') {
            let digest = Digest::of(&std::fs::read(&path).unwrap());
            assert_eq!(name, digest.to_string(), "a torn blob is visible");
            whole.push(digest);
        }
    }
    whole
}

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

fn store(sshd: &Sshd) -> Store {
    Store::open(sshd.settings(), &Guards::ALL).unwrap()
}

mod as_it_comes {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, Sshd) {
        let sshd = Sshd::start();
        (Arc::new(store(&sshd).vault()), sshd)
    }

    fn fresh_tree() -> (Arc<dyn Tree>, Sshd) {
        let sshd = Sshd::start();
        (Arc::new(store(&sshd).tree()), sshd)
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}

mod without_extensions {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, Sshd) {
        let sshd = Sshd::start_without(&EXTENSIONS);
        (Arc::new(store(&sshd).vault()), sshd)
    }

    vault::contract_tests!(super::fresh_vault());
}

/// What a tree needs and no more: files are copied and read back.
mod with_replacing_renames_only {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, Sshd) {
        let sshd = Sshd::start_without(&EXTENSIONS[1..]);
        (Arc::new(store(&sshd).vault()), sshd)
    }

    fn fresh_tree() -> (Arc<dyn Tree>, Sshd) {
        let sshd = Sshd::start_without(&EXTENSIONS[1..]);
        (Arc::new(store(&sshd).tree()), sshd)
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}
