//! What goes wrong beside the instances: engines die and come back, the network is cut or freezes, clocks are stepped.
//!
//! Guarantees: one trouble at a time, each with its end, but for a Redis that is switched off in the middle of the round; everything is
//! written down with its time. When the troubles end, everything is whole again. Does not do: kill instances; `fleet` does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio_util::sync::CancellationToken;

use super::fleet::cluster;
use super::wire::{Way, Wire};
use super::{Cluster, RedisFate};
use crate::dice::Dice;
use crate::world::World;

/// Between two troubles.
const PAUSE_MS: std::ops::Range<u64> = 300..1800;
/// How long something is away. The long ones outlast the time after which an instance loses its turns (5 s).
const AWAY_MS: [(u64, std::ops::Range<u64>); 3] = [(5, 20..400), (4, 400..1800), (1, 5200..6500)];
/// How wrong a clock may get. Beyond a minute tokens are refused, as they should be.
const CLOCK_MS: u64 = 30_000;
/// When a Redis that is to be switched off goes.
const MIDDLE_MS: std::ops::Range<u64> = 2_500..6_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    LedgerRestart,
    LedgerWire(Way),
    SignalsFlush,
    SignalsRestart,
    SignalsWire(Way),
    ClockStep,
}

const TROUBLES: [(u64, Trouble); 8] = [
    (3, Trouble::LedgerRestart),
    (4, Trouble::LedgerWire(Way::Cut)),
    (4, Trouble::LedgerWire(Way::Frozen)),
    (2, Trouble::SignalsFlush),
    (2, Trouble::SignalsRestart),
    (2, Trouble::SignalsWire(Way::Cut)),
    (2, Trouble::SignalsWire(Way::Frozen)),
    (3, Trouble::ClockStep),
];

/// Makes trouble until it is told to stop.
pub(super) async fn make(world: Arc<World>, mut dice: Dice, stop: CancellationToken) -> Result<()> {
    let cluster = cluster(&world)?;
    let fate = world.setting.conditions.cluster.as_ref().map_or(RedisFate::Off, |shape| shape.redis);
    let middle = tokio::time::Instant::now() + Duration::from_millis(dice.number(MIDDLE_MS));
    let mut is_signalling = cluster.signals.is_some();
    while wait(&stop, Duration::from_millis(dice.number(PAUSE_MS))).await {
        if fate == RedisFate::Cut && is_signalling && tokio::time::Instant::now() >= middle {
            is_signalling = false;
            world.chronicle.note("Redis is switched off for good");
            world.chronicle.count("trouble: Redis is switched off for good", 1);
            cluster.signals.as_ref().context("there is a Redis")?.kill().await?;
        }
        let trouble = *dice.weighted(&TROUBLES);
        if is_signalling || !trouble.is_of_signals() {
            trouble.make(&world, (cluster, &mut dice)).await?;
        }
    }
    // Nothing of it is left for the end, but clocks stay wrong.
    for instance in &cluster.instances {
        instance.to_ledger.set(Way::Open);
        instance.to_signals.iter().for_each(|wire| wire.set(Way::Open));
    }
    // A round that is shorter than its middle switches it off at the end.
    if fate == RedisFate::Cut && is_signalling {
        world.chronicle.note("Redis is switched off for good, at the end");
        cluster.signals.as_ref().context("there is a Redis")?.kill().await?;
    }
    Ok(())
}

/// Returns whether there is more to come.
async fn wait(stop: &CancellationToken, time: Duration) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = tokio::time::sleep(time) => true,
    }
}

impl Trouble {
    fn is_of_signals(self) -> bool {
        matches!(self, Self::SignalsFlush | Self::SignalsRestart | Self::SignalsWire(_))
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::LedgerRestart => "PostgreSQL dies and comes back",
            Self::LedgerWire(Way::Cut) => "an instance is cut off from PostgreSQL",
            Self::LedgerWire(_) => "the network between an instance and PostgreSQL freezes",
            Self::SignalsFlush => "Redis is flushed",
            Self::SignalsRestart => "Redis is killed and comes back empty",
            Self::SignalsWire(Way::Cut) => "an instance is cut off from Redis",
            Self::SignalsWire(_) => "the network between an instance and Redis freezes",
            Self::ClockStep => "the clock of an instance is stepped",
        }
    }

    async fn make(self, world: &World, (cluster, dice): (&Cluster, &mut Dice)) -> Result<()> {
        let number = usize::try_from(dice.number(0..cluster.instances.len() as u64)).unwrap_or(0);
        let instance = &cluster.instances[number];
        let range = dice.weighted(&AWAY_MS).clone();
        let away = Duration::from_millis(dice.number(range));
        world.chronicle.note(format!("{} (instance {number}, {} ms)", self.as_str(), away.as_millis()));
        world.chronicle.count(&format!("trouble: {}", self.as_str()), 1);
        let span = cluster.held_up.begin(world.chronicle.now_ms());
        match self {
            Self::LedgerRestart => cluster.ledger.crash_for(away).await?,
            Self::LedgerWire(way) => interrupt(&instance.to_ledger, way, away).await,
            Self::SignalsWire(way) => {
                if let Some(wire) = &instance.to_signals {
                    interrupt(wire, way, away).await;
                }
            }
            Self::SignalsFlush => {
                if let Some(signals) = &cluster.signals {
                    signals.flush().await?;
                }
            }
            Self::SignalsRestart => {
                if let Some(signals) = &cluster.signals {
                    signals.kill().await?;
                    tokio::time::sleep(away).await;
                    signals.restart().await?;
                }
            }
            Self::ClockStep => {
                let offset_ms = i128::from(dice.number(0..2 * CLOCK_MS)) - i128::from(CLOCK_MS);
                std::fs::write(&instance.clock, offset_ms.to_string())?;
                world.chronicle.note(format!("the clock of instance {number} is wrong by {offset_ms} ms"));
            }
        }
        cluster.held_up.end(span, world.chronicle.now_ms());
        world.chronicle.note(format!("over: {}", self.as_str()));
        Ok(())
    }
}

async fn interrupt(wire: &Wire, way: Way, time: Duration) {
    wire.set(way);
    tokio::time::sleep(time).await;
    wire.set(Way::Open);
}
