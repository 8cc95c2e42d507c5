//! Times as the real server writes them.
//!
//! Guarantees: UTC, fixed width.
//!
//! Does not ask what time it is.

use jiff::Timestamp;

/// The start of 2026: a clock that runs faster does so from here.
pub const CLOCK_FROM_MS: u64 = 1_767_225_600_000;

/// `2026-11-15T19:20:43.000Z`.
pub fn iso(time_ms: u64) -> String {
    let at = at(time_ms);
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string() + &format!(".{:03}Z", time_ms % 1000)
}

/// `2026-11-15 19:20:43`.
pub fn sql_style(time_s: u64) -> String {
    at(time_s * 1000).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn at(time_ms: u64) -> Timestamp {
    let time_ms = i64::try_from(time_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(time_ms).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_look_like_the_real_servers() {
        assert_eq!(iso(1_794_770_443_000), "2026-11-15T19:20:43.000Z");
        assert_eq!(iso(1_794_770_443_526), "2026-11-15T19:20:43.526Z");
        assert_eq!(sql_style(1_794_770_443), "2026-11-15 19:20:43");
    }
}
