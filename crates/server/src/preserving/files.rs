//! Small durable steps with files beside the vaults: a copy that is hashed on its way, a replacement, a removal.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write};
use std::path::Path;

use model::Digest;
use sha2::{Digest as _, Sha256};

use super::PreserveError;
use super::manifest::NamedFile;

/// A writer that counts and hashes what goes through.
pub(super) struct Summed<W> {
    inner: W,
    hasher: Sha256,
    size_bytes: u64,
}

impl<W: Write> Summed<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), size_bytes: 0 }
    }

    /// What went through, and where it went.
    pub(super) fn finish(self) -> (Digest, u64, W) {
        (Digest::new(self.hasher.finalize().into()), self.size_bytes, self.inner)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.size_bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Reads a file once, for its hash.
pub(crate) fn hash_of(file: &Path) -> std::io::Result<Digest> {
    let (digest, ..) = pour(&mut File::open(file)?, std::io::sink())?;
    Ok(digest)
}

/// Reads a file once: its length and its hash.
pub(super) fn sum(file: &Path) -> Result<NamedFile, PreserveError> {
    let failed = PreserveError::file("read", file);
    let summed = File::open(file).and_then(|mut open| pour(&mut open, std::io::sink()));
    let (digest, size_bytes) = summed.map(|(digest, size, _)| (digest, size)).map_err(failed)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(NamedFile { name, size_bytes, sha256: digest.to_string() })
}

/// Copies a file that must be what its manifest says. Under its name it is whole and durable.
pub(super) fn copy(from: &Path, to: &Path, expected: &NamedFile) -> Result<(), PreserveError> {
    let beside = to.with_extension("restoring");
    let written = File::open(from).and_then(|mut open| {
        let (digest, _, file) = pour(&mut open, File::create(&beside)?)?;
        file.sync_all()?;
        Ok(digest)
    });
    let digest = written.map_err(PreserveError::file("copy", from))?;
    if digest.to_string() != expected.sha256 {
        let what = format!("{} has another hash than its manifest says", expected.name);
        return Err(PreserveError::Damaged { what });
    }
    fs::rename(&beside, to).and_then(|()| flush_folder_of(to)).map_err(PreserveError::file("write", to))
}

/// Writes a file whole and durable, in the place of what stood there.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> Result<(), PreserveError> {
    let beside = file.with_extension("new");
    let written = OpenOptions::new().write(true).create(true).truncate(true).open(&beside);
    let written = written.and_then(|mut open| open.write_all(bytes).and_then(|()| open.sync_all()));
    written
        .and_then(|()| fs::rename(&beside, file))
        .and_then(|()| flush_folder_of(file))
        .map_err(PreserveError::file("write", file))
}

/// Removes a file for good.
pub(super) fn remove(file: &Path) -> Result<(), PreserveError> {
    fs::remove_file(file).and_then(|()| flush_folder_of(file)).map_err(PreserveError::file("remove", file))
}

pub(super) fn flush_folder_of(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn pour<W: Write>(from: &mut File, to: W) -> std::io::Result<(Digest, u64, W)> {
    let mut summed = Summed::new(to);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(summed.finish()),
            count => summed.write_all(&buffer[..count])?,
        }
    }
}
