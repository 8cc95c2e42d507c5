//! Editor keys: the name under which the Document Server knows one editing session of one content.
//!
//! `{environment}_{document}_{mode}_{counter}.{tail}`, for example `prod_12345_edit_42.k7q2mz4hxw3t`. The counter of
//! an edit key only grows, in a restored ledger past all that may have been issued since, and its tail is 60 random bits; the
//! tail of a view key is the content's hash, so that a cached view is never stale.
//!
//! Guarantees: a key is at most 128 of `0-9a-zA-Z.=_-` (longer ones are accepted by the server, but its documents
//! promise 128), and the document can be read from it even when no row knows the key.
//! Does not do: remember keys. The ledger keeps every key ever issued.

use std::fmt;

use jiff::Timestamp;

use crate::{Digest, DocumentId};

/// The documented limit of the Document Server.
pub const KEY_LENGTH_MAX: usize = 128;
/// Keeps the longest possible key within [`KEY_LENGTH_MAX`].
pub const ENVIRONMENT_LENGTH_MAX: usize = 16;
/// 12 characters of 5 bits each.
pub const TAIL_BITS: u32 = 60;

const TAIL_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The installation a key belongs to, so that two of them can share one Document Server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment(String);

impl Environment {
    /// 1 to 16 letters, digits or `-`. No `_`: it separates the parts of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let is_short = (1..=ENVIRONMENT_LENGTH_MAX).contains(&text.len());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_short && is_plain).then(|| Self(text.to_owned()))
    }

    /// The environment as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a key is for. Comment, review and fill join the edit key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Changes are possible, so saves will come.
    Edit,
    /// Nothing can change; the server never calls back.
    View,
}

impl Mode {
    /// The word in the key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::View => "view",
        }
    }
}

/// A well-formed key, ours or another installation's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EditorKey(String);

/// What a key says by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyParts {
    /// The environment that issued it.
    pub environment: Environment,
    /// The document it opens.
    pub document: DocumentId,
    /// What it is for.
    pub mode: Mode,
    /// The document's key counter (edit) or version (view) when it was issued.
    pub counter: u64,
}

impl EditorKey {
    /// Takes any text the Document Server could use as a key.
    pub fn parse(text: &str) -> Option<Self> {
        let is_short = (1..=KEY_LENGTH_MAX).contains(&text.len());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._=-".contains(&byte));
        (is_short && is_plain).then(|| Self(text.to_owned()))
    }

    /// The key of the document's next editing session; `random` gives the 60 bits of its tail.
    pub fn for_editing(environment: &Environment, document: &DocumentId, counter: u64, random: u64) -> Self {
        Self(format!("{}_{document}_{}_{counter}.{}", environment.0, Mode::Edit.as_str(), tail(random)))
    }

    /// The key under which everybody views this content.
    pub fn for_viewing(
        environment: &Environment,
        document: &DocumentId,
        version: u32,
        content: &Digest,
    ) -> Self {
        Self(format!("{}_{document}_{}_{version}.{}", environment.0, Mode::View.as_str(), content.short(16)))
    }

    /// Reads what the key says by itself; `None` if it was not made by this scheme.
    pub fn parts(&self) -> Option<KeyParts> {
        let (environment, rest) = self.0.split_once('_')?;
        let (rest, numbers) = rest.rsplit_once('_')?;
        let (document, mode) = rest.rsplit_once('_')?;
        let (counter, _tail) = numbers.split_once('.')?;
        Some(KeyParts {
            environment: Environment::parse(environment)?,
            document: DocumentId::parse(document).ok()?,
            mode: match mode {
                "edit" => Mode::Edit,
                "view" => Mode::View,
                _ => return None,
            },
            counter: counter.parse().ok()?,
        })
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EditorKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The least the key counters of a restored ledger must say. Keys that were issued after its copy was made are not in it, and
/// no session takes less than a second: the seconds since 1970 are more than any document has had keys, and a ledger that is
/// restored twice from one copy differs too. The random tail is a second, independent reason.
pub fn counter_after_restoring(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or(0)
}

fn tail(random: u64) -> String {
    let five_bits = |place: u32| usize::from((random >> (place * 5)).to_le_bytes()[0] & 31);
    (0..TAIL_BITS / 5).map(|place| char::from(TAIL_ALPHABET[five_bits(place)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::parse("prod").unwrap()
    }

    #[test]
    fn a_key_tells_its_document_back() {
        for id in ["12345", "a_b", "a_edit_7", "x.y=z-1"] {
            let document = DocumentId::parse(id).unwrap();

            let key = EditorKey::for_editing(&environment(), &document, 42, 0x0123_4567_89ab_cdef);

            let parts = key.parts().unwrap();
            assert_eq!((parts.document, parts.mode, parts.counter), (document, Mode::Edit, 42), "{key}");
        }
    }

    #[test]
    fn the_longest_key_stays_within_the_limit_and_the_alphabet() {
        let environment = Environment::parse(&"e".repeat(ENVIRONMENT_LENGTH_MAX)).unwrap();
        let document = DocumentId::parse(&"d".repeat(crate::ids::ID_LENGTH_MAX)).unwrap();

        let key = EditorKey::for_editing(&environment, &document, u64::MAX, u64::MAX);

        assert!(key.as_str().len() <= KEY_LENGTH_MAX, "{}", key.as_str().len());
        assert_eq!(EditorKey::parse(key.as_str()), Some(key));
    }

    #[test]
    fn the_tail_of_an_edit_key_uses_all_sixty_bits() {
        let document = DocumentId::parse("12345").unwrap();
        let keys: std::collections::HashSet<_> =
            (0..60).map(|bit| EditorKey::for_editing(&environment(), &document, 1, 1 << bit)).collect();

        assert_eq!(keys.len(), 60);
    }

    #[test]
    fn a_restored_ledger_counts_on_from_the_time_of_day() {
        let at = |second| counter_after_restoring(Timestamp::from_second(second).unwrap());

        assert_eq!((at(1_794_770_000), at(1_794_770_001), at(-5)), (1_794_770_000, 1_794_770_001, 0));
    }

    #[test]
    fn view_keys_differ_when_the_content_does() {
        let document = DocumentId::parse("12345").unwrap();
        let key =
            |content: &[u8]| EditorKey::for_viewing(&environment(), &document, 14, &Digest::of(content));

        assert_ne!(key(b"one"), key(b"two"));
        assert_eq!(key(b"one"), key(b"one"));
        assert_eq!(key(b"one").parts().unwrap().mode, Mode::View);
    }

    #[test]
    fn a_key_of_another_scheme_has_no_parts() {
        for text in [
            "single-edit-close-a1",
            "prod_12345",
            "prod_12345_edit_x.y",
            "prod_12345_draw_4.k",
            "prod__edit_4.k",
        ] {
            assert_eq!(EditorKey::parse(text).unwrap().parts(), None, "{text}");
        }
        for text in ["", "a b", "a/b", &"k".repeat(129)] {
            assert_eq!(EditorKey::parse(text), None, "{text}");
        }
    }
}
