//! A preview is confirmed, and its versions are appended and made visible.
//!
//! Guarantees: nothing is visible before the commit, everything after it; a repeat appends nothing twice and gives the same answer;
//! records that moved since the preview send the log back to `validated`, with a preview of what would happen now.

use std::sync::Arc;

use ledger::documents::Author;
use ledger::logs::{APPENDED_MAX, Run, Submission, SubmitWish, SummaryLog};
use ledger::records::{Commit, VersionAppends};
use model::submissions::{LogState, OnSubmit};
use model::{Scope, SummaryLogId};

use super::working::{lease_from, work};
use super::{SubmissionError, work_soon};
use crate::app::App;

/// Rounds of appending before we take it for a fault of ours.
const ROUNDS_MAX: u32 = 3;
/// The warning that asks whoever submits.
pub const ASKS: &str = sheets::code::ROWS_SEEM_SHIFTED;

/// Somebody confirms a preview.
#[derive(Debug, Clone)]
pub struct Confirmation {
    /// Who.
    pub who: Author,
    /// Warnings that ask something, and that are right as they are.
    pub despite: Vec<String>,
}

/// What became of a confirmation.
#[derive(Debug)]
pub enum Confirmed {
    /// The versions are being written.
    Running(Box<SummaryLog>),
    /// It is done, now or before.
    Done(Box<SummaryLog>),
}

/// Somebody confirms the preview of a log.
pub async fn confirm(
    app: &Arc<App>,
    scope: &Scope,
    id: &SummaryLogId,
    confirmation: &Confirmation,
) -> Result<Confirmed, SubmissionError> {
    answered(app, (scope, id), &confirmation.despite).await?;
    let wish = SubmitWish {
        scope: scope.clone(),
        log: id.clone(),
        who: confirmation.who.clone(),
        at: app.now(),
        until: lease_from(app),
    };
    let answer = app.ledger.begin_submission(&wish).await?;
    steps::reached("submission.begun");
    let log = Box::new(answer.log);
    app.logs_moved.notify_waiters();
    match answer.ruling {
        OnSubmit::Begin => {
            let run = answer.run.ok_or(SubmissionError::Interrupted)?;
            let (app, begun) = (Arc::clone(app), log.clone());
            tokio::spawn(async move { work(&app, &begun, &run).await });
            Ok(Confirmed::Running(log))
        }
        OnSubmit::Running => Ok(Confirmed::Running(log)),
        OnSubmit::Done => Ok(Confirmed::Done(log)),
        OnSubmit::RefuseSuperseded => Err(SubmissionError::Superseded),
        OnSubmit::RefuseBusy => Err(SubmissionError::InProgress),
        OnSubmit::RefuseStale => {
            work_soon(app, id.clone());
            Err(SubmissionError::Stale { by: newest_commit(app, scope).await? })
        }
        OnSubmit::RefuseNotValidated => Err(SubmissionError::NotValidated { state: log.state }),
    }
}

/// Whether every question of the preview is answered. Only a log with a preview asks.
async fn answered(
    app: &App,
    (scope, id): (&Scope, &SummaryLogId),
    despite: &[String],
) -> Result<(), SubmissionError> {
    let log = app.ledger.log(scope, id).await?.ok_or(SubmissionError::NotFound)?;
    if log.state != LogState::Validated {
        return Ok(());
    }
    let counts = app.ledger.problem_counts(id).await?;
    let asks = |code: &str| code == ASKS && !despite.iter().any(|answered| answered == code);
    match counts.iter().any(|count| asks(&count.code)) {
        true => Err(SubmissionError::Unanswered { warning: ASKS }),
        false => Ok(()),
    }
}

/// Appends the versions of a log and makes them visible.
pub(super) async fn apply(app: &Arc<App>, log: &SummaryLog, run: &Run) -> Result<(), SubmissionError> {
    for _ in 0..ROUNDS_MAX {
        append(app, log, run).await?;
        steps::reached("submission.appended");
        match app.ledger.commit_submission(run, app.now()).await? {
            Submission::Committed { sequence, .. } => {
                steps::reached("submission.committed");
                tracing::info!(log.id = %log.id, scope = %log.scope, sequence, "a summary log was submitted");
                return Ok(());
            }
            Submission::BasisMoved => return go_back(app, log, run).await,
            Submission::Incomplete { .. } => {}
        }
    }
    Err(SubmissionError::Interrupted)
}

/// While a page is written, the next one is looked up.
async fn append(app: &App, log: &SummaryLog, run: &Run) -> Result<(), SubmissionError> {
    let page = u32::try_from(APPENDED_MAX).unwrap_or(u32::MAX);
    let mut versions = app.ledger.versions_to_append(run, None, page).await?;
    while let Some((last, _)) = versions.last_key_value() {
        let after = last.clone();
        let appends = VersionAppends {
            organisation: log.scope.organisation.clone(),
            registration: log.scope.registration.clone(),
            accreditation: log.accreditation.clone(),
            run: run.clone(),
            versions,
        };
        let next = app.ledger.versions_to_append(run, Some(&after), page);
        let (appended, next) = tokio::join!(app.ledger.append_versions(&appends), next);
        appended?;
        steps::reached("submission.chunk");
        app.logs_moved.notify_waiters();
        if !app.guards.versions_before_head {
            return Ok(());
        }
        versions = next?;
    }
    Ok(())
}

/// Who submitted last, for those who come too late.
async fn newest_commit(app: &App, scope: &Scope) -> Result<Option<Box<Commit>>, SubmissionError> {
    Ok(app.ledger.commits(scope, None, 1).await?.pop().map(Box::new))
}

/// Whose submission made a preview out of date.
pub(crate) fn told_of(by: Option<&Commit>) -> String {
    by.map_or_else(
        || "The records changed since the preview.".to_owned(),
        |by| {
            let time = by.at.strftime("%Y-%m-%d %H:%M:%S UTC");
            format!(
                "The records changed since the preview: {} made submission {} at {time}.",
                by.by.name, by.sequence
            )
        },
    )
}

async fn go_back(app: &Arc<App>, log: &SummaryLog, run: &Run) -> Result<(), SubmissionError> {
    let told = told_of(newest_commit(app, &log.scope).await?.as_deref());
    let reason = format!("{told} Look at the new preview and confirm it again.");
    app.ledger.return_to_validated(run, &reason, app.now()).await?;
    work_soon(app, log.id.clone());
    Ok(())
}
