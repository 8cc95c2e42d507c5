//! What a blob is called in a store: its digest, and from its second life on, which life it is.
//!
//! Bytes that were removed may come again. A removal that was begun before may be carried out afterwards: by a process that was
//! stopped in between, or by a store that is slow. So what comes again gets another name, and a late removal finds nothing.

use std::fmt;

use model::Digest;

use crate::{Spooled, StoredBlob};

/// `{digest}`, or `{digest}.{life}` from the second life on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlobName {
    pub(crate) digest: Digest,
    pub(crate) life: u64,
}

impl BlobName {
    /// Under which a content is stored.
    pub(crate) fn of(spooled: &Spooled) -> Self {
        Self { digest: spooled.digest, life: spooled.life() }
    }

    /// Of its first life, which is the only one of almost every blob.
    pub(crate) fn first(digest: &Digest) -> Self {
        Self { digest: *digest, life: 0 }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let Some((digest, life)) = name.split_once('.') else {
            return Digest::parse_hex(name).map(|digest| Self { digest, life: 0 });
        };
        let life = life.parse().ok().filter(|number: &u64| *number > 0 && number.to_string() == life)?;
        Some(Self { digest: Digest::parse_hex(digest)?, life })
    }

    /// The name of a sidecar: that of its blob, and what it says.
    pub(crate) fn sidecar(&self, word: &str) -> String {
        format!("{self}~{word}")
    }

    pub(crate) fn parse_sidecar(name: &str) -> Option<(Self, &str)> {
        let (blob, word) = name.split_once('~')?;
        Self::parse(blob).map(|blob| (blob, word))
    }

    /// Whether a name is that of this blob, or of one of its sidecars, in this life or an earlier one.
    pub(crate) fn covers(&self, name: &str) -> bool {
        let blob = name.split_once('~').map_or(name, |(blob, _)| blob);
        Self::parse(blob).is_some_and(|found| found.digest == self.digest && found.life <= self.life)
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.life {
            0 => write!(out, "{}", self.digest),
            life => write!(out, "{}.{life}", self.digest),
        }
    }
}

/// Each blob once, in its latest life, in order of digest.
pub(crate) fn latest(mut blobs: Vec<StoredBlob>) -> Vec<StoredBlob> {
    blobs.sort_by_key(|blob| (blob.digest, std::cmp::Reverse(blob.life)));
    blobs.dedup_by_key(|blob| blob.digest);
    blobs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let digest = Digest::of(b"blob");
        for life in [0, 1, 42] {
            let name = BlobName { digest, life };
            assert_eq!(BlobName::parse(&name.to_string()), Some(name));
            assert_eq!(BlobName::parse_sidecar(&name.sidecar("k.1~2")), Some((name, "k.1~2")));
        }
        for strange in [format!("{digest}.0"), format!("{digest}.01"), format!("{digest}."), "x".to_owned()] {
            assert_eq!(BlobName::parse(&strange), None, "{strange}");
        }
    }

    #[test]
    fn a_removal_covers_its_own_life_and_earlier_ones() {
        let digest = Digest::of(b"blob");
        let name = |life| BlobName { digest, life };

        assert!(name(1).covers(&name(0).to_string()) && name(1).covers(&name(1).sidecar("d~brought")));
        assert!(!name(1).covers(&name(2).to_string()) && !name(0).covers(&name(1).sidecar("d~brought")));
        assert!(!name(9).covers(&Digest::of(b"other").to_string()));
    }
}
