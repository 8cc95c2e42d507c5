//! The state of the lanes under a scheduler that tries many interleavings.
//!
//! The files are those of the crate itself; only the lock and the flag are `shuttle`'s. Each thread plays one
//! task and sleeps until its waker is called, so a wake-up that is lost shows as a deadlock.

#![allow(dead_code, reason = "not every function of the state is of use here")]

#[path = "../../src/state/lane.rs"]
mod lane;
#[path = "../../src/state/roster.rs"]
mod roster;
#[path = "../../src/state/shard.rs"]
mod shard;
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use shuttle::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};
}

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;
use tokio::time::Instant;

use lane::Turn;
use shard::{Entered, Left, Limits, Rejected, Shard};

const SCHEDULES: usize = 2_000;
const LIMITS: Limits = Limits { depth_max: 100, pass_after: Duration::from_secs(5) };

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn waker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Pipelined,
}

/// What the threads have in common.
struct Scene {
    shard: Shard<u8>,
    began: Instant,
    inside: [AtomicUsize; 2],
    arrived: Mutex<Vec<usize>>,
    had_turn: Mutex<Vec<usize>>,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            shard: Shard::new(LIMITS),
            began: Instant::now(),
            inside: [AtomicUsize::new(0), AtomicUsize::new(0)],
            arrived: Mutex::default(),
            had_turn: Mutex::default(),
        })
    }

    /// Enters and writes down the order of arrival as one step.
    fn enter(&self, name: usize, key: u8, kind: Kind) -> Result<Entered, (Rejected, u8)> {
        let mut arrived = self.arrived.lock().unwrap();
        let entered = match kind {
            Kind::Plain => self.shard.enter_ready(key, u64::from(key), self.began),
            Kind::Pipelined => self.shard.enter_preparing(key, u64::from(key), self.began),
        }?;
        arrived.push(name);
        Ok(entered)
    }

    /// Waits for the turn, as a task does; `false` when stopped.
    fn take_turn(&self, entered: Entered) -> bool {
        let mut has_turn = entered.has_turn;
        let mut now = self.began;
        while !has_turn {
            match self.shard.ask(entered.spot, now, &waker()) {
                Turn::Yours => has_turn = true,
                _ if self.shard.is_stopped() => return false,
                // The timer may go off before anybody wakes it.
                Turn::Patience { until } if thread_rng().gen_bool(0.5) => now = until,
                Turn::Patience { .. } | Turn::Later => thread::park(),
            }
        }
        true
    }

    fn use_turn(&self, name: usize, key: u8) {
        let inside = &self.inside[usize::from(key)];
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two tasks of one key at once");
        self.had_turn.lock().unwrap().push(name);
        thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn leave(&self, entered: Entered) {
        let Left { next, watchers } = self.shard.leave(entered.spot);
        next.into_iter().chain(watchers).for_each(Waker::wake);
    }
}

fn all(threads: Vec<thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn plain_tasks_of_one_key_take_turns_in_order_of_arrival() {
    shuttle::check_random(
        || {
            let scene = Scene::new();
            let task = |name| {
                let scene = scene.clone();
                thread::spawn(move || {
                    let entered = scene.enter(name, 0, Kind::Plain).unwrap();
                    assert!(scene.take_turn(entered));
                    scene.use_turn(name, 0);
                    scene.leave(entered);
                })
            };

            all((0..4).map(task).collect());

            assert_eq!(*scene.had_turn.lock().unwrap(), *scene.arrived.lock().unwrap());
            assert_eq!(scene.shard.count(), 0);
        },
        SCHEDULES,
    );
}

#[test]
fn tasks_of_every_kind_all_come_to_an_end_and_never_overlap() {
    shuttle::check_random(
        || {
            let scene = Scene::new();
            let task = |name: usize| {
                let scene = scene.clone();
                thread::spawn(move || {
                    let key = u8::from(name == 5);
                    let kind = if name.is_multiple_of(2) { Kind::Plain } else { Kind::Pipelined };
                    let entered = scene.enter(name, key, kind).unwrap();
                    if kind == Kind::Pipelined {
                        thread::yield_now();
                        scene.shard.become_ready(entered.spot, scene.began);
                    }
                    if name != 3 {
                        // All but one come so far.
                        assert!(scene.take_turn(entered));
                        scene.use_turn(name, key);
                    }
                    scene.leave(entered);
                })
            };

            all((0..6).map(task).collect());

            assert_eq!(scene.had_turn.lock().unwrap().len(), 5);
            assert_eq!(scene.shard.count(), 0);
        },
        SCHEDULES,
    );
}

#[test]
fn everybody_hears_of_a_stop_whatever_they_are_doing() {
    shuttle::check_random(
        || {
            let scene = Scene::new();
            let task = |name: usize| {
                let scene = scene.clone();
                thread::spawn(move || {
                    let kind = if name == 1 { Kind::Pipelined } else { Kind::Plain };
                    let Ok(entered) = scene.enter(name, 0, kind) else { return };
                    if kind == Kind::Pipelined || scene.take_turn(entered) {
                        // A part that would never end by itself.
                        scene.shard.hear(entered.spot, &waker());
                        while !scene.shard.is_stopped() {
                            thread::park();
                        }
                    }
                    scene.leave(entered);
                })
            };

            let tasks = (0..3).map(task).collect();
            scene.shard.close();
            scene.shard.stop().into_iter().for_each(Waker::wake);
            all(tasks);

            assert!(scene.shard.is_over());
        },
        SCHEDULES,
    );
}

#[test]
fn whoever_watches_a_closed_shard_hears_that_it_is_empty() {
    shuttle::check_random(
        || {
            let scene = Scene::new();
            let task = |name: usize| {
                let scene = scene.clone();
                thread::spawn(move || {
                    let Ok(entered) = scene.enter(name, u8::from(name == 2), Kind::Plain) else { return };
                    assert!(scene.take_turn(entered));
                    scene.leave(entered);
                })
            };

            let tasks = (0..3).map(task).collect();
            scene.shard.close();
            while !scene.shard.watch(&waker()) {
                thread::park();
            }

            assert!(scene.shard.is_over());
            assert!(matches!(scene.enter(9, 0, Kind::Plain), Err((Rejected::Closed, 0))));
            all(tasks);
        },
        SCHEDULES,
    );
}
