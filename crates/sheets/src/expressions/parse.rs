//! From words to a checked expression: names are resolved and types compared on the way.
//!
//! Guarantees: a tree that is returned can be evaluated: no deeper than `DEPTH_MAX`, every operation with operands of its type.

use super::words::{Word, words};
use super::{Comparison, Expression, Kind, Known, Node};
use crate::{Column, ColumnKind, days};

/// Characters of an expression.
const CHARS_MAX: usize = 2_000;
/// How deep parentheses and operations nest; evaluating recurses that deep.
const DEPTH_MAX: usize = 60;

type Typed = (Node, Kind);

pub(super) fn parse(text: &str, kind: Kind, columns: &[Column]) -> Result<Expression, String> {
    if text.chars().count() > CHARS_MAX {
        return Err(format!("is longer than {CHARS_MAX} characters"));
    }
    let mut parser =
        Parser { words: words(text)?, at: 0, depth: 0, columns, inputs: Vec::new(), asked_blank: Vec::new() };
    let (root, found) = parser.either()?;
    if let Some(word) = parser.words.get(parser.at) {
        return Err(format!("goes on with {} where it should end", word.shown()));
    }
    if found != kind {
        return Err(format!("is {} and must be {}", found.described(), kind.described()));
    }
    let Parser { inputs, asked_blank, .. } = parser;
    Ok(Expression { text: text.to_owned(), root, inputs, asked_blank })
}

struct Parser<'a> {
    words: Vec<Word>,
    at: usize,
    depth: usize,
    columns: &'a [Column],
    inputs: Vec<usize>,
    asked_blank: Vec<usize>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.at)
    }

    /// Takes one of these signs or names, if it comes next.
    fn takes(&mut self, wanted: &[&'static str]) -> Option<&'static str> {
        let found = match self.peek()? {
            Word::Sign(sign) => wanted.iter().find(|each| *each == sign),
            Word::Name(name) => wanted.iter().find(|each| *each == name),
            _ => None,
        }?;
        self.at += 1;
        Some(found)
    }

    fn needs(&mut self, sign: &'static str) -> Result<(), String> {
        match self.takes(&[sign]) {
            Some(_) => Ok(()),
            None => Err(format!("lacks `{sign}` before {}", self.next_shown())),
        }
    }

    fn next_shown(&self) -> String {
        self.peek().map_or_else(|| "its end".to_owned(), Word::shown)
    }

    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("nests deeper than {DEPTH_MAX}"));
        }
        let found = inside(self);
        self.depth -= 1;
        found
    }

    fn either(&mut self) -> Result<Typed, String> {
        let mut left = self.both()?;
        let depth = self.depth;
        while let Some(sign) = self.takes(&["or", "||"]) {
            self.grows()?;
            let right = self.both()?;
            left = (Node::Or(flag(left, sign)?, flag(right, sign)?), Kind::Flag);
        }
        self.depth = depth;
        Ok(left)
    }

    fn both(&mut self) -> Result<Typed, String> {
        let mut left = self.negation()?;
        let depth = self.depth;
        while let Some(sign) = self.takes(&["and", "&&"]) {
            self.grows()?;
            let right = self.negation()?;
            left = (Node::And(flag(left, sign)?, flag(right, sign)?), Kind::Flag);
        }
        self.depth = depth;
        Ok(left)
    }

    /// Operations in a row lean to the left, so each makes the tree deeper by one.
    fn grows(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(format!("nests deeper than {DEPTH_MAX}")) } else { Ok(()) }
    }

    fn negation(&mut self) -> Result<Typed, String> {
        match self.takes(&["not", "!"]) {
            Some(sign) => {
                let inside = self.deeper(Self::negation)?;
                Ok((Node::Not(flag(inside, sign)?), Kind::Flag))
            }
            None => self.comparison(),
        }
    }

    fn comparison(&mut self) -> Result<Typed, String> {
        let left = self.sum()?;
        if self.takes(&["in"]).is_some() {
            return self.among(left);
        }
        let Some(sign) = self.takes(&["==", "!=", "<=", ">=", "<", ">"]) else { return Ok(left) };
        let right = self.sum()?;
        if left.1 != right.1 {
            return Err(format!("compares {} with {} by `{sign}`", left.1.described(), right.1.described()));
        }
        let comparison = match sign {
            "==" => Comparison::Equal,
            "!=" => Comparison::Unequal,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            _ => Comparison::GreaterOrEqual,
        };
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::Unequal);
        if !is_equality && matches!(left.1, Kind::Flag | Kind::Text) {
            return Err(format!(
                "compares {} by `{sign}`; only numbers and days have an order",
                left.1.described()
            ));
        }
        self.may_be_equal(&left.0, &right.0)?;
        self.may_be_equal(&right.0, &left.0)?;
        Ok((Node::Compare(comparison, Box::new(left.0), Box::new(right.0)), Kind::Flag))
    }

    /// A choice is compared with what can be chosen.
    fn may_be_equal(&self, column: &Node, other: &Node) -> Result<(), String> {
        let (Node::Column(index), Node::Text(text)) = (column, other) else { return Ok(()) };
        let Some(column) = self.columns.get(*index) else { return Ok(()) };
        let is_possible = match &column.kind {
            ColumnKind::YesNo => text == "Yes" || text == "No",
            ColumnKind::Choice { values, .. } => values.is_empty() || values.contains(text),
            _ => true,
        };
        if is_possible {
            return Ok(());
        }
        Err(format!("compares {} with '{text}', which is none of its choices", column.name))
    }

    fn among(&mut self, left: Typed) -> Result<Typed, String> {
        if left.1 != Kind::Text {
            return Err(format!("asks whether {} is `in` a list of texts", left.1.described()));
        }
        self.needs("[")?;
        let mut texts = Vec::new();
        loop {
            let Some(Word::Text(text)) = self.peek().cloned() else {
                return Err(format!("has {} in a list of texts", self.next_shown()));
            };
            self.at += 1;
            self.may_be_equal(&left.0, &Node::Text(text.clone()))?;
            texts.push(text);
            if self.takes(&[","]).is_none() {
                break;
            }
        }
        self.needs("]")?;
        Ok((Node::Among(Box::new(left.0), texts), Kind::Flag))
    }

    fn sum(&mut self) -> Result<Typed, String> {
        let mut left = self.product()?;
        let depth = self.depth;
        while let Some(sign) = self.takes(&["+", "-"]) {
            self.grows()?;
            let right = self.product()?;
            let (one, other) = (number(left, sign)?, number(right, sign)?);
            let node = if sign == "+" { Node::Sum(one, other) } else { Node::Difference(one, other) };
            left = (node, Kind::Number);
        }
        self.depth = depth;
        Ok(left)
    }

    fn product(&mut self) -> Result<Typed, String> {
        let mut left = self.signed()?;
        let depth = self.depth;
        while let Some(sign) = self.takes(&["*"]) {
            self.grows()?;
            let right = self.signed()?;
            left = (Node::Product(number(left, sign)?, number(right, sign)?), Kind::Number);
        }
        self.depth = depth;
        Ok(left)
    }

    fn signed(&mut self) -> Result<Typed, String> {
        match self.takes(&["-"]) {
            Some(sign) => {
                let inside = self.deeper(Self::signed)?;
                let zero = Box::new(Node::Number(crate::Decimal::ZERO));
                Ok((Node::Difference(zero, number(inside, sign)?), Kind::Number))
            }
            None => self.single(),
        }
    }

    fn single(&mut self) -> Result<Typed, String> {
        let shown = self.next_shown();
        let Some(word) = self.peek().cloned() else { return Err("ends too early".into()) };
        self.at += 1;
        match word {
            Word::Number(number) => Ok((Node::Number(number), Kind::Number)),
            Word::Text(text) => Ok((Node::Text(text), Kind::Text)),
            Word::Sign("(") => {
                let inside = self.deeper(Self::either)?;
                self.needs(")")?;
                Ok(inside)
            }
            Word::Sign(_) => Err(format!("has {shown} where a value should be")),
            Word::Name(name) if self.takes(&["("]).is_some() => {
                let found = self.deeper(|parser| parser.function(&name))?;
                self.needs(")")?;
                Ok(found)
            }
            Word::Name(name) => self.named(&name),
        }
    }

    fn named(&mut self, name: &str) -> Result<Typed, String> {
        match name {
            "true" => return Ok((Node::Flag(true), Kind::Flag)),
            "false" => return Ok((Node::Flag(false), Kind::Flag)),
            "today" => return Ok((Node::Today, Kind::Day)),
            _ => {}
        }
        if let Some((known, _)) = Known::ALL.iter().find(|(_, known)| *known == name) {
            return Ok((Node::Known(*known), Kind::Text));
        }
        let Some(index) = self.columns.iter().position(|column| column.name == name) else {
            return Err(unknown(name, self.columns));
        };
        if !self.inputs.contains(&index) {
            self.inputs.push(index);
        }
        let kind = self.columns.get(index).map_or(Kind::Text, kind_of);
        Ok((Node::Column(index), kind))
    }

    fn function(&mut self, name: &str) -> Result<Typed, String> {
        match name {
            "any_blank" => Ok((Node::AnyBlank(self.blank_columns()?), Kind::Flag)),
            "all_blank" => Ok((Node::AllBlank(self.blank_columns()?), Kind::Flag)),
            "has" => match self.peek() {
                Some(Word::Name(known)) if known == "scope.accreditation" => {
                    self.at += 1;
                    Ok((Node::HasAccreditation, Kind::Flag))
                }
                _ => Err("asks has() for something else than scope.accreditation".into()),
            },
            "date" => match self.peek().cloned() {
                Some(Word::Text(text)) => {
                    self.at += 1;
                    let day = days::from_iso(&text);
                    let day =
                        day.ok_or_else(|| format!("has date('{text}'), which is no day like '2026-01-31'"))?;
                    Ok((Node::Day(day), Kind::Day))
                }
                _ => Err("needs a text in date('2026-01-31')".into()),
            },
            "scope.accreditation.covers" => Ok((Node::Covers(self.argument(name, Kind::Day)?), Kind::Flag)),
            "year" => Ok((Node::Year(self.argument(name, Kind::Day)?), Kind::Number)),
            "month" => Ok((Node::Month(self.argument(name, Kind::Day)?), Kind::Number)),
            "abs" => Ok((Node::Absolute(self.argument(name, Kind::Number)?), Kind::Number)),
            "min" | "max" => {
                let one = self.argument(name, Kind::Number)?;
                self.needs(",")?;
                let other = self.argument(name, Kind::Number)?;
                let node = if name == "min" { Node::Least(one, other) } else { Node::Greatest(one, other) };
                Ok((node, Kind::Number))
            }
            "needed_for" => Err("uses needed_for outside of any_blank or all_blank".into()),
            _ => Err(format!("calls `{name}`, which is no function")),
        }
    }

    fn argument(&mut self, name: &str, kind: Kind) -> Result<Box<Node>, String> {
        let (node, found) = self.either()?;
        if found == kind {
            return Ok(Box::new(node));
        }
        Err(format!("gives {} to {name}(), which takes {}", found.described(), kind.described()))
    }

    /// Columns and groups of columns.
    fn blank_columns(&mut self) -> Result<Vec<usize>, String> {
        let mut found = Vec::new();
        loop {
            let Some(Word::Name(name)) = self.peek().cloned() else {
                return Err(format!("needs the name of a column instead of {}", self.next_shown()));
            };
            self.at += 1;
            if name == "needed_for" {
                self.needs("(")?;
                let Some(Word::Text(group)) = self.peek().cloned() else {
                    return Err("needs a text in needed_for('group')".into());
                };
                self.at += 1;
                self.needs(")")?;
                let members =
                    self.columns.iter().enumerate().filter(|(_, each)| each.needed_for.contains(&group));
                let members: Vec<usize> = members.map(|(index, _)| index).collect();
                if members.is_empty() {
                    return Err(format!("asks for needed_for('{group}'), and no column is"));
                }
                found.extend(members);
            } else {
                let index = self.columns.iter().position(|column| column.name == name);
                found.push(index.ok_or_else(|| unknown(&name, self.columns))?);
            }
            if self.takes(&[","]).is_none() {
                break;
            }
        }
        self.asked_blank.extend(&found);
        Ok(found)
    }
}

fn kind_of(column: &Column) -> Kind {
    match column.kind {
        ColumnKind::Decimal { .. } | ColumnKind::Integer { .. } => Kind::Number,
        ColumnKind::Date { .. } => Kind::Day,
        ColumnKind::Text { .. }
        | ColumnKind::Choice { .. }
        | ColumnKind::YesNo
        | ColumnKind::Pattern { .. } => Kind::Text,
    }
}

fn unknown(name: &str, columns: &[Column]) -> String {
    if name.starts_with("scope.") || name.starts_with("template.") {
        let known: Vec<_> = Known::ALL.iter().map(|(_, known)| *known).collect();
        return format!("asks for `{name}`; known are {}", known.join(", "));
    }
    if columns.is_empty() {
        return format!("names `{name}`; no columns can be named here");
    }
    format!("names `{name}`, which is no column of the table")
}

fn flag((node, kind): Typed, sign: &str) -> Result<Box<Node>, String> {
    if kind == Kind::Flag { Ok(Box::new(node)) } else { Err(operand(kind, sign)) }
}

fn number((node, kind): Typed, sign: &str) -> Result<Box<Node>, String> {
    if kind == Kind::Number { Ok(Box::new(node)) } else { Err(operand(kind, sign)) }
}

fn operand(kind: Kind, sign: &str) -> String {
    format!("has {} beside `{sign}`", kind.described())
}
