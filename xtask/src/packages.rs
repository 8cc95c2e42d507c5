//! What the tests need from Debian, installed when missing.

use std::process::Command;

use anyhow::bail;

use crate::shell::{exists, run};

/// A program the tests start, and the package that has it.
const NEEDED: [(&str, &str); 2] = [("chromium", "chromium"), ("chromedriver", "chromium-driver")];

/// Installs what is missing; without root it says the line that does.
pub(crate) fn ensure() -> anyhow::Result<()> {
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(|(program, _)| !exists(program)).map(|(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !is_root() {
        bail!(
            "the tests need programs that are not here. Run this line, then try again:\n\n    \
             sudo apt-get update && sudo apt-get install --yes --no-install-recommends {packages}\n"
        );
    }
    if !exists("apt-get") {
        bail!("the tests need these Debian packages, and there is no apt-get here: {packages}");
    }
    run("apt-get", &["update", "--quiet"])?;
    let mut arguments = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    arguments.extend(missing);
    run("apt-get", &arguments)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
