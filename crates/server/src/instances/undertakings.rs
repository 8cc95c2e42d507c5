//! Undertakings: what one instance does for all and people wait for, such as a drain. Any instance says how far it is.
//!
//! Guarantees: one of a kind at a time among all instances; whoever asks for it again, anywhere, joins it; it goes on although whoever asked
//! hangs up, and comes to an end whatever happens to its work. Of those that ended the last one is shown, by the ledger's
//! clock. One whose instance fell silent is shown as over. Does not do: the work itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ledger::LedgerError;
use ledger::turns::Turn;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{Heard, Subject, heard, tell};
use crate::app::App;

/// How often and after what pause a place is asked for that somebody has and does not speak of.
const PLACE_ATTEMPTS: u32 = 20;
const PLACE_PAUSE: Duration = Duration::from_millis(100);
/// Between two steps that are told.
const TELLING_PAUSE: Duration = Duration::from_millis(200);

/// How far a piece of work is that one instance does for all.
pub(crate) trait Undertaking:
    Serialize + DeserializeOwned + Clone + Default + Send + Sync + 'static
{
    /// What it is.
    const SUBJECT: Subject;
    /// Where this process keeps it.
    fn own(app: &App) -> &Own<Self>;
    /// Whether it is under way.
    fn is_running(&self) -> bool;
    /// When it began, if any ever did.
    fn begun_at(&self) -> Option<Timestamp>;
    /// It is not under way any more, however it ended.
    fn stop(&mut self);
    /// The instance that was at it is gone: it is over, and nobody knows what became of it.
    fn break_off(&mut self);
}

/// The undertaking of this process: the one under way, or the last one.
#[derive(Debug, Default)]
pub(crate) struct Own<U> {
    state: Mutex<Dated<U>>,
    moved: Notify,
    /// One is told after the other, so that the last word is the last.
    telling: tokio::sync::Mutex<()>,
}

/// With the time it began by the ledger's clock, which is the same for all instances.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Dated<U> {
    begun_ms: i64,
    view: U,
}

impl<U: Undertaking> Own<U> {
    pub(crate) fn view(&self) -> U {
        self.dated().view
    }

    fn dated(&self) -> Dated<U> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It moved on.
    pub(crate) fn change(&self, change: impl FnOnce(&mut U)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).view);
        self.moved.notify_one();
    }

    /// Tells the others how far it is, in this very moment.
    pub(super) async fn tell(&self, app: &App) -> Option<Timestamp> {
        let _last = self.telling.lock().await;
        tell(app, U::SUBJECT, &self.dated()).await
    }

    async fn begin(&self, app: &App, begun: &U) {
        self.change(|view| view.clone_from(begun));
        // Before anybody is told that it began: the next one to ask may ask another instance.
        if let Some(at) = self.tell(app).await {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).begun_ms = at.as_millisecond();
            self.tell(app).await;
        }
    }
}

/// How far it is, on whichever instance: the one under way, or the last one.
pub(crate) async fn newest<U: Undertaking>(app: &App) -> U {
    let others = heard(app, U::SUBJECT).await.into_iter().map(unless_silent);
    let all = others.chain([U::own(app).dated()]);
    all.max_by_key(|each| (each.view.is_running(), each.begun_ms)).unwrap_or_default().view
}

fn unless_silent<U: Undertaking>(heard: Heard<Dated<U>>) -> Dated<U> {
    let is_silent = heard.is_silent();
    let mut told = heard.what;
    if is_silent && told.view.is_running() {
        told.view.break_off();
    }
    told
}

/// Begins it, unless it is under way somewhere: then says how far that is.
pub(crate) async fn begin_or_join<U: Undertaking>(
    app: &Arc<App>,
    begun: U,
    work: impl Future<Output = ()> + Send + 'static,
) -> Result<U, LedgerError> {
    let app = Arc::clone(app);
    // A task of its own: whoever asked may hang up, and half a beginning would look like one that never ends.
    let beginning = tokio::spawn(async move {
        let turn = match place_or_view::<U>(&app).await? {
            Ok(turn) => turn,
            Err(under_way) => return Ok(under_way),
        };
        let under_way = UnderWay::<U>(Arc::clone(&app), std::marker::PhantomData);
        U::own(&app).begin(&app, &begun).await;
        tokio::spawn(run(app, (under_way, turn), work));
        Ok(begun)
    });
    beginning.await.unwrap_or(Err(LedgerError::Busy))
}

/// The one place there is for it among all instances, or how far whoever has it is.
async fn place_or_view<U: Undertaking>(app: &App) -> Result<Result<Turn, U>, LedgerError> {
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

/// However the work ends, the next one can begin.
struct UnderWay<U: Undertaking>(Arc<App>, std::marker::PhantomData<fn() -> U>);

impl<U: Undertaking> Drop for UnderWay<U> {
    fn drop(&mut self) {
        U::own(&self.0).change(U::stop);
    }
}

/// Does the work, and tells the others how far it is whenever it has moved, a few times a second, and at its end. Then gives the
/// place back.
async fn run<U: Undertaking>(
    app: Arc<App>,
    (under_way, turn): (UnderWay<U>, Turn),
    work: impl Future<Output = ()> + Send,
) {
    let own = U::own(&app);
    let telling = async {
        loop {
            own.moved.notified().await;
            own.tell(&app).await;
            tokio::time::sleep(TELLING_PAUSE).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = telling => {}
    }
    drop(under_way);
    own.tell(&app).await;
    drop(turn);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draining::DrainView;
    use crate::testing::Workbench;

    #[test]
    fn what_was_under_way_on_an_instance_that_fell_silent_is_over_and_says_so() {
        let heard = |age_s, is_running| Heard {
            age: Duration::from_secs(age_s),
            what: Dated { begun_ms: 7, view: DrainView { is_running, ..DrainView::default() } },
        };

        assert!(unless_silent(heard(9, true)).view.is_running);
        let over = unless_silent(heard(11, true)).view;
        assert!(!over.is_running && !over.is_safe && over.trouble.is_some());
        assert!(unless_silent(heard(3600, false)).view.trouble.is_none(), "it had ended by itself");
    }

    #[tokio::test]
    async fn work_that_panics_or_whose_asker_hangs_up_leaves_the_place_free() {
        let app = Workbench::new().await.process();
        let begun = || DrainView { is_running: true, ..DrainView::default() };
        let (begins, began) = tokio::sync::oneshot::channel();
        let work = async move {
            let _ = begins.send(());
            panic!("on purpose");
        };

        let asking = begin_or_join(&app, begun(), work);
        drop(tokio::time::timeout(Duration::ZERO, asking).await);
        began.await.unwrap();
        while app.drains.view().is_running {
            tokio::task::yield_now().await;
        }

        let (ends, ended) = tokio::sync::oneshot::channel::<()>();
        let again = begin_or_join(&app, begun(), async move { drop(ended.await) }).await.unwrap();
        assert!(again.is_running && app.drains.view().is_running);
        assert!(begin_or_join(&app, begun(), async {}).await.unwrap().is_running, "joined");
        drop(ends);
    }
}
