//! Days: how cells hold them, and the bounds that templates give them.
//!
//! Guarantees: a day never depends on a time zone; what is no day of this calendar, or lies before 1901, is none.

use jiff::civil::{Date, date};
use jiff::{Span, ToSpan};

use crate::Decimal;

/// Where a workbook begins to count its days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Epoch {
    /// 1900, with a 29 February that never was: days are right from March 1900 on.
    #[default]
    Of1900,
    /// 1904, as the first Macintosh did.
    Of1904,
}

/// The day of a serial number; its time of day is dropped.
pub(crate) fn from_serial(serial: Decimal, epoch: Epoch) -> Option<Date> {
    let days = i32::try_from(serial.truncated()).ok()?;
    let (zero, days_max) = match epoch {
        Epoch::Of1900 => (date(1899, 12, 30), 2_958_465),
        Epoch::Of1904 => (date(1904, 1, 1), 2_957_003),
    };
    if serial < Decimal::ZERO || days > days_max {
        return None;
    }
    sensible(zero.checked_add(days.days()).ok()?)
}

/// The serial number of a day, counted from 1900.
pub(crate) fn to_serial(day: Date) -> i32 {
    date(1899, 12, 30).until(day).map_or(0, |span| span.get_days())
}

/// The day of a text `2026-03-31`. A time behind it is dropped, as it is of a serial number.
pub(crate) fn from_iso(text: &str) -> Option<Date> {
    let (day, time) = text.split_at_checked(10)?;
    let is_plain = day.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if !is_plain || !(time.is_empty() || time.starts_with(['T', ' '])) {
        return None;
    }
    sensible(day.parse().ok()?)
}

fn sensible(day: Date) -> Option<Date> {
    (day.year() > 1900).then_some(day)
}

/// A bound of a column of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayBound {
    /// A certain day.
    Day(Date),
    /// So many days after the day of reading.
    FromToday(i32),
}

impl DayBound {
    /// Reads `2026-01-01`, `today`, `today+1d` or `today-30d`.
    pub fn parse(text: &str) -> Option<Self> {
        let Some(shift) = text.strip_prefix("today") else { return from_iso(text).map(Self::Day) };
        if shift.is_empty() {
            return Some(Self::FromToday(0));
        }
        let days: i32 = shift.strip_suffix('d')?.parse().ok()?;
        (shift.starts_with(['+', '-']) && days.abs() < 40_000).then_some(Self::FromToday(days))
    }

    /// The day, seen from today.
    pub fn on(self, today: Date) -> Date {
        match self {
            Self::Day(day) => day,
            Self::FromToday(days) => today.saturating_add(Span::new().days(days)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_are_days_in_both_calendars() {
        let day = |serial: &str, epoch| from_serial(Decimal::parse(serial).unwrap(), epoch);
        assert_eq!(day("46112", Epoch::Of1900), Some(date(2026, 3, 31)));
        assert_eq!(day("46112.999", Epoch::Of1900), Some(date(2026, 3, 31)));
        assert_eq!(day("44650", Epoch::Of1904), Some(date(2026, 3, 31)));
        for serial in ["0", "0.5", "1", "60", "366", "-5", "2958466", "99999999999999"] {
            assert_eq!(day(serial, Epoch::Of1900), None, "{serial}");
        }
        assert_eq!(to_serial(date(2026, 3, 31)), 46112);
    }

    #[test]
    fn only_one_way_of_writing_a_day_is_understood() {
        assert_eq!(from_iso("2026-03-31"), Some(date(2026, 3, 31)));
        assert_eq!(from_iso("2026-03-31T23:30:00"), Some(date(2026, 3, 31)));
        for text in ["31/03/2026", "2026-02-30", "2026-3-1", "1900-05-05", "2026-03-311", "2026-03-3€", ""]
        {
            assert_eq!(from_iso(text), None, "{text}");
        }
    }

    #[test]
    fn bounds_move_with_today() {
        let today = date(2026, 3, 31);
        assert_eq!(DayBound::parse("today+1d").map(|bound| bound.on(today)), Some(date(2026, 4, 1)));
        assert_eq!(DayBound::parse("today-31d").map(|bound| bound.on(today)), Some(date(2026, 2, 28)));
        assert_eq!(DayBound::parse("2020-01-01").map(|bound| bound.on(today)), Some(date(2020, 1, 1)));
        for text in ["tomorrow", "today1d", "today+1", "today+99999d", "today+d"] {
            assert_eq!(DayBound::parse(text), None, "{text}");
        }
    }
}
