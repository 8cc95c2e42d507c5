#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
//!
//! Guarantees: no panic on any input, bounded memory and time ([`Limits`]), no recursion, no I/O but the given reader.
//! Does not do: repair, decrypt, or compare with an earlier version.

mod cfb;
mod extent;
mod findings;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod kind;
mod limits;
mod odf;
mod opc;
mod package;
mod text;
mod xml;
mod zip;

use std::io::{Read, Seek, SeekFrom};

pub use extent::Extent;
pub use findings::{Code, Finding, Severity};
pub use kind::{Family, Hint, Kind};
pub use limits::{Limits, Thoroughness};

use kind::Fit;
use package::Package;

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

impl Verdict {
    /// The word for machines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Flag => "flag",
            Self::Refuse => "refuse",
        }
    }
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
    /// How much it holds, if that was looked at: of whole packages whose parts are XML, at [`Thoroughness::Full`].
    pub extent: Option<Extent>,
}

/// Checks a file. `hint` is the type it is said to have.
pub fn check<R: Read + Seek>(mut reader: R, hint: Hint, limits: &Limits) -> Report {
    let mut findings = Vec::new();
    let (kind, extent) = match look(&mut reader, hint, limits, &mut findings) {
        Ok(seen) => seen,
        Err(cause) => {
            findings.push(Finding::whole(Code::Unreadable, cause.to_string()));
            (Kind::Unknown, None)
        }
    };
    let verdict =
        findings.iter().map(|finding| finding.code.severity().verdict()).max().unwrap_or(Verdict::Accept);
    Report { kind, verdict, findings, extent }
}

fn look<R: Read + Seek>(
    reader: &mut R,
    hint: Hint,
    limits: &Limits,
    findings: &mut Vec<Finding>,
) -> std::io::Result<(Kind, Option<Extent>)> {
    let size_bytes = reader.seek(SeekFrom::End(0))?;
    reader.seek(SeekFrom::Start(0))?;
    if size_bytes == 0 {
        let code = if hint.may_be_empty() { Code::EmptyText } else { Code::Empty };
        findings.push(Finding::whole(code, "the file has no bytes"));
        return Ok((Kind::Unknown, None));
    }
    let mut start = vec![0_u8; kind::START_BYTES];
    let count = read_up_to(reader, &mut start)?;
    start.truncate(count);
    reader.seek(SeekFrom::Start(0))?;
    let (kind, extent) = match kind::from_start(&start) {
        Kind::Zip => check_zip(reader, limits, findings),
        Kind::Ole => (cfb::check(reader, size_bytes, findings)?, None),
        kind => (text::check(reader, kind, limits, findings)?, None),
    };
    // What was not looked into may be what its name says.
    let is_known = kind != Kind::Zip || findings.iter().all(|finding| finding.code != Code::OverLimit);
    match hint.fits(kind) {
        _ if !is_known => {}
        Fit::Good => {}
        Fit::Odd => {
            let message = format!("the file is said to be {hint} and is a document of another kind: {kind}");
            findings.push(Finding::whole(Code::OtherKind, message));
        }
        Fit::Wrong => {
            let message = format!("the file is said to be {hint} and its bytes are none: {kind}");
            findings.push(Finding::whole(Code::WrongContainer, message));
        }
    }
    Ok((kind, extent))
}

fn check_zip<R: Read + Seek>(
    reader: &mut R,
    limits: &Limits,
    findings: &mut Vec<Finding>,
) -> (Kind, Option<Extent>) {
    let Some(mut package) = Package::open(reader, limits, findings) else { return (Kind::Zip, None) };
    let kind = if opc::is_one(&package) {
        opc::check(&mut package, limits)
    } else if odf::is_one(&package) {
        odf::check(&mut package, limits)
    } else {
        package.tell(Finding::whole(Code::NotAPackage, "the archive does not say what its parts are"));
        Kind::Zip
    };
    package.check_the_rest();
    let extent = package.extent();
    // What a drawing, a formula or a package of unknown kind holds is not counted.
    let is_counted = matches!(kind.family(), Family::Writing | Family::Sheets | Family::Slides);
    if is_counted && extent.is_some_and(|extent| extent.is_nothing()) {
        package.tell(Finding::whole(Code::NoContent, "the document holds no text, no cells and no pictures"));
    }
    (kind, extent)
}

fn read_up_to<R: Read>(reader: &mut R, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match read_piece(reader, rest)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

/// Some of what is left; nothing at the end. A signal in between is no trouble.
pub(crate) fn read_piece<R: Read>(reader: &mut R, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
