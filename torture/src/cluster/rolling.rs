//! A rolling restart under load: each instance is asked to stop, ends, and is started again, one after the other, while people edit.
//!
//! Guarantees: every instance ends well and comes back; every save is answered 0 by somebody before the Document Server gives up, so
//! that no forgotten file is ever made; and everything that is checked at the end of a round holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::Instant;

use super::fleet::{self, cluster};
use super::round::close;
use crate::checking::Facts;
use crate::chronicle::{Class, Violation};
use crate::dice::Dice;
use crate::report::{Totals, tell};
use crate::round::{self, Report, Stage};
use crate::run::{self, Plan};
use crate::world::{Process, Weather, World};

/// Longer than the balancer needs to see that an instance is not ready.
const NOTICE_MS: &str = "500";
/// An instance that has not ended by then is stuck.
const END_PATIENCE: Duration = Duration::from_secs(40);
/// The balancer takes an instance back within this time.
const BACK_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Between two instances.
const PAUSE_MS: std::ops::Range<u64> = 0..800;

/// Restarts all instances so many times.
pub(crate) async fn run(plan: &Plan, times: u64) -> Result<Totals> {
    // Nobody is killed at a step.
    let plan = Plan { all_steps: Arc::default(), ..plan.clone() };
    let plan = plan.under(|conditions| {
        conditions.weather = Weather::Mild;
        if let Some(shape) = &mut conditions.cluster {
            shape.settings.push(("STOPPING_NOTICE_MS", NOTICE_MS.to_owned()));
        }
    });
    let mut totals = Totals::new(&plan);
    let report = play(Arc::new(World::new(run::setting(&plan, 0)?).await?), times).await?;
    totals.add(&report);
    run::clean_up(&plan, &report);
    Ok(totals)
}

async fn play(world: Arc<World>, times: u64) -> Result<Report> {
    let processes = fleet::start_all(&world).await?.context("the instances do not even start")?;
    round::prepare(&world).await?;
    let mut stage = Stage::begin(&world);
    let report = Report::begin(&world);
    let mut processes: Vec<Option<Process>> = processes.into_iter().map(Some).collect();
    let mut dice = Dice::of(world.setting.seed).part("rolling", 0);
    for time in 0..times {
        for (number, process) in processes.iter_mut().enumerate() {
            tokio::time::sleep(Duration::from_millis(dice.number(PAUSE_MS))).await;
            *process = restart(&world, number, process.take()).await?;
        }
        tell(&format!("rolling restart {} of {times} is over", time + 1));
    }
    let processes: Option<Vec<Process>> = processes.into_iter().collect();
    stage.end(&world).await?;
    if let Some(processes) = processes {
        close(&world, &mut stage, processes).await?;
    }
    check_saves(&world);
    Ok(report.end())
}

/// Stops an instance and starts it again; it is back when the balancer wants it.
async fn restart(world: &World, number: usize, process: Option<Process>) -> Result<Option<Process>> {
    let Some(process) = process else { return Ok(None) };
    world.chronicle.note(format!("instance {number} is asked to stop"));
    world.chronicle.count("instances restarted", 1);
    if !process.end(END_PATIENCE).await? {
        let what = format!("instance {number} did not end well");
        world.chronicle.accuse(Violation::new(Class::Stuck, what));
    }
    world.chronicle.note(format!("instance {number} has ended"));
    let Some(process) = fleet::start(world, number, None).await? else { return Ok(None) };
    let deadline = Instant::now() + BACK_PATIENCE;
    while !cluster(world)?.balancer.is_wanted(number) {
        if Instant::now() > deadline {
            let what = format!("instance {number} is not ready again");
            world.chronicle.accuse(Violation::new(Class::Stuck, what));
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    world.chronicle.note(format!("instance {number} is back"));
    Ok(Some(process))
}

/// Every save that was offered was acknowledged, if not at once then when it was repeated; nothing was forgotten. One whose answer was lost and
/// that the server took back, because people were inside or another save had its place, goes on in that one.
fn check_saves(world: &World) {
    let facts = Facts::of(world.editor.journal());
    let mut saves: BTreeMap<(&str, &str), (bool, u64)> = BTreeMap::new();
    for delivery in facts.deliveries.values().filter(|delivery| delivery.brings_content()) {
        let Some(path) = delivery.path.as_deref() else { continue };
        let (is_acknowledged, times) = saves.entry((&delivery.key, path)).or_default();
        *is_acknowledged |= delivery.is_acknowledged();
        *times += 1;
    }
    for ((key, path), (is_acknowledged, times)) in saves {
        world.chronicle.count("saves", 1);
        world.chronicle.count("saves that had to be repeated", u64::from(times > 1));
        let is_taken_back = facts.dropped.contains(path);
        world.chronicle.count("saves that the server took back", u64::from(is_taken_back));
        if !is_acknowledged && !is_taken_back {
            let what = format!("the save {path} was never answered 0, in {times} deliveries");
            world.chronicle.accuse(Violation::new(Class::Lost, what).of_key(key));
        }
    }
    if facts.forgotten > 0 {
        let what = format!("{} saves could not be delivered and were forgotten files", facts.forgotten);
        world.chronicle.accuse(Violation::new(Class::Lost, what));
    }
}
