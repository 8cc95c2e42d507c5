//! The ids of things, one type each, so that mixing two of them does not compile.
//!
//! Guarantees: a value of these types is well formed: short, from a path-safe alphabet, never `.` or `..`.
//! Does not do: say whether the thing exists.

use std::fmt;

/// Longest id we accept, so that an editor key made of it stays within 128 characters.
pub const ID_LENGTH_MAX: usize = 64;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` is not an id: use 1 to {ID_LENGTH_MAX} of 0-9 a-z A-Z . _ = -, beginning with a letter or digit"
)]
pub struct NotAnId {
    shown: String,
}

fn parse_id(text: &str) -> Result<String, NotAnId> {
    let is_short = (1..=ID_LENGTH_MAX).contains(&text.len());
    let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._=-".contains(&byte));
    if is_short && begins_well && is_plain {
        Ok(text.to_owned())
    } else {
        Err(NotAnId { shown: text.chars().take(ID_LENGTH_MAX).filter(|each| !each.is_control()).collect() })
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Reads an id; refuses what is too long, empty or outside the alphabet.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                parse_id(text).map(Self)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// A customer of the installation; the outermost wall between data.
    CompanyId
);
text_id!(
    /// A folder of documents inside a company.
    ProjectId
);
text_id!(
    /// A document (the seed's artefact). Unique in an environment; may be given by the host application.
    DocumentId
);
text_id!(
    /// Somebody who hands in spreadsheets. Only the host application knows more about it.
    OrganisationId
);
text_id!(
    /// What an organisation is registered for; summary logs and records belong to one.
    RegistrationId
);
text_id!(
    /// A licence under a registration, with dates.
    AccreditationId
);
text_id!(
    /// A template that workbooks are read by, over all its versions.
    TemplateId
);
text_id!(
    /// One upload of a workbook, from its arrival to its records.
    SummaryLogId
);

/// The place of a callback in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InboxNumber(pub u64);

impl fmt::Display for InboxNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The SHA-256 of some bytes: the name of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Wraps the 32 bytes a hasher gave.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest of bytes held in memory.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest of pieces, as if they were one.
    pub fn of_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        use sha2::Digest as _;
        let hasher = pieces.into_iter().fold(sha2::Sha256::new(), sha2::Sha256::chain_update);
        Self(hasher.finalize().into())
    }

    /// Reads 64 hexadecimal characters.
    pub fn parse_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0_u8; 32];
        for (place, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *place = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Takes exactly 32 bytes, as a database returns them.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first `count` hexadecimal characters, for keys and log lines.
    pub fn short(&self, count: usize) -> String {
        self.to_string().chars().take(count).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({})", self.short(12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_plain_and_never_a_path() {
        for good in ["12345", "a", "report_2026-11", "x.y=z", &"a".repeat(64)] {
            assert!(DocumentId::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", ".", "..", "../a", "a/b", "a\\b", "a b", "é", "-a", "_a", "a\0", "a\n", &"a".repeat(65)]
        {
            assert!(DocumentId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_digest_reads_back_what_it_shows() {
        let digest = Digest::of(b"saveguard");

        assert_eq!(Digest::parse_hex(&digest.to_string()), Some(digest));
        assert_eq!(Digest::from_slice(digest.as_bytes()), Some(digest));
        assert_eq!(digest.short(16).len(), 16);
        assert_eq!(Digest::parse_hex("zz"), None);
        assert_eq!(Digest::parse_hex(&"é".repeat(32)), None);
    }
}
