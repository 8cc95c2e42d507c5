//! The shard against a plain model: a `VecDeque` per key, walked through long random stories.
//!
//! Besides every answer it checks that nobody is forgotten: a task that may go, or whose patience runs, is awake.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::lane::Turn;
use super::shard::{Entered, Limits, Rejected, Shard, Spot};

const DEPTH_MAX: usize = 4;
const PASS_AFTER: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
enum Step {
    Enter {
        key: u8,
    },
    EnterPreparing {
        key: u8,
    },
    /// The others name a task by its rank among all that are in.
    BecomeReady(usize),
    Ask(usize),
    Leave(usize),
    Pass {
        ms: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rank = 0..12usize;
    let step = prop_oneof![
        3 => (0..3u8).prop_map(|key| Step::Enter { key }),
        2 => (0..3u8).prop_map(|key| Step::EnterPreparing { key }),
        3 => rank.clone().prop_map(Step::BecomeReady),
        6 => rank.clone().prop_map(Step::Ask),
        4 => rank.prop_map(Step::Leave),
        1 => (0..60u64).prop_map(|ms| Step::Pass { ms }),
    ];
    proptest::collection::vec(step, 0..200)
}

/// A task as the model knows it.
#[derive(Debug)]
struct Task {
    name: usize,
    key: u8,
    spot: Spot,
    /// `None` while it prepares.
    may_pass_at: Option<Instant>,
    /// What it was told when it last asked; `None` when it never did, or was woken since.
    asleep_after: Option<Turn>,
}

#[derive(Debug, Default)]
struct Model {
    lines: BTreeMap<u8, VecDeque<Task>>,
    turns: BTreeMap<u8, Task>,
}

impl Model {
    fn nth(&mut self, rank: usize) -> Option<&mut Task> {
        let mut tasks: Vec<&mut Task> =
            self.lines.values_mut().flatten().chain(self.turns.values_mut()).collect();
        tasks.sort_by_key(|task| task.name);
        let count = tasks.len();
        tasks.into_iter().nth(rank.checked_rem(count)?)
    }

    fn by_name(&mut self, name: usize) -> Option<&mut Task> {
        self.lines.values_mut().flatten().chain(self.turns.values_mut()).find(|task| task.name == name)
    }

    /// What a task should be told, and if it gets the turn, gives it.
    fn ask(&mut self, name: usize, now: Instant) -> Turn {
        let Some(key) = self.by_name(name).map(|task| task.key) else { return Turn::Later };
        if let Some(holder) = self.turns.get(&key) {
            return if holder.name == name { Turn::Yours } else { Turn::Later };
        }
        let line = self.lines.entry(key).or_default();
        let first = line.iter().position(|task| task.may_pass_at.is_some());
        let Some(index) = first.filter(|index| line[*index].name == name) else { return Turn::Later };
        let until = line[index].may_pass_at.unwrap_or(now);
        if index > 0 && now < until {
            return Turn::Patience { until };
        }
        self.turns.extend(line.remove(index).map(|task| (key, task)));
        Turn::Yours
    }

    fn remove(&mut self, name: usize) {
        self.turns.retain(|_, task| task.name != name);
        self.lines.values_mut().for_each(|line| line.retain(|task| task.name != name));
        self.lines.retain(|_, line| !line.is_empty());
    }

    fn keys(&self) -> usize {
        let mut keys: Vec<_> = self.lines.keys().chain(self.turns.keys()).collect();
        keys.sort();
        keys.dedup();
        keys.len()
    }

    fn assert_nobody_is_forgotten(&self) {
        for (key, line) in self.lines.iter().filter(|(key, _)| !self.turns.contains_key(key)) {
            let Some(index) = line.iter().position(|task| task.may_pass_at.is_some()) else { continue };
            let asleep = line[index].asleep_after;
            assert!(asleep.is_none() || index > 0, "the first of key {key} sleeps though the turn is free");
            assert_ne!(
                asleep,
                Some(Turn::Later),
                "one of key {key} sleeps without a timer though the turn is free"
            );
        }
    }
}

/// Writes down who was woken.
struct Bell {
    name: usize,
    rung: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.lock().unwrap().push(self.name);
    }
}

struct Story {
    shard: Shard<u8>,
    model: Model,
    now: Instant,
    entered: usize,
    rung: Arc<Mutex<Vec<usize>>>,
}

impl Story {
    fn new() -> Self {
        let shard = Shard::new(Limits { depth_max: DEPTH_MAX, pass_after: PASS_AFTER });
        Self { shard, model: Model::default(), now: Instant::now(), entered: 0, rung: Arc::default() }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Enter { key } => {
                let entered = self.shard.enter_ready(key, u64::from(key), self.now);
                self.enter(key, Some(self.now + PASS_AFTER), entered);
            }
            Step::EnterPreparing { key } => {
                let entered = self.shard.enter_preparing(key, u64::from(key), self.now);
                self.enter(key, None, entered);
            }
            Step::BecomeReady(rank) => self.become_ready(rank),
            Step::Ask(rank) => {
                if let Some(task) = self.model.nth(rank).filter(|task| task.may_pass_at.is_some()) {
                    let (name, spot) = (task.name, task.spot);
                    self.ask(name, spot);
                }
            }
            Step::Leave(rank) => {
                if let Some((name, spot)) = self.model.nth(rank).map(|task| (task.name, task.spot)) {
                    let left = self.shard.leave(spot);
                    self.model.remove(name);
                    left.next.into_iter().for_each(Waker::wake);
                }
            }
            Step::Pass { ms } => self.now += Duration::from_millis(ms),
        }
        for name in self.rung.lock().unwrap().drain(..) {
            self.model.by_name(name).expect("only those who are in are woken").asleep_after = None;
        }
        self.model.assert_nobody_is_forgotten();
        assert_eq!(self.shard.count(), self.model.keys());
    }

    fn enter(&mut self, key: u8, may_pass_at: Option<Instant>, entered: Result<Entered, (Rejected, u8)>) {
        let line = self.model.lines.entry(key).or_default();
        let is_idle = line.is_empty() && !self.model.turns.contains_key(&key);
        let Ok(entered) = entered else {
            assert_eq!(line.len(), DEPTH_MAX);
            return;
        };
        assert!(line.len() < DEPTH_MAX);
        assert_eq!(entered.is_new_lane, is_idle);
        assert_eq!(entered.has_turn, is_idle && may_pass_at.is_some());
        self.entered += 1;
        let task = Task { name: self.entered, key, spot: entered.spot, may_pass_at, asleep_after: None };
        match entered.has_turn {
            true => drop(self.model.turns.insert(key, task)),
            false => line.push_back(task),
        }
        self.model.lines.retain(|_, line| !line.is_empty());
    }

    fn become_ready(&mut self, rank: usize) {
        let Some(task) = self.model.nth(rank).filter(|task| task.may_pass_at.is_none()) else { return };
        let (name, key, spot) = (task.name, task.key, task.spot);
        let line = self.model.lines.entry(key).or_default();
        let behind = line.iter().filter(|other| other.name > name).filter_map(|other| other.may_pass_at);
        let may_pass_at = behind.chain([self.now + PASS_AFTER]).min();
        line.iter_mut().filter(|other| other.name == name).for_each(|task| task.may_pass_at = may_pass_at);

        self.shard.become_ready(spot, self.now);
        self.ask(name, spot);
    }

    fn ask(&mut self, name: usize, spot: Spot) {
        let waker = Waker::from(Arc::new(Bell { name, rung: self.rung.clone() }));
        let answer = self.shard.ask(spot, self.now, &waker);
        assert_eq!(answer, self.model.ask(name, self.now), "task {name}");
        let task = self.model.by_name(name).expect("it is still in");
        task.asleep_after = Some(answer).filter(|answer| *answer != Turn::Yours);
    }
}

proptest! {
    #[test]
    fn every_answer_is_the_models_and_nobody_is_forgotten(steps in steps()) {
        let mut story = Story::new();
        steps.into_iter().for_each(|step| story.take(step));
    }
}

#[test]
fn a_crowd_that_has_gone_leaves_no_memory_behind() {
    let shard = Shard::new(Limits { depth_max: DEPTH_MAX, pass_after: PASS_AFTER });
    let now = Instant::now();
    let enter = |key: u64| shard.enter_ready(key, key.wrapping_mul(0x9e37_79b9_7f4a_7c15), now).unwrap().spot;

    let crowd: Vec<_> = (0..100_000).map(enter).collect();
    let capacity_full = shard.capacity();
    crowd.into_iter().for_each(|spot| drop(shard.leave(spot)));

    assert!(capacity_full >= 100_000);
    assert!(shard.capacity() <= 128, "{}", shard.capacity());
    assert_eq!(shard.count(), 0);
}
