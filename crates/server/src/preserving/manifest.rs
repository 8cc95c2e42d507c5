//! What a backup says of itself. Its presence makes a folder a backup; it is replaced whole or not at all.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PreserveError;
use super::files;

/// The name of its file.
const FILE: &str = "manifest.json";
/// The only format there is so far.
pub(super) const FORMAT: u32 = 1;
/// What a backup never holds, in words for people.
pub(super) const LEFT_OUT: [&str; 3] = [
    "the configuration and secrets/: keep them in a place of their own",
    "published/: a restore makes it again",
    "spool/: bytes on their way",
];

/// A backup, described.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// How to read the rest.
    pub format: u32,
    /// The name of this backup.
    pub name: String,
    /// The moment it shows.
    pub made_at: Timestamp,
    /// The installation.
    pub environment: String,
    /// The program that made it.
    pub program: String,
    /// The snapshot of the ledger.
    pub ledger: NamedFile,
    /// The list of all files, as `sha256sum -c` reads it.
    pub sums: NamedFile,
    /// How many blobs it has.
    pub blobs: u64,
    /// How many bytes they are.
    pub bytes: u64,
    /// Blobs that the ledger names and that could not be copied.
    pub lacking: Vec<String>,
    /// What is not in it.
    pub left_out: Vec<String>,
}

/// A file beside the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub size_bytes: u64,
    /// Its hash.
    pub sha256: String,
}

impl Manifest {
    /// Reads the manifest of a backup.
    pub fn read(folder: &Path) -> Result<Self, PreserveError> {
        let file = folder.join(FILE);
        let text = std::fs::read_to_string(&file).map_err(PreserveError::file("read", &file))?;
        let damaged = |what: String| PreserveError::Damaged { what };
        let manifest: Self =
            serde_json::from_str(&text).map_err(|cause| damaged(format!("its manifest: {cause}")))?;
        if manifest.format != FORMAT {
            return Err(damaged(format!("its format is {}, this program reads {FORMAT}", manifest.format)));
        }
        let is_plain = |name: &str| !name.contains(['/', '\\']) && !name.starts_with('.');
        if !is_plain(&manifest.ledger.name) || !is_plain(&manifest.sums.name) {
            return Err(damaged("its manifest names files elsewhere".to_owned()));
        }
        Ok(manifest)
    }

    /// Puts it in place: from now on the backup is this one.
    pub(super) fn write(&self, folder: &Path) -> Result<(), PreserveError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|cause| PreserveError::Damaged { what: cause.to_string() })?;
        files::replace(&folder.join(FILE), format!("{text}\n").as_bytes())
    }
}
