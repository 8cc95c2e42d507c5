//! A task's place in its key's line, from the moment it is let in until it is over.
//!
//! Guarantees that a place is always given up and the next in line is woken, whatever becomes of the task: done,
//! panicked, stopped, or dropped with its runtime.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::state::lane::Turn;
use crate::state::shard::{Entered, Shard, Spot};

/// Held by a task. Dropping it leaves the line.
#[derive(Debug)]
pub(crate) struct Place<K: Eq> {
    /// Its own shard and not the whole: a counter that every task of every key touches would be a busy spot.
    shard: Arc<Shard<K>>,
    spot: Spot,
    has_turn: bool,
    /// Whether the lane knows how to wake this task. A task has the same waker all its life.
    is_heard: bool,
    patience: Option<Pin<Box<Sleep>>>,
}

impl<K: Eq> Place<K> {
    pub(crate) fn new(shard: Arc<Shard<K>>, entered: Entered) -> Self {
        let Entered { spot, has_turn, .. } = entered;
        Self { shard, spot, has_turn, is_heard: false, patience: None }
    }

    /// The first part is done.
    pub(crate) fn become_ready(&self) {
        self.shard.become_ready(self.spot, Instant::now());
    }

    /// Waits for the turn; `None` means that the lanes were stopped.
    pub(crate) fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Option<()>> {
        while !self.has_turn {
            match self.shard.ask(self.spot, Instant::now(), context.waker()) {
                Turn::Yours => {
                    self.has_turn = true;
                    self.is_heard = false;
                }
                Turn::Later => return self.pending(),
                Turn::Patience { until } => {
                    let patience = self.patience.get_or_insert_with(|| Box::pin(sleep_until(until)));
                    if patience.as_mut().poll(context).is_pending() {
                        return self.pending();
                    }
                }
            }
        }
        Poll::Ready(Some(()))
    }

    /// Polls one of the task's parts; `None` means that the lanes were stopped.
    pub(crate) fn poll_part<F: Future>(
        &mut self,
        part: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<Option<F::Output>> {
        if self.shard.is_stopped() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(output) = part.poll(context) {
            return Poll::Ready(Some(output));
        }
        if !self.is_heard {
            self.shard.hear(self.spot, context.waker());
            self.is_heard = true;
        }
        self.pending()
    }

    /// To be returned after the waker was handed over: a stop in between would otherwise go unnoticed.
    fn pending<T>(&self) -> Poll<Option<T>> {
        if self.shard.is_stopped() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl<K: Eq> Drop for Place<K> {
    fn drop(&mut self) {
        let left = self.shard.leave(self.spot);
        if let Some(next) = left.next {
            next.wake();
        }
        left.watchers.into_iter().for_each(Waker::wake);
    }
}
