//! The order in which the versions of a template came.
//!
//! Guarantees: a version is a text of numbers and dots with one spelling, compared part by part: 2.10 is newer than 2.9.
//! Does not do: what is in a template (`sheets`).

use std::fmt;

/// Parts at most: `2026.4.1.2`.
const PARTS_MAX: usize = 4;
/// Digits of a part at most: it fits 32 bits.
const DIGITS_MAX: usize = 9;

/// The version of a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TemplateVersion(Vec<u32>);

/// Why a text is not the version of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version is one to four numbers with dots between them, without leading zeros, such as `2.1`")]
pub struct NotAVersion;

impl TemplateVersion {
    /// What [`TemplateVersion::parse`] takes, for descriptions.
    pub const PATTERN: &'static str = r"^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,3}$";

    /// Reads a version.
    pub fn parse(text: &str) -> Result<Self, NotAVersion> {
        let parts: Option<Vec<u32>> = text.split('.').map(part).collect();
        parts.filter(|parts| parts.len() <= PARTS_MAX).map(Self).ok_or(NotAVersion)
    }
}

fn part(text: &str) -> Option<u32> {
    let is_short = (1..=DIGITS_MAX).contains(&text.len());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_short && is_plain { text.parse().ok() } else { None }
}

impl fmt::Display for TemplateVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&parts.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_part_by_part_and_have_one_spelling() {
        let version = |text| TemplateVersion::parse(text).unwrap();
        let ordered = ["0", "0.9", "2", "2.0", "2.1", "2.9", "2.10", "2.10.1", "10", "999999999.0.0.1"];

        for pair in ordered.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        for text in ordered {
            assert_eq!(version(text).to_string(), text);
        }
        for strange in ["", ".", "1.", ".1", "01", "1.01", "v1", "1.2.3.4.5", "1000000000", "-1", "1 ", "१"]
        {
            assert_eq!(TemplateVersion::parse(strange), Err(NotAVersion), "{strange}");
        }
    }
}
