//! The small language of templates: what must hold between the values of a row.
//!
//! ```text
//! NET_T == GROSS_T - TARE_T            decimals, exactly
//! any_blank(needed_for('counting'))    whether one of a group of columns is blank
//! scope.accreditation.covers(DAY)      what is known of the scope
//! ```
//!
//! Guarantees: an expression that was read has a type and only names columns that exist; evaluating it always ends, never fails and
//! never panics. What cannot be computed (a sum that does not fit) is neither true nor equal to anything.
//! Does not do: loops, functions of one's own, division (it would have to round), texts that are put together.

mod evaluate;
mod parse;
mod words;

use jiff::civil::Date;

use crate::{Column, Decimal, ScopeFacts};

/// An expression that was read and checked.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    root: Node,
    inputs: Vec<usize>,
    asked_blank: Vec<usize>,
}

/// The value of a column in one row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Cell {
    /// Nothing stands there.
    #[default]
    Blank,
    /// Something stands there that is not what the column holds, as it stands there.
    Wrong(String),
    Number(Decimal),
    Day(Date),
    Text(String),
}

impl Cell {
    pub(crate) fn is_blank(&self) -> bool {
        *self == Self::Blank
    }
}

/// What an expression is evaluated against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) cells: &'a [Cell],
    pub(crate) scope: &'a ScopeFacts,
    pub(crate) template_id: &'a str,
    pub(crate) today: Date,
    /// How far numbers may be apart that are equal.
    pub(crate) tolerance: Decimal,
    /// To how many digits numbers are rounded before they are compared for equality.
    pub(crate) scale: Option<u8>,
}

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Flag,
    Number,
    Day,
    Text,
}

impl Kind {
    fn described(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Number => "a number",
            Self::Day => "a day",
            Self::Text => "a text",
        }
    }
}

impl Expression {
    /// Reads an expression that must be of a kind. `columns` are those it may name.
    pub(crate) fn parse(text: &str, kind: Kind, columns: &[Column]) -> Result<Self, String> {
        parse::parse(text, kind, columns)
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The columns whose values it needs, by index; those it only asks whether they are blank are not among them.
    pub(crate) fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// The columns it asks whether they are blank.
    pub(crate) fn asked_blank(&self) -> &[usize] {
        &self.asked_blank
    }

    /// Whether it is simply `true`.
    pub(crate) fn is_always(&self) -> bool {
        matches!(self.root, Node::Flag(true))
    }

    /// Whether it holds.
    pub(crate) fn holds(&self, facts: &Facts<'_>) -> bool {
        self.root.holds(facts)
    }

    /// The number it is.
    pub(crate) fn number(&self, facts: &Facts<'_>) -> Option<Decimal> {
        self.root.number(facts)
    }

    /// The text it is; several where the scope has several.
    pub(crate) fn texts<'a>(&'a self, facts: &Facts<'a>) -> Vec<&'a str> {
        self.root.texts(facts)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Number(Decimal),
    Text(String),
    Flag(bool),
    Day(Date),
    Today,
    Column(usize),
    Known(Known),
    HasAccreditation,
    Covers(Box<Node>),
    AnyBlank(Vec<usize>),
    AllBlank(Vec<usize>),
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    Among(Box<Node>, Vec<String>),
    Sum(Box<Node>, Box<Node>),
    Difference(Box<Node>, Box<Node>),
    Product(Box<Node>, Box<Node>),
    Absolute(Box<Node>),
    Least(Box<Node>, Box<Node>),
    Greatest(Box<Node>, Box<Node>),
    Year(Box<Node>),
    Month(Box<Node>),
}

/// A text that is known before any row is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    TemplateId,
    OrganisationId,
    OrganisationName,
    RegistrationId,
    RegistrationNumber,
    AccreditationNumber,
}

impl Known {
    const ALL: [(Self, &'static str); 6] = [
        (Self::TemplateId, "template.id"),
        (Self::OrganisationId, "scope.organisation.id"),
        (Self::OrganisationName, "scope.organisation.name"),
        (Self::RegistrationId, "scope.registration.id"),
        (Self::RegistrationNumber, "scope.registration.number"),
        (Self::AccreditationNumber, "scope.accreditation.number"),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
