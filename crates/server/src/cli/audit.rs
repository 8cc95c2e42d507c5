//! `saveguard audit export` and `saveguard audit verify`: the trail as a file, and the check of such a file.
//!
//! Verifying needs neither configuration nor ledger: whoever got a file can check it. Exit 0 if it is sound, 1 if it is not,
//! 2 if it could not be read.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use model::trail_file::{FileChecker, FileVerdict, Scope};
use model::{CompanyId, Digest, DocumentId};
use serde_json::json;

use super::{print, tell};
use crate::app::App;
use crate::auditing::{Export, Wanted};
use crate::config::Config;

/// An anchor of 500 chains is the longest entry there is.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print the audit trail as JSON lines: all of it, of a company, or of a document. May run beside the service.
    Export(ExportArguments),
    /// Is an exported trail whole and unchanged? Needs neither configuration nor ledger.
    Verify(VerifyArguments),
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArguments {
    /// Of this company and its documents only.
    #[arg(long, value_name = "ID", conflicts_with = "document")]
    company: Option<String>,
    /// Of this document only, with the anchors of its company.
    #[arg(long, value_name = "ID")]
    document: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArguments {
    /// The exported trail; `-` for standard input.
    file: PathBuf,
    /// An entry that must be in it, from a receipt or from a log: CHAIN:NUMBER:HASH. May be given several times.
    #[arg(long, value_name = "ENTRY")]
    expect: Vec<String>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn export(config: Config, arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    super::require_data(&config)?;
    let app = Arc::new(App::inspecting(config).await.context("the data folder cannot be opened")?);
    let wanted = wanted(&app, arguments).await?;
    let mut export = Export::new(app, wanted);
    let mut out = std::io::stdout();
    while let Some(lines) = export.next().await.context("the audit trail cannot be read")? {
        out.write_all(lines.as_bytes()).context("the export cannot be written")?;
    }
    out.flush().context("the export cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

async fn wanted(app: &App, arguments: ExportArguments) -> anyhow::Result<Wanted> {
    match (arguments.company, arguments.document) {
        (Some(company), _) => {
            let company = CompanyId::parse(&company)?;
            let is_known = app.ledger.companies().await?.iter().any(|known| known.id == company);
            anyhow::ensure!(is_known, "there is no company `{company}`");
            Ok(Wanted::Company(company))
        }
        (None, Some(document)) => {
            let id = DocumentId::parse(&document)?;
            let document = app.ledger.document(&id).await?;
            let document = document.ok_or_else(|| anyhow!("there is no document `{id}`"))?;
            Ok(Wanted::Anchored(id, document.company))
        }
        (None, None) => Ok(Wanted::All),
    }
}

pub(super) fn verify(arguments: &VerifyArguments) -> anyhow::Result<ExitCode> {
    let mut checker = FileChecker::default();
    for expected in &arguments.expect {
        let (chain, sequence, hash) = entry_in(expected)
            .ok_or_else(|| anyhow!("`{expected}` is not CHAIN:NUMBER:HASH, as in a receipt"))?;
        checker.expect(chain, sequence, hash);
    }
    let shown = arguments.file.display();
    read(&arguments.file, &mut checker).with_context(|| format!("{shown} cannot be read"))?;
    let verdict = checker.finish();
    if arguments.json {
        print(&as_json(&verdict).to_string());
    } else {
        show(&verdict);
    }
    Ok(if verdict.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The name of a company's chain has a colon itself.
fn entry_in(text: &str) -> Option<(&str, u64, Digest)> {
    let mut parts = text.rsplitn(3, ':');
    let (hash, sequence, chain) = (parts.next()?, parts.next()?, parts.next()?);
    Some((chain, sequence.parse().ok()?, Digest::parse_hex(hash)?))
}

fn read(file: &Path, checker: &mut FileChecker) -> std::io::Result<()> {
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file)?)
    };
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // A line that is too long or no text says nothing, as any other that cannot be read.
        let text = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        if !checker.read(text.unwrap_or_default()) {
            return Ok(());
        }
    }
}

fn flaws(verdict: &FileVerdict) -> Vec<String> {
    let of_file = verdict.flaws.iter().map(ToString::to_string);
    of_file.chain(verdict.trail.flaws.iter().map(ToString::to_string)).collect()
}

fn as_json(verdict: &FileVerdict) -> serde_json::Value {
    let ends = verdict.trail.ends.iter();
    json!({
        "sound": verdict.is_sound(),
        "scope": verdict.scope,
        "exported_at": verdict.exported_at,
        "entries": verdict.trail.entries,
        "unanchored": verdict.trail.unanchored,
        "chains": ends.map(|(chain, end)| json!({
            "chain": chain, "sequence": end.sequence, "hash": end.hash.to_string(),
        })).collect::<Vec<_>>(),
        "flaws": flaws(verdict),
    })
}

fn show(verdict: &FileVerdict) {
    flaws(verdict).iter().for_each(|flaw| print(flaw));
    let scope = match &verdict.scope {
        None => "no trail".to_owned(),
        Some(Scope::All) => "everything".to_owned(),
        Some(Scope::Company(company)) => format!("company {company}"),
        Some(Scope::Document(document)) => format!("document {document}"),
    };
    let (entries, chains) = (verdict.trail.entries, verdict.trail.ends.len());
    let word = if verdict.is_sound() { "Sound" } else { "NOT SOUND" };
    tell(&format!("{word}: {scope}, {entries} entries in {chains} chains."));
    if verdict.trail.unanchored > 0 {
        tell(&format!("{} entries are newer than the last anchor of theirs.", verdict.trail.unanchored));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_named_as_receipts_do() {
        let hash = Digest::of(b"x");
        assert_eq!(entry_in(&format!("12345:7:{hash}")), Some(("12345", 7, hash)));
        assert_eq!(entry_in(&format!("company:acme:7:{hash}")), Some(("company:acme", 7, hash)));
        for strange in ["", "12345", "12345:7", "12345:7:abc", &format!("12345:x:{hash}")] {
            assert_eq!(entry_in(strange), None, "{strange}");
        }
    }
}
