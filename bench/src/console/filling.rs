//! A ledger as it is after years: filled through its port, so that every row is what the service would have written.
//!
//! Nothing is flushed while it is filled, and no bytes are stored: pages show what the ledger says. Documents are neither owed to the
//! published tree nor published, so that the service has nothing to catch up with while it is measured.

mod documents;
mod records;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use ledger::Ledger;
use ledger::documents::{Author, BlobFacts};
use ledger::sqlite::{Durability, Options, SqliteLedger};
use model::{Digest, Environment};
use tokio::task::JoinSet;

/// Steps under way at once: the writer takes up to 128 into one transaction.
const TASKS: u32 = 128;
/// A step waits behind at most that many others, which takes far less than this.
const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// How much there is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) documents: u32,
    pub(super) record_versions: u32,
}

/// What there is, and where pages find it.
pub(super) struct Filled {
    pub(super) documents: u64,
    pub(super) contents: u64,
    pub(super) record_versions: u32,
    /// A document with hundreds of versions.
    pub(super) long_document: String,
    /// A document that is a workbook.
    pub(super) workbook: String,
    /// The number of a kept copy in the middle of them.
    pub(super) kept: u64,
    /// The first log of the largest registration.
    pub(super) first: String,
    /// A preview there that nobody confirmed.
    pub(super) preview: String,
    /// A record in the middle of it.
    pub(super) record: String,
}

/// Fills a data folder that has nothing yet.
pub(super) async fn fill(data: &Path, size: Size) -> Result<Filled> {
    std::fs::create_dir_all(data)?;
    let environment = Environment::parse("prod").context("an environment")?;
    let options = Options { durability: Durability::None, wait_max: WAIT_MAX, ..Options::new(environment) };
    let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(&data.join("ledger.sqlite"), &options)?);
    let began = std::time::Instant::now();
    let documents = documents::fill(&ledger, size.documents).await?;
    eprintln!("{} documents after {:.0} s", size.documents, began.elapsed().as_secs_f64());
    let records = records::fill(&ledger, size.record_versions).await?;
    let totals = ledger.totals().await?;
    eprintln!("{} record versions after {:.0} s", records.versions, began.elapsed().as_secs_f64());
    Ok(Filled {
        documents: totals.documents,
        contents: totals.versions,
        record_versions: records.versions,
        long_document: documents.long_document,
        workbook: documents.workbook,
        kept: documents.kept,
        first: records.first,
        preview: records.preview,
        record: records.record,
    })
}

/// One of fifty people.
fn person(number: u32) -> Author {
    Author::new(format!("user{:02}", number % 50), format!("User Number {:02}", number % 50))
        .calling_from("192.0.2.7")
}

/// A content that nobody stored.
fn blob(number: u32, file_type: &str) -> BlobFacts {
    let digest = Digest::of(format!("content {number}").as_bytes());
    BlobFacts::plain(digest, 5_000 + u64::from(number) * 7919 % 3_000_000, file_type)
}

/// Minutes after the beginning of 2026.
fn moment(minutes: u32) -> Result<Timestamp> {
    let beginning = Timestamp::from_second(1_767_225_600)?;
    Ok(beginning.checked_add(SignedDuration::from_mins(i64::from(minutes)))?)
}

/// Does something for each number, many at once.
async fn each<F>(count: u32, act: impl Fn(u32) -> F + Clone + Send + 'static) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for first in 0..TASKS.min(count) {
        let act = act.clone();
        tasks.spawn(async move {
            for number in (first..count).step_by(TASKS as usize) {
                act(number).await?;
            }
            Ok::<(), anyhow::Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
