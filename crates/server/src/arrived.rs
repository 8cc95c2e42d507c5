//! Workbooks that have just arrived, as they lie in the spool: whoever reads them next need not fetch them from the vault again.
//!
//! Guarantees: only bytes that the vault has taken are kept here, under their hash, and only a few. Does not do: durability. What is
//! not here is in the vault.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use model::Digest;
use vault::Spooled;

/// A workbook is read at once, unless others are being read.
const KEPT_MAX: usize = 4;

/// The last ones that came in.
#[derive(Debug, Default)]
pub(crate) struct Arrived(Mutex<VecDeque<Spooled>>);

impl Arrived {
    /// Keeps bytes that are stored; the oldest make way.
    pub(crate) fn keep(&self, spooled: &Spooled) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(spooled.clone());
        while kept.len() > KEPT_MAX {
            kept.pop_front();
        }
    }

    /// Hands them over, once.
    pub(crate) fn take(&self, digest: &Digest) -> Option<Spooled> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|spooled| spooled.digest == *digest)?;
        kept.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use vault::Spool;

    use super::*;

    #[test]
    fn the_last_ones_are_handed_over_once() {
        let arrived = Arrived::default();
        let all: Vec<_> = (0..=KEPT_MAX).map(|n| Spool::hold(Bytes::from(n.to_string()))).collect();
        for spooled in &all {
            arrived.keep(spooled);
        }

        assert!(arrived.take(&all[0].digest).is_none(), "the oldest made way");
        assert!(arrived.take(&all[1].digest).is_some());
        assert!(arrived.take(&all[1].digest).is_none());
    }
}
