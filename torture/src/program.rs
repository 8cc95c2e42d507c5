//! The program under test: built once with its torture hooks, copied aside, and searched for its steps.
//!
//! Guarantees: what runs is what the source says now; a later build does not change it under a running harness.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// How the source marks a step.
const STEP: &str = "steps::reached(\"";

fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Builds the service with its torture hooks, as optimized as the harness itself, and copies it into a folder.
pub(crate) fn build(into: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(workspace())
        .args(["build", "-p", "saveguard", "--bin", "saveguard", "--features", "torture"])
        .arg("--message-format=json-render-diagnostics")
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.spawn().context("cargo cannot be started")?.wait_with_output()?;
    ensure!(output.status.success(), "the service does not build");
    let built = String::from_utf8_lossy(&output.stdout).lines().rev().find_map(executable_in);
    let Some(built) = built else { bail!("cargo did not say where the program is") };
    let copy = into.join("saveguard");
    let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    fs::write(&copy, bytes)?;
    fs::set_permissions(&copy, fs::metadata(&built)?.permissions())?;
    Ok(copy)
}

fn executable_in(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_ours = message["target"]["name"] == "saveguard";
    message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
}

/// Every step the source names, in order.
pub(crate) fn steps() -> Result<Vec<String>> {
    let mut steps = BTreeSet::new();
    let mut folders = vec![workspace().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                let named = text.split(STEP).skip(1).filter_map(|rest| rest.split_once('"'));
                steps.extend(named.map(|(step, _)| step.to_owned()));
            }
        }
    }
    Ok(steps.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_names_its_steps() {
        let steps = steps().unwrap();

        for step in ["save.received", "save.committed", "forgotten.deleted", "publish.renamed"] {
            assert!(steps.iter().any(|known| known == step), "{step} is not among {steps:?}");
        }
    }
}
