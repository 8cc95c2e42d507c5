//! A run: as many rounds as it takes for the wanted number of kills, several side by side.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use understudy::chance;

use crate::arguments::Flow;
use crate::cluster;
use crate::dice::Dice;
use crate::killing;
use crate::outage;
use crate::report::{Totals, tell};
use crate::round::{self, Report};
use crate::submissions;
use crate::world::{Conditions, Setting};

/// Enough for a story, few enough that a check at rest is never far.
const KILLS_PER_ROUND: u64 = 15;

/// What a run is made of.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) kills: u64,
    pub(crate) seed: u64,
    pub(crate) conditions: Conditions,
    /// Where the rounds have their folders.
    pub(crate) folder: PathBuf,
    pub(crate) parallel: usize,
    /// Only this round, to see it again.
    pub(crate) only_round: Option<u64>,
    /// Of all flows.
    pub(crate) all_steps: Arc<Vec<String>>,
    pub(crate) keeping: Keeping,
}

impl Plan {
    /// The same for another flow.
    pub(crate) fn of_flow(&self, flow: Flow) -> Self {
        self.under(|conditions| conditions.flow = flow)
    }

    /// The steps of its flow.
    pub(crate) fn steps(&self) -> Vec<String> {
        let conditions = &self.conditions;
        let is_meant = |step: &&String| conditions.flow.has(step) && conditions.vault.has(step);
        self.all_steps.iter().filter(is_meant).cloned().collect()
    }

    /// Rounds with the numbers of their kills.
    fn rounds(&self) -> Vec<(u64, std::ops::Range<u64>)> {
        match self.conditions.outage {
            Some(_) => outage::ROUNDS.map(|number| (number, 0..0)).collect(),
            None => split(self.kills),
        }
    }

    /// The same under other conditions.
    pub(crate) fn under(&self, change: impl FnOnce(&mut Conditions)) -> Self {
        let mut plan = self.clone();
        change(&mut plan.conditions);
        plan
    }
}

/// Which folders are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Those in which something was found.
    Findings,
    /// All.
    Everything,
}

/// Runs; a mutant is dead as soon as anything was found.
pub(crate) async fn run(plan: &Plan) -> Result<Totals> {
    let mut totals = Totals::new(plan);
    let turns = Arc::new(Semaphore::new(plan.parallel.max(1)));
    let mut rounds = JoinSet::new();
    for (number, kills) in plan.rounds() {
        if plan.only_round.is_some_and(|only| only != number) {
            continue;
        }
        let (plan, turns) = (plan.clone(), Arc::clone(&turns));
        rounds.spawn(async move {
            let _turn = turns.acquire_owned().await?;
            play(&plan, number, kills).await
        });
    }
    while let Some(ended) = rounds.join_next().await {
        let report = ended??;
        totals.add(&report);
        clean_up(plan, &report);
        if plan.conditions.mutant.is_some() && totals.has_findings() {
            rounds.shutdown().await;
        }
    }
    Ok(totals)
}

/// Rounds with the numbers of their kills.
fn split(kills: u64) -> Vec<(u64, std::ops::Range<u64>)> {
    let rounds = kills.div_ceil(KILLS_PER_ROUND);
    let share = |round: u64| kills * round / rounds.max(1);
    (0..rounds).map(|round| (round, share(round)..share(round + 1))).collect()
}

/// What a round is made of.
pub(crate) fn setting(plan: &Plan, number: u64) -> Result<Setting> {
    let setting = Setting {
        round: number,
        seed: chance::draw(plan.seed, "round", number),
        conditions: plan.conditions.clone(),
        folder: plan.folder.join(format!("round-{number}")),
    };
    std::fs::create_dir_all(&setting.folder)?;
    Ok(setting)
}

async fn play(plan: &Plan, number: u64, kills: std::ops::Range<u64>) -> Result<Report> {
    let setting = setting(plan, number)?;
    let (flow, steps) = (plan.conditions.flow, plan.steps());
    let lives = killing::lives(&mut Dice::of(setting.seed).part("kills", 0), (flow, &steps), kills);
    match flow {
        Flow::Documents if plan.conditions.outage.is_some() => outage::play(setting).await,
        Flow::Documents if plan.conditions.cluster.is_some() => cluster::play(setting, lives).await,
        Flow::Documents => round::play(setting, lives).await,
        Flow::Submissions => submissions::play(setting, lives).await,
    }
}

/// Folders in which nothing was found are of no use to anybody.
pub(crate) fn clean_up(plan: &Plan, report: &Report) {
    let is_clean = report.world.chronicle.violations().is_empty();
    let folder = &report.world.setting.folder;
    if is_clean && plan.keeping == Keeping::Findings {
        if let Err(cause) = std::fs::remove_dir_all(folder) {
            tell(&format!("{} could not be removed: {cause}", folder.display()));
        }
    } else if !is_clean {
        tell(&format!("round {} is kept in {}", report.world.setting.round, folder.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_share_the_kills() {
        assert_eq!(split(40), [(0, 0..13), (1, 13..26), (2, 26..40)]);
        assert_eq!(split(15), [(0, 0..15)]);
        assert_eq!(split(0), []);
    }
}
