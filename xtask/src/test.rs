//! `cargo xtask test`: every check and every test, in the order that fails fastest.

use crate::packages;
use crate::shell::{self, exists};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only what is quick: no lints, no torture.
    #[arg(long)]
    quick: bool,
}

/// Runs everything.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    packages::ensure()?;
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
