//! Packages of npm that tests need, fetched once into `target/` and never committed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder a package is installed in. Several test processes may fetch it at once: each into a folder of its own, and the first
/// one stays.
pub(crate) fn fetched(name: &str, package: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let home = target.join(name);
    if !home.join("node_modules").is_dir() {
        let mine = target.join(format!("{name}-{}", std::process::id()));
        let fetching = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix"])
            .arg(&mine)
            .arg(package)
            .status()
            .expect("npm is installed by `cargo xtask test`");
        assert!(fetching.success(), "npm fetches {package}");
        // Somebody else was first: theirs is as good.
        if std::fs::rename(&mine, &home).is_err() {
            let _ = std::fs::remove_dir_all(&mine);
        }
    }
    home
}
