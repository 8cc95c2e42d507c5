//! One round with several instances: the same world, load and checks as with one, and instances that die each by itself.
//!
//! Guarantees: as `crate::round`. At rest every instance runs, and everything that holds for one service holds for all of them
//! together; the history of every document has an order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fleet::{self, Check, Lives};
use super::troubles;
use crate::checking::{Ledger, check_after_kill, check_at_rest, check_order};
use crate::dice::Dice;
use crate::killing::{End, Life};
use crate::round::{self, Report, Stage, is_caught};
use crate::settling;
use crate::world::{Process, Setting, Weather, World};

/// Long scenes need this much time without a kill.
const CALM: Duration = Duration::from_secs(6);
/// Past the five seconds after which an instance that says nothing loses its turns.
const LONG_STOP_MS: std::ops::Range<u64> = 5_500..7_000;
/// How many of a hundred lives have such a stop.
const LONG_STOPS: u64 = 12;
/// Time for the first round of recovery after a start.
const FIRST_ROUND: Duration = Duration::from_millis(250);

/// Plays one round.
pub(crate) async fn play(setting: Setting, lives: Vec<Life>) -> Result<Report> {
    let world = Arc::new(World::new(setting).await?);
    let processes = fleet::start_all(&world).await?.context("the instances do not even start")?;
    round::prepare(&world).await?;
    let mut stage = Stage::begin(&world);
    let mut report = Report::begin(&world);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let check: Check = {
        let world = Arc::clone(&world);
        Arc::new(move || {
            let world = Arc::clone(&world);
            Box::pin(async move { check_after_kill(&world).await.map(drop) })
        })
    };
    if let Some(processes) = live_through(&world, processes, (lives, check), &mut report).await? {
        finish(&world, &mut stage, processes).await?;
    }
    Ok(report.end())
}

/// Instances die, engines and the network fail, until all lives are spent. Returns the instances, alive and left alone; `None` if there is no
/// use in going on.
pub(crate) async fn live_through(
    world: &Arc<World>,
    processes: Vec<Process>,
    (mut lives, check): (Vec<Life>, Check),
    report: &mut Report,
) -> Result<Option<Vec<Process>>> {
    let dice = Dice::of(world.setting.seed);
    stop_some(&mut lives, &mut dice.part("stops", 0));
    let (stop, mut around) = (CancellationToken::new(), JoinSet::new());
    around.spawn(troubles::make(Arc::clone(world), dice.part("troubles", 0), stop.clone()));
    let (lives, mut living) = (Lives::new(lives), JoinSet::new());
    for (number, process) in processes.into_iter().enumerate() {
        living.spawn(fleet::live_on(
            Arc::clone(world),
            (number, process),
            (lives.clone(), Arc::clone(&check)),
        ));
    }
    let mut processes = Vec::new();
    while let Some(ended) = living.join_next().await {
        processes.extend(ended??);
    }
    lives.report_to(report);
    stop.cancel();
    while let Some(ended) = around.join_next().await {
        ended??;
    }
    let are_all_up = processes.len() == fleet::cluster(world)?.instances.len();
    Ok((!is_caught(world) && are_all_up).then_some(processes))
}

/// Some instances are stopped for so long that others take their turns, and wake up again in the middle of their work.
fn stop_some(lives: &mut [Life], dice: &mut Dice) {
    for life in lives {
        // A calm life is for one service; with several, everybody is left alone at the end of the round.
        if life.calm.take().is_some() {
            life.end = End::After(Duration::from_millis(dice.number(150..1600)));
        }
        if dice.happens(LONG_STOPS) {
            life.freeze = Some(Duration::from_millis(dice.number(LONG_STOP_MS)));
        }
    }
}

/// Leaves everybody alone for a while, brings the world to rest, restarts it twice more, and checks everything.
async fn finish(world: &Arc<World>, stage: &mut Stage, processes: Vec<Process>) -> Result<()> {
    if world.setting.conditions.weather == Weather::Rough {
        world.promise_calm(CALM);
        tokio::time::sleep(CALM).await;
    }
    world.editor.clear_faults().await;
    stage.end(world).await?;
    world.editor.clear_faults().await;
    world.chronicle.note("the curtain has fallen");
    close(world, stage, processes).await
}

/// Everybody has left: brings the world to rest and checks everything.
pub(super) async fn close(world: &Arc<World>, stage: &mut Stage, processes: Vec<Process>) -> Result<()> {
    settling::rest(world).await;
    settling::visit_all(world).await;
    fleet::kill_all(processes).await?;
    let Some(first) = restart_and_read(world).await? else { return Ok(()) };
    stage.watchers.shutdown().await;
    let Some(second) = restart_and_read(world).await? else { return Ok(()) };
    round::compare(world, &first, &second);
    check_order(world, &second);
    check_at_rest(world, second, &stage.seen);
    round::verify(world).await
}

/// Starts all instances, lets them recover, kills them, and reads the ledger.
pub(crate) async fn restart_and_read(world: &Arc<World>) -> Result<Option<Ledger>> {
    let Some(processes) = fleet::start_all(world).await? else { return Ok(None) };
    tokio::time::sleep(FIRST_ROUND).await;
    settling::rest(world).await;
    fleet::kill_all(processes).await?;
    Ledger::of(world).await
}
