//! `saveguard check`: is this Office file whole? Exit 0 if none is refused, 1 if one is, 2 if one cannot be read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use office_check::{Hint, Limits, Report, Thoroughness, Verdict};
use serde_json::json;

use super::progress::Bar;
use super::{print, tell};
use crate::verifying::Progress as _;

/// From so many files on a bar is worth looking at.
const MANY: usize = 10;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Verdicts: `accept`; `flag`: it is taken and somebody is told; `refuse`: it is damaged and kept \
    aside.\nEvery finding is explained in docs/findings.md."
)]
pub(super) struct Arguments {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one line of JSON for each file: {"file","kind","verdict","findings"}.
    #[arg(long)]
    json: bool,
    /// How much is looked at.
    #[arg(long, value_enum, default_value_t = Depth::Full)]
    depth: Depth,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Depth {
    /// The container: every entry is inflated and its checksum compared.
    Container,
    /// And the parts without which the document cannot be opened.
    Required,
    /// And every other part.
    Full,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let thoroughness = match arguments.depth {
        Depth::Container => Thoroughness::Container,
        Depth::Required => Thoroughness::Required,
        Depth::Full => Thoroughness::Full,
    };
    let limits = Limits { thoroughness, ..Limits::default() };
    let bar = Bar::default();
    let is_long = arguments.files.len() >= MANY;
    if is_long {
        bar.begin("files", arguments.files.len() as u64);
    }
    let (mut is_refused, mut is_unread) = (false, false);
    for file in &arguments.files {
        match check(file, &limits) {
            Ok(report) => {
                is_refused |= report.verdict == Verdict::Refuse;
                if arguments.json { print(&line(file, &report)) } else { show(file, &report) }
            }
            Err(cause) => {
                is_unread = true;
                tell(&format!("saveguard: {cause:#}"));
            }
        }
        bar.advance();
    }
    bar.finish();
    Ok(match (is_unread, is_refused) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

fn check(file: &Path, limits: &Limits) -> anyhow::Result<Report> {
    // Before it is opened: a pipe nobody writes to would be waited for.
    let about = file.metadata().with_context(|| format!("cannot open {}", file.display()))?;
    anyhow::ensure!(!about.is_dir(), "{} is a folder: name the files in it", file.display());
    anyhow::ensure!(about.is_file(), "{} is no file: store its bytes in one first", file.display());
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let extension = file.extension().unwrap_or_default().to_string_lossy();
    Ok(office_check::check(opened, Hint::from_extension(&extension), limits))
}

fn line(file: &Path, report: &Report) -> String {
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "code": finding.code.as_str(),
                "severity": finding.code.severity().as_str(),
                "part": finding.part,
                "offset": finding.offset,
                "message": finding.message,
            })
        })
        .collect();
    json!({
        "file": file.display().to_string(),
        "kind": report.kind.as_str(),
        "verdict": report.verdict.as_str(),
        "findings": findings,
    })
    .to_string()
}

fn show(file: &Path, report: &Report) {
    print(&format!("{:<6}  {:<9}  {}", report.verdict.as_str(), report.kind.as_str(), file.display()));
    for finding in &report.findings {
        print(&format!("        {}: {}", finding.code.as_str(), finding.message));
    }
}

#[cfg(test)]
mod tests {
    use model::checking::Vanished;
    use office_check::Code;

    #[test]
    fn every_finding_has_its_line_on_the_page() {
        let page = include_str!("../../../../docs/findings.md");
        for code in Code::ALL {
            let line = format!("| `{}` | {} |", code.as_str(), code.severity().as_str());
            assert!(page.contains(&line), "docs/findings.md lacks: {line}");
        }
        for vanished in Vanished::ALL {
            let line = format!("| `{}` | {} |", vanished.as_str(), vanished.meaning());
            assert!(page.contains(&line), "docs/findings.md lacks: {line}");
        }
    }
}
