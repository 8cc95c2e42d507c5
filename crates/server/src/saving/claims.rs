//! Whose work a callback is, when several instances share a ledger.
//!
//! Guarantees: a callback that another living instance works on is left to it, and whoever waits hears what it came to from
//! the ledger; what a dead one left is taken up by whoever asks next. Does not do: decide. Should two work on one callback
//! all the same, the commit of one of them finds the other's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::saves::{OpenSave, ReceiptStanding};
use ledger::turns::Turn;
use model::InboxNumber;
use model::callbacks::{Answer, Plan};

use super::accept::{Start, answer_of, orphans_lane, start, wait};
use crate::app::App;
use crate::patience::settled;
use crate::telemetry::report;

/// A callback that was written down so recently is about to be claimed by whoever wrote it down. Others leave it alone: they would fetch
/// the same file beside it.
pub(crate) const LEFT_ALONE: Duration = Duration::from_secs(2);

/// Whose work a callback is.
pub(crate) enum Claim {
    /// Ours, with the turn at it; without one if we are at it already, or nobody could say.
    Ours(Option<Turn>),
    /// Somebody else's, now.
    Elsewhere,
    /// Nobody's: it is finished, and this is what the server is told.
    Finished(Answer),
}

/// A callback that somebody wants to work on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claiming {
    pub(crate) number: InboxNumber,
    /// How it stood when it was looked at.
    pub(crate) standing: ReceiptStanding,
    /// Before that.
    pub(crate) began: Instant,
}

impl Claiming {
    /// A callback that was there before.
    pub(crate) fn unfinished(number: InboxNumber) -> Self {
        Self { number, standing: ReceiptStanding::Unfinished, began: Instant::now() }
    }

    /// Whether nobody else can have worked on it: others leave alone what has only just been written down.
    fn is_nobody_elses(&self) -> bool {
        self.standing == ReceiptStanding::New && self.began.elapsed() < LEFT_ALONE / 2
    }
}

/// Finds out whose work a callback is, and makes it ours if it is nobody's.
pub(crate) async fn claim(app: &App, claiming: &Claiming) -> Claim {
    let number = claiming.number;
    if app.jobs.is_running(number) {
        return Claim::Ours(None);
    }
    let taken = match app.turns.take(&format!("save {number}")).await {
        Ok(taken) => taken,
        Err(cause) => {
            tracing::debug!(inbox = number.0, error = %report(&cause), "it could not be asked whose turn a save is");
            return Claim::Ours(None);
        }
    };
    match taken {
        Some(turn) if claiming.is_nobody_elses() => Claim::Ours(Some(turn)),
        // It may have been finished between our look at the row and our turn.
        taken => match (recorded(app, number).await, taken) {
            (Some(answer), _) => Claim::Finished(answer),
            (None, Some(turn)) => Claim::Ours(Some(turn)),
            (None, None) => Claim::Elsewhere,
        },
    }
}

/// The answer the ledger has, if there is one by now.
pub(super) async fn recorded(app: &App, number: InboxNumber) -> Option<Answer> {
    app.ledger.save(number).await.ok().flatten()?.answer
}

/// Waits for what another instance makes of a callback, as long as the server can bear. Takes it up if that one is gone.
pub(super) async fn wait_elsewhere(
    app: &Arc<App>,
    (open, plan): (&OpenSave, Plan),
    received: Instant,
) -> Answer {
    let left = app.config.saving.answer_within.saturating_sub(received.elapsed());
    let deadline = tokio::time::Instant::now() + left;
    let document = open.document.clone().unwrap_or_else(orphans_lane);
    loop {
        // Before the question, so that what settles in between is heard.
        let mut listener = app.signals.listen();
        match claim(app, &Claiming::unfinished(open.number)).await {
            Claim::Finished(answer) => return answer,
            Claim::Ours(turn) => {
                let begun = start(app, Start { open: open.clone(), plan, turn }, Some(received));
                return match begun {
                    Ok((_, Some(waiter))) => answer_of(wait(app, waiter, received).await),
                    _ => Answer::TryAgain,
                };
            }
            Claim::Elsewhere => {}
        }
        if !settled(listener.as_mut(), &document, deadline).await {
            return Answer::TryAgain;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_long_to_write_down_or_to_claim_may_have_been_taken_up_by_others() {
        let number = InboxNumber(1);
        let new = Claiming { number, standing: ReceiptStanding::New, began: Instant::now() };

        assert!(new.is_nobody_elses());
        assert!(!Claiming { began: Instant::now() - LEFT_ALONE, ..new }.is_nobody_elses());
        assert!(!Claiming::unfinished(number).is_nobody_elses());
    }
}
