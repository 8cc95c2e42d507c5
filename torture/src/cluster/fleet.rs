//! The instances as processes: started, killed, stopped and continued, each by itself.
//!
//! Guarantees: an instance that dies without having been told to, does not start, or takes too long to start is accused, unless an
//! engine was away meanwhile: then it is started again, as whoever looks after it would do.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Cluster;
use crate::arguments::Flow;
use crate::chronicle::{Class, Violation};
use crate::killing::{End, Life, Outcome};
use crate::round::{Report, is_caught};
use crate::world::{CrashAt, Process, Start, World};

/// A start that takes longer than this is stuck: it may have to wait for another that migrates.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// In all, however often an engine was away.
const UP_PATIENCE: Duration = Duration::from_secs(60);
const START_AGAIN: Duration = Duration::from_millis(100);
/// How long a step is waited for before the instance is killed all the same: others take work from it. Submissions take several calls.
const STEP_PATIENCE: Duration = Duration::from_millis(2500);
const SUBMISSION_STEP_PATIENCE: Duration = Duration::from_secs(8);

/// The cluster of a world that has one.
pub(super) fn cluster(world: &World) -> Result<&Cluster> {
    world.cluster.as_ref().context("this world has no cluster")
}

/// Starts all instances at once and waits until all answer. `None` if one cannot be used, which is accused.
pub(crate) async fn start_all(world: &Arc<World>) -> Result<Option<Vec<Process>>> {
    let mut starting = JoinSet::new();
    for number in 0..cluster(world)?.instances.len() {
        let world = Arc::clone(world);
        starting.spawn(async move { start(&world, number, None).await.map(|process| (number, process)) });
    }
    let mut processes = Vec::new();
    while let Some(started) = starting.join_next().await {
        let (number, process) = started??;
        processes.push((number, process));
    }
    processes.sort_by_key(|(number, _)| *number);
    let processes: Option<Vec<Process>> = processes.into_iter().map(|(_, process)| process).collect();
    Ok(processes)
}

pub(crate) async fn kill_all(processes: Vec<Process>) -> Result<()> {
    for process in processes {
        process.kill().await?;
    }
    Ok(())
}

/// Starts an instance and waits until it answers or has died where it was told to.
pub(super) async fn start(
    world: &World,
    number: usize,
    crash_at: Option<&CrashAt>,
) -> Result<Option<Process>> {
    let cluster = cluster(world)?;
    let launcher = cluster.launcher(&world.launcher, number);
    let deadline = Instant::now() + UP_PATIENCE;
    while Instant::now() < deadline {
        let begun_ms = world.chronicle.now_ms();
        let mut process = launcher.start(crash_at)?;
        let start = process.ready(START_PATIENCE).await;
        let is_as_told = start == Start::Ready || (crash_at.is_some() && was_aborted(&mut process));
        if is_as_told {
            return Ok(Some(process));
        }
        if cluster.held_up_ms(begun_ms, world.chronicle.now_ms()) == 0 {
            let what = format!("instance {number} did not start: {start:?}, {:?}", process.exit());
            world.chronicle.accuse(Violation::new(Class::Stuck, what));
            process.kill().await?;
            return Ok(None);
        }
        process.kill().await?;
        tokio::time::sleep(START_AGAIN).await;
    }
    bail!("instance {number} did not start in {UP_PATIENCE:?}, and something was always in its way")
}

fn was_aborted(process: &mut Process) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    process.exit().is_some_and(|exit| exit.signal() == Some(6))
}

/// The lives that are left, and what came of the others. Every instance takes the next one when it is dead.
#[derive(Clone)]
pub(super) struct Lives {
    left: Arc<Mutex<VecDeque<Life>>>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl Lives {
    pub(super) fn new(lives: Vec<Life>) -> Self {
        Self { left: Arc::new(Mutex::new(lives.into())), outcomes: Arc::default() }
    }

    fn next(&self) -> Option<Life> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn came_to(&self, outcome: Outcome) {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    }

    pub(super) fn report_to(&self, report: &mut Report) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.drain(..).for_each(|outcome| report.add(outcome));
    }
}

/// What is looked at after each kill.
pub(crate) type Check = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// Lets one instance live and die until nothing is left; it is alive at the end.
pub(super) async fn live_on(
    world: Arc<World>,
    (number, process): (usize, Process),
    (lives, check): (Lives, Check),
) -> Result<Option<Process>> {
    process.kill().await?;
    while let Some(life) = lives.next() {
        lives.came_to(live(&world, number, &life).await?);
        check().await?;
        if is_caught(&world) {
            return Ok(None);
        }
        tokio::time::sleep(life.pause).await;
    }
    start(&world, number, None).await
}

/// One life, to its end.
async fn live(world: &World, number: usize, life: &Life) -> Result<Outcome> {
    let crash_at = match &life.end {
        End::AtStep(crash_at) | End::StorageAtStep(crash_at) => Some(crash_at),
        End::After(_) => None,
    };
    let cluster = cluster(world)?;
    let mut process = match (&life.end, life.freeze) {
        // It may die before it answers.
        (End::After(_), None) => cluster.launcher(&world.launcher, number).start(None)?,
        _ => match start(world, number, crash_at).await? {
            Some(process) => process,
            None => return Ok(Outcome { step: None, start_took: START_PATIENCE }),
        },
    };
    let start_took = process.started.elapsed();
    if let Some(time) = life.freeze {
        world.chronicle.note(format!("instance {number} is stopped for {} ms", time.as_millis()));
        world.chronicle.count("instances stopped and continued", 1);
        let span = cluster.held_up.begin(world.chronicle.now_ms());
        process.freeze_for(time).await?;
        cluster.held_up.end(span, world.chronicle.now_ms());
        world.chronicle.note(format!("instance {number} goes on"));
    }
    let (step, end) = match &life.end {
        End::AtStep(CrashAt { step, hit }) | End::StorageAtStep(CrashAt { step, hit }) => {
            let patience = match world.setting.conditions.flow {
                Flow::Documents => STEP_PATIENCE,
                Flow::Submissions => SUBMISSION_STEP_PATIENCE,
            };
            let has_died = process.died_within(patience).await;
            check_end(world, number, (&mut process, has_died));
            let how = if has_died { "at" } else { "in vain for" };
            (Some((step.clone(), has_died)), format!("{how} {step}, hit {hit}"))
        }
        End::After(time) => {
            tokio::time::sleep_until(process.started + *time).await;
            (None, format!("after {} ms", time.as_millis()))
        }
    };
    world.chronicle.note(format!("kill {} of instance {number}: {end}", world.kills() + 1));
    world.count_kill();
    process.kill().await?;
    Ok(Outcome { step, start_took })
}

/// One that was told to die at a step dies by its own abort and nothing else.
fn check_end(world: &World, number: usize, (process, has_died): (&mut Process, bool)) {
    if has_died && !was_aborted(process) {
        let what = format!("instance {number} ended by itself: {:?}", process.exit());
        world.chronicle.accuse(Violation::new(Class::Stuck, what));
    }
}
