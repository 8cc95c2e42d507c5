//! Work on logs: begun at once, kept alive while it goes on, taken up by others when it stops.
//!
//! Guarantees: one run of a log counts at a time; work that failed is tried again after the lease, [`ATTEMPTS_MAX`] times; then it is given
//! up in the way its state allows. Does not do: decide. The ledger does, by the number of the run.

use std::sync::Arc;

use jiff::Timestamp;
use ledger::LedgerError;
use ledger::logs::{Run, SummaryLog, TakeUp};
use model::SummaryLogId;
use model::submissions::LogState;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{SubmissionError, applying, assessing};
use crate::app::App;
use crate::telemetry::report;
use crate::wanted::Waiting;

/// A worker says so often in the time of its lease that it is alive.
const HEARTBEATS: u32 = 3;
/// Looked so often in that time for work that nobody does.
const LOOKS: u32 = 2;
/// A fault of ours that stays that long is not going away by itself.
const ATTEMPTS_MAX: u32 = 5;
/// Taken up at once.
const OWED_MAX: u32 = 20;
/// Staged rows removed at once, and how often before owed logs are looked for again: those of a large log take a minute.
const CLEARED_MAX: u32 = 500;
const CLEARINGS_MAX: u32 = 4;

/// Until when a worker that begins now is left alone.
pub(super) fn lease_from(app: &App) -> Timestamp {
    let now = app.now();
    now.checked_add(app.config.submitting.lease).unwrap_or(now)
}

/// Begins the work a log needs, if it needs any, as soon as it can be begun.
pub(crate) fn work_soon(app: &Arc<App>, id: SummaryLogId) {
    let Some(waiting) = app.logs_wanted.ask(&id) else { return };
    let app = Arc::clone(app);
    tokio::spawn(async move { work_on(&app, &id, waiting).await });
}

/// Takes up logs that nobody works on, until told to stop.
pub async fn look_after(app: Arc<App>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match look(&app).await {
            Ok(Left::Some) => continue,
            Ok(Left::Nothing) => {}
            Err(cause) => tracing::warn!(error = %report(&cause), "owed submissions could not be looked for"),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(app.config.submitting.lease / LOOKS) => {}
        }
    }
}

/// Whether there is more to clear away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Some,
}

/// Takes up what is owed now, and clears away some of what nobody needs.
pub(super) async fn look(app: &Arc<App>) -> Result<Left, LedgerError> {
    if !app.guards.taking_up {
        return Ok(Left::Nothing);
    }
    for log in app.ledger.owed_logs(app.now(), OWED_MAX).await? {
        work_soon(app, log.id);
    }
    for _ in 0..CLEARINGS_MAX {
        if app.ledger.clear_staging(CLEARED_MAX).await? == 0 {
            return Ok(Left::Nothing);
        }
    }
    Ok(Left::Some)
}

async fn work_on(app: &Arc<App>, id: &SummaryLogId, waiting: Waiting<SummaryLogId>) {
    let Ok(_turn) = app.assessments.acquire().await else { return };
    // Before the ledger is asked how it stands: whatever it needs from now on is asked for again.
    drop(waiting);
    let log = match app.ledger.log_by_id(id).await {
        Ok(Some(log)) => log,
        Ok(None) => return,
        Err(cause) => return tell(id, &cause.into()),
    };
    let wish = TakeUp { log: id.clone(), state: log.state, at: app.now(), until: lease_from(app) };
    match app.ledger.take_up(&wish).await {
        Ok(Some(run)) => work(app, &log, &run).await,
        Ok(None) => {}
        Err(cause) => tell(id, &cause.into()),
    }
}

/// Does what a log needs, as the run that may.
pub(super) async fn work(app: &Arc<App>, log: &SummaryLog, run: &Run) {
    let heart = Heart::begin(app, run);
    let done = match log.state {
        LogState::Preprocessing | LogState::Validating => assessing::assess(app, log, run).await,
        LogState::Submitting => applying::apply(app, log, run).await,
        LogState::Validated => assessing::renew(app, log, run).await,
        LogState::Invalid | LogState::Submitted | LogState::Superseded | LogState::ValidationFailed => Ok(()),
    };
    drop(heart);
    if let Err(cause) = done {
        failed(app, (log, run), &cause).await;
    }
    app.logs_moved.notify_waiters();
    app.logs_settled.send_replace(());
}

async fn failed(app: &App, (log, run): (&SummaryLog, &Run), cause: &SubmissionError) {
    if matches!(cause, SubmissionError::Ledger(LedgerError::Overtaken { .. })) {
        tracing::debug!(log.id = %log.id, "somebody else works on the summary log");
        return;
    }
    tell(&log.id, cause);
    if log.attempts + 1 < ATTEMPTS_MAX {
        return;
    }
    let reason = "Something failed on our side, again and again; it was logged.";
    let given_up = match log.state {
        LogState::Submitting => app.ledger.return_to_validated(run, reason, app.now()).await,
        LogState::Validated => Ok(()),
        _ => app.ledger.fail_validation(run, reason, app.now()).await,
    };
    match given_up {
        Ok(()) => tracing::error!(log.id = %log.id, "work on the summary log was given up"),
        Err(cause) => tell(&log.id, &cause.into()),
    }
}

fn tell(id: &SummaryLogId, cause: &SubmissionError) {
    tracing::warn!(log.id = %id, error = %report(cause), "work on the summary log failed; it is tried again");
}

/// Says that a worker is alive, as long as it is.
struct Heart(JoinHandle<()>);

impl Heart {
    fn begin(app: &Arc<App>, run: &Run) -> Self {
        let (app, run) = (Arc::clone(app), run.clone());
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(app.config.submitting.lease / HEARTBEATS).await;
                // A beat that is missed is no reason to stop: the steps themselves tell if somebody else works.
                let _ = app.ledger.keep_working(&run, lease_from(&app)).await;
            }
        }))
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.0.abort();
    }
}
