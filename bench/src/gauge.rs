//! What a process has used so far, as Linux tells, and what the middle of some figures is.
//!
//! Elsewhere than on Linux processor time and memory read as zero.

use std::fs;

/// The kernel counts processor time in hundredths of a second, on every machine this runs on.
const TICK_S: f64 = 0.01;

/// Processor time a process has used, in seconds.
pub(crate) fn cpu_s(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain spaces; user and system time are the 12th and 13th word after it.
    let words = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    words.skip(11).take(2).filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() * TICK_S
}

/// Processor time of a process and of those it started that have ended, in seconds.
pub(crate) fn family_cpu_s(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let words = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    words.skip(11).take(4).filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() * TICK_S
}

/// Processor time of all processes that we started and that have ended, in seconds.
pub(crate) fn children_cpu_s() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    words.skip(13).take(2).filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() * TICK_S
}

/// Memory a process holds, in bytes.
pub(crate) fn resident_bytes(process: u32) -> f64 {
    memory_bytes(process, "VmRSS:")
}

/// The most memory a process has held so far, in bytes.
pub(crate) fn peak_bytes(process: u32) -> f64 {
    memory_bytes(process, "VmHWM:")
}

fn memory_bytes(process: u32, name: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() * 1024.0
}

/// The middle of some figures; zero of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
