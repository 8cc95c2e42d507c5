//! Runs other programs, and says which.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

/// Runs a program in the workspace's root; its failure is ours.
pub(crate) fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    run_with(program, arguments, &[])
}

/// The same, with variables.
pub(crate) fn run_with(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    let shown = format!("{program} {}", arguments.join(" "));
    eprintln!("\n── {shown}");
    let began = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .current_dir(root())
        // A panic says its place in one line; the runtime's forty lines would hide it.
        .env("RUST_BACKTRACE", "0")
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("`{program}` cannot be started"))?;
    if !status.success() {
        bail!("`{shown}` failed");
    }
    eprintln!("── done in {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a program of this workspace in an optimised build.
pub(crate) fn run_package(package: &str, profile: &str, rest: &[String]) -> anyhow::Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--profile", profile, "--package", package, "--"])
        .args(rest)
        .current_dir(root())
        .status()
        .context("`cargo` cannot be started")?;
    if !status.success() {
        bail!("`{package}` failed");
    }
    Ok(())
}

/// Whether a program is there.
pub(crate) fn exists(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

fn root() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/..")
}
