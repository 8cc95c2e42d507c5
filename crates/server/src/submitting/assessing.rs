//! A workbook is read by its template and compared with the records: the preview.
//!
//! Guarantees: rows and problems of an earlier try are gone before the first of this one is staged; the preview and the basis it holds
//! for are written together; what is wrong with the workbook is told whole, with exact counts. Does not do: change a record.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::logs::{Finished, FinishedValidation, LogSource, LogVerdict, Run, SummaryLog};
use ledger::staging::{Comparison, MissingRow, ProblemChunk, ProblemCount};
use model::records::RemovedRows;
use model::submissions::{LogState, Problem, Severity};
use sheets::{Place, Removed, Template, code};

use super::staging::{Read, read};
use super::{Grounds, SubmissionError, grounds, scanning, shifting};
use crate::app::App;

/// Assessments before we take it for a fault of ours: each time somebody else submitted meanwhile.
const ASSESSMENTS_MAX: u32 = 10;

/// Reads a log and computes its preview.
pub(super) async fn assess(app: &Arc<App>, log: &SummaryLog, run: &Run) -> Result<(), SubmissionError> {
    let grounds = grounds::of_log(app, log).await?;
    if log.state == LogState::Preprocessing
        && let Some(found) = scanning::scan(app, log).await?
    {
        return refuse(app, run, found).await;
    }
    for _ in 0..ASSESSMENTS_MAX {
        if assess_once(app, (log, run), &grounds).await? == Finished::Yes {
            return Ok(());
        }
    }
    Err(SubmissionError::Interrupted)
}

async fn assess_once(
    app: &Arc<App>,
    (log, run): (&SummaryLog, &Run),
    grounds: &Grounds,
) -> Result<Finished, SubmissionError> {
    app.ledger.begin_validation(run, app.now()).await?;
    steps::reached("log.validating");
    let (read, staged_on) = match &log.source {
        LogSource::Workbook { blob, .. } => (read(app, run, grounds, blob).await?, None),
        LogSource::Undo(sequence) => {
            let head = app.ledger.log_by_id(&log.id).await?.map(|log| log.head);
            let undone = app.ledger.stage_undo(run, *sequence).await?;
            (Read::undoing(*sequence, &undone), head)
        }
    };
    steps::reached("log.staged");
    app.ledger.stage_problems(run, &read.problems).await?;
    if read.is_fatal {
        app.ledger.count_problems(run, &read.beyond).await?;
        return finish(app, run, (LogVerdict::Invalid { reason: None }, read.facts)).await;
    }
    let comparison = app.ledger.compare(run, &removals_of(&log.source, grounds)).await?;
    steps::reached("log.compared");
    if staged_on.is_some_and(|head| head != comparison.basis) {
        // What an undoing may touch was decided by records that are not the current ones any more.
        return Ok(Finished::BasisMoved);
    }
    let verdict = verdict(app, run, (&comparison, &read, &grounds.template)).await?;
    let finished = finish(app, run, (verdict, read.facts)).await?;
    steps::reached("log.validated");
    Ok(finished)
}

/// Computes a preview again that the records have left behind. Comparing is enough, unless there is more to say than numbers, or
/// records moved that an undoing is about: then it is assessed as if it were new. Whether they moved is seen when they are compared:
/// the log was read before.
pub(super) async fn renew(app: &Arc<App>, log: &SummaryLog, run: &Run) -> Result<(), SubmissionError> {
    let grounds = grounds::of_log(app, log).await?;
    let removals = removals_of(&log.source, &grounds);
    for _ in 0..ASSESSMENTS_MAX {
        let comparison = app.ledger.compare(run, &removals).await?;
        let has_moved = log.basis != Some(comparison.basis);
        if has_moved && has_more_to_say(app, (log, run), (&comparison, &grounds)).await? {
            return assess(app, log, run).await;
        }
        if app.ledger.renew_preview(run, comparison.basis, app.now()).await? == Finished::Yes {
            return Ok(());
        }
    }
    Err(SubmissionError::Interrupted)
}

async fn has_more_to_say(
    app: &Arc<App>,
    (log, run): (&SummaryLog, &Run),
    (comparison, grounds): (&Comparison, &Grounds),
) -> Result<bool, SubmissionError> {
    let is_undoing = matches!(log.source, LogSource::Undo(_));
    Ok(is_undoing
        || comparison.missing > 0
        || !shifting::shifted(app, run, (comparison, &grounds.template)).await?.is_empty())
}

/// The scanner found something: nobody reads the workbook.
async fn refuse(app: &App, run: &Run, found: Problem) -> Result<(), SubmissionError> {
    app.ledger.begin_validation(run, app.now()).await?;
    let chunk = ProblemChunk { found_before: 0, problems: vec![found], keep_max: 1 };
    app.ledger.stage_problems(run, &chunk).await?;
    finish(app, run, (LogVerdict::Invalid { reason: None }, None)).await.map(drop)
}

async fn finish(
    app: &App,
    run: &Run,
    (verdict, facts): (LogVerdict, Option<String>),
) -> Result<Finished, SubmissionError> {
    let finish = FinishedValidation { run: run.clone(), verdict, facts, at: app.now() };
    Ok(app.ledger.finish_validation(&finish).await?)
}

/// An undoing names all it does; a workbook that lacks rows ends or misses records, as its template says.
fn removals_of(source: &LogSource, grounds: &Grounds) -> BTreeMap<String, RemovedRows> {
    match source {
        LogSource::Undo(_) => BTreeMap::new(),
        LogSource::Workbook { .. } => removals(&grounds.template),
    }
}

fn removals(template: &Template) -> BTreeMap<String, RemovedRows> {
    let removed = |removed| match removed {
        Removed::Fatal => RemovedRows::Fatal,
        Removed::Tombstone => RemovedRows::Tombstone,
        Removed::Ignore => RemovedRows::Ignore,
    };
    template.tables.iter().map(|table| (table.kind.clone(), removed(table.removed))).collect()
}

async fn verdict(
    app: &Arc<App>,
    run: &Run,
    (comparison, read, template): (&Comparison, &Read, &Template),
) -> Result<LogVerdict, SubmissionError> {
    let found_before = read.problems.problems.len() as u64;
    let keep_max = read.problems.keep_max;
    if comparison.missing == 0 {
        let problems = shifting::shifted(app, run, (comparison, template)).await?;
        let is_fatal = problems.iter().any(|problem| problem.severity == Severity::Fatal);
        app.ledger.stage_problems(run, &ProblemChunk { found_before, problems, keep_max }).await?;
        app.ledger.count_problems(run, &read.beyond).await?;
        return Ok(match is_fatal {
            true => LogVerdict::Invalid { reason: None },
            false => LogVerdict::Validated { basis: comparison.basis },
        });
    }
    let problems: Vec<_> = comparison.missing_keys.iter().map(|row| missing(template, row)).collect();
    let count = comparison.missing.saturating_sub(problems.len() as u64);
    let chunk = ProblemChunk { found_before, problems, keep_max };
    app.ledger.stage_problems(run, &chunk).await?;
    let beyond = ProblemCount { code: code::ROW_REMOVED.to_owned(), severity: Severity::Fatal, count };
    app.ledger.count_problems(run, &[beyond]).await?;
    Ok(LogVerdict::Invalid { reason: None })
}

/// A record that has no row, although it must.
fn missing(template: &Template, row: &MissingRow) -> Problem {
    let day = row.committed_at.to_zoned(jiff::tz::TimeZone::UTC).date();
    let place =
        Place { sheet: Some(row.place.0.clone()), row_id: Some(row.key.key.clone()), ..Place::default() };
    template.problem((code::ROW_REMOVED, 4), place, &format!("{day}, row {}", row.place.1))
}
