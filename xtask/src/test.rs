//! `cargo xtask test`: every check and every test, in the order that fails fastest.

use anyhow::bail;

use crate::packages;
use crate::shell::{self, exists};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only what is quick: no lints, no torture.
    #[arg(long)]
    quick: bool,
    /// Instead of everything: the whole-server tests on one instance with PostgreSQL, Redis and SFTP, or on three of them behind a
    /// balancer.
    #[arg(long, value_name = "ENGINES")]
    engines: Option<Engines>,
    /// With `--engines`: only tests whose name contains one of these.
    #[arg(requires = "engines")]
    names: Vec<String>,
}

/// What the whole-server tests stand on; `embedded` is what they stand on otherwise.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Engines {
    Postgres,
    Cluster,
}

impl Engines {
    /// The profile in `.config/nextest.toml`, and the value of `ENGINES_OF_TESTS`.
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Cluster => "cluster",
        }
    }
}

/// Runs everything.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    packages::ensure()?;
    if let Some(engines) = arguments.engines {
        return run_on(engines, &arguments.names);
    }
    if !arguments.quick {
        shell::run("cargo", &["fmt", "--all", "--check"])?;
        shell::run("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    }
    // Built once, here: a test that had to wait for it would be taken for one that hangs.
    shell::run("cargo", &["run", "--quiet", "--package", "test-stores"])?;
    if exists("cargo-nextest") {
        shell::run("cargo", &["nextest", "run", "--workspace", "--no-fail-fast"])?;
        shell::run("cargo", &["test", "--quiet", "--workspace", "--doc"])?;
    } else {
        shell::run("cargo", &["test", "--quiet", "--workspace", "--no-fail-fast"])?;
    }
    if !arguments.quick {
        shell::run("cargo", &["run", "--quiet", "--package", "torture", "--", "--short"])?;
    }
    Ok(())
}

/// The whole-server tests on other engines, narrowed by names. Which are left out, and why, is said in the profile.
fn run_on(engines: Engines, names: &[String]) -> anyhow::Result<()> {
    if !exists("cargo-nextest") {
        bail!("`--engines` needs cargo-nextest, whose profiles say which tests are left out");
    }
    // The package is chosen among all: chosen by `-p` it would be built with other features, and anew.
    let mut arguments = vec!["nextest", "run", "--workspace", "--test", "it", "--no-fail-fast"];
    arguments.extend(["--profile", engines.name(), "-E", "package(saveguard) and binary(it)"]);
    arguments.extend(names.iter().map(String::as_str));
    shell::run_with("cargo", &arguments, &[("ENGINES_OF_TESTS", engines.name())])
}
