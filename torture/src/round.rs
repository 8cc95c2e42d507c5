//! One round: a world is made, filled with life, killed again and again, brought to rest and checked.
//!
//! Guarantees: everything a round does follows from its setting and its seed, as far as real processes allow. What goes
//! wrong in the harness itself is an error, never a finding.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;

use crate::checking::{Facts, Ledger, check_after_kill, check_at_rest, check_stored};
use crate::chronicle::{Class, Violation};
use crate::dice::Dice;
use crate::killing::{self, Life, Outcome};
use crate::watching::{self, Seen};
use crate::world::{Cut, DiskKind, Process, Setting, Weather, World};
use crate::{load, settling, unplugging};

/// How long the players may take to finish their scenes.
const LAST_SCENES: Duration = Duration::from_secs(40);
/// Time for the first round of recovery after a start.
const FIRST_ROUND: Duration = Duration::from_millis(250);

/// What a round came to.
pub(crate) struct Report {
    pub(crate) world: Arc<World>,
    pub(crate) kills: u64,
    /// How often the service was to die at each step, and how often it did.
    pub(crate) steps: BTreeMap<String, (u64, u64)>,
    /// Steps the service took at all.
    pub(crate) steps_seen: Vec<String>,
    pub(crate) slowest_start: Duration,
    pub(crate) took: Duration,
    began: Instant,
}

impl Report {
    /// Of a round that begins.
    pub(crate) fn begin(world: &Arc<World>) -> Self {
        Self {
            world: Arc::clone(world),
            kills: 0,
            steps: BTreeMap::new(),
            steps_seen: Vec::new(),
            slowest_start: Duration::ZERO,
            took: Duration::ZERO,
            began: Instant::now(),
        }
    }

    /// A life came to its end.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.slowest_start = self.slowest_start.max(outcome.start_took);
        if let Some((step, has_died)) = outcome.step {
            let (tried, died) = self.steps.entry(step).or_default();
            *tried += 1;
            *died += u64::from(has_died);
        }
    }

    /// The round is over.
    pub(crate) fn end(mut self) -> Self {
        self.kills = self.world.kills();
        self.steps_seen = steps_seen(&self.world);
        self.took = self.began.elapsed();
        self
    }
}

/// Plays one round.
pub(crate) async fn play(setting: Setting, lives: Vec<Life>) -> Result<Report> {
    let world = Arc::new(World::new(setting).await?);
    let process = killing::start(&world, None).await?.context("the service does not even start")?;
    prepare(&world).await?;
    let mut stage = Stage::begin(&world);
    let mut report = Report::begin(&world);
    tokio::time::sleep(Duration::from_millis(300)).await;
    process.kill().await?;
    end_power(&world, Cut::Clean).await?;
    for life in &lives {
        let outcome = killing::live(&world, life).await?;
        report.add(outcome);
        after_kill(&world, &stage.seen).await?;
        if is_caught(&world) {
            break;
        }
        tokio::time::sleep(life.pause).await;
    }
    if !is_caught(&world) {
        finish(&world, &mut stage).await?;
    }
    Ok(report.end())
}

/// A mutant is dead with the first finding: what it broke may take for ever to come to rest.
pub(crate) fn is_caught(world: &World) -> bool {
    world.setting.conditions.mutant.is_some() && !world.chronicle.violations().is_empty()
}

pub(crate) async fn prepare(world: &World) -> Result<()> {
    let prepared = async {
        world.host.set_up().await?;
        load::bring_documents(world).await
    };
    match prepared.await {
        Ok(()) => Ok(()),
        Err(refused) => bail!("the service does not take the first documents: {refused:?}"),
    }
}

/// Everybody who acts in a round.
pub(crate) struct Stage {
    players: JoinSet<()>,
    around: JoinSet<Result<()>>,
    pub(crate) watchers: JoinSet<()>,
    pub(crate) seen: Arc<Seen>,
}

impl Stage {
    pub(crate) fn begin(world: &Arc<World>) -> Self {
        let dice = Dice::of(world.setting.seed);
        let (mut players, mut around, mut watchers) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
        load::begin(world, &mut players);
        players.spawn(load::upload_more(Arc::clone(world), dice.part("uploads", 0)));
        let has_outage = world.setting.conditions.outage.is_some();
        // A crash would end the very sessions that save during an outage.
        if world.setting.conditions.weather == Weather::Rough && !has_outage {
            around.spawn(load::crash_the_editor(Arc::clone(world), dice.part("crashes", 0)));
        }
        if !has_outage {
            around.spawn(unplugging::strike_at_random(Arc::clone(world), dice.part("unplugging", 0)));
        }
        let seen = watching::begin(world, &mut watchers);
        Self { players, around, watchers, seen }
    }

    /// The curtain falls; everybody finishes.
    pub(crate) async fn end(&mut self, world: &World) -> Result<()> {
        world.curtain.cancel();
        while let Some(ended) = self.around.join_next().await {
            ended??;
        }
        let last_scenes = async {
            while let Some(ended) = self.players.join_next().await {
                ended?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(LAST_SCENES, last_scenes).await.context("the players do not finish")?
    }
}

pub(crate) async fn end_power(world: &World, cut: Cut) -> Result<()> {
    if world.disk.kind() == DiskKind::PowerLoss {
        let _in_place = world.disk_in_place.write().await;
        world.disk.cut(cut).await?;
    }
    Ok(())
}

async fn after_kill(world: &World, seen: &Seen) -> Result<()> {
    let published = check_after_kill(world).await?;
    check_stored(world);
    if world.disk.kind() == DiskKind::PowerLoss {
        seen.expect_only(published);
    }
    Ok(())
}

/// Brings the world to rest, restarts it twice more, and checks everything.
pub(crate) async fn finish(world: &Arc<World>, stage: &mut Stage) -> Result<()> {
    world.editor.clear_faults().await;
    let Some(process) = killing::start(world, None).await? else { return Ok(()) };
    stage.end(world).await?;
    world.editor.clear_faults().await;
    world.chronicle.note("the curtain has fallen");
    settling::rest(world).await;
    settling::visit_all(world).await;
    kill(world, process).await?;
    let Some(first) = restart_and_read(world).await? else { return Ok(()) };
    stage.watchers.shutdown().await;
    let Some(second) = restart_and_read(world).await? else { return Ok(()) };
    compare(world, &first, &second);
    check_at_rest(world, second, &stage.seen);
    verify(world).await
}

pub(crate) async fn kill(world: &World, process: Process) -> Result<()> {
    process.kill().await?;
    end_power(world, Cut::Clean).await
}

/// Starts the service, lets it recover, kills it, and reads its ledger.
pub(crate) async fn restart_and_read(world: &Arc<World>) -> Result<Option<Ledger>> {
    let Some(process) = killing::start(world, None).await? else { return Ok(None) };
    tokio::time::sleep(FIRST_ROUND).await;
    settling::rest(world).await;
    kill(world, process).await?;
    Ledger::of(world).await
}

/// Recovery with nothing to do changes nothing.
pub(crate) fn compare(world: &World, first: &Ledger, second: &Ledger) {
    let gone = first.dump.iter().filter(|line| !second.dump.contains(line)).map(|line| format!("- {line}"));
    let new = second.dump.iter().filter(|line| !first.dump.contains(line)).map(|line| format!("+ {line}"));
    let differences: Vec<String> = gone.chain(new).take(10).collect();
    if !differences.is_empty() {
        let what = format!("a restart with nothing to do changed the ledger:\n{}", differences.join("\n"));
        world.chronicle.accuse(Violation::new(Class::Duplicated, what));
    }
}

/// The service's own proof, every byte read. Blobs no row names are no fault: they are adopted when they are old.
pub(crate) async fn verify(world: &World) -> Result<()> {
    let (printed, code) = world.launcher.run(&["verify", "--read-data", "--json"]).await?;
    let report: serde_json::Value = serde_json::from_str(printed.trim())
        .with_context(|| format!("verify printed {printed:?}, code {code:?}"))?;
    for finding in report["findings"].as_array().into_iter().flatten() {
        if finding["invariant"] != "unnamed-blob" {
            let what = format!("verify: {}: {}", finding["invariant"], finding["what"]);
            world.chronicle.accuse(Violation::new(Class::Damaged, what));
        }
    }
    let facts = Facts::of(world.editor.journal());
    world.chronicle.count("understudy lives", facts.crashes + 1);
    Ok(())
}

fn steps_seen(world: &World) -> Vec<String> {
    let text = std::fs::read_to_string(&world.launcher.steps).unwrap_or_default();
    let mut steps: Vec<String> = text.lines().map(str::to_owned).collect();
    steps.sort();
    steps.dedup();
    steps
}
