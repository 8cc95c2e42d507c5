//! How contents of a document are numbered.
//!
//! A *version* is a numbered content people see: 14. A *checkpoint* is a force save inside the session that started
//! from a version: 14.1, 14.2. A checkpoint consumes no version number (both seeds: a force save keeps the version).

use std::fmt;

/// The number of a content: `14` for a version, `14.2` for a checkpoint made on top of version 14.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The version, counted from 1 without gaps.
    pub version: u32,
    /// 0 for the version itself, else the number of the checkpoint made on top of it.
    pub checkpoint: u32,
}

impl Label {
    /// The first content of a document.
    pub const FIRST: Self = Self { version: 1, checkpoint: 0 };

    /// The label of a version.
    pub const fn version(version: u32) -> Self {
        Self { version, checkpoint: 0 }
    }

    /// Whether this is a version and not a checkpoint.
    pub const fn is_version(self) -> bool {
        self.checkpoint == 0
    }

    /// Reads `14` or `14.2`; versions and checkpoints count from 1.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, checkpoint) = match text.split_once('.') {
            Some((version, checkpoint)) => (version, positive(checkpoint)?),
            None => (text, 0),
        };
        Some(Self { version: positive(version)?, checkpoint })
    }
}

fn positive(text: &str) -> Option<u32> {
    let is_plain =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if is_plain { text.parse().ok() } else { None }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.checkpoint {
            0 => write!(out, "{}", self.version),
            checkpoint => write!(out, "{}.{checkpoint}", self.version),
        }
    }
}

/// How a content came into the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A person or the host application uploaded it.
    Upload,
    /// The last editor left and the Document Server sent the result.
    Save,
    /// A force save: button, command, timer or form.
    ForceSave,
    /// Collected from the Document Server's forgotten files, or adopted from a blob no row named.
    Recovered,
    /// A person made an older content the head again.
    Restore,
    /// Somebody changed the published file from outside.
    External,
}

impl Origin {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Upload, "upload"),
        (Self::Save, "save"),
        (Self::ForceSave, "force-save"),
        (Self::Recovered, "recovered"),
        (Self::Restore, "restore"),
        (Self::External, "external"),
    ];

    /// The word used in the database and the API.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(origin, _)| *origin == self).map_or("", |(_, word)| word)
    }

    /// Reads the word back.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(origin, _)| *origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back_what_they_show() {
        for text in ["1", "14", "14.1", "14.12", "4294967295"] {
            assert_eq!(Label::parse(text).map(|label| label.to_string()).as_deref(), Some(text));
        }
        for text in ["", "0", "01", "1.0", "1.01", "1.", ".1", "1.2.3", "-1", "+1", "4294967296", "one"] {
            assert_eq!(Label::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_checkpoint_lies_between_two_versions() {
        let checkpoint = Label { version: 14, checkpoint: 2 };

        assert!(Label::version(14) < checkpoint && checkpoint < Label::version(15));
    }

    #[test]
    fn origins_read_back_what_they_show() {
        for (origin, word) in Origin::ALL {
            assert_eq!(origin.as_str(), word);
            assert_eq!(Origin::parse(word), Some(origin));
        }
    }
}
