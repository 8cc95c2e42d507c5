//! What the tests need from Debian, installed when missing.

use std::process::Command;

use anyhow::bail;

use crate::shell::{exists, run};

/// A program the tests start, and the package that has it.
const NEEDED: [(&str, &str); 11] = [
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    // Two of the example applications.
    ("node", "nodejs"),
    // Fetches axe-core, which looks at our pages.
    ("npm", "npm"),
    ("python3", "python3"),
    // Each test starts its own.
    ("redis-server", "redis-server"),
    // The vault on SFTP is tested against a real server; its keys are made by the client's tools.
    ("/usr/sbin/sshd", "openssh-server"),
    ("ssh-keygen", "openssh-client"),
    // Not in the path, and its version is in the name of its folder.
    ("/usr/lib/postgresql/15/bin/postgres", "postgresql-15"),
    // The deployment files are read by those they are for.
    ("/usr/sbin/nginx", "nginx-light"),
    ("systemd-analyze", "systemd"),
];

/// What stands beside us in `bench check`, and the package that has it. Without it its column stays empty.
const PEERS: [(&str, &str); 2] = [("unzip", "unzip"), ("xmllint", "libxml2-utils")];

/// Installs the peers of a bench if that can be done.
pub(crate) fn ensure_peers() {
    let missing = missing(&PEERS);
    if !missing.is_empty() && is_root() && exists("apt-get") {
        // A bench without a peer is still a bench.
        let _ = install(&missing);
    }
}

fn missing(needed: &[(&str, &'static str)]) -> Vec<&'static str> {
    needed.iter().filter(|(program, _)| !exists(program)).map(|(_, package)| *package).collect()
}

/// Installs what is missing; without root it says the line that does.
pub(crate) fn ensure() -> anyhow::Result<()> {
    let mut missing = missing(&NEEDED);
    if !has_modules("ensurepip, venv") {
        missing.push("python3-venv");
    }
    if !has_modules("yaml") {
        missing.push("python3-yaml");
    }
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
    install(&missing)
}

/// The S3 server of the tests lives in a Python environment of its own (`test-stores`), and Debian has that apart. The deployment
/// files are read as YAML.
fn has_modules(names: &str) -> bool {
    Command::new("python3")
        .args(["-c", &format!("import {names}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

fn install(packages: &[&str]) -> anyhow::Result<()> {
    run("apt-get", &["update", "--quiet"])?;
    let mut arguments = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    arguments.extend(packages);
    run("apt-get", &arguments)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
