//! Tells the other instances what waits in the queue, for as long as the service runs.
//!
//! Guarantees: what a connection did not take is told again through the next one, in order; several at once, so that a
//! busy instance is not held up by the way to Redis and back.
//! Does not do: wait for anybody to hear it.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisResult;
use tokio::time::{Instant, timeout_at};

use super::place::Commands;
use super::queue::Order;
use super::wire::Message;
use super::{Pause, Shared};

/// How often an instance says that its way is open. An idle connection that died is noticed by it.
const BEAT: Duration = Duration::from_secs(1);
/// Told at once.
const BATCH_MAX: usize = 64;

pub(super) async fn tell(shared: Arc<Shared>) {
    let mut pause = Pause::new();
    loop {
        if let Ok(commands) = shared.place.commands().await {
            shared.set_commands(Some(commands.clone()));
            // Why it ended does not matter here: hearing says so, and we try again.
            let _ = deliver(&shared, commands, &mut pause).await;
            shared.set_commands(None);
        }
        pause.wait().await;
    }
}

/// Until the connection takes no more.
async fn deliver(shared: &Shared, mut commands: Commands, pause: &mut Pause) -> RedisResult<()> {
    let mut beat_at = Instant::now();
    loop {
        let orders = timeout_at(beat_at, shared.queue.take(BATCH_MAX)).await.unwrap_or_default();
        let mut batch: Vec<_> =
            orders.iter().flat_map(|order| shared.keys.commands(&shared.instance, order)).collect();
        if Instant::now() >= beat_at {
            batch.push(shared.keys.publish(&shared.instance, &Message::Beat));
            beat_at = Instant::now() + BEAT;
        }
        let mut sending = Sending { shared, orders };
        commands.send(batch).await?;
        sending.orders.clear();
        pause.reset();
    }
}

/// Puts back what was not taken, also when the task ends meanwhile.
struct Sending<'a> {
    shared: &'a Shared,
    orders: Vec<Order>,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.orders.is_empty() {
            self.shared.queue.put_back(std::mem::take(&mut self.orders));
        }
    }
}
