//! How much a company may keep.
//!
//! Guarantees: a new document is refused when it would pass a limit, before anything is written; work that was done in an
//! editor is never refused, only told of ([`Quota::exceeded_by`]). Counted are documents and the bytes of their heads, which
//! is what people can change: nobody can make history smaller.
//! Does not do: count. The ledger does, in the same step.

use std::fmt;

/// The limits of a company. Nothing set means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// At most so many documents.
    pub documents: Option<u64>,
    /// At most so many bytes in all heads together.
    pub bytes: Option<u64>,
}

/// What a company has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Documents.
    pub documents: u64,
    /// Bytes of their heads.
    pub bytes: u64,
}

/// A limit that is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    /// Too many documents.
    Documents {
        /// The limit.
        limit: u64,
    },
    /// Too many bytes.
    Bytes {
        /// The limit.
        limit: u64,
    },
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documents { limit } => write!(out, "{limit} documents"),
            Self::Bytes { limit } => write!(out, "{limit} bytes"),
        }
    }
}

impl Usage {
    /// The same with one more document.
    pub fn with_document(self, bytes: u64) -> Self {
        Self { documents: self.documents.saturating_add(1), bytes: self.bytes.saturating_add(bytes) }
    }
}

impl Quota {
    /// The first limit that this much passes. Reaching a limit is not passing it.
    pub fn exceeded_by(&self, usage: Usage) -> Option<Exceeded> {
        let documents = self.documents.filter(|limit| usage.documents > *limit);
        let bytes = self.bytes.filter(|limit| usage.bytes > *limit);
        documents
            .map(|limit| Exceeded::Documents { limit })
            .or_else(|| bytes.map(|limit| Exceeded::Bytes { limit }))
    }

    /// Whether another document fits; the limit it would pass if not.
    pub fn rule_on_new_document(&self, usage: Usage, bytes: u64) -> Result<(), Exceeded> {
        self.exceeded_by(usage.with_document(bytes)).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_fits_up_to_the_limit_and_not_beyond() {
        let quota = Quota { documents: Some(2), bytes: Some(100) };
        let usage = |documents, bytes| Usage { documents, bytes };

        for (usage, bytes, expected) in [
            (usage(0, 0), 100, Ok(())),
            (usage(1, 60), 40, Ok(())),
            (usage(1, 60), 41, Err(Exceeded::Bytes { limit: 100 })),
            (usage(2, 0), 0, Err(Exceeded::Documents { limit: 2 })),
            // Editing may have gone beyond; nothing is added then.
            (usage(1, 500), 0, Err(Exceeded::Bytes { limit: 100 })),
            (usage(u64::MAX, u64::MAX), u64::MAX, Err(Exceeded::Documents { limit: 2 })),
        ] {
            assert_eq!(quota.rule_on_new_document(usage, bytes), expected, "{usage:?} and {bytes}");
        }
        assert_eq!(quota.exceeded_by(usage(2, 100)), None);
    }

    #[test]
    fn without_limits_everything_fits() {
        let much = Usage { documents: u64::MAX, bytes: u64::MAX };

        assert_eq!(Quota::default().rule_on_new_document(much, u64::MAX), Ok(()));
    }
}
