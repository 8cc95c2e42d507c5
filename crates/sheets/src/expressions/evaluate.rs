//! What an expression is, for one row.
//!
//! Guarantees: total. A blank is equal to nothing, has no order and makes every sum blank; what is neither true nor false does not
//! hold.

use jiff::civil::Date;

use super::{Cell, Comparison, Facts, Known, Node};
use crate::Decimal;

impl Node {
    pub(super) fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Flag(flag) => *flag,
            Self::HasAccreditation => !facts.scope.accreditations.is_empty(),
            Self::Covers(day) => day.day(facts).is_some_and(|day| facts.scope.covers(day)),
            Self::AnyBlank(columns) => columns.iter().any(|column| is_blank(facts, *column)),
            Self::AllBlank(columns) => columns.iter().all(|column| is_blank(facts, *column)),
            Self::Not(inside) => !inside.holds(facts),
            Self::And(one, other) => one.holds(facts) && other.holds(facts),
            Self::Or(one, other) => one.holds(facts) || other.holds(facts),
            Self::Compare(comparison, one, other) => compare(*comparison, (one, other), facts),
            Self::Among(text, list) => {
                text.texts(facts).iter().any(|text| list.iter().any(|each| each == text))
            }
            _ => false,
        }
    }

    pub(super) fn number(&self, facts: &Facts<'_>) -> Option<Decimal> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Column(column) => match facts.cells.get(*column)? {
                Cell::Number(number) => Some(*number),
                _ => None,
            },
            Self::Sum(one, other) => one.number(facts)?.plus(other.number(facts)?),
            Self::Difference(one, other) => one.number(facts)?.minus(other.number(facts)?),
            Self::Product(one, other) => one.number(facts)?.times(other.number(facts)?),
            Self::Absolute(inside) => Some(inside.number(facts)?.absolute()),
            Self::Least(one, other) => Some(one.number(facts)?.min(other.number(facts)?)),
            Self::Greatest(one, other) => Some(one.number(facts)?.max(other.number(facts)?)),
            Self::Year(day) => Some(Decimal::whole(i64::from(day.day(facts)?.year()))),
            Self::Month(day) => Some(Decimal::whole(i64::from(day.day(facts)?.month()))),
            _ => None,
        }
    }

    fn day(&self, facts: &Facts<'_>) -> Option<Date> {
        match self {
            Self::Day(day) => Some(*day),
            Self::Today => Some(facts.today),
            Self::Column(column) => match facts.cells.get(*column)? {
                Cell::Day(day) => Some(*day),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn texts<'a>(&'a self, facts: &Facts<'a>) -> Vec<&'a str> {
        let scope = facts.scope;
        match self {
            Self::Text(text) => vec![text],
            Self::Column(column) => match facts.cells.get(*column) {
                Some(Cell::Text(text)) => vec![text],
                _ => Vec::new(),
            },
            Self::Known(known) => match known {
                Known::TemplateId => vec![facts.template_id],
                Known::OrganisationId => vec![&scope.organisation_id],
                Known::OrganisationName => vec![&scope.organisation_name],
                Known::RegistrationId => vec![&scope.registration_id],
                Known::RegistrationNumber => vec![&scope.registration_number],
                Known::AccreditationNumber => {
                    scope.accreditations.iter().map(|each| each.number.as_str()).collect()
                }
            },
            _ => Vec::new(),
        }
    }
}

fn is_blank(facts: &Facts<'_>, column: usize) -> bool {
    facts.cells.get(column).is_none_or(Cell::is_blank)
}

fn compare(comparison: Comparison, (one, other): (&Node, &Node), facts: &Facts<'_>) -> bool {
    match comparison {
        Comparison::Equal => are_equal(one, other, facts),
        Comparison::Unequal => !are_equal(one, other, facts),
        _ => {
            let order = match (one.number(facts), other.number(facts)) {
                (Some(one), Some(other)) => Some(one.cmp(&other)),
                _ => one.day(facts).zip(other.day(facts)).map(|(one, other)| one.cmp(&other)),
            };
            order.is_some_and(|order| match comparison {
                Comparison::Less => order.is_lt(),
                Comparison::LessOrEqual => order.is_le(),
                Comparison::Greater => order.is_gt(),
                _ => order.is_ge(),
            })
        }
    }
}

fn are_equal(one: &Node, other: &Node, facts: &Facts<'_>) -> bool {
    if let (Some(one), Some(other)) = (one.number(facts), other.number(facts)) {
        let rounded = |number: Decimal| facts.scale.map_or(number, |scale| number.round(scale));
        let apart = rounded(one).minus(rounded(other));
        return apart.is_some_and(|apart| apart.absolute() <= facts.tolerance);
    }
    if let (Some(one), Some(other)) = (one.day(facts), other.day(facts)) {
        return one == other;
    }
    if one.is_flag() && other.is_flag() {
        return one.holds(facts) == other.holds(facts);
    }
    let others = other.texts(facts);
    one.texts(facts).iter().any(|text| others.contains(text))
}

impl Node {
    fn is_flag(&self) -> bool {
        matches!(
            self,
            Self::Flag(_)
                | Self::HasAccreditation
                | Self::Covers(_)
                | Self::AnyBlank(_)
                | Self::AllBlank(_)
                | Self::Not(_)
                | Self::And(..)
                | Self::Or(..)
                | Self::Compare(..)
                | Self::Among(..)
        )
    }
}
