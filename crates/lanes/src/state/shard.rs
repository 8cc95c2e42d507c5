//! Some of the keys, under one lock: where tasks come in, and where idle lanes go away.
//!
//! Guarantees: a lane exists exactly as long as somebody is in it; every line is bounded; after `close` nothing
//! comes in any more; after `stop` everybody who is in hears of it. Only short bookkeeping happens under the
//! lock: wakers are called by whoever called here. Does not bound the number of keys.

use std::task::Waker;
use std::time::Duration;

use tokio::time::Instant;

use super::lane::{Lane, TaskId, Turn};
use super::roster::{Named, Roster};
use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// The lanes of some keys. Apart from its neighbours in memory: no core shall wait for what another does next door.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard<K> {
    state: Mutex<State<K>>,
    is_stopped: AtomicBool,
    limits: Limits,
}

/// What holds for every lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) depth_max: usize,
    pub(crate) pass_after: Duration,
}

/// Where a task is. It leads to the lane without the key, which may be far away in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    hash: u64,
    lane: TaskId,
    task: TaskId,
}

/// A task that was let in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered {
    pub(crate) spot: Spot,
    pub(crate) has_turn: bool,
    pub(crate) is_new_lane: bool,
}

/// Why a task was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    Full,
    Closed,
}

/// Who has to be woken after a leave.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Left {
    /// Whose turn it may be now.
    pub(crate) next: Option<Waker>,
    /// Those who wait for the shard to be empty, if it is.
    pub(crate) watchers: Vec<Waker>,
}

#[derive(Debug)]
struct State<K> {
    lanes: Roster<K>,
    last_id: TaskId,
    is_open: bool,
    watchers: Vec<Waker>,
}

impl<K: Eq> Shard<K> {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State { lanes: Roster::new(), last_id: 0, is_open: true, watchers: Vec::new() };
        Self { state: Mutex::new(state), is_stopped: AtomicBool::new(false), limits }
    }

    /// Lets in a task that has nothing to prepare.
    pub(crate) fn enter_ready(&self, key: K, hash: u64, now: Instant) -> Result<Entered, (Rejected, K)> {
        let may_pass_at = now + self.limits.pass_after;
        self.enter(key, hash, |lane, id| lane.enter_ready(id, now, may_pass_at) == Turn::Yours)
    }

    /// Lets in a task that prepares first.
    pub(crate) fn enter_preparing(&self, key: K, hash: u64, now: Instant) -> Result<Entered, (Rejected, K)> {
        self.enter(key, hash, |lane, id| {
            lane.enter_preparing(id, now);
            false
        })
    }

    /// The first part of a task is done. It has to ask for its turn now.
    pub(crate) fn become_ready(&self, spot: Spot, now: Instant) {
        if let Some(lane) = self.lock().lane(spot) {
            lane.become_ready(spot.task, now + self.limits.pass_after);
        }
    }

    /// Gives a ready task the turn if it may have it, or else remembers how to wake it.
    pub(crate) fn ask(&self, spot: Spot, now: Instant, waker: &Waker) -> Turn {
        self.lock().lane(spot).map_or(Turn::Later, |lane| lane.ask(spot.task, now, waker))
    }

    /// Remembers how to wake a task.
    pub(crate) fn hear(&self, spot: Spot, waker: &Waker) {
        if let Some(lane) = self.lock().lane(spot) {
            lane.hear(spot.task, waker);
        }
    }

    /// A task is done, failed or dropped; the lane goes with the last one.
    pub(crate) fn leave(&self, spot: Spot) -> Left {
        let mut state = self.lock();
        let Some(lane) = state.lane(spot) else {
            return Left::default();
        };
        let next = lane.leave(spot.task);
        if !lane.is_idle() {
            return Left { next, watchers: Vec::new() };
        }
        let named = state.lanes.remove(spot.hash, spot.lane);
        let watchers = if state.lanes.is_empty() { std::mem::take(&mut state.watchers) } else { Vec::new() };
        drop(state);
        // The key's own `Drop` runs here, not under the lock.
        drop(named);
        Left { next, watchers }
    }

    /// From now on nothing comes in.
    pub(crate) fn close(&self) {
        self.lock().is_open = false;
    }

    /// Tells everybody who is in to end itself: whoever is returned has to be woken.
    pub(crate) fn stop(&self) -> Vec<Waker> {
        // First the flag, then the wakers: whoever hands its waker over too late for this sees the flag.
        self.is_stopped.store(true, Ordering::SeqCst);
        self.lock().lanes.iter().flat_map(|named| named.lane.wakers().cloned()).collect()
    }

    /// To be asked when a task begins, and again after it handed its waker over.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Whether nobody is in; otherwise remembers whom to wake when that is so.
    pub(crate) fn watch(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if state.lanes.is_empty() {
            return true;
        }
        if !state.watchers.iter().any(|known| known.will_wake(waker)) {
            state.watchers.push(waker.clone());
        }
        false
    }

    /// Shows every lane. The lock is held all the while, so `visit` must be quick.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&K, &Lane)) {
        self.lock().lanes.iter().for_each(|named| visit(&named.key, &named.lane));
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().lanes.len()
    }

    /// Whether nobody is in and nobody ever will be.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        !state.is_open && state.lanes.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.lock().lanes.capacity()
    }

    fn enter(
        &self,
        key: K,
        hash: u64,
        enter: impl FnOnce(&mut Lane, TaskId) -> bool,
    ) -> Result<Entered, (Rejected, K)> {
        let mut state = self.lock();
        if !state.is_open {
            return Err((Rejected::Closed, key));
        }
        let is_same = |named: &Named<K>| named.hash == hash && named.key == key;
        let id = state.last_id + 1;
        if let Some(named) = state.lanes.find(hash, is_same) {
            if named.lane.depth() >= self.limits.depth_max {
                return Err((Rejected::Full, key));
            }
            let spot = Spot { hash, lane: named.id, task: id };
            let has_turn = enter(&mut named.lane, id);
            state.last_id = id;
            return Ok(Entered { spot, has_turn, is_new_lane: false });
        }
        let mut lane = Lane::default();
        let has_turn = enter(&mut lane, id);
        state.lanes.insert(Named { key, hash, id, lane });
        state.last_id = id;
        Ok(Entered { spot: Spot { hash, lane: id, task: id }, has_turn, is_new_lane: true })
    }

    /// A panic under the lock can only come from a key's own `Eq` or `Clone`, which run before or after any
    /// change: the lanes are whole, so go on.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> State<K> {
    fn lane(&mut self, spot: Spot) -> Option<&mut Lane> {
        let named = self.lanes.find(spot.hash, |named| named.id == spot.lane)?;
        Some(&mut named.lane)
    }
}
