//! The storage is away for a while under load: killed, or frozen so that it takes connections and never answers.
//!
//! Four rounds: both, with the depot forbidden and allowed. Guarantees: what is answered 0 meanwhile lies on a disk before the storage is
//! back; with the depot allowed saves are answered 0, and all of it is delivered afterwards by the same process; with it
//! forbidden they are answered 503, and what the Document Server forgot meanwhile is collected. Then everything is checked as at
//! the end of every round.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;
use tokio::time::Instant;
use understudy::machine::{Answer, Verdict};

use crate::checking::{Facts, check_stored};
use crate::chronicle::{Class, Violation};
use crate::report::tell;
use crate::round::{self, Report, Stage};
use crate::unplugging::STORAGE_KILLED;
use crate::world::{DepotUse, NoAnswer, Setting, Storage, World};
use crate::{killing, load, settling};

/// All that can be combined.
pub(crate) const ROUNDS: std::ops::Range<u64> = 0..4;
/// People who are in a document when it begins.
const HOLDERS: usize = 6;
/// Load before the outage, and after it.
const AROUND: Duration = Duration::from_secs(5);
/// For how long nothing may leave the depot although the storage is back, under load.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How the storage is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    Killed,
    Frozen,
}

impl Absence {
    fn of_round(round: u64) -> Self {
        if round < 2 { Self::Killed } else { Self::Frozen }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Frozen => "frozen",
        }
    }
}

/// Plays one round.
pub(crate) async fn play(setting: Setting) -> Result<Report> {
    let world = Arc::new(World::new(setting).await?);
    let time = world.setting.conditions.outage.context("an outage has a length")?;
    let process = killing::start(&world, None).await?.context("the service does not even start")?;
    round::prepare(&world).await?;
    let mut stage = Stage::begin(&world);
    let report = Report::begin(&world);
    let mut holders: JoinSet<Result<(), NoAnswer>> = JoinSet::new();
    for number in 0..HOLDERS {
        holders.spawn(load::hold_on(Arc::clone(&world), number, time));
    }
    tokio::time::sleep(AROUND).await;
    let counted = be_away(&world, time).await?;
    let delivered = await_delivery(&world).await;
    tell(&format!(
        "round {}: {} s without storage ({}), depot {}: {counted}; nothing waited {delivered} ms after it was back",
        world.setting.round,
        time.as_secs(),
        Absence::of_round(world.setting.round).as_str(),
        world.depot_use().as_str(),
    ));
    tokio::time::sleep(AROUND).await;
    stage.end(&world).await?;
    while let Some(ended) = holders.join_next().await {
        if let Err(refused) = ended? {
            bail!("the service does not take a document: {refused:?}");
        }
    }
    world.editor.clear_faults().await;
    settling::rest(&world).await;
    round::kill(&world, process).await?;
    round::finish(&world, &mut stage).await?;
    Ok(report.end())
}

/// Takes the storage away and brings it back. Returns how saves were answered meanwhile, in words.
async fn be_away(world: &World, time: Duration) -> Result<String> {
    let storage = world.storage.as_ref().context("only a far vault can be away")?;
    let absence = Absence::of_round(world.setting.round);
    let from_ms = world.chronicle.now_ms();
    world.chronicle.note(format!("the storage is away ({})", absence.as_str()));
    begin(world, storage, absence).await?;
    tokio::time::sleep(time).await;
    check_stored(world);
    let answers = Answers::between(&Facts::of(world.editor.journal()), (from_ms, world.chronicle.now_ms()));
    answers.judge(world)?;
    match absence {
        Absence::Killed => storage.start_again().await?,
        Absence::Frozen => storage.thaw().await?,
    }
    world.chronicle.note("the storage is back");
    Ok(answers.in_words())
}

async fn begin(world: &World, storage: &Storage, absence: Absence) -> Result<()> {
    match absence {
        Absence::Killed => {
            world.chronicle.count(STORAGE_KILLED, 1);
            storage.kill().await
        }
        Absence::Frozen => storage.freeze().await,
    }
}

/// Waits until the depot is empty, and returns after how many milliseconds it was.
async fn await_delivery(world: &World) -> u128 {
    let began = Instant::now();
    let (mut fewest, mut since) = (u64::MAX, began);
    while since.elapsed() < DELIVERY_PATIENCE {
        let status = world.host.get("/api/v1/operations/status").await.unwrap_or_default();
        let waiting = status["depot_blobs"].as_u64().unwrap_or(u64::MAX);
        if waiting == 0 {
            return began.elapsed().as_millis();
        }
        if waiting < fewest {
            (fewest, since) = (waiting, Instant::now());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let what = format!("{fewest} blobs wait in the depot and nothing leaves it although the storage is back");
    world.chronicle.accuse(Violation::new(Class::Stuck, what));
    began.elapsed().as_millis()
}

/// How saves were answered.
#[derive(Debug, Default)]
struct Answers {
    zero: u64,
    put_off: u64,
    other: u64,
}

impl Answers {
    fn between(facts: &Facts, (from_ms, until_ms): (u64, u64)) -> Self {
        let mut answers = Self::default();
        for delivery in facts.deliveries.values().filter(|delivery| delivery.brings_content()) {
            let Some((at_ms, answer, verdict)) = &delivery.answered else { continue };
            if delivery.sent_ms < from_ms || *at_ms > until_ms {
                continue;
            }
            match (verdict, answer) {
                (Verdict::Acknowledged, _) => answers.zero += 1,
                (_, Answer::Http { status: 503, .. }) => answers.put_off += 1,
                _ => answers.other += 1,
            }
        }
        answers
    }

    /// Nobody's promise is proven by saves that never came.
    fn judge(&self, world: &World) -> Result<()> {
        let depot = world.depot_use();
        for (name, many) in [("0", self.zero), ("503", self.put_off), ("otherwise", self.other)] {
            let what = format!("saves answered {name} without storage, depot {}", depot.as_str());
            world.chronicle.count(&what, many);
        }
        // One that is frozen is given its time before it counts as away.
        if Absence::of_round(world.setting.round) == Absence::Frozen {
            return Ok(());
        }
        if depot == DepotUse::Allowed && self.zero == 0 {
            let what = "no save was taken into the depot while the storage was away";
            world.chronicle.accuse(Violation::new(Class::Stuck, what));
        }
        if depot == DepotUse::Forbidden && self.put_off == 0 {
            bail!("nobody saved while the storage was away");
        }
        Ok(())
    }

    fn in_words(&self) -> String {
        format!("{} saves answered 0, {} answered 503, {} otherwise", self.zero, self.put_off, self.other)
    }
}
