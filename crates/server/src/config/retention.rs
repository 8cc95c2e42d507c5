//! What is kept, and for how long.

use std::time::Duration;

use jiff::SignedDuration;
use model::retention::Retention;

use super::Opening;
use super::reader::Section;

/// Clocks differ, and a transfer takes its time.
const LINKS_MARGIN: Duration = Duration::from_secs(3600);
const YEARS_MAX: u64 = 100;

pub(super) fn read(section: &mut Section<'_>) -> Retention {
    let hours_max = YEARS_MAX * 366 * 24;
    let days_max = YEARS_MAX * 366;
    Retention {
        checkpoints_all: for_ever_if_zero(section.whole("checkpoints_hours", 168, (0, hours_max)), 1),
        checkpoints_one_per: hours(section.whole("checkpoints_one_per_hours", 24, (1, hours_max)), 1),
        versions_newest: Some(section.whole("versions_newest", 0, (0, 1_000_000)))
            .filter(|count| *count > 0)
            .and_then(|count| u32::try_from(count).ok()),
        versions_younger: for_ever_if_zero(section.whole("versions_days", 0, (0, days_max)), 24),
        deleted: for_ever_if_zero(section.whole("deleted_days", 90, (0, days_max)), 24),
        kept: for_ever_if_zero(section.whole("kept_days", 0, (0, days_max)), 24),
        links: SignedDuration::ZERO,
        bytes: hours(section.whole("bytes_days", 7, (0, 3660)), 24),
    }
}

fn hours(count: u64, each: i64) -> SignedDuration {
    SignedDuration::from_hours(i64::try_from(count).unwrap_or(i64::MAX / 3600 / each).saturating_mul(each))
}

fn for_ever_if_zero(count: u64, each: i64) -> Option<SignedDuration> {
    (count > 0).then(|| hours(count, each))
}

/// How long a link to a content may be in use.
pub(super) fn links(opening: &Opening) -> SignedDuration {
    SignedDuration::try_from(opening.stream_token + LINKS_MARGIN).unwrap_or(SignedDuration::from_hours(25))
}
