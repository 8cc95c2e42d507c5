//! Scopes: who hands in what, and by when.
//!
//! A scope is a registration of an organisation: what is handed in belongs to it, and its submissions are numbered. It has a
//! span in which it is active, and deadlines.
//!
//! Guarantees: days, numbers and labels that were read are well formed; how a deadline stands is decided by [`standings`] and who
//! is late by [`who_is_overdue`], from days alone. A day is a day of UTC, and a deadline is kept until its end.
//! Does not do: know today, or who submitted what.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::{OrganisationId, RegistrationId};

/// Longest number of an organisation, registration or accreditation, and longest label of a period, in characters.
pub const LABEL_CHARACTERS_MAX: usize = 100;
/// Years that can be meant. Others are slips of the finger.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2999;

/// What an upload belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// Who hands in.
    pub organisation: OrganisationId,
    /// For what.
    pub registration: RegistrationId,
}

impl Scope {
    /// The name of the audit chain of what is handed in. No id has a colon, so no document's chain is called so.
    pub fn chain(&self) -> String {
        format!("scope:{self}")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.organisation, self.registration)
    }
}

/// Why a text is not a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a day is written YYYY-MM-DD, such as 2026-04-30")]
pub struct NotADay;

/// Reads a day: `2026-04-30`, and nothing else.
pub fn day(text: &str) -> Result<Date, NotADay> {
    let is_plain = text.len() == "2026-04-30".len()
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    let day: Option<Date> = is_plain.then(|| text.parse().ok()).flatten();
    day.filter(|day| YEARS.contains(&day.year())).ok_or(NotADay)
}

/// Why a text is not a number or label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a number or label has 1 to {LABEL_CHARACTERS_MAX} characters and no control characters")]
pub struct NotALabel;

/// Reads the number of an organisation, registration or accreditation, or the label of a period: as it stands on paper, with
/// any signs, without spaces around it.
pub fn label(text: &str) -> Result<String, NotALabel> {
    let label = text.trim();
    let is_short = (1..=LABEL_CHARACTERS_MAX).contains(&label.chars().count());
    if is_short && !label.chars().any(char::is_control) { Ok(label.to_owned()) } else { Err(NotALabel) }
}

/// From a day to a day, both included; open where none is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    from: Option<Date>,
    until: Option<Date>,
}

/// Why two days are not a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is after {1}: the first day comes before the last")]
pub struct Reversed(pub Date, pub Date);

impl Span {
    /// From a day to a day.
    pub fn new(from: Option<Date>, until: Option<Date>) -> Result<Self, Reversed> {
        match (from, until) {
            (Some(from), Some(until)) if from > until => Err(Reversed(from, until)),
            _ => Ok(Self { from, until }),
        }
    }

    /// Its first day.
    pub fn from(self) -> Option<Date> {
        self.from
    }

    /// Its last day.
    pub fn until(self) -> Option<Date> {
        self.until
    }

    /// Whether a day is in it.
    pub fn covers(self, day: Date) -> bool {
        self.from.is_none_or(|from| from <= day) && self.until.is_none_or(|until| day <= until)
    }

    /// Whether some day is in both.
    pub fn meets(self, other: Self) -> bool {
        let begins_in_time = |one: Self, other: Self| match (one.from, other.until) {
            (Some(from), Some(until)) => from <= until,
            _ => true,
        };
        begins_in_time(self, other) && begins_in_time(other, self)
    }
}

/// By when something is to be handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// What it is for, unique in its scope: `2026 Q1`.
    pub period: String,
    /// The first day on which a submission counts for it. Not set: the day after the deadline before it.
    pub opens: Option<Date>,
    /// The last day.
    pub due: Date,
}

/// How a deadline stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The registration is not active in its time.
    NotOwed,
    /// Nothing was handed in, and there is time.
    Open,
    /// It was kept.
    Met {
        /// With this submission.
        at: Timestamp,
    },
    /// It was missed, and handed in later.
    Late {
        /// With this submission.
        at: Timestamp,
        /// So many days too late.
        days: i32,
    },
    /// It was missed, and nothing came since.
    Overdue {
        /// So many days ago.
        days: i32,
    },
}

/// What is known of a scope, to tell how its deadlines stand.
#[derive(Debug, Clone)]
pub struct Returns {
    /// Which one.
    pub scope: Scope,
    /// When its registration is active.
    pub span: Span,
    /// Its deadlines, in any order.
    pub deadlines: Vec<Deadline>,
    /// When it submitted, in any order. Who is overdue can be told from the newest alone; who was late, only from all.
    pub submissions: Vec<Timestamp>,
}

/// How each deadline stands today, the earliest first. A submission counts for every deadline that was open by then: each upload
/// repeats all there is.
pub fn standings(returns: &Returns, today: Date) -> Vec<(&Deadline, Standing)> {
    let mut deadlines: Vec<&Deadline> = returns.deadlines.iter().collect();
    deadlines.sort_by(|one, other| (one.due, &one.period).cmp(&(other.due, &other.period)));
    let mut before = None;
    let stand = |deadline: &Deadline, before: Option<Date>| {
        let opens = deadline.opens.or_else(|| before.and_then(|due| due.tomorrow().ok()));
        standing(returns, (opens, deadline.due), today)
    };
    let standings = deadlines.into_iter().map(|deadline| {
        let standing = stand(deadline, before);
        before = Some(deadline.due);
        (deadline, standing)
    });
    standings.collect()
}

fn standing(returns: &Returns, (opens, due): (Option<Date>, Date), today: Date) -> Standing {
    let window = Span { from: opens.filter(|opens| *opens <= due), until: Some(due) };
    if !returns.span.meets(window) {
        return Standing::NotOwed;
    }
    let counts = |at: &&Timestamp| opens.is_none_or(|opens| opens <= day_of(**at));
    match returns.submissions.iter().filter(counts).min() {
        Some(at) if day_of(*at) <= due => Standing::Met { at: *at },
        Some(at) => Standing::Late { at: *at, days: days_between(due, day_of(*at)) },
        None if today <= due => Standing::Open,
        None => Standing::Overdue { days: days_between(due, today) },
    }
}

/// The day of UTC on which something happened.
pub fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn days_between(earlier: Date, later: Date) -> i32 {
    earlier.until(later).map_or(0, |span| span.get_days())
}

/// A deadline that was missed, with nothing handed in since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdue {
    /// Who.
    pub scope: Scope,
    /// What for.
    pub period: String,
    /// By when.
    pub due: Date,
    /// How many days ago.
    pub days: i32,
}

/// Who has not submitted by their deadline: the longest overdue first, then by scope.
pub fn who_is_overdue<'a>(all: impl IntoIterator<Item = &'a Returns>, today: Date) -> Vec<Overdue> {
    let mut found: Vec<Overdue> = all.into_iter().flat_map(|returns| overdue_of(returns, today)).collect();
    found.sort_by(|one, other| {
        (one.due, &one.scope, &one.period).cmp(&(other.due, &other.scope, &other.period))
    });
    found
}

fn overdue_of(returns: &Returns, today: Date) -> Vec<Overdue> {
    let missed = standings(returns, today).into_iter().filter_map(|(deadline, standing)| match standing {
        Standing::Overdue { days } => Some((deadline, days)),
        _ => None,
    });
    let overdue = missed.map(|(deadline, days)| Overdue {
        scope: returns.scope.clone(),
        period: deadline.period.clone(),
        due: deadline.due,
        days,
    });
    overdue.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(text: &str) -> Date {
        day(text).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn deadline(period: &str, opens: Option<&str>, due: &str) -> Deadline {
        Deadline { period: period.to_owned(), opens: opens.map(on), due: on(due) }
    }

    fn returns(registration: &str, deadlines: Vec<Deadline>, submissions: &[&str]) -> Returns {
        Returns {
            scope: Scope {
                organisation: OrganisationId::parse("o1").unwrap(),
                registration: RegistrationId::parse(registration).unwrap(),
            },
            span: Span::default(),
            deadlines,
            submissions: submissions.iter().map(|text| at(text)).collect(),
        }
    }

    fn quarters() -> Vec<Deadline> {
        vec![deadline("Q2", None, "2026-07-28"), deadline("Q1", None, "2026-04-28")]
    }

    fn stand(returns: &Returns, today: &str) -> Vec<Standing> {
        standings(returns, on(today)).into_iter().map(|(_, standing)| standing).collect()
    }

    #[test]
    fn days_numbers_and_labels_are_read_or_refused() {
        assert_eq!(on("2026-02-28").to_string(), "2026-02-28");
        for strange in
            ["", "2026-2-28", "2026-02-30", "28.02.2026", "2026-02-28T00:00", "0026-01-01", "-026-01-01"]
        {
            assert_eq!(day(strange), Err(NotADay), "{strange}");
        }
        assert_eq!(label(" R25/007 ü "), Ok("R25/007 ü".to_owned()));
        assert_eq!(label(&"x".repeat(100)).map(|label| label.len()), Ok(100));
        for strange in ["", "  ", "a\nb", &"x".repeat(101)] {
            assert_eq!(label(strange), Err(NotALabel), "{strange}");
        }
    }

    #[test]
    fn a_span_includes_both_its_days_and_runs_forward() {
        let year = Span::new(Some(on("2026-01-01")), Some(on("2026-12-31"))).unwrap();

        assert!(year.covers(on("2026-01-01")) && year.covers(on("2026-12-31")));
        assert!(!year.covers(on("2025-12-31")) && !year.covers(on("2027-01-01")));
        assert!(Span::default().covers(on("1900-01-01")));
        assert!(Span::new(Some(on("2026-01-02")), Some(on("2026-01-01"))).is_err());
        assert!(Span::new(Some(on("2026-01-01")), Some(on("2026-01-01"))).is_ok());
        let next = Span::new(Some(on("2027-01-01")), None).unwrap();
        assert!(year.meets(year) && year.meets(Span::default()) && !year.meets(next) && !next.meets(year));
    }

    #[test]
    fn a_deadline_is_kept_until_the_end_of_its_day() {
        for (submitted, expected) in [
            (None, Standing::Overdue { days: 2 }),
            (Some("2026-04-28T23:59:59Z"), Standing::Met { at: at("2026-04-28T23:59:59Z") }),
            (Some("2026-04-29T00:00:00Z"), Standing::Late { at: at("2026-04-29T00:00:00Z"), days: 1 }),
        ] {
            let submissions: Vec<&str> = submitted.into_iter().collect();
            let one = returns("r1", vec![deadline("Q1", None, "2026-04-28")], &submissions);

            assert_eq!(stand(&one, "2026-04-30"), [expected], "{submitted:?}");
        }
        let nothing = returns("r1", vec![deadline("Q1", None, "2026-04-28")], &[]);
        assert_eq!(stand(&nothing, "2026-04-28"), [Standing::Open]);
        assert_eq!(stand(&nothing, "2026-04-29"), [Standing::Overdue { days: 1 }]);
    }

    #[test]
    fn a_submission_counts_from_the_day_after_the_deadline_before() {
        let kept = at("2026-04-20T12:00:00Z");
        let one = returns("r1", quarters(), &["2026-04-20T12:00:00Z"]);

        assert_eq!(stand(&one, "2026-05-01"), [Standing::Met { at: kept }, Standing::Open]);
        assert_eq!(stand(&one, "2026-07-29"), [Standing::Met { at: kept }, Standing::Overdue { days: 1 }]);
    }

    #[test]
    fn a_submission_before_its_window_opens_does_not_count() {
        let window = vec![deadline("Q1", Some("2026-04-01"), "2026-04-28")];

        let early = returns("r1", window.clone(), &["2026-03-31T23:59:59Z"]);
        let in_time = returns("r1", window.clone(), &["2026-03-31T23:59:59Z", "2026-04-01T00:00:00Z"]);
        let corrected = returns("r1", window, &["2026-05-03T00:00:00Z", "2026-04-02T00:00:00Z"]);

        assert_eq!(stand(&early, "2026-04-29"), [Standing::Overdue { days: 1 }]);
        assert_eq!(stand(&in_time, "2026-04-29"), [Standing::Met { at: at("2026-04-01T00:00:00Z") }]);
        assert_eq!(stand(&corrected, "2026-06-01"), [Standing::Met { at: at("2026-04-02T00:00:00Z") }]);
    }

    #[test]
    fn a_late_submission_settles_every_deadline_that_was_open_by_then() {
        let windows = vec![
            deadline("Q1", Some("2026-04-01"), "2026-04-28"),
            deadline("Q2", Some("2026-07-01"), "2026-07-28"),
        ];
        let last = at("2026-07-02T00:00:00Z");
        let one = returns("r1", windows, &["2026-07-02T00:00:00Z"]);

        assert_eq!(
            stand(&one, "2026-09-01"),
            [Standing::Late { at: last, days: 65 }, Standing::Met { at: last }]
        );
    }

    #[test]
    fn nothing_is_owed_outside_of_the_time_a_registration_is_active() {
        let ended = Span::new(None, Some(on("2026-04-27"))).unwrap();
        let begins = Span::new(Some(on("2026-04-29")), None).unwrap();

        let last = Returns { span: ended, ..returns("r1", quarters(), &[]) };
        let first = Returns { span: begins, ..returns("r1", quarters(), &[]) };

        // The registration ended before the second window opened, and after the first had.
        assert_eq!(stand(&last, "2026-08-07"), [Standing::Overdue { days: 101 }, Standing::NotOwed]);
        assert_eq!(stand(&first, "2026-08-07"), [Standing::NotOwed, Standing::Overdue { days: 10 }]);
    }

    #[test]
    fn who_is_overdue_is_listed_longest_first_and_those_who_submitted_are_not() {
        let all = [
            returns("r1", quarters(), &["2026-04-20T12:00:00Z", "2026-07-20T12:00:00Z"]),
            returns("r2", quarters(), &["2026-04-20T12:00:00Z"]),
            returns("r3", quarters(), &[]),
            returns("r4", Vec::new(), &[]),
        ];

        let found = who_is_overdue(&all, on("2026-08-01"));

        let told: Vec<_> =
            found.iter().map(|each| (each.scope.to_string(), each.period.as_str(), each.days)).collect();
        let expected = [("o1/r3", "Q1", 95), ("o1/r2", "Q2", 4), ("o1/r3", "Q2", 4)];
        assert_eq!(told, expected.map(|(scope, period, days)| (scope.to_owned(), period, days)));
        assert_eq!(who_is_overdue(&all[..1], on("2026-08-01")), []);
    }
}
