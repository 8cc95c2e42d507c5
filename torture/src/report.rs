//! What people and machines are told: progress and findings on stderr, the outcome on stdout.
//!
//! Guarantees: a finding is printed with the seed, its document, its key, its changes and the lines of the journal that
//! concern them, in the order in which things happened.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::arguments::Flow;
use crate::checking::lines_about;
use crate::chronicle::{Class, Deed, Violation};
use crate::round::Report;
use crate::run::Plan;
use crate::unplugging::STORAGE_KILLED;
use crate::world::{VaultKind, World};

/// Findings of a round that are told with their story; the rest only by name.
const STORIES_MAX: usize = 3;
/// Lines of a story, the last ones.
const LINES_MAX: usize = 40;
/// A line longer than this says nothing more.
const LINE_CHARACTERS_MAX: usize = 260;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Totals {
    seed: u64,
    began: Instant,
    pub(crate) kills: u64,
    pub(crate) rounds: u64,
    counts: BTreeMap<Class, u64>,
    tallies: BTreeMap<String, u64>,
    steps: BTreeMap<String, (u64, u64)>,
    steps_known: BTreeSet<String>,
    steps_seen: BTreeSet<String>,
    slowest_start: Duration,
    /// The first finding, in a few words.
    pub(crate) first: Option<String>,
}

impl Totals {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            seed: plan.seed,
            began: Instant::now(),
            kills: 0,
            rounds: 0,
            counts: Class::ALL.map(|class| (class, 0)).into(),
            tallies: BTreeMap::new(),
            steps: BTreeMap::new(),
            steps_known: plan.steps().into_iter().collect(),
            steps_seen: BTreeSet::new(),
            slowest_start: Duration::ZERO,
            first: None,
        }
    }

    pub(crate) fn count(&self, class: Class) -> u64 {
        self.counts.get(&class).copied().unwrap_or(0)
    }

    pub(crate) fn has_findings(&self) -> bool {
        self.counts.values().any(|count| *count > 0)
    }

    pub(crate) fn took(&self) -> Duration {
        self.began.elapsed()
    }

    /// Adds a round and tells of it.
    pub(crate) fn add(&mut self, report: &Report) {
        self.kills += report.kills;
        self.rounds += 1;
        let chronicle = &report.world.chronicle;
        let violations = chronicle.violations();
        for violation in &violations {
            *self.counts.entry(violation.class).or_default() += 1;
        }
        for (what, many) in chronicle.tallies() {
            *self.tallies.entry(what).or_default() += many;
        }
        for (step, (tried, died)) in &report.steps {
            let (all_tried, all_died) = self.steps.entry(step.clone()).or_default();
            *all_tried += tried;
            *all_died += died;
        }
        self.steps_seen.extend(report.steps_seen.iter().cloned());
        self.slowest_start = self.slowest_start.max(report.slowest_start);
        if self.first.is_none() {
            self.first = violations.first().map(ToString::to_string);
        }
        self.tell_progress(report, &violations);
    }

    fn tell_progress(&self, report: &Report, violations: &[Violation]) {
        let setting = &report.world.setting;
        tell(&format!(
            "round {} (seed {}): {} kills in {:.1} s; in all {} kills in {:.0} s: {}",
            setting.round,
            self.seed,
            report.kills,
            report.took.as_secs_f64(),
            self.kills,
            self.took().as_secs_f64(),
            self.counts_in_words()
        ));
        let mut whole = String::new();
        for (place, violation) in violations.iter().enumerate() {
            let story = story(&report.world, violation);
            whole.push_str(&format!("{violation}\n  {}\n\n", story.join("\n  ")));
            tell(&format!("  {violation}"));
            if place < STORIES_MAX {
                let start = story.len().saturating_sub(LINES_MAX);
                story[start..].iter().for_each(|line| tell(&format!("    {}", cut(line))));
            }
        }
        if !violations.is_empty() {
            // Printed in part only; a round without a readable folder would have failed long ago.
            let _ = std::fs::write(setting.folder.join("findings.txt"), whole);
            let mutant = setting.conditions.mutant.as_ref().map(|name| format!(" --mutant {name}"));
            let flow = match setting.conditions.flow {
                Flow::Documents => "",
                Flow::Submissions => " --flow submissions",
            };
            let vault = match setting.conditions.vault {
                VaultKind::Local => String::new(),
                far => format!(" --vault {}", far.as_str()),
            };
            let outage = setting.conditions.outage.map(|time| format!(" --outage {}", time.as_secs()));
            let outage = outage.unwrap_or_default();
            let cluster = setting.conditions.cluster.as_ref();
            let cluster = cluster.map(|shape| format!(" {}", shape.as_arguments())).unwrap_or_default();
            tell(&format!(
                "  seen again, with luck, by: torture{flow}{vault}{outage}{cluster} --seed {}{} --only-round {}",
                self.seed,
                mutant.unwrap_or_default(),
                setting.round
            ));
        }
    }

    fn counts_in_words(&self) -> String {
        let words = self.counts.iter().map(|(class, count)| format!("{} {count}", class.as_str()));
        words.collect::<Vec<_>>().join(", ")
    }

    fn storage_kills(&self) -> u64 {
        self.tallies.get(STORAGE_KILLED).copied().unwrap_or(0)
    }

    /// One line for machines.
    pub(crate) fn to_json(&self) -> String {
        json!({
            "seed": self.seed,
            "kills": self.kills,
            "storage_kills": self.storage_kills(),
            "lost": self.count(Class::Lost),
            "damaged": self.count(Class::Damaged),
            "duplicated": self.count(Class::Duplicated),
            "stuck": self.count(Class::Stuck),
        })
        .to_string()
    }

    /// The outcome and what was covered, for people.
    pub(crate) fn summary(&self) -> String {
        let storage = match self.storage_kills() {
            0 => String::new(),
            kills => format!(" and {kills} of the storage"),
        };
        let mut lines = vec![format!(
            "seed {}: {} kills{} in {} rounds, {:.0} s, slowest start {} ms: {}",
            self.seed,
            self.kills,
            storage,
            self.rounds,
            self.took().as_secs_f64(),
            self.slowest_start.as_millis(),
            self.counts_in_words()
        )];
        lines.push("kills at steps (died there / tried):".to_owned());
        for step in &self.steps_known {
            let (tried, died) = self.steps.get(step).copied().unwrap_or_default();
            let note = if self.steps_seen.contains(step) { "" } else { "  NEVER REACHED" };
            lines.push(format!("  {step:<24} {died:>5} / {tried}{note}"));
        }
        lines.push("played and seen:".to_owned());
        lines.extend(self.tallies.iter().map(|(what, many)| format!("  {what:<40} {many:>8}")));
        lines.join("\n")
    }

    /// Steps the source names that the service never took in the whole run.
    pub(crate) fn steps_never_reached(&self) -> Vec<&str> {
        self.steps_known.difference(&self.steps_seen).map(String::as_str).collect()
    }
}

/// What happened around a finding, from both sides, in order: all that names its key or its changes, and what happened
/// to everybody meanwhile.
fn story(world: &World, violation: &Violation) -> Vec<String> {
    let entries = world.editor.journal().entries();
    let mut lines = lines_about(&entries, violation.key.as_deref(), &violation.changes);
    let concerns = |deed: &Deed| match &violation.key {
        Some(key) => deed.what.contains(key.as_str()),
        None => deed.document == violation.document,
    };
    let (to_all, own): (Vec<Deed>, Vec<Deed>) =
        world.chronicle.deeds().into_iter().partition(|deed| deed.document.is_none());
    lines.extend(
        own.iter().filter(|deed| concerns(deed)).map(|deed| (deed.at_ms, format!("* {}", deed.what))),
    );
    let (from, to) = (lines.iter().map(|line| line.0).min(), lines.iter().map(|line| line.0).max());
    let meanwhile = |deed: &&Deed| from.is_some_and(|from| deed.at_ms >= from) && Some(deed.at_ms) <= to;
    lines.extend(to_all.iter().filter(meanwhile).map(|deed| (deed.at_ms, format!("* {}", deed.what))));
    lines.sort_by_key(|(at_ms, _)| *at_ms);
    let since_first =
        |at_ms: u64| Duration::from_millis(at_ms.saturating_sub(from.unwrap_or(0))).as_secs_f64();
    lines.into_iter().map(|(at_ms, line)| format!("{at_ms} {:>7.3} {line}", since_first(at_ms))).collect()
}

fn cut(line: &str) -> String {
    line.chars().take(LINE_CHARACTERS_MAX).collect()
}

/// Tells people.
#[allow(clippy::print_stderr, reason = "the harness tells people what it does")]
pub(crate) fn tell(text: &str) {
    eprintln!("{text}");
}

/// Prints the outcome.
#[allow(clippy::print_stdout, reason = "the outcome goes to stdout")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}
