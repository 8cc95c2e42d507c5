//! Throws mutated files at every layer of the check: `cargo xtask fuzz [TARGET…]`.
//!
//! A *target* ([`targets`]) is a layer with the files of the corpus that reach it. A *run* ([`run`]) takes one of them,
//! changes it ([`mutate`]), asks the layer, and [`judge`]s the answer: no panic, soon, not too much to say, and the same
//! however the bytes are read. An input that leads to a combination of findings nobody saw before becomes a seed itself.
//!
//! Guarantees: works with the stable compiler; what broke a promise is kept in a file with the command that asks again.
//! Does not do: say whether a verdict is right. The corpus and the tests of the check do.

mod dice;
mod judge;
mod kept;
mod mutate;
mod packing;
mod pieces;
mod report;
mod run;
mod targets;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::dice::Dice;
use crate::kept::Findings;
use crate::report::{print, tell, to_json, to_table};
use crate::run::{Run, Until};
use crate::targets::Target;

/// Throws mutated files at every layer of the check, and keeps what breaks a promise: no panic, an answer within a
/// second, a bounded number of findings, and the same answer however the file is read.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask fuzz",
    max_term_width = 110,
    after_help = "\
Examples:
  cargo xtask fuzz                            every target for twenty seconds
  cargo xtask fuzz zip xml --seconds 600      two targets for ten minutes each
  cargo xtask fuzz zip --replay FILE          ask about one input again

Exit code 0: every promise was kept. 1: one was not. 2: the run could not be made."
)]
struct Arguments {
    /// The layers to throw at; all if none is named.
    targets: Vec<Target>,
    /// How long each target runs.
    #[arg(long, default_value_t = 20, value_name = "N")]
    seconds: u64,
    /// How many inputs each target gets, instead of a time. With it, a seed means the same run.
    #[arg(long, value_name = "N")]
    executions: Option<u64>,
    /// Decides everything that is left to chance.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Print one line of JSON at the end; the table goes to stderr.
    #[arg(long)]
    json: bool,
    /// Ask about this input instead, and show what the target says.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.replay {
        Some(path) => replay(&arguments, path),
        None => fuzz(&arguments),
    };
    done.unwrap_or_else(|error| {
        tell(&format!("fuzz: {error:#}"));
        ExitCode::from(2)
    })
}

impl Arguments {
    fn targets(&self) -> Vec<Target> {
        if self.targets.is_empty() { Target::ALL.to_vec() } else { self.targets.clone() }
    }
}

fn fuzz(arguments: &Arguments) -> Result<ExitCode> {
    judge::keep_panics();
    let findings = Findings { folder: kept_in(), seed: arguments.seed };
    let until = match arguments.executions {
        Some(executions) => Until::Executions(executions),
        None => Until::Passed(Duration::from_secs(arguments.seconds)),
    };
    let mut all = Vec::new();
    for target in arguments.targets() {
        all.push(Run::of(target, arguments.seed)?.run(until, &findings));
    }
    match arguments.json {
        true => {
            tell(&to_table(arguments.seed, &all));
            print(&to_json(arguments.seed, &all));
        }
        false => print(&to_table(arguments.seed, &all)),
    }
    let is_clean = all.iter().all(|figures| figures.findings == 0);
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn replay(arguments: &Arguments, path: &Path) -> Result<ExitCode> {
    let input = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut code = ExitCode::SUCCESS;
    judge::keep_panics();
    for target in arguments.targets() {
        // Several throws, because the size of the pieces is one.
        let mut dice = Dice::of(arguments.seed);
        let answers = (0..50).map(|_| judge::judge(|reading| target.ask(&input, reading), &mut dice));
        match answers.reduce(|one, other| if one.is_err() { one } else { other }) {
            Some(Err(broken)) => {
                print(&format!("{}: {broken}", target.as_str()));
                code = ExitCode::from(1);
            }
            Some(Ok(judged)) => print(&format!("{}: {}", target.as_str(), judged.outcome.said)),
            None => {}
        }
    }
    Ok(code)
}

/// Beside the build results, which nobody commits.
fn kept_in() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz-findings")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough to reach most of what there is to find, short enough for every run of the tests.
    const EXECUTIONS: u64 = 1_000;

    #[test]
    fn every_target_keeps_its_promises_for_a_while() {
        judge::keep_panics();
        let findings = Findings { folder: kept_in(), seed: 1 };
        for target in Target::ALL {
            let figures = Run::of(target, 1).unwrap().run(Until::Executions(EXECUTIONS), &findings);
            assert_eq!(figures.findings, 0, "{}; see {}", target.as_str(), findings.folder.display());
            assert!(figures.executions >= EXECUTIONS && figures.kept > 0, "{figures:?}");
        }
    }

    #[test]
    fn a_seed_means_the_same_run() {
        let findings = Findings { folder: kept_in(), seed: 7 };
        let figures = || Run::of(Target::Text, 7).unwrap().run(Until::Executions(500), &findings);

        let (one, other) = (figures(), figures());

        assert_eq!(
            (one.executions, one.combinations, one.kept),
            (other.executions, other.combinations, other.kept)
        );
    }
}
