//! A task as the runtime sees it: its place in line, and what to do when the turn has come.
//!
//! Guarantees that what the user handed in is dropped before the place is given up, so the next task of the key
//! never meets anything the last one still held. Panics are left to the runtime, which keeps them for the ticket.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tracing::Span;

use crate::place::Place;

pin_project! {
    /// Waits for its turn, then runs its future. `None` means that it was stopped.
    ///
    /// Written out rather than as an `async` block, which would hold the future twice.
    pub(crate) struct Task<K: Eq, F> {
        // Dropped in this order.
        #[pin]
        future: Option<F>,
        place: Option<Place<K>>,
        span: Span,
    }
}

impl<K: Eq, F> Task<K, F> {
    pub(crate) fn new(place: Place<K>, span: Span, future: F) -> Self {
        Self { future: Some(future), place: Some(place), span }
    }
}

impl<K: Eq, F: Future> Future for Task<K, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (Some(place), Some(future)) = (this.place.as_mut(), this.future.as_mut().as_pin_mut()) else {
            return Poll::Ready(None);
        };
        let mut output = None;
        if ready!(place.poll_turn(context)).is_some() {
            let _entered = this.span.enter();
            output = ready!(place.poll_part(future, context));
        }

        this.future.set(None);
        *this.place = None;
        if output.is_some() {
            this.span.in_scope(|| tracing::debug!("task done"));
        }
        Poll::Ready(output)
    }
}

/// Runs the first part at once, then waits for the turn and runs the second. `None` means that it was stopped.
pub(crate) async fn pipelined<K, P, N, F>(
    mut place: Place<K>,
    span: Span,
    mut prepare: Pin<Box<P>>,
    finish: N,
) -> Option<F::Output>
where
    K: Eq,
    P: Future,
    N: FnOnce(P::Output) -> F,
    F: Future,
{
    let prepared = poll_fn(|context| {
        let _entered = span.enter();
        place.poll_part(prepare.as_mut(), context)
    });
    let prepared = prepared.await?;
    drop(prepare);
    place.become_ready();
    Task::new(place, span, async move { finish(prepared).await }).await
}
