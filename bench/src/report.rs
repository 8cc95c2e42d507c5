//! The figures of one bench, for people as a table and for programs as one line of JSON.
//!
//! Guarantees that a ratio is always ours divided by the other's, and absent where it would mean nothing.

use std::fmt;

use serde::Serialize;

/// One bench.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) bench: &'static str,
    pub(crate) rows: Vec<Row>,
    /// What must not be; such a bench ends with exit code 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<String>,
    /// What one has to know to read the figures.
    #[serde(skip)]
    preface: String,
}

impl Report {
    pub(crate) fn new(bench: &'static str, rows: Vec<Row>, preface: impl Into<String>) -> Self {
        Self { bench, rows, failures: Vec::new(), preface: preface.into() }
    }

    pub(crate) fn failed(mut self, failures: Vec<String>) -> Self {
        self.failures = failures;
        self
    }
}

/// One figure of each contestant.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) ours: f64,
    /// The most that could be had: the same work without what our part adds.
    pub(crate) limit: Option<f64>,
    /// What others do for the same purpose.
    pub(crate) peer: Option<f64>,
    pub(crate) unit: &'static str,
    ratio_limit: Option<f64>,
    ratio_peer: Option<f64>,
    #[serde(skip)]
    note: String,
}

impl Row {
    pub(crate) fn new(name: &str, unit: &'static str, figures: (f64, Option<f64>, Option<f64>)) -> Self {
        let (ours, limit, peer) = figures;
        let ratio = |other: Option<f64>| other.filter(|it| *it > 0.0).map(|it| rounded(ours / it));
        Self {
            name: name.to_owned(),
            ours: rounded(ours),
            limit: limit.map(rounded),
            peer: peer.map(rounded),
            unit,
            ratio_limit: ratio(limit),
            ratio_peer: ratio(peer),
            note: String::new(),
        }
    }

    /// Ours divided by the limit.
    pub(crate) fn ratio_limit(&self) -> Option<f64> {
        self.ratio_limit
    }

    pub(crate) fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Adds a note to those the row has.
    pub(crate) fn noted(mut self, note: &str) -> Self {
        if !self.note.is_empty() && !note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(note);
        self
    }
}

/// Four digits are more than any of these figures is worth.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

fn cell(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1_000.0 => format!("{value:.0}"),
        Some(value) => format!("{value}"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}\n", self.preface)?;
        writeln!(
            out,
            "{:<34} {:>11} {:>11} {:>11}  {:<8} {:>8} {:>8}",
            self.bench, "ours", "limit", "peer", "", "/limit", "/peer"
        )?;
        for row in &self.rows {
            let (ours, limit, peer) = (cell(Some(row.ours)), cell(row.limit), cell(row.peer));
            let (by_limit, by_peer) = (cell(row.ratio_limit), cell(row.ratio_peer));
            write!(out, "{:<34} {ours:>11} {limit:>11} {peer:>11}", row.name)?;
            writeln!(out, "  {:<8} {by_limit:>8} {by_peer:>8}", row.unit)?;
            if !row.note.is_empty() {
                writeln!(out, "    {}", row.note)?;
            }
        }
        for failure in &self.failures {
            writeln!(out, "FAILED: {failure}")?;
        }
        Ok(())
    }
}
