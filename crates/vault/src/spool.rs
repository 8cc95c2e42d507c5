//! Takes bytes in: hashes while they arrive, small contents in memory, large ones in a file.
//!
//! Guarantees: the digest is that of the very bytes that are handed on, so what was checked is what is stored; no
//! content needs more than [`MEMORY_BYTES_MAX`] of memory; an unfinished content leaves nothing behind but a file that
//! the next start cleans away; of a large content only little waits in memory for the disk, so that whoever flushes something else
//! meanwhile does not wait for all of it. Does not do: durability. Bytes are safe once a vault has put them.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use model::Digest;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use uuid::Uuid;

use crate::{Result, VaultError};

/// Most documents are smaller than this and never touch the spool folder.
pub const MEMORY_BYTES_MAX: usize = 1024 * 1024;

/// Readers are asked for so much at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// A file is flushed whenever so much was added to it.
const FLUSHED_BYTES: u64 = 4 * 1024 * 1024;

/// A folder for contents on their way.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: Arc<PathBuf>,
}

impl Spool {
    /// Opens the spool.
    pub fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(VaultError::unavailable("open the spool"))?;
        Ok(Self { folder: Arc::new(folder.to_owned()) })
    }

    /// Removes what an earlier process left unfinished. Only for whoever has the folder to itself.
    pub fn clean(&self) -> Result<()> {
        let attempt = "clean the spool";
        for entry in std::fs::read_dir(self.folder.as_path()).map_err(VaultError::unavailable(attempt))? {
            let path = entry.map_err(VaultError::unavailable(attempt))?.path();
            if path.extension().is_some_and(|extension| extension == "part") {
                std::fs::remove_file(&path).map_err(VaultError::unavailable(attempt))?;
            }
        }
        Ok(())
    }

    /// Begins to take a content in.
    pub fn begin(&self) -> SpoolWriter {
        SpoolWriter {
            folder: Arc::clone(&self.folder),
            hasher: Sha256::new(),
            size_bytes: 0,
            held: Vec::new(),
            file: None,
        }
    }

    /// Takes in all that a reader gives. `attempt` says what failed when it does not.
    pub async fn take_in(&self, reader: impl AsyncRead, attempt: &'static str) -> Result<Spooled> {
        let mut reader = std::pin::pin!(reader);
        let mut writer = self.begin();
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            match reader.read(&mut buffer).await.map_err(VaultError::unavailable(attempt))? {
                0 => return writer.finish().await,
                count => writer.write(&buffer[..count]).await?,
            }
        }
    }

    /// Takes a content in that is in memory already.
    pub fn hold(bytes: Bytes) -> Spooled {
        let digest = Digest::of(&bytes);
        Spooled { digest, size_bytes: bytes.len() as u64, life: 0, body: Body::Memory(bytes) }
    }
}

/// A content that is still arriving.
#[derive(Debug)]
pub struct SpoolWriter {
    folder: Arc<PathBuf>,
    hasher: Sha256,
    size_bytes: u64,
    held: Vec<u8>,
    file: Option<SpoolFile>,
}

impl SpoolWriter {
    /// How much has arrived.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Takes the next bytes.
    pub async fn write(&mut self, chunk: &[u8]) -> Result<()> {
        self.hasher.update(chunk);
        self.size_bytes += chunk.len() as u64;
        self.held.extend_from_slice(chunk);
        if self.held.len() >= MEMORY_BYTES_MAX {
            self.spill().await?;
        }
        Ok(())
    }

    /// The content is complete.
    pub async fn finish(mut self) -> Result<Spooled> {
        if self.file.is_some() {
            self.spill().await?;
        }
        let digest = Digest::new(self.hasher.finalize().into());
        let body = match self.file {
            Some(file) => Body::File(Arc::new(file)),
            None => Body::Memory(Bytes::from(self.held)),
        };
        Ok(Spooled { digest, size_bytes: self.size_bytes, life: 0, body })
    }

    async fn spill(&mut self) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        let file = self.file.take();
        let path = self.folder.join(format!("{}.part", Uuid::new_v4().simple()));
        let file = run_blocking("write to the spool", move || {
            let mut file = match file {
                Some(file) => file,
                None => SpoolFile::create(path)?,
            };
            file.append(&held)?;
            Ok(file)
        })
        .await?;
        self.file = Some(file);
        Ok(())
    }
}

/// A content that has arrived in full.
#[derive(Debug, Clone)]
pub struct Spooled {
    /// Its hash, taken while it arrived.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
    life: u64,
    body: Body,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Memory(Bytes),
    File(Arc<SpoolFile>),
}

impl Spooled {
    /// Which life of its blob it is to be stored in: how often the blob was removed before. The first one if nothing is said.
    #[must_use]
    pub fn in_life(&self, life: u64) -> Self {
        Self { life, ..self.clone() }
    }

    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// A reader over the bytes, for use outside the async runtime.
    pub fn reader(&self) -> Result<Box<dyn ReadSeek>> {
        match &self.body {
            Body::Memory(bytes) => Ok(Box::new(std::io::Cursor::new(bytes.clone()))),
            Body::File(file) => {
                let file =
                    std::fs::File::open(&file.path).map_err(VaultError::unavailable("read the spool"))?;
                Ok(Box::new(std::io::BufReader::new(file)))
            }
        }
    }
}

/// Bytes that can be read from anywhere.
pub trait ReadSeek: Read + Seek + Send {}

impl<R: Read + Seek + Send> ReadSeek for R {}

/// A file of the spool; it goes when nobody needs it any more.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    pub(crate) path: PathBuf,
    file: std::fs::File,
    unflushed_bytes: u64,
    is_doubtful: AtomicBool,
}

impl SpoolFile {
    fn create(path: PathBuf) -> std::io::Result<Self> {
        let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self { path, file, unflushed_bytes: 0, is_doubtful: AtomicBool::new(false) })
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(bytes)?;
        self.unflushed_bytes += bytes.len() as u64;
        if self.unflushed_bytes >= FLUSHED_BYTES {
            self.unflushed_bytes = 0;
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// A flush failed: nobody knows any more what the disk has.
    pub(crate) fn doubt(&self) {
        self.is_doubtful.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Relaxed)
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next start.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Runs file work off the async threads.
pub(crate) async fn run_blocking<T: Send + 'static>(
    attempt: &'static str,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(std::io::Error::other).and_then(|result| result).map_err(VaultError::unavailable(attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn spool_of(size: usize) -> (tempfile::TempDir, Vec<u8>, Spooled) {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(folder.path()).unwrap();
        let bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut writer = spool.begin();
        for chunk in bytes.chunks(70_000) {
            writer.write(chunk).await.unwrap();
        }
        let spooled = writer.finish().await.unwrap();
        (folder, bytes, spooled)
    }

    fn read(spooled: &Spooled) -> Vec<u8> {
        let mut bytes = Vec::new();
        spooled.reader().unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn contents_of_any_size_come_out_as_they_went_in() {
        for size in [0, 1, 69_999, MEMORY_BYTES_MAX - 1, MEMORY_BYTES_MAX, 3 * MEMORY_BYTES_MAX + 17] {
            let (_folder, bytes, spooled) = spool_of(size).await;

            assert_eq!((spooled.digest, spooled.size_bytes), (Digest::of(&bytes), size as u64));
            assert_eq!(read(&spooled), bytes);
        }
    }

    #[tokio::test]
    async fn large_contents_leave_no_file_behind() {
        let (folder, _, spooled) = spool_of(2 * MEMORY_BYTES_MAX).await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

        drop(spooled);

        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn cleaning_removes_what_an_earlier_process_left_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("left.part"), b"half").unwrap();
        std::fs::write(folder.path().join("not-ours.txt"), b"x").unwrap();

        Spool::open(folder.path()).unwrap().clean().unwrap();

        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["not-ours.txt"]);
    }
}
