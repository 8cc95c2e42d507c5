//! A workbook goes back to whoever brought it, with its problems marked in their cells.
//!
//! Guarantees: it is marked off the async threads, no more at once than are read at once, and whole before its first byte is sent.
//! Does not do: change the workbook that was brought.

use std::io::{self, Write as _};

use ledger::LedgerError;
use ledger::logs::{LogSource, SummaryLog};
use ledger::staging::ProblemsPage;
use model::submissions::Problem;
use sheets::{MarkError, mark_workbook};
use vault::{Spooled, VaultError};

use super::piping::pipe;
use crate::app::App;
use crate::incoming::spool_blob;

/// Problems read at once.
const PAGE: u32 = 1000;
/// Problems that are marked at most; the worst come first.
const MARKED_MAX: usize = 20_000;

/// Why a workbook was not marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkingError {
    /// The log has no workbook.
    #[error("there is no workbook")]
    NoWorkbook,
    /// It is none that can be marked.
    #[error("the workbook cannot be marked: {0}")]
    Unmarkable(String),
    /// Its bytes could not be read or kept.
    #[error("the workbook could not be read or kept")]
    Vault(#[from] VaultError),
    /// Its problems could not be read.
    #[error("the problems could not be read")]
    Ledger(#[from] LedgerError),
    /// The work was interrupted.
    #[error("the work was interrupted")]
    Interrupted,
}

/// The workbook of a log, marked.
pub async fn marked(app: &App, log: &SummaryLog) -> Result<Spooled, MarkingError> {
    let LogSource::Workbook { blob, .. } = &log.source else { return Err(MarkingError::NoWorkbook) };
    let problems = problems_of(app, log).await?;
    let _turn = app.assessments.acquire().await.map_err(|_| MarkingError::Interrupted)?;
    let original = spool_blob(app, &blob.digest).await?;
    let (mut out, mut sent) = pipe();
    let marking = tokio::task::spawn_blocking(move || {
        let mut reader = original.reader()?;
        // A package is written back and forth. It is about as large as the upload, which the template limits.
        let mut whole = io::Cursor::new(Vec::new());
        match mark_workbook(&mut reader, &problems, &mut whole) {
            Ok(()) => {
                let sent = out.write_all(whole.get_ref());
                out.end(sent);
            }
            Err(MarkError::Workbook(why)) => return Err(MarkingError::Unmarkable(why)),
            Err(cause @ (MarkError::Read(_) | MarkError::Write(_))) => out.end(Err(io::Error::other(cause))),
        }
        Ok(())
    });
    let mut writer = app.spool.begin();
    while let Some(chunk) = sent.recv().await {
        let failed = |cause| VaultError::Unavailable { attempt: "mark a workbook", cause };
        writer.write(&chunk.map_err(failed)?).await?;
    }
    marking.await.map_err(|_| MarkingError::Interrupted)??;
    Ok(writer.finish().await?)
}

async fn problems_of(app: &App, log: &SummaryLog) -> Result<Vec<Problem>, LedgerError> {
    let mut problems = Vec::new();
    let mut after = None;
    loop {
        let page =
            ProblemsPage { log: log.id.clone(), severity: None, code: None, sheet: None, after, limit: PAGE };
        let found = app.ledger.problems(&page).await?;
        let Some((number, last)) = found.last() else { return Ok(problems) };
        after = Some((last.severity, *number));
        problems.extend(found.into_iter().map(|(_, problem)| problem));
        if problems.len() >= MARKED_MAX {
            problems.truncate(MARKED_MAX);
            return Ok(problems);
        }
    }
}
