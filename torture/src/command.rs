//! From the command line to a run, and from its outcome to an exit code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;

use crate::arguments::{Arguments, Engine, Flow};
use crate::cluster::{self, Shape};
use crate::report::{Totals, print, tell};
use crate::run::{Keeping, Plan, run as run_plan};
use crate::world::{Conditions, DiskKind, VaultKind, Weather, ensure_far};
use crate::{mutants, program};

/// Runs the program.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list_mutants {
        mutants::of(arguments.flow).for_each(print);
        return ExitCode::SUCCESS;
    }
    match torture(&arguments) {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("torture: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn torture(arguments: &Arguments) -> Result<ExitCode> {
    let (plan, temporary) = plan(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        if arguments.all_mutants {
            mutants::run_all(&plan).await
        } else if arguments.short {
            mutants::run_short(&plan).await
        } else if let Some(times) = arguments.seed1 {
            Ok(end(&cluster::run_seed1(&plan, times).await?, arguments))
        } else if let Some(times) = arguments.rolling {
            Ok(end(&cluster::run_rolling(&plan, times).await?, arguments))
        } else {
            run_once(&plan, arguments).await
        }
    })?;
    if let Some(folder) = temporary {
        leave_findings(folder);
    }
    Ok(code)
}

fn plan(arguments: &Arguments) -> Result<(Plan, Option<tempfile::TempDir>)> {
    let temporary = match &arguments.keep {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("torture-").tempdir()?),
    };
    let folder = match (&arguments.keep, &temporary) {
        (Some(folder), _) => {
            std::fs::create_dir_all(folder)?;
            folder.canonicalize()?
        }
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => PathBuf::from("."),
    };
    if let Some(mutant) = &arguments.mutant {
        ensure!(
            mutants::of(arguments.flow).any(|known| known == mutant),
            "this flow has no mutant `{mutant}`; --list-mutants lists them"
        );
    }
    check_vault(arguments)?;
    tell(&format!("seed {}; rounds in {}", arguments.seed, folder.display()));
    let executable = match &arguments.server {
        Some(path) => path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?,
        None => program::build(&folder)?,
    };
    let needs_power_loss = arguments.mutant.as_deref().is_some_and(mutants::needs_power_loss);
    let plan = Plan {
        kills: arguments.kills,
        seed: arguments.seed,
        conditions: Conditions {
            flow: arguments.flow,
            documents: arguments.documents,
            disk: if arguments.power_loss || needs_power_loss {
                DiskKind::PowerLoss
            } else {
                DiskKind::Plain
            },
            mutant: arguments.mutant.clone(),
            weather: Weather::Rough,
            executable,
            vault: arguments.vault,
            outage: arguments.outage.map(Duration::from_secs),
            cluster: shape(arguments)?,
        },
        folder,
        parallel: arguments.parallel,
        only_round: arguments.only_round,
        all_steps: Arc::new(program::steps()?),
        keeping: if arguments.keep.is_some() { Keeping::Everything } else { Keeping::Findings },
    };
    Ok((plan, temporary))
}

fn check_vault(arguments: &Arguments) -> Result<()> {
    if arguments.outage.is_some() {
        ensure_far(arguments.vault)?;
    }
    let is_far = arguments.vault != VaultKind::Local;
    ensure!(!is_far || arguments.flow == Flow::Documents, "a far vault is tortured with documents only");
    ensure!(!is_far || !arguments.short, "--short has its own vaults");
    ensure!(!is_far || arguments.engine == Engine::Sqlite, "instances on PostgreSQL share a local folder");
    Ok(())
}

/// How many instances there are to be, and on what; `None` for one service with its embedded ledger.
fn shape(arguments: &Arguments) -> Result<Option<Shape>> {
    if arguments.engine == Engine::Sqlite {
        let needs = "needs --engine postgres";
        ensure!(arguments.instances == 1, "--instances {} {needs}", arguments.instances);
        ensure!(arguments.seed1.is_none() && arguments.rolling.is_none(), "--seed1 and --rolling {needs}");
        return Ok(None);
    }
    let least = if arguments.seed1.is_some() || arguments.rolling.is_some() { 2 } else { 1 };
    ensure!(arguments.instances >= least, "--instances must be {least} or more");
    let needs_power_loss = arguments.mutant.as_deref().is_some_and(mutants::needs_power_loss);
    ensure!(
        !arguments.power_loss && !needs_power_loss,
        "--power-loss is for the embedded ledger: PostgreSQL is on another disk"
    );
    let is_of_documents = arguments.flow == Flow::Documents;
    ensure!(
        is_of_documents || (arguments.seed1.is_none() && arguments.rolling.is_none()),
        "--seed1 and --rolling are about documents"
    );
    Ok(Some(Shape { instances: arguments.instances, redis: arguments.redis, settings: Vec::new() }))
}

async fn run_once(plan: &Plan, arguments: &Arguments) -> Result<ExitCode> {
    let totals = run_plan(plan).await?;
    let code = end(&totals, arguments);
    warn_of_steps(&totals);
    Ok(code)
}

/// Tells the outcome.
fn end(totals: &Totals, arguments: &Arguments) -> ExitCode {
    if arguments.json {
        tell(&totals.summary());
        print(&totals.to_json());
    } else {
        print(&totals.summary());
    }
    if totals.has_findings() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn warn_of_steps(totals: &Totals) {
    let never = totals.steps_never_reached();
    if !never.is_empty() {
        tell(&format!("WARNING: steps of the source that were never reached: {}", never.join(", ")));
    }
}

/// A temporary folder goes, unless there is something to look at in it.
fn leave_findings(folder: tempfile::TempDir) {
    let has_findings = std::fs::read_dir(folder.path())
        .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())));
    if has_findings {
        let _ = folder.keep();
    }
}
