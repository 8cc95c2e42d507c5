//! From the text of an expression to its words.

use crate::Decimal;

/// A word of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    /// A name, with points inside perhaps: `NET_T`, `scope.registration.number`.
    Name(String),
    Number(Decimal),
    /// A text in single quotes.
    Text(String),
    /// A sign: `==`, `(`, `+`.
    Sign(&'static str),
}

impl Word {
    /// The word as it is shown in a mistake.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(text) => format!("'{text}'"),
            Self::Sign(sign) => format!("`{sign}`"),
        }
    }
}

/// Signs, longer ones first.
const SIGNS: [&str; 19] =
    ["==", "!=", "<=", ">=", "&&", "||", "<", ">", "(", ")", "[", "]", ",", "+", "-", "*", "!", "/", "="];

/// Splits a text into its words.
pub(crate) fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, behind) = if first == '\'' {
            quoted(rest)?
        } else if first.is_ascii_digit() {
            number(rest)?
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|each: char| !(each.is_alphanumeric() || each == '_' || each == '.'));
            let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
            (Word::Name(name.to_owned()), behind)
        } else {
            sign(rest)?
        };
        found.push(word);
        rest = behind.trim_start();
    }
    Ok(found)
}

fn quoted(rest: &str) -> Result<(Word, &str), String> {
    let inside = rest.get(1..).unwrap_or_default();
    let (text, behind) = inside.split_once('\'').ok_or("has a text whose quote `'` is never closed")?;
    Ok((Word::Text(text.to_owned()), behind))
}

fn number(rest: &str) -> Result<(Word, &str), String> {
    let end = rest.find(|each: char| !(each.is_ascii_digit() || each == '.')).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    let number = Decimal::parse(digits).ok_or_else(|| format!("has `{digits}`, which is no number"))?;
    Ok((Word::Number(number), behind))
}

fn sign(rest: &str) -> Result<(Word, &str), String> {
    let found = SIGNS.iter().find_map(|sign| Some((*sign, rest.strip_prefix(sign)?)));
    match found {
        Some(("/", _)) => Err("divides, which would have to round; multiply the other side instead".into()),
        Some(("=", _)) => Err("has `=`; equality is written `==`".into()),
        Some((sign, behind)) => Ok((Word::Sign(sign), behind)),
        None => Err(format!("has `{}`, which means nothing here", rest.chars().next().unwrap_or(' '))),
    }
}
