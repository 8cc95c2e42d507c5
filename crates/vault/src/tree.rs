//! The port of the published tree: `/{company}/{project}/{document}/{filename}`, with backups of what was replaced.
//!
//! Guarantees: a reader of the published name finds it at every moment, whole; what is replaced is never lost but kept
//! under a backup name, and its hash is that of the very file that was replaced.
//! Does not do: decide what to publish or what unknown bytes mean (`recovering` does).

use async_trait::async_trait;
use jiff::Timestamp;
use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, ProjectId};
use uuid::Uuid;

use crate::{BlobReader, Result};

/// What people and other tools see.
#[async_trait]
pub trait Tree: Send + Sync {
    /// Shows these bytes under the document's name; what stood there becomes a backup.
    async fn publish(&self, publication: &Publication, content: BlobReader) -> Result<Option<Replaced>>;
    /// Shows nothing under the document's name any more; what stood there becomes a backup. Nothing there is fine.
    async fn withdraw(&self, place: &Place, backup_suffix: &str) -> Result<Option<Replaced>>;
    /// The hash and length of what the document's name shows now; `None` if nothing is there.
    async fn shown(&self, place: &Place) -> Result<Option<(Digest, u64)>>;
    /// What can be told of it without reading it; `None` if nothing is there.
    async fn glance(&self, place: &Place) -> Result<Option<Glance>>;
    /// The names of the backups in the document's folder, under whatever name it was shown, in order.
    async fn backups(&self, place: &Place) -> Result<Vec<String>>;
    /// Removes a backup for good. One that is not there is fine; what is no backup stays.
    async fn remove_backup(&self, place: &Place, backup: &str) -> Result<()>;
    /// Removes the document's folder if nothing is left in it.
    async fn leave(&self, place: &Place) -> Result<()>;
    /// Opens a backup.
    async fn open_backup(&self, place: &Place, backup: &str) -> Result<BlobReader>;
    /// Removes what an interrupted publication left in the document's folder.
    async fn tidy(&self, place: &Place) -> Result<()>;
}

/// Whether a file name may be one this port gave to a backup: one name, with the ending.
pub fn is_backup(name: &str) -> bool {
    name.ends_with(".bak") && !name.contains(['/', '\\'])
}

/// Appended to the name of a file that is being written.
pub(crate) fn temporary_suffix(id: &Uuid) -> String {
    format!(".tmp.{}", id.simple())
}

/// Whether a file name is one that a publication under this name gave to what it was writing. Other programs have temporary files, too.
pub(crate) fn is_temporary_of(name: &FileName, found: &str) -> bool {
    let id = found.rsplit_once('.').and_then(|(_, id)| Uuid::try_parse(id).ok());
    id.is_some_and(|id| name.with_suffix(&temporary_suffix(&id)) == found)
}

/// What can be told of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glance {
    /// Its length.
    pub size_bytes: u64,
    /// When it was last written, by the store's clock.
    pub modified_at: Timestamp,
}

/// Where a document is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its company.
    pub company: CompanyId,
    /// Its project.
    pub project: ProjectId,
    /// Its id.
    pub document: DocumentId,
    /// Its file name.
    pub name: FileName,
}

/// A content to be shown.
#[derive(Debug, Clone)]
pub struct Publication {
    /// Where.
    pub place: Place,
    /// The hash of the bytes; anything else is refused.
    pub digest: Digest,
    /// What is appended to the name of the file that is replaced: `.20261115T101500.123Z-v14.bak`.
    pub backup_suffix: String,
}

/// What was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The name it has now.
    pub backup: String,
    /// Its hash.
    pub digest: Digest,
    /// Its length.
    pub size_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_publication_was_writing_is_temporary() {
        let name = FileName::parse("report.docx").unwrap();
        let ours = name.with_suffix(&temporary_suffix(&Uuid::new_v4()));

        assert!(is_temporary_of(&name, &ours));
        for other in [
            "report.docx",
            "report.docx.tmp.4711",
            "report.docx.tmp.",
            "report.docx.tmp",
            &format!("other{ours}"),
            &format!("{ours}.docx"),
            &ours.to_uppercase(),
        ] {
            assert!(!is_temporary_of(&name, other), "{other}");
        }
    }
}
