#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
//!
//! Guarantees: no panic on any input, bounded memory and time ([`Limits`]), no recursion, no I/O but the given reader.
//! Does not do yet: look inside XML parts or compare with an earlier version.

mod container;
mod findings;
mod kind;
mod limits;

use std::io::{Read, Seek, SeekFrom};

pub use findings::{Code, Finding, Severity};
pub use kind::{Hint, Kind};
pub use limits::Limits;

/// What to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing is wrong with it.
    Accept,
    /// Take it, and tell somebody.
    Flag,
    /// It is damaged: keep it aside.
    Refuse,
}

/// What was found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What the bytes are, whatever the name says.
    pub kind: Kind,
    /// The worst of the findings.
    pub verdict: Verdict,
    /// All findings, in the order they were made.
    pub findings: Vec<Finding>,
}

/// Checks a file. `hint` is the type it is said to have.
pub fn check<R: Read + Seek>(mut reader: R, hint: Hint, limits: &Limits) -> Report {
    let mut findings = Vec::new();
    let kind = match look(&mut reader, hint, limits, &mut findings) {
        Ok(kind) => kind,
        Err(cause) => {
            findings.push(Finding::whole(Code::Unreadable, cause.to_string()));
            Kind::Unknown
        }
    };
    let verdict =
        findings.iter().map(|finding| finding.code.severity().verdict()).max().unwrap_or(Verdict::Accept);
    Report { kind, verdict, findings }
}

fn look<R: Read + Seek>(
    reader: &mut R,
    hint: Hint,
    limits: &Limits,
    findings: &mut Vec<Finding>,
) -> std::io::Result<Kind> {
    let size_bytes = reader.seek(SeekFrom::End(0))?;
    reader.seek(SeekFrom::Start(0))?;
    if size_bytes == 0 {
        let code = if hint.may_be_empty() { Code::EmptyText } else { Code::Empty };
        findings.push(Finding::whole(code, "the file has no bytes".to_owned()));
        return Ok(Kind::Unknown);
    }
    let mut start = [0_u8; kind::START_BYTES];
    let count = read_up_to(reader, &mut start)?;
    reader.seek(SeekFrom::Start(0))?;
    let mut kind = kind::from_start(start.get(..count).unwrap_or_default());
    if kind == Kind::Zip {
        kind = container::check(reader, limits, findings);
    }
    if !hint.allows(kind) {
        let message = format!("the file is said to be {hint} and its bytes are {kind}");
        findings.push(Finding::whole(Code::WrongContainer, message));
    }
    Ok(kind)
}

fn read_up_to<R: Read>(reader: &mut R, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
