//! The load: for each document somebody who plays scene after scene until the curtain falls, and others around them.
//!
//! Guarantees: which scenes are played, with whom and with which faults, comes from the seed. When the curtain falls
//! everybody finishes the scene and leaves. Does not judge anything, except where only the scene itself can see it.

mod around;
mod holding;
mod play;
mod scenes;
mod visiting;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinSet;
use understudy::office::{sample_docx, sample_xlsx, sha256_hex};

use crate::dice::Dice;
use crate::world::{NoAnswer, Paper, World};

pub(crate) use around::{crash_the_editor, upload_more};
pub(crate) use holding::hold_on;
use play::Play;
use scenes::Scene;
pub(crate) use visiting::Visitor;

/// Long scenes need this much time without a kill.
const LONG_SCENE: Duration = Duration::from_millis(4500);

/// Brings the first documents in; the service is up and nothing is wrong yet.
pub(crate) async fn bring_documents(world: &World) -> Result<(), NoAnswer> {
    for number in 0..world.setting.conditions.documents {
        bring(world, &format!("paper-{number}"), number).await?;
    }
    Ok(())
}

/// Brings one document in: a text or a workbook, with a content of its own.
async fn bring(world: &World, id: &str, number: usize) -> Result<(), NoAnswer> {
    let (name, bytes) = first_content(id, number);
    world.host.upload(id, name, bytes.clone()).await?;
    world.add_paper(id, Paper { name: name.to_owned(), sha256: sha256_hex(&bytes) });
    Ok(())
}

fn first_content(id: &str, number: usize) -> (&'static str, Bytes) {
    if number % 3 == 2 {
        ("book.xlsx", sample_xlsx(&[&["Paper", id], &["It", "begins"]]))
    } else {
        ("report.docx", sample_docx("Paper", &[id, "It begins."]))
    }
}

/// Starts somebody for each document.
pub(crate) fn begin(world: &Arc<World>, players: &mut JoinSet<()>) {
    let dice = Dice::of(world.setting.seed);
    for (number, document) in world.papers().into_keys().enumerate() {
        let dice = dice.part("play", number as u64);
        players.spawn(play_on(Play::new(world, &document, dice)));
    }
}

async fn play_on(mut play: Play) {
    let world = Arc::clone(&play.world);
    while !world.curtain.is_cancelled() {
        let has_time = world.calm_left() >= LONG_SCENE;
        let scene = if has_time && play.dice.happens(70) {
            Scene::long(&mut play.dice, world.setting.conditions.weather)
        } else {
            Scene::short(&mut play.dice, world.setting.conditions.weather)
        };
        world.chronicle.count(&format!("scene {}", scene.as_str()), 1);
        world.chronicle.note_of(&play.document, format!("scene {}", scene.as_str()));
        scene.play(&mut play).await;
        play.pause(0..120).await;
    }
}
