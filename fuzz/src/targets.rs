//! What is thrown at: each layer of the check, with the files of the corpus that reach it.
//!
//! Guarantees: every target has seeds. Does not do: mutate; it says which kind of mutation suits.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use office_check::fuzzing::{self, Outcome};
use office_check::{Hint, Limits, Thoroughness, Verdict, check};

use crate::packing::Part;
use crate::pieces::{Pieces, Reading};

/// A layer of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Target {
    /// What the bytes are, and what follows: the whole check, over files of every kind.
    Kind,
    /// Archives: directory, headers, data.
    Zip,
    /// Markup, in pieces of any length.
    Xml,
    /// Office packages, whose parts are changed and packed again.
    Opc,
    /// OpenDocument packages and books, likewise.
    Odf,
    /// Compound files.
    Cfb,
    /// Flat documents, rich text, PDF, plain text.
    Text,
}

/// What an input of a target is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Bytes,
    Markup,
    Package,
}

/// One input: its bytes, and its parts if it is a package that can be packed again.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<Part>,
}

/// Extensions a file can be said to have. The length of the input chooses, so that an input means one check.
const EXTENSIONS: [&str; 12] =
    ["docx", "xlsx", "pptx", "odt", "ods", "doc", "xls", "pdf", "rtf", "epub", "txt", "bin"];

impl Target {
    pub(crate) const ALL: [Self; 7] =
        [Self::Kind, Self::Zip, Self::Xml, Self::Opc, Self::Odf, Self::Cfb, Self::Text];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Zip => "zip",
            Self::Xml => "xml",
            Self::Opc => "opc",
            Self::Odf => "odf",
            Self::Cfb => "cfb",
            Self::Text => "text",
        }
    }

    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Kind | Self::Zip | Self::Cfb | Self::Text => Shape::Bytes,
            Self::Xml => Shape::Markup,
            Self::Opc | Self::Odf => Shape::Package,
        }
    }

    /// What the layer makes of an input.
    pub(crate) fn ask(self, input: &[u8], reading: Reading) -> Outcome {
        let pieces = Pieces::of(input, reading);
        match self {
            Self::Kind => whole(pieces, EXTENSIONS[input.len() % EXTENSIONS.len()]),
            Self::Opc => whole(pieces, "docx"),
            Self::Odf => whole(pieces, "odt"),
            Self::Zip => fuzzing::zip(pieces),
            Self::Cfb => fuzzing::cfb(pieces),
            Self::Text => fuzzing::text(pieces),
            Self::Xml => fuzzing::xml(input.chunks(reading.piece_bytes(input.len()))),
        }
    }

    /// Whether a file of the corpus is a seed.
    fn begins_with(self, kind: &str) -> bool {
        let is_odf = ["odt", "ods", "odp", "odg", "odf", "epub"].contains(&kind);
        let is_text = ["fodt", "fods", "fodp", "rtf", "pdf", "html", "xml", "csv", "txt"].contains(&kind);
        let is_compound = ["doc", "xls", "ppt", "ole", "encrypted"].contains(&kind);
        match self {
            Self::Kind => true,
            Self::Zip => !is_text && !is_compound && kind != "unknown",
            Self::Xml => !is_compound,
            Self::Opc => !is_text && !is_compound && !is_odf,
            Self::Odf => is_odf,
            Self::Cfb => is_compound,
            Self::Text => is_text,
        }
    }

    /// The files of the corpus that reach the layer; of packages their parts, if parts are what the layer reads.
    pub(crate) fn seeds(self) -> Result<Vec<Seed>> {
        let table = corpus().join("verdicts.tsv");
        let rows =
            std::fs::read_to_string(&table).with_context(|| format!("cannot read {}", table.display()))?;
        let mut seeds = Vec::new();
        for row in rows.lines().skip(1) {
            let columns: Vec<&str> = row.split('\t').collect();
            let (Some(file), Some(kind)) = (columns.first(), columns.get(2)) else { continue };
            if !self.begins_with(kind) {
                continue;
            }
            let path = corpus().join(file);
            let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let parts = parts_of(&bytes);
            match (self.shape(), parts.is_empty()) {
                (Shape::Markup, false) => seeds.extend(parts.into_iter().map(Seed::of_part)),
                (Shape::Package, true) => {}
                _ => seeds.push(Seed { bytes, parts }),
            }
        }
        if self.shape() == Shape::Markup {
            seeds.sort_by(|one, other| one.bytes.cmp(&other.bytes));
            seeds.dedup_by(|one, other| one.bytes == other.bytes);
        }
        ensure!(!seeds.is_empty(), "the corpus has no file for {}", self.as_str());
        Ok(seeds)
    }
}

impl Seed {
    fn of_part(part: Part) -> Self {
        Self { bytes: part.data, parts: Vec::new() }
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/office-check/corpus")
}

fn parts_of(bytes: &[u8]) -> Vec<Part> {
    let entries = fuzzing::entries(bytes).unwrap_or_default();
    entries.into_iter().map(|(name, data)| Part { name, data }).collect()
}

/// The whole check. What must hold for every report is asserted here.
fn whole(mut pieces: Pieces<'_>, extension: &str) -> Outcome {
    let hint = Hint::from_extension(extension);
    let report = check(&mut pieces, hint, &Limits::default());
    let worst = report.findings.iter().map(|finding| finding.code.severity().verdict()).max();
    assert_eq!(report.verdict, worst.unwrap_or(Verdict::Accept), "the verdict is that of the worst finding");
    // A second check costs as much as the first, so not every input gets one.
    if report.verdict != Verdict::Refuse && pieces.len().is_multiple_of(4) {
        let limits = Limits { thoroughness: Thoroughness::Container, ..Limits::default() };
        let quick = check(&mut pieces, hint, &limits);
        assert_ne!(quick.verdict, Verdict::Refuse, "a quick look refuses more: {:?}", quick.findings);
    }
    let outcome = fuzzing::outcome(report.kind, &report.findings);
    Outcome { said: format!("{} {:?}", outcome.said, report.extent), ..outcome }
}
