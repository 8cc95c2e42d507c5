//! Somebody who stays in a document for long and saves all the time, whatever becomes of it.
//!
//! With a storage that is away, others cannot even open a document; these are in it already.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::play::Play;
use crate::dice::Dice;
use crate::world::{NoAnswer, World};

/// Brings a document in, and edits it until the curtain falls. Each stay is at most that long.
pub(crate) async fn hold_on(world: Arc<World>, number: usize, stay_max: Duration) -> Result<(), NoAnswer> {
    let document = format!("held-{number}");
    super::bring(&world, &document, number).await?;
    let mut play = Play::new(&world, &document, Dice::of(world.setting.seed).part("holding", number as u64));
    while !world.curtain.is_cancelled() {
        stay(&mut play, stay_max).await;
    }
    Ok(())
}

/// `None` if the session was lost, or there was none.
async fn stay(play: &mut Play, stay_max: Duration) -> Option<()> {
    let longest_ms = u64::try_from(stay_max.as_millis()).unwrap_or(u64::MAX).max(2);
    let until = Instant::now() + Duration::from_millis(play.dice.number(longest_ms / 4..longest_ms));
    let mut tab = play.open("ann").await?;
    while Instant::now() < until && !play.world.curtain.is_cancelled() {
        play.write(&mut tab).await?;
        play.save(&tab).await;
        play.pause(100..600).await;
    }
    play.leave(tab).await;
    Some(())
}
