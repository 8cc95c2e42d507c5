//! [`Lanes`]: where tasks are handed in and lanes are looked at.
//!
//! Guarantees what the crate's front page promises; how is in `state` (whose turn it is), `place` and
//! `task` (taking it) and `drain` (the end).

use std::fmt::{self, Debug, Display};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::Span;

use crate::outcome::{Refused, RunError};
use crate::place::Place;
use crate::settings::{InvalidSettings, Settings};
use crate::snapshot::LaneSnapshot;
use crate::state::shard::{Entered, Limits, Rejected, Shard};
use crate::task::{Task, pipelined};
use crate::ticket::Ticket;

/// Enough that cores seldom meet at one lock; a power of two, so that a few bits of the hash choose one.
const SHARDS: usize = 64;

/// Tasks of one key run in order, tasks of different keys run in parallel.
///
/// A clone is another handle to the same lanes. Dropping all handles stops nothing: tasks that were taken in run
/// to their end.
pub struct Lanes<K> {
    pub(crate) shared: Arc<Shared<K>>,
}

pub(crate) struct Shared<K> {
    shards: Box<[Arc<Shard<K>>]>,
    pub(crate) settings: Settings,
    hasher: DefaultHashBuilder,
    runtime: Handle,
}

impl<K: Eq + Hash + Clone + Display + Send + Sync + 'static> Lanes<K> {
    /// Makes lanes whose tasks run on the current tokio runtime.
    pub fn new(settings: Settings) -> Result<Self, InvalidSettings> {
        let runtime = Handle::try_current().map_err(|_| InvalidSettings::NoRuntime)?;
        Self::on(runtime, settings)
    }

    /// Makes lanes whose tasks run on this runtime, which needs its timer (`enable_time` or `enable_all`).
    ///
    /// Tasks may be submitted from any thread, also from outside the runtime.
    pub fn on(runtime: Handle, settings: Settings) -> Result<Self, InvalidSettings> {
        settings.check()?;
        let limits = Limits { depth_max: settings.depth_max, pass_after: settings.pass_after };
        let shards = (0..SHARDS).map(|_| Arc::new(Shard::new(limits))).collect();
        Ok(Self {
            shared: Arc::new(Shared { shards, settings, hasher: DefaultHashBuilder::default(), runtime }),
        })
    }

    /// Puts a task in its key's line. It runs when all tasks of this key that came before it are done.
    ///
    /// The task is spawned: it goes on whatever happens to the caller and to the ticket.
    pub fn submit<F>(&self, key: K, task: F) -> Result<Ticket<F::Output>, Refused>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (shard, hash) = self.shard_of(&key);
        let span = span(&key);
        let entered = shard.enter_ready(key, hash, Instant::now()).map_err(|why| self.refused(why))?;
        log(&span, entered);

        let task = Task::new(Place::new(shard.clone(), entered), span, task);
        Ok(Ticket::new(self.shared.runtime.spawn(task), self.shared.settings.wait))
    }

    /// Puts a task of two parts in its key's line: `prepare` begins at once, beside everything else; `finish` is
    /// called with its result and runs in its turn, like a task that was [submitted](Self::submit).
    ///
    /// The turn is by order of arrival. A task that is ready waits for predecessors that still prepare, but for
    /// no longer than [`Settings::pass_after`]; then it passes them. It never passes one that is ready.
    pub fn submit_pipelined<P, N, F>(
        &self,
        key: K,
        prepare: P,
        finish: N,
    ) -> Result<Ticket<F::Output>, Refused>
    where
        P: Future + Send + 'static,
        P::Output: Send + 'static,
        N: FnOnce(P::Output) -> F + Send + 'static,
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (shard, hash) = self.shard_of(&key);
        let span = span(&key);
        let entered = shard.enter_preparing(key, hash, Instant::now()).map_err(|why| self.refused(why))?;
        log(&span, entered);

        let task = pipelined(Place::new(shard.clone(), entered), span, Box::pin(prepare), finish);
        Ok(Ticket::new(self.shared.runtime.spawn(task), self.shared.settings.wait))
    }

    /// Submits a task and waits for its value, as long as [`Settings::wait`] says.
    ///
    /// When time is up, or when the returned future is dropped, only the waiting ends: the task goes on.
    pub async fn run<F>(&self, key: K, task: F) -> Result<F::Output, RunError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Ok(self.submit(key, task)?.wait().await?)
    }

    /// How many lanes there are: keys with at least one task that is not done.
    pub fn count(&self) -> usize {
        self.shards().map(Shard::count).sum()
    }

    /// Whether every task that was taken in is done.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Every lane as it is now, in no particular order.
    pub fn snapshot(&self) -> Vec<LaneSnapshot<K>> {
        let now = Instant::now();
        let mut lanes = Vec::new();
        for shard in self.shards() {
            shard.visit(|key, lane| lanes.push(LaneSnapshot::new(key, lane.counts(), now)));
        }
        lanes
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = &Shard<K>> {
        self.shared.shards.iter().map(Arc::as_ref)
    }

    fn shard_of(&self, key: &K) -> (&Arc<Shard<K>>, u64) {
        let hash = self.shared.hasher.hash_one(key);
        // The table inside a shard goes by the lowest and highest bits; those between choose the shard.
        let index = (hash >> 32) as usize % SHARDS;
        (&self.shared.shards[index], hash)
    }

    fn refused(&self, (rejected, key): (Rejected, K)) -> Refused {
        let key = key.to_string();
        match rejected {
            Rejected::Full => Refused::Full { key, depth_max: self.shared.settings.depth_max },
            Rejected::Closed => Refused::Draining { key },
        }
    }
}

/// The span around a task. Spans have fixed names; `otel.name` is what tracing tools show instead.
fn span<K: Display>(key: &K) -> Span {
    tracing::info_span!("lane", otel.name = %format_args!("callback-{key}"))
}

fn log(span: &Span, entered: Entered) {
    let _entered = span.enter();
    if entered.is_new_lane {
        tracing::info!("lane opened");
    }
    tracing::debug!("task queued");
}

impl<K> Clone for Lanes<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K> Debug for Lanes<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Lanes").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}
