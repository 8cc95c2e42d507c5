//! `cargo xtask schema`: schemathesis calls every operation of the API description with right and wrong data.
//!
//! Guarantees: its own Python environment under `target`, with one version of schemathesis; the server and the understudy are
//! built first, listen on loopback only and are stopped at the end (`xtask/schema/run.py`).
//! Does not do: run as a part of `cargo xtask test`, for it needs PyPI the first time.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::shell;

/// Later versions find other things; a change of it is a change of its own.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const EXAMPLES_SHORT: &str = "5";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// About a minute: few calls per operation.
    #[arg(long, conflicts_with = "examples")]
    short: bool,
    /// Made-up calls per operation in the phases that make them up.
    #[arg(long, default_value_t = 100, value_name = "N")]
    examples: u32,
    /// Decides everything that is left to chance.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Given on to `schemathesis run`, such as `--include-path /api/v1/companies`.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds, installs and runs.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let programs = programs()?;
    let python = environment(&programs)?;
    shell::run("cargo", &["build", "--quiet", "--package", "saveguard", "--package", "understudy"])?;
    let (server, understudy) = (text(&programs.join("saveguard"))?, text(&programs.join("understudy"))?);
    let (examples, seed) = (arguments.examples.to_string(), arguments.seed.to_string());
    let examples = if arguments.short { EXAMPLES_SHORT } else { &examples };
    let mut call = vec!["xtask/schema/run.py", "--server", &server, "--understudy", &understudy, "--"];
    call.extend(["--max-examples", examples, "--seed", &seed]);
    if arguments.short {
        call.push("--no-shrink");
    }
    call.extend(arguments.rest.iter().map(String::as_str));
    shell::run(&python, &call)
}

/// The folder of the build, where this program lies too.
fn programs() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().context("this program lies in no folder")?.to_owned())
}

/// The Python of an environment that has schemathesis; made if it is not there.
fn environment(programs: &Path) -> anyhow::Result<String> {
    if !shell::exists("python3") {
        bail!("this needs python3, with venv (Debian: `apt-get install python3-venv`)");
    }
    let folder = programs.with_file_name("schema-venv");
    let python = text(&folder.join("bin/python"))?;
    if !shell::exists(&python) {
        shell::run("python3", &["-m", "venv", &text(&folder)?])?;
    }
    shell::run(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", SCHEMATHESIS])
        .context("schemathesis cannot be installed; is PyPI within reach?")?;
    Ok(python)
}

fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().context("a path that is no text")?.to_owned())
}
