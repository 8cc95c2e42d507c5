//! Every bound in one place, each with its reason.

/// How much work one file may cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Inflated bytes of all entries together. Real workbooks of half a million rows inflate to some 600 MB.
    pub inflated_bytes_max: u64,
    /// Entries of a container. Presentations with thousands of pictures stay below 20,000.
    pub entries_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inflated_bytes_max: 1024 * 1024 * 1024, entries_max: 100_000 }
    }
}
