//! What is to be told, until Redis takes it.
//!
//! Guarantees: putting something in never waits; the length is bounded, and the oldest makes room; what made room is
//! not forgotten silently, the others are told that they missed something.
//! Does not do: keep anything across a restart.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use model::DocumentId;
use tokio::sync::Notify;

use super::wire::Message;

/// A few seconds of a busy instance.
const LENGTH_MAX: usize = 4096;

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// A message to all instances, with what is written beside it.
    Tell(Message),
    /// Who is in a document.
    Show {
        /// The document.
        document: DocumentId,
        /// Their ids.
        users: Vec<String>,
    },
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    orders: Mutex<VecDeque<Order>>,
    arrived: Notify,
}

impl Queue {
    /// Puts something in.
    pub(super) fn put(&self, order: Order) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push_back(order);
        shorten(&mut orders);
        drop(orders);
        self.arrived.notify_one();
    }

    /// Puts back what could not be told, before everything that came later.
    pub(super) fn put_back(&self, untold: Vec<Order>) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        for order in untold.into_iter().rev() {
            orders.push_front(order);
        }
        shorten(&mut orders);
        drop(orders);
        self.arrived.notify_one();
    }

    /// Waits until there is something, and takes up to this many.
    pub(super) async fn take(&self, length_max: usize) -> Vec<Order> {
        loop {
            let arrived = self.arrived.notified();
            let taken = self.take_now(length_max);
            if !taken.is_empty() {
                return taken;
            }
            arrived.await;
        }
    }

    fn take_now(&self, length_max: usize) -> Vec<Order> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let length = orders.len().min(length_max);
        orders.drain(..length).collect()
    }
}

/// The oldest make room, and one word takes their place.
fn shorten(orders: &mut VecDeque<Order>) {
    if orders.len() <= LENGTH_MAX {
        return;
    }
    while orders.len() >= LENGTH_MAX {
        orders.pop_front();
    }
    orders.push_front(Order::Tell(Message::Missed));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signal;

    fn order(number: usize) -> Order {
        Order::Tell(Message::Signal(Signal::Settled(DocumentId::parse(&number.to_string()).unwrap())))
    }

    #[tokio::test]
    async fn the_oldest_make_room_and_are_not_forgotten_silently() {
        let queue = Queue::default();
        for number in 0..LENGTH_MAX + 10 {
            queue.put(order(number));
        }

        let taken = queue.take(LENGTH_MAX * 2).await;

        assert_eq!(taken.len(), LENGTH_MAX);
        assert_eq!(taken.first(), Some(&Order::Tell(Message::Missed)));
        assert_eq!(taken.last(), Some(&order(LENGTH_MAX + 9)));
    }

    #[tokio::test]
    async fn what_could_not_be_told_is_told_first() {
        let queue = Queue::default();
        queue.put(order(1));
        queue.put(order(2));
        let untold = queue.take(2).await;
        queue.put(order(3));

        queue.put_back(untold);

        assert_eq!(queue.take(9).await, [order(1), order(2), order(3)]);
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let queue = std::sync::Arc::new(Queue::default());
        let taking = tokio::spawn({
            let queue = std::sync::Arc::clone(&queue);
            async move { queue.take(1).await }
        });
        tokio::task::yield_now().await;

        queue.put(order(1));

        assert_eq!(taking.await.unwrap(), [order(1)]);
    }
}
