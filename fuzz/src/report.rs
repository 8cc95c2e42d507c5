//! The figures of a run, for people as a table and for programs as one line of JSON.

use std::time::Duration;

use serde_json::json;

/// What came of one target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub(crate) target: &'static str,
    /// Inputs that were judged, the files of the corpus included. Each is read three times.
    pub(crate) executions: u64,
    pub(crate) took: Duration,
    /// Different combinations of findings: how much of the layer was reached, roughly.
    pub(crate) combinations: usize,
    /// Inputs from the corpus.
    pub(crate) seeds: usize,
    /// Inputs that were kept because they led to a new combination.
    pub(crate) kept: usize,
    pub(crate) slowest: Duration,
    pub(crate) findings: usize,
}

impl Figures {
    fn per_second(&self) -> f64 {
        // A count of inputs is far below what a float holds exactly.
        let executions = u32::try_from(self.executions).map_or(f64::from(u32::MAX), f64::from);
        (executions / self.took.as_secs_f64().max(0.001)).round()
    }
}

/// One line for machines.
pub(crate) fn to_json(seed: u64, all: &[Figures]) -> String {
    let targets: Vec<_> = all
        .iter()
        .map(|figures| {
            json!({
                "target": figures.target,
                "executions": figures.executions,
                "per_second": figures.per_second(),
                "seconds": (figures.took.as_secs_f64() * 10.0).round() / 10.0,
                "combinations": figures.combinations,
                "seeds": figures.seeds,
                "kept": figures.kept,
                "slowest_ms": u64::try_from(figures.slowest.as_millis()).unwrap_or(u64::MAX),
                "findings": figures.findings,
            })
        })
        .collect();
    let findings: usize = all.iter().map(|figures| figures.findings).sum();
    json!({ "seed": seed, "findings": findings, "memory_kib": memory_kib(), "targets": targets }).to_string()
}

/// The table for people.
pub(crate) fn to_table(seed: u64, all: &[Figures]) -> String {
    let mut lines = vec![format!(
        "{:<6} {:>12} {:>9} {:>8} {:>13} {:>6} {:>6} {:>8} {:>9}",
        "target", "executions", "a second", "seconds", "combinations", "seeds", "kept", "slowest", "findings"
    )];
    lines.extend(all.iter().map(|figures| {
        format!(
            "{:<6} {:>12} {:>9} {:>8.0} {:>13} {:>6} {:>6} {:>5} ms {:>9}",
            figures.target,
            figures.executions,
            figures.per_second(),
            figures.took.as_secs_f64(),
            figures.combinations,
            figures.seeds,
            figures.kept,
            figures.slowest.as_millis(),
            figures.findings
        )
    }));
    lines.push(format!("seed {seed}, memory at most {} KiB", memory_kib()));
    lines.join("\n")
}

/// How much memory this process had at most, inputs and seeds included.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or_default()
}

/// Tells people.
#[allow(clippy::print_stderr, reason = "the fuzzer tells people what it does")]
pub(crate) fn tell(text: &str) {
    eprintln!("{text}");
}

/// Prints the outcome.
#[allow(clippy::print_stdout, reason = "the outcome goes to stdout")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}
