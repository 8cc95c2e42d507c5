//! `office-check` against bare inflating and summing (the limit) and against the tools people have (the peers).
//!
//! All figures are processor time per file. Ours and the limit read from memory in this process; the peers are programs, and
//! their start is part of what they cost.

mod files;
mod peers;

use std::io::Cursor;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use office_check::{Hint, Limits, Thoroughness, Verdict};

use crate::gauge::{self, median};
use crate::report::{Report, Row};

/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 5;
/// The clock of the kernel ticks in hundredths of a second: a round takes many ticks.
pub(super) const ROUND_S: f64 = 0.4;

const PREFACE: &str = "\
Processor time to check one file. zip: every entry inflated, its size and checksum compared. required: and the parts without
which it cannot be opened are well-formed. full: and all other parts.
ours: office-check. limit: inflate and CRC-32 of every entry by libdeflate, whole entries in memory, nothing else checked.
peer: `unzip -t` for zip, and `xmllint --noout` on the same parts for the others. Medians of alternating rounds.";

pub(crate) fn run() -> Result<Report> {
    let folder = tempfile::tempdir().context("no folder for the files")?;
    let mut rows = Vec::new();
    for (name, bytes) in files::all()? {
        let path = folder.path().join(format!("{}.{}", name.replace(' ', "-"), extension(name)));
        std::fs::write(&path, &bytes)?;
        eprintln!("{name}: {} bytes", bytes.len());
        let limit = files::entries(&bytes)?;
        for (word, thoroughness, parts) in [
            ("zip", Thoroughness::Container, peers::Parts::None),
            ("required", Thoroughness::Required, peers::Parts::Required),
            ("full", Thoroughness::Full, peers::Parts::All),
        ] {
            rows.push(row(&format!("{word} {name}"), (&bytes, &path), (thoroughness, parts), &limit)?);
        }
        rows.push(python_row(name, (&bytes, &path), &limit)?);
    }
    Ok(Report::new("check", rows, PREFACE))
}

fn extension(name: &str) -> &'static str {
    if name.contains("docx") { "docx" } else { "xlsx" }
}

fn row(
    name: &str,
    (bytes, path): (&[u8], &Path),
    (thoroughness, parts): (Thoroughness, peers::Parts),
    entries: &[files::Deflated<'_>],
) -> Result<Row> {
    let (mut ours, mut limit, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(cpu_ms(|| check(bytes, path, thoroughness))?);
        limit.push(cpu_ms(|| files::inflate_all(entries))?);
        peer.extend(peers::unzip_and_xmllint(path, parts)?);
    }
    let peer = (!peer.is_empty()).then(|| median(peer));
    Ok(Row::new(name, "ms CPU", (median(ours), Some(median(limit)), peer)))
}

fn python_row(name: &str, (bytes, path): (&[u8], &Path), entries: &[files::Deflated<'_>]) -> Result<Row> {
    let ours = cpu_ms(|| check(bytes, path, Thoroughness::Full))?;
    let limit = cpu_ms(|| files::inflate_all(entries))?;
    let peer = peers::python(path)?;
    let row = Row::new(&format!("full {name}, Python"), "ms CPU", (ours, Some(limit), peer));
    Ok(row.noted("the peer: zipfile and expat, the start of Python included"))
}

fn check(bytes: &[u8], path: &Path, thoroughness: Thoroughness) -> Result<()> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let limits = Limits { thoroughness, ..Limits::default() };
    let report = office_check::check(Cursor::new(bytes), Hint::from_extension(&extension), &limits);
    ensure!(
        report.verdict == Verdict::Accept,
        "the file of the bench is not accepted: {:?}",
        report.findings
    );
    Ok(())
}

/// Processor time of one call, from as many as fill a round.
fn cpu_ms(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let own = std::process::id();
    let (began, mut count) = (gauge::cpu_s(own), 0_u32);
    loop {
        work()?;
        count += 1;
        let used = gauge::cpu_s(own) - began;
        if used >= ROUND_S {
            return Ok(used * 1000.0 / f64::from(count));
        }
    }
}
