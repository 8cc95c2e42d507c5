//! Mutants: the service with one guard removed. A harness that cannot tell it from the whole one proves nothing.

use std::process::ExitCode;

use anyhow::Result;
use model::Guards;

use crate::arguments::Flow;
use crate::chronicle::Class;
use crate::cluster::{RedisFate, Shape};
use crate::report::{Totals, print, tell};
use crate::run::{Plan, run};
use crate::world::{DiskKind, Weather};

/// A mutant that lives longer than this many kills is not caught.
const KILLS_MAX: u64 = 200;
/// What CI plays.
const SHORT_KILLS: u64 = 25;
const SHORT_POWER_LOSS_KILLS: u64 = 10;
const SHORT_MUTANTS: [&str; 3] = ["no-order-guard", "answer-before-commit", "no-collector"];
const SHORT_SUBMISSION_KILLS: u64 = 11;
const SHORT_SUBMISSION_MUTANTS: [&str; 2] = ["head-moves-first", "readers-see-unfinished"];
const SHORT_INSTANCES: usize = 3;
const SHORT_INSTANCE_KILLS: u64 = 12;
/// Guards without which submissions break; all others are of documents.
const SUBMISSION_MUTANTS: [&str; 8] = [
    "no-basis-check",
    "head-moves-first",
    "readers-see-unfinished",
    "no-fencing",
    "submit-without-state-check",
    "no-clearing",
    "supersede-ignored",
    "no-taking-up",
];

/// The mutants that a flow must find out.
pub(crate) fn of(flow: Flow) -> impl Iterator<Item = &'static str> {
    let is_of_flow = move |mutant: &&str| SUBMISSION_MUTANTS.contains(mutant) == (flow == Flow::Submissions);
    Guards::MUTANTS.iter().copied().filter(is_of_flow)
}

/// Whether a guard's absence shows only when the power fails.
pub(crate) fn needs_power_loss(mutant: &str) -> bool {
    mutant == "no-fsync"
}

/// Every mutant in turn, and the whole service before them.
pub(crate) async fn run_all(plan: &Plan) -> Result<ExitCode> {
    let mut table = Table::default();
    table.play("(all guards)", plan.under(|conditions| conditions.mutant = None)).await?;
    let has_disk = plan.conditions.cluster.is_none();
    for mutant in of(plan.conditions.flow).filter(|mutant| has_disk || !needs_power_loss(mutant)) {
        table.play(mutant, of_mutant(plan, mutant)).await?;
    }
    Ok(table.verdict())
}

/// A little of everything.
pub(crate) async fn run_short(plan: &Plan) -> Result<ExitCode> {
    let mut table = Table::default();
    let plan = &plan.of_flow(Flow::Documents);
    let mild = plan.under(|conditions| conditions.weather = Weather::Mild);
    table.play("(all guards)", Plan { kills: SHORT_KILLS, ..mild.clone() }).await?;
    let power_loss = mild.under(|conditions| conditions.disk = DiskKind::PowerLoss);
    let folder = plan.folder.join("power-loss");
    let power_loss = Plan { kills: SHORT_POWER_LOSS_KILLS, folder, ..power_loss };
    table.play("(all guards, power loss)", power_loss).await?;
    for mutant in SHORT_MUTANTS {
        table.play(mutant, of_mutant(plan, mutant)).await?;
    }
    let submissions = plan.of_flow(Flow::Submissions);
    let folder = plan.folder.join("submissions");
    let clean = Plan { kills: SHORT_SUBMISSION_KILLS, folder, ..submissions.clone() };
    table.play("(all guards, submissions)", clean).await?;
    for mutant in SHORT_SUBMISSION_MUTANTS {
        table.play(mutant, of_mutant(&submissions, mutant)).await?;
    }
    for (name, flow) in [("(all guards, instances)", mild), ("(… of submissions)", submissions)] {
        let shape = Shape { instances: SHORT_INSTANCES, redis: RedisFate::On, settings: Vec::new() };
        let many = flow.under(|conditions| conditions.cluster = Some(shape));
        let folder = many.folder.join("instances").join(many.conditions.flow.as_str());
        table.play(name, Plan { kills: SHORT_INSTANCE_KILLS, folder, ..many }).await?;
    }
    Ok(table.verdict())
}

fn of_mutant(plan: &Plan, mutant: &str) -> Plan {
    let plan = plan.under(|conditions| {
        conditions.mutant = Some(mutant.to_owned());
        if needs_power_loss(mutant) {
            conditions.disk = DiskKind::PowerLoss;
        }
    });
    Plan { kills: KILLS_MAX, folder: plan.folder.join(mutant), ..plan }
}

/// What became of each.
#[derive(Default)]
struct Table {
    rows: Vec<String>,
    failed: bool,
}

impl Table {
    async fn play(&mut self, name: &str, plan: Plan) -> Result<()> {
        tell(&format!("== {name}"));
        let totals = run(&plan).await?;
        let verdict = match (plan.conditions.mutant.is_some(), totals.has_findings()) {
            (true, true) => "caught",
            (true, false) => "NOT CAUGHT",
            (false, false) => "clean",
            (false, true) => "NOT CLEAN",
        };
        self.failed |= totals.has_findings() != plan.conditions.mutant.is_some();
        self.rows.push(row(name, &totals, verdict));
        Ok(())
    }

    fn verdict(&self) -> ExitCode {
        print(&format!(
            "{:<30} {:>6} {:>6} {:>5} {:>8} {:>11} {:>6}  verdict",
            "mutant", "kills", "time", "lost", "damaged", "duplicated", "stuck"
        ));
        self.rows.iter().for_each(|row| print(row));
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

fn row(name: &str, totals: &Totals, verdict: &str) -> String {
    let [lost, damaged, duplicated, stuck] = Class::ALL.map(|class| totals.count(class));
    format!(
        "{name:<30} {:>6} {:>5.0}s {lost:>5} {damaged:>8} {duplicated:>11} {stuck:>6}  {verdict}",
        totals.kills,
        totals.took().as_secs_f64(),
    )
}
