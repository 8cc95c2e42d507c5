//! The servers' programs, installed once under `target`.
//!
//! Guarantees: of several tests that need a program at once, one installs it and the others wait; what was cut short is begun
//! again. The versions stand here.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MOTO: &str = "moto[server]==5.2.5";
/// The newest that our compiler takes.
const S3S_FS: &str = "s3s-fs@0.14.1";

/// The Python of an environment that has moto.
pub(crate) fn moto() -> PathBuf {
    let folder = target().join("s3-venv");
    once("s3-venv", || {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MOTO];
        run(Command::new(folder.join("bin/python")).args(pip));
    });
    folder.join("bin/python")
}

/// How a server is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Soon.
    Debug,
    /// Fast: for whoever measures against it.
    Release,
}

/// An S3 server that keeps objects as files.
pub(crate) fn s3s_fs(build: Build) -> PathBuf {
    let (name, options): (&str, &[&str]) = match build {
        Build::Debug => ("s3s-fs", &["--debug"]),
        Build::Release => ("s3s-fs-release", &[]),
    };
    let folder = target().join(name);
    once(name, || {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", "--quiet", "--locked"]).args(options).args(["--features", "binary", "--root"]);
        // Outside of this workspace, and not with its flags: it is somebody else's program.
        cargo.arg(&folder).arg(S3S_FS).env("CARGO_TARGET_DIR", folder.join("build"));
        run(cargo.current_dir(target()).env_remove("RUSTFLAGS"));
        let _ = std::fs::remove_dir_all(folder.join("build"));
    });
    folder.join("bin/s3s-fs")
}

/// Does it unless it was done; whoever comes meanwhile waits.
fn once(name: &str, install: impl FnOnce()) {
    let done = target().join(format!("{name}.installed"));
    let lock = File::create(target().join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    if !done.exists() {
        install();
        File::create(done).unwrap();
    }
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed; is the package registry within reach?\n{said}");
}

/// The folder of builds, in which every test lies.
pub(crate) fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().find(|each| each.join("CACHEDIR.TAG").exists()).map(Path::to_owned).unwrap()
}
