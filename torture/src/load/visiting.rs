//! Somebody who opens a document when everything is over, and closes it again.

use std::sync::Arc;
use std::time::Duration;

use understudy::server::Opening;

use crate::dice::Dice;
use crate::world::World;

/// How often a visitor asks before it gives up: for well over the time opening may wait for a save.
const ATTEMPTS_MAX: u32 = 100;
const ASK_AGAIN: Duration = Duration::from_millis(60);
const OPENING: Duration = Duration::from_secs(6);

/// A visitor.
pub(crate) struct Visitor {
    world: Arc<World>,
    document: String,
    dice: Dice,
}

impl Visitor {
    pub(crate) fn new(world: &Arc<World>, document: &str, dice: Dice) -> Self {
        Self { world: Arc::clone(world), document: document.to_owned(), dice }
    }

    /// Opens the document for editing and leaves again. Returns whether it could be opened.
    pub(crate) async fn visit(mut self) -> bool {
        for _ in 0..ATTEMPTS_MAX {
            if self.try_once().await {
                return true;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
        false
    }

    async fn try_once(&mut self) -> bool {
        let Ok(grant) = self.world.configure(&self.document, "visitor").await else { return false };
        let Some(session) = self.world.editor.open(&grant.config).await else { return false };
        let opened = tokio::time::timeout(OPENING, session.opened()).await;
        let is_open = matches!(opened, Ok(Opening::Ready));
        if is_open && self.dice.happens(50) {
            let _ = session.close().await;
        }
        let _ = session.hang_up().await;
        is_open
    }
}
