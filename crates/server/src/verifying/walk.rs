//! The walk over everything: rows against rows, rows against blobs, blobs against rows, heads against the tree.

use std::sync::Arc;

use jiff::SignedDuration;
use ledger::documents::Document;
use ledger::trail::{BlobRecord, ReadBack};
use model::Digest;
use tokio::io::AsyncReadExt as _;
use vault::tree::Place;
use vault::{VaultError, read_verified};

use super::{Mendable, Progress, ReadData, Report, VerifyError};
use crate::app::App;
use crate::recovering::find_strays;
use crate::telemetry::report as report_of;

const PAGE: u32 = 1000;

/// Looks at everything.
pub async fn verify(
    app: &Arc<App>,
    read_data: ReadData,
    progress: &dyn Progress,
) -> Result<Report, VerifyError> {
    let mut report = Report::default();
    let totals = app.ledger.totals().await?;
    progress.begin("ledger", 1);
    for inconsistency in app.ledger.inconsistencies().await? {
        report.found(inconsistency.invariant, inconsistency.what, Mendable::No);
    }
    for open in app.ledger.open_saves().await? {
        let what = format!("callback {} was received and is not finished", open.number);
        report.found("owed-save", what, Mendable::Yes);
    }
    progress.advance();
    check_blobs(app, read_data, progress, &mut report).await?;
    progress.begin("strays", 1);
    for stray in find_strays(app).await? {
        report.found("unnamed-blob", format!("blob {} is named by no row", stray.digest), Mendable::Yes);
    }
    progress.advance();
    progress.begin("documents", totals.documents);
    check_documents(app, progress, &mut report).await?;
    Ok(report)
}

async fn check_blobs(
    app: &App,
    read_data: ReadData,
    progress: &dyn Progress,
    report: &mut Report,
) -> Result<(), VerifyError> {
    progress.begin("blobs", 0);
    let mut after: Option<Digest> = None;
    loop {
        let page = app.ledger.blobs(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.digest);
        let mut whole = Vec::new();
        for blob in page {
            report.blobs += 1;
            let digest = blob.digest;
            match condition_of(app, &blob, read_data).await? {
                Condition::Going => continue,
                Condition::There => {}
                Condition::Whole => {
                    report.bytes_read += blob.size_bytes;
                    whole.push(digest);
                }
                Condition::Missing => {
                    report.found("blob-present", format!("blob {digest} is missing"), Mendable::No);
                }
                Condition::OtherLength(size_bytes) => {
                    let what = format!("blob {digest} has {size_bytes} bytes instead of {}", blob.size_bytes);
                    report.found("blob-whole", what, Mendable::No);
                }
                Condition::Damaged => {
                    report.bytes_read += blob.size_bytes;
                    report.found("blob-whole", format!("blob {digest} is damaged"), Mendable::No);
                }
            }
            progress.advance();
        }
        note(app, whole).await;
    }
}

/// What a blob is like in the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// There or not: whoever removes it goes on where it was cut short.
    Going,
    /// There, and of the right length. Its bytes were not read.
    There,
    /// Every byte was read and is right.
    Whole,
    Missing,
    OtherLength(u64),
    Damaged,
}

pub(super) async fn condition_of(
    app: &App,
    blob: &BlobRecord,
    read_data: ReadData,
) -> Result<Condition, VerifyError> {
    if blob.is_going {
        return Ok(Condition::Going);
    }
    Ok(match app.vault.size_of(&blob.digest).await? {
        None => Condition::Missing,
        Some(size_bytes) if size_bytes != blob.size_bytes => Condition::OtherLength(size_bytes),
        Some(_) if read_data == ReadData::No => Condition::There,
        Some(_) if reads_back(app, &blob.digest).await? => Condition::Whole,
        Some(_) => Condition::Damaged,
    })
}

/// For receipts. A running service may be writing; then they tell of an older time.
async fn note(app: &App, digests: Vec<Digest>) {
    let noted = ReadBack { digests, at: app.now(), spacing: SignedDuration::ZERO };
    if !noted.digests.is_empty()
        && let Err(cause) = app.ledger.note_read_back(&noted).await
    {
        tracing::warn!(error = %report_of(&cause), "it could not be noted that blobs were read back");
    }
}

pub(super) async fn reads_back(app: &App, digest: &Digest) -> Result<bool, VerifyError> {
    let blob = app.vault.open(digest, None).await?;
    let mut reader = std::pin::pin!(read_verified(blob.reader, *digest));
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match reader.read(&mut buffer).await {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(cause) if cause.kind() == std::io::ErrorKind::InvalidData => return Ok(false),
            Err(cause) => return Err(VaultError::Unavailable { attempt: "read a blob", cause }.into()),
        }
    }
}

async fn check_documents(app: &App, progress: &dyn Progress, report: &mut Report) -> Result<(), VerifyError> {
    let mut after = None;
    loop {
        let page = app.ledger.document_ids(after.as_ref(), PAGE).await?;
        let Some(last) = page.last().cloned() else { return Ok(()) };
        for id in page {
            report.documents += 1;
            if let Some(document) = app.ledger.document(&id).await? {
                check_published(app, &document, report).await?;
            }
            progress.advance();
        }
        after = Some(last);
    }
}

async fn check_published(app: &App, document: &Document, report: &mut Report) -> Result<(), VerifyError> {
    let id = &document.id;
    let shown = app.tree.shown(&place_of(document)).await?;
    match shown {
        None if document.deleted_at.is_some() => {}
        Some((digest, _)) if digest == document.head_digest && document.deleted_at.is_none() => {}
        _ if app.ledger.owed_publication(id).await?.is_some() => {
            report.found(
                "owed-publication",
                format!("the head of document {id} is not published yet"),
                Mendable::Yes,
            );
        }
        Some(_) if document.deleted_at.is_some() => {
            report.found("published", format!("deleted document {id} is still published"), Mendable::Yes);
        }
        None => report.found(
            "published",
            format!("the published file of document {id} is missing"),
            Mendable::Yes,
        ),
        Some(_) => {
            report.found(
                "published",
                format!("the published file of document {id} is not its head"),
                Mendable::Yes,
            );
        }
    }
    Ok(())
}

pub(super) fn place_of(document: &Document) -> Place {
    Place {
        company: document.company.clone(),
        project: document.project.clone(),
        document: document.id.clone(),
        name: document.name.clone(),
    }
}
