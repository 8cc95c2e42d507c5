//! What happens around the plays: new documents come in, and the Document Server itself dies.

use std::sync::Arc;
use std::time::Duration;

use crate::dice::Dice;
use crate::world::{NoAnswer, World};

/// A round has room for this many more documents.
const UPLOADS_MAX: usize = 60;

/// Brings documents in all the time. One whose upload was cut off is brought again: its id is free or it is there.
pub(crate) async fn upload_more(world: Arc<World>, mut dice: Dice) {
    for number in 0..UPLOADS_MAX {
        let id = format!("late-{number}");
        while !world.curtain.is_cancelled() {
            match super::bring(&world, &id, number).await {
                Ok(()) => break,
                // The answer to an earlier attempt was cut off, or it is there.
                Err(NoAnswer::Refused(status, _)) if status.as_u16() == 409 => {
                    let (name, bytes) = super::first_content(&id, number);
                    let sha256 = understudy::office::sha256_hex(&bytes);
                    world.add_paper(&id, crate::world::Paper { name: name.to_owned(), sha256 });
                    break;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(30)).await,
            }
        }
        world.chronicle.count("uploads", 1);
        let pause = Duration::from_millis(dice.number(150..900));
        tokio::select! {
            () = world.curtain.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Lets the Document Server die now and then, for a moment.
pub(crate) async fn crash_the_editor(world: Arc<World>, mut dice: Dice) -> anyhow::Result<()> {
    loop {
        let pause = Duration::from_millis(dice.number(3_000..10_000));
        tokio::select! {
            () = world.curtain.cancelled() => return Ok(()),
            () = tokio::time::sleep(pause) => {}
        }
        // A long scene is about time, which a crash would take away.
        if !world.calm_left().is_zero() {
            continue;
        }
        let away = Duration::from_millis(dice.number(0..400));
        world.chronicle.note(format!("the understudy dies for {} ms", away.as_millis()));
        world.chronicle.count("understudy crashes", 1);
        world.editor.crash_for(away).await?;
    }
}
