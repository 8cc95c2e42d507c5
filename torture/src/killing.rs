//! Kills: where, when, and what comes after.
//!
//! Half of the kills strike at a named step of the service, all steps and several hits of each in turn; the others at
//! any moment, some of them while the service is still starting and recovering.
//!
//! Guarantees: a service that dies without having been told to, does not start, or takes too long to start is accused.

use std::time::Duration;

use anyhow::Result;

use crate::arguments::Flow;
use crate::chronicle::{Class, Violation};
use crate::dice::Dice;
use crate::unplugging;
use crate::world::{CrashAt, Cut, DiskKind, Process, Start, World};

/// A start that takes longer than this is stuck.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// How long a step is waited for before the service is killed all the same: submissions take several calls.
const STEP_PATIENCE: Duration = Duration::from_millis(1800);
const SUBMISSION_STEP_PATIENCE: Duration = Duration::from_secs(6);
/// Longer than the Document Server repeats: what it could not deliver is forgotten by then.
const LONG_PAUSE_MS: std::ops::Range<u64> = 500..1100;
/// Hits of one step that are tried in turn.
const HITS: u64 = 4;

/// One life of the service and its end.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) end: End,
    /// How long it is dead afterwards.
    pub(crate) pause: Duration,
    pub(crate) cut: Cut,
    /// Stopped and continued before its end, as on an overloaded machine.
    pub(crate) freeze: Option<Duration>,
    /// Left alone for so long first.
    pub(crate) calm: Option<Duration>,
}

/// How a life ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// At a hit of a step.
    AtStep(CrashAt),
    /// After the storage has died at a hit of a step; at that step itself where there is no storage server.
    StorageAtStep(CrashAt),
    /// So long after it was started.
    After(Duration),
}

/// What a life came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The step it was to die at, and whether it did.
    pub(crate) step: Option<(String, bool)>,
    pub(crate) start_took: Duration,
}

/// The lives of a round. Steps go on where the round before stopped.
pub(crate) fn lives(
    dice: &mut Dice,
    (flow, steps): (Flow, &[String]),
    kills: std::ops::Range<u64>,
) -> Vec<Life> {
    let calm_at = dice.number(kills.start..kills.end.max(kills.start + 1));
    kills.map(|number| life(dice, (flow, steps), (number, calm_at))).collect()
}

fn life(dice: &mut Dice, (flow, steps): (Flow, &[String]), (number, calm_at): (u64, u64)) -> Life {
    let count = steps.len() as u64;
    let end = if number % 2 == 0 && count > 0 {
        let turn = number / 2;
        let step = steps[usize::try_from(turn % count).unwrap_or(0)].clone();
        let crash_at = CrashAt { step, hit: 1 + turn / count % HITS };
        // Every step has both in turn.
        if (turn + turn / count) % 2 == 0 { End::AtStep(crash_at) } else { End::StorageAtStep(crash_at) }
    } else {
        let spans = match flow {
            Flow::Documents => [(3, 0..150), (4, 150..700), (2, 700..1600)],
            Flow::Submissions => [(2, 0..400), (4, 400..1800), (3, 1800..4500)],
        };
        let range = dice.weighted(&spans).clone();
        End::After(Duration::from_millis(dice.number(range)))
    };
    let is_calm = number == calm_at;
    let range = dice.weighted(&[(5, 0..1), (3, 10..250), (2, LONG_PAUSE_MS)]).clone();
    Life {
        end: if is_calm { End::After(Duration::from_millis(dice.number(6000..6400))) } else { end },
        pause: Duration::from_millis(dice.number(range)),
        cut: if dice.happens(60) { Cut::Clean } else { Cut::Torn(dice.number(0..u64::MAX)) },
        freeze: (!is_calm && dice.happens(6)).then(|| Duration::from_millis(dice.number(50..1500))),
        calm: is_calm.then_some(Duration::from_secs(6)),
    }
}

/// Starts the service and waits until it answers. `None` if it cannot be used, which is accused.
pub(crate) async fn start(world: &World, crash_at: Option<&CrashAt>) -> Result<Option<Process>> {
    let mut process = world.launcher.start(crash_at)?;
    match process.ready(START_PATIENCE).await {
        Start::Ready => Ok(Some(process)),
        Start::Died if crash_at.is_some() => Ok(Some(process)),
        Start::Died | Start::TooSlow => {
            let what = format!("the service did not start: {:?}", process.exit());
            world.chronicle.accuse(Violation::new(Class::Stuck, what));
            process.kill().await?;
            Ok(None)
        }
    }
}

/// Lets the service live a life to its end.
pub(crate) async fn live(world: &World, life: &Life) -> Result<Outcome> {
    let outcome = match (&life.end, &world.storage) {
        (End::StorageAtStep(at), Some(storage)) => unplugging::live(world, storage, at).await?,
        _ => live_alone(world, life).await?,
    };
    if world.disk.kind() == DiskKind::PowerLoss {
        let _in_place = world.disk_in_place.write().await;
        world.disk.cut(life.cut).await?;
    }
    Ok(outcome)
}

async fn live_alone(world: &World, life: &Life) -> Result<Outcome> {
    let crash_at = match &life.end {
        End::AtStep(crash_at) | End::StorageAtStep(crash_at) => Some(crash_at),
        End::After(_) => None,
    };
    if let Some(calm) = life.calm {
        world.promise_calm(calm);
    }
    let mut process = world.launcher.start(crash_at)?;
    if let Some(time) = life.freeze {
        process.ready(START_PATIENCE).await;
        process.freeze_for(time).await?;
    }
    let (outcome, end) = match &life.end {
        End::AtStep(crash_at) | End::StorageAtStep(crash_at) => {
            until_step(world, &mut process, crash_at).await
        }
        End::After(time) => until_time(world, &mut process, *time).await,
    };
    strike(world, process, &end).await?;
    Ok(outcome)
}

/// Kills the service.
pub(crate) async fn strike(world: &World, process: Process, when: &str) -> Result<()> {
    world.chronicle.note(format!("kill {}: {when}", world.kills() + 1));
    world.count_kill();
    process.kill().await
}

/// Waits until the service answers, and returns how long that took.
pub(crate) async fn await_start(world: &World, process: &mut Process) -> Duration {
    let start = process.ready(START_PATIENCE).await;
    check_start(world, start, process);
    process.started.elapsed()
}

async fn until_step(world: &World, process: &mut Process, crash_at: &CrashAt) -> (Outcome, String) {
    let CrashAt { step, hit } = crash_at;
    let start = process.ready(START_PATIENCE).await;
    let start_took = process.started.elapsed();
    check_start(world, start, process);
    let patience = match world.setting.conditions.flow {
        Flow::Documents => STEP_PATIENCE,
        Flow::Submissions => SUBMISSION_STEP_PATIENCE,
    };
    let has_died = process.died_within(patience).await;
    if has_died {
        check_exit(world, process, Expected::Abort);
    }
    let end =
        if has_died { format!("at {step}, hit {hit}") } else { format!("in vain for {step}, hit {hit}") };
    (Outcome { step: Some((step.clone(), has_died)), start_took }, end)
}

async fn until_time(world: &World, process: &mut Process, time: Duration) -> (Outcome, String) {
    let deadline = process.started + time;
    let start = tokio::time::timeout_at(deadline, process.ready(START_PATIENCE)).await;
    let start_took = process.started.elapsed();
    if let Ok(start) = start {
        check_start(world, start, process);
    }
    tokio::time::sleep_until(deadline).await;
    if process.is_dead() {
        check_exit(world, process, Expected::Alive);
    }
    (Outcome { step: None, start_took }, format!("after {} ms", time.as_millis()))
}

fn check_start(world: &World, start: Start, process: &mut Process) {
    if start == Start::TooSlow {
        let what = format!("the service did not answer {} s after its start", START_PATIENCE.as_secs());
        world.chronicle.accuse(Violation::new(Class::Stuck, what));
    }
    if start == Start::Died {
        check_exit(world, process, Expected::Abort);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Alive,
    /// Its own end at a step is an abort.
    Abort,
}

/// A service that ends by itself, or by anything else than the abort it was told to, is broken.
fn check_exit(world: &World, process: &mut Process, expected: Expected) {
    let exit = process.exit();
    let was_aborted = exit.is_some_and(|exit| {
        use std::os::unix::process::ExitStatusExt as _;
        exit.signal() == Some(6)
    });
    if expected == Expected::Alive || !was_aborted {
        let what = format!("the service ended by itself: {exit:?}");
        world.chronicle.accuse(Violation::new(Class::Stuck, what));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn at_every_step_the_service_and_the_storage_are_killed_in_turn() {
        let steps: Vec<String> = (0..6).map(|number| format!("step.{number}")).collect();
        let kills = 4 * steps.len() as u64;

        let lives = lives(&mut Dice::of(1), (Flow::Documents, &steps), 0..kills);

        let (mut service, mut storage) = (BTreeSet::new(), BTreeSet::new());
        for life in lives {
            match life.end {
                End::AtStep(at) => drop(service.insert(at.step)),
                End::StorageAtStep(at) => drop(storage.insert(at.step)),
                End::After(_) => {}
            }
        }
        // One life of a round is left alone for long instead.
        assert!(
            service.len() >= steps.len() - 1 && storage.len() >= steps.len() - 1,
            "{service:?} {storage:?}"
        );
    }
}
