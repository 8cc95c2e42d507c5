//! Every bound of the ZIP layer with its reason, and the budget that reading draws on.
//!
//! Guarantees: a [`Budget`] only shrinks, and never below nothing.
//! Does not do: decide whether going beyond a bound is damage; see [`ZipFaultKind::is_limit`].

use super::fault::{ZipFault, ZipFaultKind};

/// Below this an entry may have any ratio: a blank picture or a sheet of equal rows deflates to a thousandth,
/// and so little harms nobody.
const RATIO_FLOOR_BYTES: u64 = 16 * 1024 * 1024;

/// How much work one archive may cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZipLimits {
    /// Entries. 100,000 cost 6 MB; presentations with thousands of pictures stay below 20,000.
    pub(crate) entries_max: usize,
    /// Bytes of one name. The longest path of Windows has 260 characters; 4096 is what Linux allows.
    pub(crate) name_bytes_max: usize,
    /// Inflated bytes of all entries together. Workbooks of half a million rows inflate to some 600 MB.
    pub(crate) inflated_bytes_max: u64,
    /// Inflated by deflated bytes of one entry beyond 16 MiB. Sheets reach 100; deflate ends at 1032.
    pub(crate) ratio_max: u32,
}

impl Default for ZipLimits {
    fn default() -> Self {
        Self {
            entries_max: 100_000,
            name_bytes_max: 4096,
            inflated_bytes_max: 1024 * 1024 * 1024,
            ratio_max: 500,
        }
    }
}

/// What reading may still cost. One for all the entries of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    left_bytes: u64,
    ratio_max: u32,
}

impl Budget {
    pub(crate) fn of(limits: &ZipLimits) -> Self {
        Self { left_bytes: limits.inflated_bytes_max, ratio_max: limits.ratio_max }
    }

    /// Takes away what has just been inflated.
    pub(super) fn spend(&mut self, bytes: u64) -> Result<(), ZipFault> {
        match self.left_bytes.checked_sub(bytes) {
            Some(left_bytes) => {
                self.left_bytes = left_bytes;
                Ok(())
            }
            None => {
                self.left_bytes = 0;
                Err(ZipFault::whole(ZipFaultKind::InflatesTooFar))
            }
        }
    }

    /// The size beyond which an entry of so many deflated bytes is suspicious.
    pub(super) fn size_max(&self, deflated_bytes: u64) -> u64 {
        deflated_bytes.saturating_mul(u64::from(self.ratio_max)).max(RATIO_FLOOR_BYTES)
    }
}
