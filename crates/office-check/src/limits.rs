//! Every bound in one place, each with its reason, and how thorough a check is.

use crate::xml::XmlLimits;
use crate::zip::ZipLimits;

/// How much work one file may cause, and how much is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Inflated bytes of all entries together. Real workbooks of half a million rows inflate to some 600 MB.
    pub inflated_bytes_max: u64,
    /// Entries of a container. Presentations with thousands of pictures stay below 20,000; each costs 60 bytes of memory.
    pub entries_max: usize,
    /// Bytes of an entry's name. The longest path of Windows has 260 characters; Linux allows 4096.
    pub name_bytes_max: usize,
    /// By how much an entry may inflate, once it is beyond 16 MiB. Sheets reach 100; deflate itself ends at 1032.
    pub ratio_max: u32,
    /// Open elements of an XML part. Office nests below a hundred.
    pub depth_max: usize,
    /// Attributes of one element. The richest that Office writes have about 40.
    pub attributes_max: usize,
    /// Repetitions of a row or a cell. No program has more rows than 1,048,576 or columns than 16,384.
    pub repetitions_max: u64,
    /// How much is looked at.
    pub thoroughness: Thoroughness,
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thoroughness {
    /// The container: every entry is inflated and its checksum compared.
    Container,
    /// And the parts without which the document cannot be opened.
    Required,
    /// And every other part.
    Full,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inflated_bytes_max: 1024 * 1024 * 1024,
            entries_max: 100_000,
            name_bytes_max: 4096,
            ratio_max: 500,
            depth_max: 10_000,
            attributes_max: 1_000,
            repetitions_max: 1_048_576,
            thoroughness: Thoroughness::Full,
        }
    }
}

impl Limits {
    pub(crate) fn zip(&self) -> ZipLimits {
        ZipLimits {
            entries_max: self.entries_max,
            name_bytes_max: self.name_bytes_max,
            inflated_bytes_max: self.inflated_bytes_max,
            ratio_max: self.ratio_max,
        }
    }

    pub(crate) fn xml(&self) -> XmlLimits {
        XmlLimits { depth_max: self.depth_max, attributes_max: self.attributes_max, ..XmlLimits::default() }
    }
}
