//! The published tree in a bucket: `{prefix}{company}/{project}/{document}/{filename}`.
//!
//! To publish: read what stands under the name, write it under its backup name (only if that is free), then write the new
//! bytes under the name on the condition that it still shows what was read. An object is replaced at one instant, so the
//! name never vanishes and nobody sees half a file.
//!
//! Guarantees: the port's. The backup is made of the very bytes whose entity tag the replacing write insists on; should
//! another program replace the file in between, the store refuses and it is done again. On a store that ignores
//! conditions the tag is compared just before, which leaves another program a moment; the start warns of that.
//! There are no folders and no temporary objects, so there is nothing to leave or to tidy.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use model::Digest;
use object_store::path::Path;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use super::bucket::{Bucket, Condition, Outcome, Terms};
use super::settings::Settings;
use super::{modified_at, reading::ObjectReader};
use crate::tree::{Glance, Place, Publication, Replaced, Tree, is_backup};
use crate::{BlobReader, Result, Spool, Spooled, VaultError, read_verified};

/// Other programs may replace the file while we do; after so many times we leave it for later.
const ATTEMPTS: usize = 8;
/// Backups of the same instant get a number; more than this is no accident.
const BACKUP_NAMES_MAX: u32 = 1000;

/// The published tree in a bucket.
#[derive(Debug, Clone)]
pub struct S3Tree {
    bucket: Arc<Bucket>,
    spool: Spool,
}

/// What stands under a name: its tag, and its bytes.
struct Standing {
    e_tag: String,
    content: Spooled,
}

impl S3Tree {
    /// Takes the settings; talks to nobody yet. Large files pass through the spool.
    pub fn open(settings: &Settings, spool: Spool) -> Result<Self> {
        let bucket = Bucket::open(settings).map_err(VaultError::unavailable("set up the S3 store"))?;
        Ok(Self { bucket: Arc::new(bucket), spool })
    }

    /// Ids are single path components by construction, and so is the name.
    fn key_of(&self, place: &Place, name: &str) -> io::Result<Path> {
        self.bucket.key(&format!("{}{name}", folder_of(place)))
    }

    async fn replace(&self, publication: &Publication, content: &Spooled) -> io::Result<Option<Replaced>> {
        let place = &publication.place;
        let shown = self.key_of(place, place.name.as_str())?;
        for _ in 0..ATTEMPTS {
            let standing = self.standing(&shown).await?;
            let backup = match &standing {
                Some(standing) => Some(self.back_up(place, &publication.backup_suffix, standing).await?),
                None => None,
            };
            steps::reached("publish.linked");
            let condition = match &standing {
                Some(standing) => Condition::Is(standing.e_tag.clone()),
                None => Condition::Absent,
            };
            // Refused, it may be there all the same: a store that said it had failed, and had not, was asked again. The backup is of what
            // it replaced, and perhaps the only copy.
            if self.write(&shown, content, &condition).await? == Outcome::Written
                || self.is_same(&shown, content).await?
            {
                steps::reached("publish.renamed");
                return Ok(replaced(standing, backup));
            }
            // The name shows something else by now. What is backed up is perhaps nowhere else any more, so it stays.
        }
        Err(io::Error::other("another program keeps replacing the published file"))
    }

    async fn take_away(&self, place: &Place, suffix: &str) -> io::Result<Option<Replaced>> {
        let shown = self.key_of(place, place.name.as_str())?;
        for _ in 0..ATTEMPTS {
            let Some(standing) = self.standing(&shown).await? else { return Ok(None) };
            let backup = self.back_up(place, suffix, &standing).await?;
            // Refused, it may be gone all the same: as above.
            if self.bucket.delete_if(&shown, &standing.e_tag).await? == Outcome::Written
                || self.bucket.head(&shown).await?.is_none()
            {
                steps::reached("publish.withdrawn");
                return Ok(replaced(Some(standing), Some(backup)));
            }
            // As above.
        }
        Err(io::Error::other("another program keeps replacing the published file"))
    }

    async fn standing(&self, key: &Path) -> io::Result<Option<Standing>> {
        let Some((meta, reader)) = self.bucket.get(key, None).await? else { return Ok(None) };
        let e_tag = meta.e_tag.ok_or_else(|| io::Error::other("the store gives no entity tags"))?;
        let content = self.spool.take_in(reader, "read what is published").await.map_err(io::Error::other)?;
        Ok(Some(Standing { e_tag, content }))
    }

    /// Keeps what stands under the name under the first backup name that is free.
    async fn back_up(&self, place: &Place, suffix: &str, standing: &Standing) -> io::Result<String> {
        for number in 1..=BACKUP_NAMES_MAX {
            let suffix = match number {
                1 => suffix.to_owned(),
                number => suffix.replace(".bak", &format!("-{number}.bak")),
            };
            let name = place.name.with_suffix(&suffix);
            let key = self.key_of(place, &name)?;
            if self.write(&key, &standing.content, &Condition::Absent).await? == Outcome::Written {
                return Ok(name);
            }
            // Written by an attempt that was interrupted: these very bytes are kept under this very name.
            if self.is_same(&key, &standing.content).await? {
                return Ok(name);
            }
        }
        Err(io::Error::other("too many backups of one instant"))
    }

    async fn is_same(&self, key: &Path, content: &Spooled) -> io::Result<bool> {
        let Some((meta, reader)) = self.bucket.get(key, None).await? else { return Ok(false) };
        Ok(meta.size == content.size_bytes && hash(reader).await?.0 == content.digest)
    }

    async fn write(&self, key: &Path, content: &Spooled, condition: &Condition) -> io::Result<Outcome> {
        self.bucket.write_spooled(key, content, Terms::just(condition)).await
    }

    async fn names(&self, place: &Place) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut pages = self.bucket.pages(&folder_of(place), None);
        while let Some(page) = pages.next().await? {
            names.extend(page.iter().filter_map(|object| object.location.filename().map(str::to_owned)));
        }
        Ok(names)
    }
}

#[async_trait]
impl Tree for S3Tree {
    async fn publish(&self, publication: &Publication, content: BlobReader) -> Result<Option<Replaced>> {
        let content = read_verified(content.reader, publication.digest);
        let content = self.spool.take_in(content, "read what is to be published").await?;
        steps::reached("publish.written");
        let done = self.replace(publication, &content).await;
        done.map_err(VaultError::unavailable("publish a file in the S3 store"))
    }

    async fn withdraw(&self, place: &Place, backup_suffix: &str) -> Result<Option<Replaced>> {
        let done = self.take_away(place, backup_suffix).await;
        done.map_err(VaultError::unavailable("withdraw a published file from the S3 store"))
    }

    async fn shown(&self, place: &Place) -> Result<Option<(Digest, u64)>> {
        let read = async {
            let key = self.key_of(place, place.name.as_str())?;
            match self.bucket.get(&key, None).await? {
                Some((_, reader)) => hash(reader).await.map(Some),
                None => Ok(None),
            }
        };
        read.await.map_err(VaultError::unavailable("read a published file of the S3 store"))
    }

    async fn glance(&self, place: &Place) -> Result<Option<Glance>> {
        let look = async { self.bucket.head(&self.key_of(place, place.name.as_str())?).await };
        let found =
            look.await.map_err(VaultError::unavailable("look at a published file of the S3 store"))?;
        Ok(found.map(|found| Glance { size_bytes: found.meta.size, modified_at: modified_at(&found.meta) }))
    }

    async fn backups(&self, place: &Place) -> Result<Vec<String>> {
        let names =
            self.names(place).await.map_err(VaultError::unavailable("list backups in the S3 store"))?;
        let mut names: Vec<String> = names.into_iter().filter(|name| is_backup(name)).collect();
        names.sort();
        Ok(names)
    }

    async fn remove_backup(&self, place: &Place, backup: &str) -> Result<()> {
        let remove = async {
            if backup == place.name.as_str() || !is_backup(backup) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            self.bucket.delete(&self.key_of(place, backup)?).await
        };
        remove.await.map_err(VaultError::unavailable("remove a backup from the S3 store"))
    }

    async fn leave(&self, _place: &Place) -> Result<()> {
        Ok(())
    }

    async fn open_backup(&self, place: &Place, backup: &str) -> Result<BlobReader> {
        let open = async {
            if backup.contains('/') {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            self.bucket.get(&self.key_of(place, backup)?, None).await
        };
        let opened = open.await.map_err(VaultError::unavailable("open a backup of the S3 store"))?;
        let (meta, reader) = opened.ok_or_else(|| VaultError::not_found(backup))?;
        Ok(BlobReader { size_bytes: meta.size, reader: Box::pin(reader) })
    }

    async fn tidy(&self, _place: &Place) -> Result<()> {
        Ok(())
    }
}

fn folder_of(place: &Place) -> String {
    format!("{}/{}/{}/", place.company, place.project, place.document)
}

fn replaced(standing: Option<Standing>, backup: Option<String>) -> Option<Replaced> {
    let (content, backup) = (standing?.content, backup?);
    Some(Replaced { backup, digest: content.digest, size_bytes: content.size_bytes })
}

async fn hash(mut reader: ObjectReader) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size_bytes = 0;
    loop {
        match reader.read(&mut buffer).await? {
            0 => return Ok((Digest::new(hasher.finalize().into()), size_bytes)),
            count => {
                hasher.update(&buffer[..count]);
                size_bytes += count as u64;
            }
        }
    }
}
