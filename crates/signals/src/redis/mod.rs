//! Signals between instances, through Redis.
//!
//! Who listens here hears at once what is announced here, and never twice; others hear it through pub/sub. Two tasks
//! hold a connection each and come back by themselves: one tells what waits in the queue, one hears the others. After
//! each interruption listeners are told that they may have missed something.
//!
//! Guarantees: announcing never waits for Redis; asking (leases, counts) waits for a moment at most. With Redis
//! flushed, restarted, slow or gone everything else goes on.
//! Does not do: decide anything, or keep anything that matters.

mod hearing;
mod keys;
mod place;
mod queue;
mod telling;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use model::DocumentId;
use tokio::task::JoinHandle;

use crate::local::LocalSignals;
use crate::{Lease, Listener, Signal, Signals};
use keys::Keys;
pub use place::AddressError;
use place::{Commands, Place};
use queue::{Order, Queue};
use wire::Message;

/// Longest wait for a lease or a count. Slower than that, nobody is helped by it.
const ASK_WITHIN: Duration = Duration::from_millis(250);
/// First pause before connecting again; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Longest pause before connecting again.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How Redis is reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it is: `redis://…`, `redis-sentinel://…/service` or `redis-cluster://…`; `rediss` with TLS.
    pub address: String,
    /// What all names in it begin with, so that installations can share it.
    pub prefix: String,
    /// This instance, unlike every other one.
    pub instance: String,
    /// Told whenever Redis goes away or comes back.
    pub on_change: fn(Standing),
}

/// Whether others are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// They are.
    Heard,
    /// They are not: waits are longer, and nothing else.
    Away,
}

/// Signals for many instances.
pub struct RedisSignals {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    place: Place,
    keys: Keys,
    instance: String,
    local: LocalSignals,
    queue: Queue,
    /// What questions go through; none while Redis is away.
    commands: Mutex<Option<Commands>>,
    standing: Mutex<Standing>,
    on_change: fn(Standing),
}

impl RedisSignals {
    /// Begins to tell and to hear, whether Redis is there or not. Call it inside a runtime.
    pub fn open(settings: Settings) -> Result<Self, AddressError> {
        let shared = Arc::new(Shared {
            place: Place::read(&settings.address)?,
            keys: Keys::new(settings.prefix),
            instance: settings.instance,
            local: LocalSignals::default(),
            queue: Queue::default(),
            commands: Mutex::default(),
            standing: Mutex::new(Standing::Away),
            on_change: settings.on_change,
        });
        let tasks = [
            tokio::spawn(hearing::hear(Arc::clone(&shared))),
            tokio::spawn(telling::tell(Arc::clone(&shared))),
        ];
        Ok(Self { shared, tasks })
    }

    /// Whether others are heard now.
    pub fn standing(&self) -> Standing {
        *self.shared.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RedisSignals {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Shared {
    fn stand(&self, now: Standing) {
        let before = {
            let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *standing, now)
        };
        if before != now {
            (self.on_change)(now);
        }
    }

    fn set_commands(&self, commands: Option<Commands>) {
        *self.commands.lock().unwrap_or_else(PoisonError::into_inner) = commands;
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: redis::Cmd) -> Option<T> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut commands = commands?;
        tokio::time::timeout(ASK_WITHIN, commands.ask(command)).await.ok()?.ok()
    }
}

#[async_trait]
impl Signals for RedisSignals {
    async fn announce(&self, signal: Signal) {
        self.shared.local.tell(signal.clone());
        self.shared.queue.put(Order::Tell(Message::Signal(signal)));
    }

    fn listen(&self) -> Box<dyn Listener> {
        self.shared.local.listen()
    }

    fn listen_here(&self) -> Box<dyn Listener> {
        self.shared.local.listen_here()
    }

    async fn show_users(&self, document: &DocumentId, users: &[String]) {
        self.shared.queue.put(Order::Show { document: document.clone(), users: users.to_vec() });
    }

    async fn take_lease(&self, document: &DocumentId, holder: &str) -> Lease {
        let answer = self.shared.ask::<Option<String>>(self.shared.keys.take_lease(document, holder)).await;
        match answer {
            Some(Some(_)) => Lease::Ours,
            Some(None) => Lease::Elsewhere,
            None => Lease::Unknown,
        }
    }

    async fn renew_lease(&self, document: &DocumentId, holder: &str) -> Lease {
        match self.shared.ask::<u8>(self.shared.keys.renew_lease(document, holder)).await {
            Some(0) => Lease::Elsewhere,
            Some(_) => Lease::Ours,
            None => Lease::Unknown,
        }
    }

    async fn release_lease(&self, document: &DocumentId, holder: &str) {
        // Not heard, it ends by itself.
        let _ = self.shared.ask::<u8>(self.shared.keys.release_lease(document, holder)).await;
    }

    async fn count(&self, what: &str, window: Duration) -> u64 {
        let here = self.shared.local.count_here(what, window);
        let everywhere = self.shared.ask::<u64>(self.shared.keys.count(what, window)).await;
        everywhere.unwrap_or_default().max(here)
    }

    async fn uncount(&self, what: &str) {
        self.shared.local.uncount_here(what);
        // Not heard, it counts until its window ends.
        let _ = self.shared.ask::<i64>(self.shared.keys.uncount(what)).await;
    }
}

/// Pauses that grow, and begin anew after success.
struct Pause(Duration);

impl Pause {
    fn new() -> Self {
        Self(PAUSE_MIN)
    }

    fn reset(&mut self) {
        self.0 = PAUSE_MIN;
    }

    async fn wait(&mut self) {
        // A server that is away is not asked all the time.
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSE_MAX);
    }
}
