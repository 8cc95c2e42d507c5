//! Kills of the storage server: at any moment, and while the service is at a named step.
//!
//! Guarantees: the storage is back, and left alone, when the curtain has fallen. While it is away the service may put saves off or keep
//! them in its depot; what it answers 0 meanwhile is held against what lies on the disks (`checking::check_stored`).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::Instant;

use crate::checking::check_stored;
use crate::dice::Dice;
use crate::killing::{self, Outcome};
use crate::world::{CrashAt, Process, Storage, World};

/// How long a step is waited for before the storage is killed all the same.
const STEP_PATIENCE: Duration = Duration::from_millis(1800);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// How long the storage is away, in milliseconds: hardly, a while, and longer than the Document Server repeats.
const AWAY_MS: [(u64, std::ops::Range<u64>); 3] = [(5, 0..60), (3, 60..500), (2, 500..2500)];

/// Lets the storage die now and then, or freeze, until the curtain falls.
pub(crate) async fn strike_at_random(world: Arc<World>, mut dice: Dice) -> Result<()> {
    let Some(storage) = &world.storage else { return Ok(()) };
    loop {
        let pause = Duration::from_millis(dice.number(200..3_000));
        tokio::select! {
            () = world.curtain.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        // A long scene is about time, which an outage would take away.
        if !world.calm_left().is_zero() {
            continue;
        }
        let away = away(&mut dice);
        let _turn = storage.turn().await;
        if dice.happens(15) {
            world.chronicle.note(format!("the storage freezes for {} ms", away.as_millis()));
            world.chronicle.count("storage frozen", 1);
            storage.freeze().await?;
            tokio::time::sleep(away).await;
            storage.thaw().await?;
        } else {
            kill(&world, storage, "at any moment").await?;
            tokio::time::sleep(away).await;
            storage.start_again().await?;
        }
    }
}

/// A life of the service in which the storage dies while the service is at a step; then the service dies, before the storage is back or after.
pub(crate) async fn live(world: &World, storage: &Storage, at: &CrashAt) -> Result<Outcome> {
    let mut dice = Dice::of(world.setting.seed).part("unplugging", world.kills());
    let held = world.setting.folder.join("held");
    let mut process = world.launcher.start_held(at, &held)?;
    let start_took = killing::await_start(world, &mut process).await;
    let has_come = comes(&mut process, &held).await;
    let _turn = storage.turn().await;
    let (step, hit) = (&at.step, at.hit);
    let words = if has_come { "the service is at" } else { "the service did not come to" };
    kill(world, storage, &format!("{words} {step}, hit {hit}")).await?;
    remove(&held)?;
    let (away, rest) = (away(&mut dice), Duration::from_millis(dice.number(0..900)));
    tokio::time::sleep(away).await;
    if dice.happens(50) {
        storage.start_again().await?;
        tokio::time::sleep(rest).await;
        killing::strike(world, process, &format!("after the storage came back, {step}")).await?;
    } else {
        killing::strike(world, process, &format!("while the storage was away, {step}")).await?;
        check_stored(world);
        storage.start_again().await?;
    }
    // It may have been about to be held when it died.
    remove(&held)?;
    Ok(Outcome { step: Some((step.clone(), has_come)), start_took })
}

async fn kill(world: &World, storage: &Storage, when: &str) -> Result<()> {
    storage.kill().await?;
    world.chronicle.note(format!("storage kill {}: {when}", storage.kills()));
    world.chronicle.count(STORAGE_KILLED, 1);
    Ok(())
}

/// The line of the summary.
pub(crate) const STORAGE_KILLED: &str = "storage killed";

fn away(dice: &mut Dice) -> Duration {
    let range = dice.weighted(&AWAY_MS).clone();
    Duration::from_millis(dice.number(range))
}

/// Whether the service comes to the step at which it is held.
async fn comes(process: &mut Process, held: &std::path::Path) -> bool {
    let deadline = Instant::now() + STEP_PATIENCE;
    while Instant::now() < deadline && !process.is_dead() {
        if held.exists() {
            return true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    false
}

fn remove(file: &std::path::Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(cause).context("the service cannot be let go on")
        }
        _ => Ok(()),
    }
}
