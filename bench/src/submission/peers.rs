//! The limit, a bare parse, and the peers: the same job as people write it in Python.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use calamine::{DataRef, Reader as _, Xlsx};
use serde_json::Value;

use super::scene::Used;
use crate::gauge::cpu_s;

/// Later versions are faster or slower; a change of it is a change of the figures.
const OPENPYXL: &str = "openpyxl==3.1.5";
const SCRIPT: &str = include_str!("../../peers/submission.py");

/// Processor time of a bare parse: every cell is looked at once and forgotten.
pub(super) fn bare_parse_cpu_s(workbook: &Path, cells_min: u64) -> Result<f64> {
    let before_s = cpu_s(std::process::id());
    let mut book: Xlsx<_> = calamine::open_workbook(workbook)?;
    let sheet = book.sheet_names().first().cloned().context("a workbook without sheets")?;
    let mut cells = book.worksheet_cells_reader(&sheet)?;
    let mut count = 0;
    while let Some(cell) = cells.next_cell()? {
        count += u64::from(!matches!(cell.get_value(), DataRef::Empty));
    }
    ensure!(count >= cells_min, "the bare parse saw {count} cells of {cells_min}");
    Ok(cpu_s(std::process::id()) - before_s)
}

/// Where the peer keeps what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Sqlite,
    Postgres,
}

/// What the peer took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PeerDone {
    pub(super) preview: Used,
    pub(super) submit: Used,
    pub(super) memory_bytes: f64,
}

/// Python with openpyxl.
pub(super) struct Python(PathBuf);

impl Python {
    /// None, with a word, if it cannot be had.
    pub(super) fn find() -> Option<Self> {
        environment().map_err(|cause| eprintln!("no peer: {cause:#}")).ok().map(Self)
    }

    /// None, with a word, if the store cannot be had.
    pub(super) fn submit(&self, workbook: &Path, (store, folder): (Store, &Path)) -> Option<PeerDone> {
        let done = self.run(workbook, (store, folder));
        done.map_err(|cause| eprintln!("no peer with {store:?}: {cause:#}")).ok()
    }

    fn run(&self, workbook: &Path, (store, folder): (Store, &Path)) -> Result<PeerDone> {
        let store = match store {
            Store::Sqlite => "sqlite",
            Store::Postgres => "postgres",
        };
        let output = Command::new(&self.0)
            .args(["-c", SCRIPT])
            .args([store.as_ref(), folder, workbook])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(output.status.success(), "it failed");
        let told: Value = serde_json::from_slice(&output.stdout)?;
        let figure = |name: &str| told[name].as_f64().with_context(|| format!("it does not tell {name}"));
        Ok(PeerDone {
            preview: Used { seconds: figure("preview_s")?, cpu_s: figure("preview_cpu_s")? },
            submit: Used { seconds: figure("submit_s")?, cpu_s: figure("submit_cpu_s")? },
            memory_bytes: figure("memory_bytes")?,
        })
    }
}

/// The Python of an environment that has openpyxl; made if it is not there, as `cargo xtask schema` makes its own.
fn environment() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the bench lies in no folder")?.with_file_name("bench-venv");
    let python = folder.join("bin/python");
    if !python.exists() {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let has_it = format!("import openpyxl; assert openpyxl.__version__ == '{}'", &OPENPYXL[10..]);
    if quietly(Command::new(&python).args(["-c", &has_it])).is_err() {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", OPENPYXL];
        quietly(Command::new(&python).args(install)).context("is PyPI within reach?")?;
    }
    Ok(python)
}

fn quietly(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
