//! What keeps the audit trail and its receipts up to date: anchors, and when blobs were last read back.

use jiff::SignedDuration;
use ledger::trail::{Anchoring, ReadBack};
use model::trail::chain_of;

use super::RecoveryError;
use crate::app::App;

/// A company is anchored at most this often, however many rounds there are.
const ANCHOR_SPACING: SignedDuration = SignedDuration::from_mins(1);
/// Receipts tell the day; a blob that many people read is written down once.
const READ_BACK_SPACING: SignedDuration = SignedDuration::from_hours(24);
/// Anchors hold 500 chains each. What is left after so many steps waits for the next round.
const STEPS_MAX: usize = 1000;

/// When a company may be anchored again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// A minute after the last time.
    Minute,
    /// Now: nothing comes after this.
    None,
}

/// Anchors the chains that moved.
pub(super) async fn anchor(app: &App, spacing: Spacing) -> Result<(), RecoveryError> {
    let spacing = match spacing {
        Spacing::Minute => ANCHOR_SPACING,
        Spacing::None => SignedDuration::ZERO,
    };
    for _ in 0..STEPS_MAX {
        let anchored = app.ledger.anchor(&Anchoring { at: app.now(), spacing }).await?;
        if anchored.is_empty() {
            break;
        }
        for anchor in anchored {
            // A log that is kept elsewhere is a witness that nobody with the database in hands can silence.
            tracing::info!(
                chain = chain_of(&anchor.company),
                sequence = anchor.sequence,
                hash = %anchor.hash,
                "the audit trail of company {} was anchored",
                anchor.company
            );
        }
    }
    Ok(())
}

/// Writes down which blobs were read back whole since the last round.
pub(super) async fn note_read_backs(app: &App) -> Result<(), RecoveryError> {
    let Some((digests, at)) = app.read_backs.take() else { return Ok(()) };
    app.ledger.note_read_back(&ReadBack { digests, at, spacing: READ_BACK_SPACING }).await?;
    Ok(())
}
