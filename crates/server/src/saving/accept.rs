//! Takes a callback: writes it down in order of arrival, joins or starts the work, waits for the answer.
//!
//! Guarantees: the wait is bounded; a caller who hangs up changes nothing; no final answer leaves later than the server can
//! bear.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use ledger::LedgerError;
use ledger::saves::{Arrival, OpenSave, Receipt, ReceiptStanding};
use ledger::turns::Turn;
use model::callbacks::{Answer, Callback, HasUrl, Plan, ends_session, plan_for};
use model::keys::KeyParts;
use model::saves::SaveKind;
use model::{DocumentId, EditorKey, InboxNumber};

use super::claims::{Claim, Claiming, claim, wait_elsewhere};
use super::entries::{Inside, inside};
use super::jobs::{Job, JobOutcome, Joined, Outcome, Waiter};
use super::letting_go::{Leaving, LettingGo, may_let_go};
use super::{SaveError, presence, save};
use crate::app::App;
use crate::awake::STOPPED;
use crate::telemetry::report;
use crate::transitions::Transition;

/// What the Document Server is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// An answer.
    Answer(Answer),
    /// Nothing: the connection is closed, because a 0 would come too late, or to somebody's harm, and anything else would be
    /// wrong.
    Close,
}

/// Does what a verified callback asks for.
pub async fn accept(app: &Arc<App>, callback: Callback, received: Instant) -> Reply {
    let has_url = if callback.url.is_some() { HasUrl::Yes } else { HasUrl::No };
    let status = callback.status;
    let key = callback.key.clone();
    let has_history = callback.session_start.is_some();
    let before = if ends_session(status) { inside(app, &key).await } else { Ok(Inside::default()) };
    let came_in_unread =
        before.as_ref().is_ok_and(|before| came_in_while_it_lay_unread(app, before, received));
    if came_in_unread {
        // Whoever commits must not count on this answer, so that the key stays what it is.
        app.entries.note(&key);
    }
    let answer = match plan_for(callback.status, has_url) {
        Plan::NotePresence | Plan::NoteIdle => presence::note(app, &callback).await,
        Plan::Ignore => Answer::Saved,
        plan @ (Plan::Store(_) | Plan::KeepAside(_) | Plan::Alert(_)) => {
            match take_in(app, callback, plan, received).await {
                (answer @ (Answer::Saved | Answer::NotSaved), Some(waited))
                    if ends_session(status) && !came_in_unread && !is_late(app, received) =>
                {
                    let leaving = Leaving { key: &key, number: waited.number, has_history };
                    let_go(app, &leaving, &waited, (answer, received)).await
                }
                (answer, _) => answer,
            }
        }
    };
    if answer == Answer::TryAgain || !app.guards.late_answer_closes {
        return Reply::Answer(answer);
    }
    let came_in =
        came_in_unread || (ends_session(status) && may_have_come_in(app, (&key, received), before).await);
    if came_in || is_late(app, received) { Reply::Close } else { Reply::Answer(answer) }
}

/// Whether somebody came in since the callback was received, here or elsewhere. Where that cannot be told, somebody may have.
async fn may_have_come_in(
    app: &App,
    (key, received): (&EditorKey, Instant),
    before: Result<Inside, LedgerError>,
) -> bool {
    if app.entries.since(key, received) {
        return true;
    }
    match (before, inside(app, key).await) {
        (Ok(before), Ok(now)) => {
            now.has_more_than(&before) || came_in_while_it_lay_unread(app, &now, received)
        }
        (Err(cause), _) | (_, Err(cause)) => {
            tracing::warn!(error = %report(&cause), "it cannot be told whether somebody came in meanwhile: a final save is not answered");
            true
        }
    }
}

/// Whether somebody was named at another instance while this one did not run, and the callback may have lain here already. Named in what is
/// the future here: this machine was paused, and its clocks did not count it.
fn came_in_while_it_lay_unread(app: &App, inside: &Inside, received: Instant) -> bool {
    let (now, unread_for) = (app.now(), received.elapsed());
    let received_at = now.checked_sub(unread_for).unwrap_or(Timestamp::MIN);
    let ahead = now.checked_add(STOPPED).unwrap_or(Timestamp::MAX);
    (unread_for >= STOPPED && inside.has_anyone_since(received_at)) || inside.has_anyone_since(ahead)
}

/// By the time the limit has passed the server may have revived the key: a 0 would delete the new session's changes, and
/// a refusal would put a forgotten file beside them, so that the next opening counts them twice. The same holds at once
/// when somebody is known to have come in.
fn is_late(app: &App, received: Instant) -> bool {
    received.elapsed() > app.config.saving.answer_zero_within
}

/// The last look before a final save is answered. If it is 0, the server is about to forget the session: the key retires
/// before it hears. With a refusal, too, the server deletes all changes, and keeps only the file of this very save.
async fn let_go(
    app: &App,
    leaving: &Leaving<'_>,
    waited: &Waited,
    (answer, received): (Answer, Instant),
) -> Answer {
    match may_let_go(app, leaving, (answer, received)).await {
        LettingGo::NotNow => return Answer::TryAgain,
        _ if answer != Answer::Saved => return answer,
        LettingGo::AtOnce if waited.is_acknowledged => return Answer::Saved,
        LettingGo::AtOnce | LettingGo::AfterWaiting => {}
    }
    match app.ledger.acknowledge(waited.number, app.now()).await {
        Ok(()) => {
            steps::reached("save.acknowledged");
            Answer::Saved
        }
        Err(cause) => {
            tracing::warn!(inbox = waited.number.0, error = %report(&cause), "a key could not be retired");
            Answer::TryAgain
        }
    }
}

async fn take_in(
    app: &Arc<App>,
    callback: Callback,
    plan: Plan,
    received: Instant,
) -> (Answer, Option<Waited>) {
    let lane = lane_of(app, &callback);
    let task = write_down(Arc::clone(app), callback, plan, received);
    // Its own future: dropped with the caller, it would leave the work half done.
    let taken = match app.arrivals.run(lane, task).await {
        Ok(Ok(taken)) => taken,
        Ok(Err(cause)) => {
            tracing::warn!(error = %report(&cause), "a callback could not be written down");
            return (Answer::TryAgain, None);
        }
        Err(cause) => {
            tracing::warn!(error = %cause, "a callback could not be taken");
            return (Answer::TryAgain, None);
        }
    };
    let number = taken.number;
    let (answer, is_acknowledged) = match taken.how {
        How::Answered(answer) => (answer, false),
        How::Working(waiter) => {
            let outcome = wait(app, waiter, received).await;
            (answer_of(outcome), matches!(outcome, Some(Outcome::Committed(_))))
        }
        How::Joined(waiter) => (answer_of(wait(app, waiter, received).await), false),
        How::Elsewhere(open) => (wait_elsewhere(app, (&open, plan), received).await, false),
    };
    (answer, Some(Waited { number, is_acknowledged }))
}

pub(super) async fn wait(app: &App, mut waiter: Waiter, received: Instant) -> JobOutcome {
    let left = app.config.saving.answer_within.saturating_sub(received.elapsed());
    waiter.wait(left).await.flatten()
}

pub(super) fn answer_of(outcome: JobOutcome) -> Answer {
    outcome.map_or(Answer::TryAgain, Outcome::answer)
}

/// The document a key of ours names.
fn document_of(app: &App, key: &EditorKey) -> Option<DocumentId> {
    let ours = |parts: &KeyParts| parts.environment == app.config.server.environment;
    key.parts().filter(ours).map(|parts| parts.document)
}

/// Whether a key names a document that we have. When nobody can say, it does.
pub async fn names_a_document(app: &App, key: &EditorKey) -> bool {
    let Some(document) = document_of(app, key) else { return false };
    !matches!(app.ledger.document(&document).await, Ok(None))
}

/// Callbacks whose key says nothing share a lane: they are few and touch nothing.
fn lane_of(app: &App, callback: &Callback) -> DocumentId {
    document_of(app, &callback.key).unwrap_or_else(orphans_lane)
}

pub(super) fn orphans_lane() -> DocumentId {
    DocumentId::parse("orphans").expect("a plain word is an id")
}

/// A callback that is written down.
struct Taken {
    number: InboxNumber,
    how: How,
}

enum How {
    /// The answer is on record, or nobody can tell yet.
    Answered(Answer),
    /// The work begins with this caller.
    Working(Waiter),
    /// It was under way already: the commit may have been on its way before this caller was there to be counted.
    Joined(Waiter),
    /// Another instance is at it.
    Elsewhere(Box<OpenSave>),
}

/// A callback whose work was waited for.
struct Waited {
    number: InboxNumber,
    /// Whether the commit itself knew that this caller would hear 0.
    is_acknowledged: bool,
}

/// Runs alone for its document, so that the order of the inbox is the order of the lane.
async fn write_down(
    app: Arc<App>,
    callback: Callback,
    plan: Plan,
    received: Instant,
) -> Result<Taken, SaveError> {
    let arrival = Arrival {
        document: document_of(&app, &callback.key),
        callback,
        at: app.now(),
        identity_window: app.config.saving.identity_window,
    };
    let began = Instant::now();
    let receipt = app.ledger.receive(&arrival).await?;
    steps::reached("save.received");
    let (number, standing) = (receipt.number, receipt.standing);
    let how = match standing {
        _ if !app.guards.answer_after_commit => {
            start(&app, Start { open: open_save(arrival, receipt), plan, turn: None }, None)?;
            How::Answered(Answer::Saved)
        }
        ReceiptStanding::Finished(answer) => How::Answered(answer),
        ReceiptStanding::Unfinished if !app.guards.busy_is_not_done => How::Answered(Answer::Saved),
        ReceiptStanding::New | ReceiptStanding::Unfinished => {
            let open = open_save(arrival, receipt);
            match claim(&app, &Claiming { number, standing, began }).await {
                Claim::Finished(answer) => How::Answered(answer),
                Claim::Elsewhere => How::Elsewhere(Box::new(open)),
                Claim::Ours(turn) => match start(&app, Start { open, plan, turn }, Some(received))? {
                    (_, None) => How::Answered(Answer::TryAgain),
                    (Joined::New, Some(waiter)) => How::Working(waiter),
                    (Joined::Running, Some(waiter)) => How::Joined(waiter),
                },
            }
        }
    };
    Ok(Taken { number, how })
}

fn open_save(arrival: Arrival, receipt: Receipt) -> OpenSave {
    OpenSave {
        number: receipt.number,
        document: receipt.document,
        callback: arrival.callback,
        link_received_at: arrival.at,
    }
}

/// Work to begin, and the turn at it.
pub(crate) struct Start {
    pub(crate) open: OpenSave,
    pub(crate) plan: Plan,
    pub(crate) turn: Option<Turn>,
}

/// Joins the work on a callback or starts it, and says which.
pub(crate) fn start(
    app: &Arc<App>,
    Start { open, plan, turn }: Start,
    received: Option<Instant>,
) -> Result<(Joined, Option<Waiter>), SaveError> {
    let number = open.number;
    let (joined, job, waiter) = app.jobs.join(number, received);
    if joined == Joined::New {
        let lane = open.document.clone().unwrap_or_else(orphans_lane);
        let ends_session = plan == Plan::Store(SaveKind::Final);
        let transition = ends_session.then(|| Transition::begin(app, &lane));
        let work =
            Arc::new(Work { app: Arc::clone(app), open, plan, job, _turn: turn, _transition: transition });
        let prepare = save::prepare(Arc::clone(&work));
        let commit = move |prepared| save::commit(work, prepared);
        // Whoever waits hears through the job; the ticket would only tell once more.
        drop(app.saves.submit_pipelined(lane, prepare, commit)?);
    }
    Ok((joined, waiter))
}

/// A save that is being worked on. When the last part of the work is gone, however it ended, so is the job.
pub(super) struct Work {
    pub(super) app: Arc<App>,
    pub(super) open: OpenSave,
    pub(super) plan: Plan,
    pub(super) job: Arc<Job>,
    /// Ours for as long as the work lasts.
    _turn: Option<Turn>,
    /// Said to others meanwhile, of a final save.
    _transition: Option<Transition>,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.app.jobs.end(self.open.number, &self.job, None);
    }
}
