//! Undertakings: what one instance does for all and people wait for, such as a drain. Any instance says how far it is.
//!
//! Guarantees: one of a kind at a time among all instances; whoever asks for it again, anywhere, joins it. One whose instance fell
//! silent is shown as over. Does not do: the work itself.

use std::time::Duration;

use jiff::Timestamp;
use ledger::LedgerError;
use ledger::turns::Turn;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::{Heard, Subject, heard, tell};
use crate::app::App;

/// How often and after what pause a place is asked for that somebody has and does not speak of.
const PLACE_ATTEMPTS: u32 = 20;
const PLACE_PAUSE: Duration = Duration::from_millis(100);
/// Between two steps that are told.
const TELLING_PAUSE: Duration = Duration::from_millis(200);

/// How far a piece of work is that one instance does for all.
pub(crate) trait Undertaking: Serialize + DeserializeOwned + Default + Send {
    /// What it is.
    const SUBJECT: Subject;
    /// The one of this process: under way, or the last one.
    fn own(app: &App) -> Self;
    /// Whether it is under way.
    fn is_running(&self) -> bool;
    /// When it began, if any ever did.
    fn begun_at(&self) -> Option<Timestamp>;
    /// The instance that was at it is gone: it is over, and nobody knows what became of it.
    fn break_off(&mut self);
}

/// How far it is, on whichever instance: the one under way, or the last one.
pub(crate) async fn newest<U: Undertaking>(app: &App) -> U {
    let others = heard(app, U::SUBJECT).await.into_iter().map(unless_silent);
    others.chain([U::own(app)]).max_by_key(|each| (each.is_running(), each.begun_at())).unwrap_or_default()
}

fn unless_silent<U: Undertaking>(heard: Heard<U>) -> U {
    let is_silent = heard.is_silent();
    let mut told = heard.what;
    if is_silent && told.is_running() {
        told.break_off();
    }
    told
}

/// Takes the one place there is for it among all instances, or says how far whoever has it is.
pub(crate) async fn begin_or_join<U: Undertaking>(app: &App) -> Result<Result<Turn, U>, LedgerError> {
    for _ in 0..PLACE_ATTEMPTS {
        if let Some(turn) = app.turns.take(U::SUBJECT.as_str()).await? {
            return Ok(Ok(turn));
        }
        let under_way = newest::<U>(app).await;
        if under_way.is_running() {
            return Ok(Err(under_way));
        }
        // waits on purpose: whoever has the place is about to say so, or to give it back
        tokio::time::sleep(PLACE_PAUSE).await;
    }
    Err(LedgerError::Busy)
}

/// Does the work, and tells the others how far it is whenever it has moved, a few times a second, and at its end.
pub(crate) async fn telling<U: Undertaking>(app: &App, moved: &Notify, work: impl Future<Output = ()>) {
    let telling = async {
        loop {
            moved.notified().await;
            tell(app, U::SUBJECT, &U::own(app)).await;
            tokio::time::sleep(TELLING_PAUSE).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = telling => {}
    }
    tell(app, U::SUBJECT, &U::own(app)).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draining::DrainView;

    #[test]
    fn what_was_under_way_on_an_instance_that_fell_silent_is_over_and_says_so() {
        let heard = |age_s, is_running| Heard {
            age: Duration::from_secs(age_s),
            what: DrainView { is_running, ..DrainView::default() },
        };

        assert!(unless_silent(heard(9, true)).is_running);
        let over = unless_silent(heard(11, true));
        assert!(!over.is_running && !over.is_safe && over.trouble.is_some());
        assert!(unless_silent(heard(3600, false)).trouble.is_none(), "it had ended by itself");
    }
}
