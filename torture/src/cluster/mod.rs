//! Several instances on one PostgreSQL, one Redis and one shared folder, behind a balancer.
//!
//! A round is played as with one service ([`round`], or `submissions`), with the same load and the same checks. What differs: every instance lives and
//! dies by itself ([`fleet`]), the engines and the network fail beside it ([`troubles`]), and what clients were told is held
//! against one order of everything (`checking::order`). [`seed1`] and [`rolling`] are modes of their own.
//!
//! Guarantees: nothing is shared between two rounds but the machine and the server programs.

mod balancer;
mod engines;
mod files;
mod fleet;
mod rolling;
mod round;
mod seed1;
mod troubles;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::dice::Dice;
use crate::world::{Host, Launcher, Setting, free_port};
use balancer::Balancer;
pub(crate) use engines::LedgerEngine;
use engines::SignalsEngine;
pub(crate) use fleet::{Check, kill_all, start_all};
pub(crate) use rolling::run as run_rolling;
pub(crate) use round::{live_through, play, restart_and_read};
pub(crate) use seed1::run as run_seed1;
use wire::Wire;

/// How often the balancer asks whether an instance is ready.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Connections of one instance to PostgreSQL.
const CONNECTIONS: &str = "8";
/// Half of it is how long an answer may be on its way before its key counts as quiet (really 15 s). Instances and engines that are held
/// up need more of it than one service that is only killed, whose rounds are a second apart.
const ROUND_SECONDS: &str = "4";

/// What happens to Redis in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RedisFate {
    /// It is flushed, killed, cut off, and comes back.
    On,
    /// There is none.
    Off,
    /// In the middle of each round it is killed for good.
    Cut,
}

/// How many instances, and on what.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) instances: usize,
    pub(crate) redis: RedisFate,
    /// Settings of the service beside the usual ones.
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl Shape {
    /// What asks for it.
    pub(crate) fn as_arguments(&self) -> String {
        let redis = match self.redis {
            RedisFate::On => "",
            RedisFate::Off => " --redis off",
            RedisFate::Cut => " --redis cut",
        };
        format!("--instances {} --engine postgres{redis}", self.instances)
    }
}

/// What the instances of a round share, and where each of them is.
pub(crate) struct Cluster {
    pub(crate) instances: Vec<Instance>,
    pub(crate) balancer: Balancer,
    pub(crate) ledger: LedgerEngine,
    signals: Option<SignalsEngine>,
    held_up: HeldUp,
}

/// One instance, alive or not.
pub(crate) struct Instance {
    port: u16,
    /// Speaks to it past the balancer.
    pub(crate) host: Host,
    to_ledger: Wire,
    to_signals: Option<Wire>,
    /// Says by how much its clock is wrong.
    clock: PathBuf,
    settings: Vec<(String, OsString)>,
    log: PathBuf,
}

impl Cluster {
    /// Starts everything but the instances themselves.
    pub(crate) async fn start(setting: &Setting, shape: &Shape, now_ms: u64) -> Result<Self> {
        let dice = Dice::of(setting.seed);
        let ledger = LedgerEngine::start().await?;
        let signals = match shape.redis {
            RedisFate::Off => None,
            RedisFate::On | RedisFate::Cut => {
                let port = free_port(dice.part("redis", 0).seed())?;
                Some(SignalsEngine::start(port, &setting.folder.join("redis")).await?)
            }
        };
        let mut instances = Vec::new();
        for number in 0..shape.instances {
            let place =
                Place { setting, number, port: free_port(dice.part("instance", number as u64).seed())? };
            let engines = (&ledger, signals.as_ref());
            instances.push(place.instance(engines, (&shape.settings, now_ms)).await?);
        }
        let ports: Vec<u16> = instances.iter().map(|instance| instance.port).collect();
        let balancer = Balancer::before(&ports, (LOOK_EVERY, dice.part("balancer", 0))).await?;
        Ok(Self { instances, balancer, ledger, signals, held_up: HeldUp::default() })
    }

    /// The settings of one instance, beside those of all.
    pub(crate) fn settings_of(&self, number: usize) -> Vec<(String, OsString)> {
        self.instances.get(number).map(|instance| instance.settings.clone()).unwrap_or_default()
    }

    /// How one instance is started, where all have this in common.
    fn launcher(&self, common: &Launcher, number: usize) -> Launcher {
        let instance = &self.instances[number];
        let mut launcher = common.clone();
        launcher.port = instance.port;
        launcher.log.clone_from(&instance.log);
        // The last one counts.
        launcher.environment.extend(instance.settings.iter().cloned());
        launcher
    }

    /// How long, in that time, something stood between an instance and its work.
    pub(crate) fn held_up_ms(&self, from_ms: u64, to_ms: u64) -> u64 {
        self.held_up.overlap_ms(from_ms, to_ms)
    }
}

/// Where an instance is going to be.
struct Place<'a> {
    setting: &'a Setting,
    number: usize,
    port: u16,
}

impl Place<'_> {
    async fn instance(
        self,
        (ledger, signals): (&LedgerEngine, Option<&SignalsEngine>),
        (more, now_ms): (&[(&'static str, String)], u64),
    ) -> Result<Instance> {
        let folder = &self.setting.folder;
        let (data, clock) =
            (folder.join(format!("instance-{}", self.number)), folder.join(format!("clock-{}", self.number)));
        let to_ledger = Wire::to(ledger.port()).await?;
        let to_signals = match signals {
            Some(signals) => Some(Wire::to(signals.port).await?),
            None => None,
        };
        let settings: Vec<(String, OsString)> = [
            ("SERVER_LISTEN", format!("127.0.0.1:{}", self.port)),
            ("SERVER_DATA", data.display().to_string()),
            ("LEDGER_ENGINE", "postgres".to_owned()),
            ("LEDGER_URL", ledger.url(to_ledger.port)),
            ("LEDGER_CONNECTIONS_MAX", CONNECTIONS.to_owned()),
            ("RECOVERING_INTERVAL_SECONDS", ROUND_SECONDS.to_owned()),
            // Where one service would have its own.
            ("VAULT_FOLDER", folder.join("data").display().to_string()),
            ("TORTURE_CLOCK_IN", clock.display().to_string()),
        ]
        .into_iter()
        .chain(to_signals.iter().map(|wire| ("SIGNALS_REDIS", format!("redis://127.0.0.1:{}", wire.port))))
        .chain(more.iter().cloned())
        .map(|(name, value)| (format!("SAVEGUARD_{name}"), value.into()))
        .collect();
        Ok(Instance {
            port: self.port,
            host: Host::new(&format!("http://127.0.0.1:{}", self.port), now_ms)?,
            to_ledger,
            to_signals,
            clock,
            settings,
            log: folder.join(format!("instance-{}.log", self.number)),
        })
    }
}

/// When something stood between an instance and its work: its process was stopped, an engine was away, the network was cut. What takes
/// longer by that is nobody's fault.
#[derive(Debug, Default)]
struct HeldUp {
    spans: Mutex<Vec<(u64, Option<u64>)>>,
}

impl HeldUp {
    /// From now on. Returns its number.
    fn begin(&self, now_ms: u64) -> usize {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push((now_ms, None));
        spans.len() - 1
    }

    fn end(&self, number: usize, now_ms: u64) {
        if let Some(span) = self.spans.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            span.1 = Some(now_ms);
        }
    }

    fn overlap_ms(&self, from_ms: u64, to_ms: u64) -> u64 {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let overlap = |(begun, ended): &(u64, Option<u64>)| {
            ended.unwrap_or(u64::MAX).min(to_ms).saturating_sub((*begun).max(from_ms))
        };
        spans.iter().map(overlap).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_in_between_counts() {
        let held_up = HeldUp::default();
        let first = held_up.begin(100);
        held_up.end(first, 200);
        held_up.begin(500);

        assert_eq!(held_up.overlap_ms(0, 100), 0);
        assert_eq!(held_up.overlap_ms(150, 400), 50);
        assert_eq!(held_up.overlap_ms(0, 600), 200);
    }
}
