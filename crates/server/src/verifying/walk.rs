//! The walk over everything: rows against rows, rows against blobs, blobs against rows, heads against the tree.

use std::sync::Arc;

use jiff::SignedDuration;
use ledger::documents::Document;
use ledger::trail::{BlobRecord, ReadBack};
use model::Digest;
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
                Condition::Unreadable(cause) => {
                    let what = format!("blob {digest} cannot be read: {}", report_of(&cause));
                    report.found("blob-whole", what, Mendable::No);
                }
            }
            progress.advance();
        }
        note(app, whole).await;
    }
}

/// What a blob is like in the vault.
#[derive(Debug)]
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
    /// The store has it and does not give it: a bad sector, for one. Others it gives.
    Unreadable(VaultError),
}

/// It may have been let go since the ledger was asked.
async fn is_going_now(app: &App, blob: &BlobRecord) -> Result<bool, VerifyError> {
    let is_gone = app.ledger.removals_of(&blob.digest).await? != blob.removals;
    let begun = app.ledger.begun_removals(PAGE).await?;
    Ok(is_gone || begun.iter().any(|going| going.digest == blob.digest))
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
        None if is_going_now(app, blob).await? => Condition::Going,
        None => Condition::Missing,
        Some(size_bytes) if size_bytes != blob.size_bytes => Condition::OtherLength(size_bytes),
        Some(_) if read_data == ReadData::No => Condition::There,
        Some(_) => match read_back(app, &blob.digest).await {
            Ok(true) => Condition::Whole,
            Ok(false) => Condition::Damaged,
            Err(cause) => {
                // A store that is away is no finding about a blob.
                app.vault.list(None, 1).await?;
                Condition::Unreadable(cause)
            }
        },
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

/// Reads a blob; whether it is what its name says.
pub(super) async fn read_back(app: &App, digest: &Digest) -> Result<bool, VaultError> {
    let blob = app.vault.open(digest, None).await?;
    let mut reader = std::pin::pin!(read_verified(blob.reader, *digest));
    match tokio::io::copy(&mut reader, &mut tokio::io::sink()).await {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::InvalidData => Ok(false),
        Err(cause) => Err(VaultError::Unavailable { attempt: "read a blob", cause }),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steps::{Aftermath, Faults, Moment};

    use super::*;
    use crate::recovering;
    use crate::testing::{Quietly, Workbench, docx, idle};

    #[tokio::test]
    async fn a_blob_that_cannot_be_read_is_found_and_the_rest_is_looked_at_and_any_other_trouble_is_told() {
        let bench = Workbench::new().await;
        let app = bench.process();
        bench.bring(&app, "2", docx("another")).await;
        recovering::round(&app).await;
        idle(&app).await;
        let quiet = Arc::new(Faults::none());
        assert!(verify(&bench.process_with(&quiet), ReadData::Yes, &Quietly).await.unwrap().is_clean());

        for (at, call) in quiet.calls().into_iter().enumerate() {
            let faults = Arc::new(Faults::at_call(at + 1, Moment::Before, Aftermath::GoesOn));
            let outcome = verify(&bench.process_with(&faults), ReadData::Yes, &Quietly).await;

            match (call, outcome) {
                ("vault.open", Ok(report)) => {
                    let told: Vec<&str> = report.findings.iter().map(|found| found.what.as_str()).collect();
                    assert!(told.len() == 1 && told[0].contains("cannot be read"), "{told:?}");
                    assert_eq!((report.blobs, report.documents), (2, 2));
                }
                ("ledger.note_read_back", Ok(report)) => assert!(report.is_clean()),
                (_, Err(_)) => {}
                (call, Ok(report)) => panic!("{call} failed and nobody was told: {report:?}"),
            }
        }
    }
}
