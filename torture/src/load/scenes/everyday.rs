//! What people do all day.

use std::time::Duration;

use serde_json::json;

use crate::load::play::{Goodbye, Play};

/// One user edits, saves now and then, leaves.
pub(super) async fn solo(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    for _ in 0..play.dice.number(1..4) {
        play.write(&mut tab).await?;
        if play.dice.happens(40) {
            play.save(&tab).await;
        }
        play.pause(0..60).await;
    }
    play.leave(tab).await;
    Some(())
}

/// Two users at once; each leaves in turn, and the one who wrote last need not be the one who leaves last.
pub(super) async fn pair(play: &mut Play) -> Option<()> {
    let mut ann = play.open("ann").await?;
    play.write(&mut ann).await?;
    let mut bob = play.open("bob").await?;
    for _ in 0..play.dice.number(1..4) {
        let writer = if play.dice.happens(50) { &mut ann } else { &mut bob };
        play.write(writer).await?;
        if play.dice.happens(30) {
            play.save(&bob).await;
        }
        play.pause(0..40).await;
    }
    play.leave(ann).await;
    if play.dice.happens(50) {
        play.write(&mut bob).await?;
        play.pause(0..60).await;
    }
    play.leave(bob).await;
    Some(())
}

/// Somebody looks, as a viewer or as an editor who changes nothing (1-4).
pub(super) async fn glance(play: &mut Play) -> Option<()> {
    if play.dice.happens(50) {
        let viewer = play.view("vic").await?;
        play.pause(10..80).await;
        drop(viewer);
    } else {
        let tab = play.open("ann").await?;
        play.pause(10..80).await;
        play.leave(tab).await;
    }
    Some(())
}

/// Gone without a change, so that status 4 is sent; then another comes, and the first comes back on the old key.
/// Leans on *status 4 leaves the key alone*: with a new key on 4 the two would edit side by side.
pub(super) async fn comeback(play: &mut Play) -> Option<()> {
    let from = play.now();
    let mut ann = play.open("ann").await?;
    ann.session.hang_up().await.ok()?;
    play.answered(from, &ann.key, 4).await?;
    let mut bob = play.open("bob").await?;
    ann.session = ann.session.reconnect().await.ok()?;
    play.write(&mut ann).await?;
    play.write(&mut bob).await?;
    play.pause(0..60).await;
    play.leave(bob).await;
    play.leave(ann).await;
    Some(())
}

/// Reopened within the save delay, or just after it.
pub(super) async fn soon_back(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    play.write(&mut tab).await?;
    play.say(tab, Goodbye::Hard).await;
    play.pause(0..260).await;
    let mut tab = play.open("bob").await?;
    if play.dice.happens(70) {
        play.write(&mut tab).await?;
    }
    play.leave(tab).await;
    Some(())
}

/// A form is submitted, with data of its own.
pub(super) async fn form(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    if play.dice.happens(60) {
        play.write(&mut tab).await?;
    }
    tab.session.submit_form(json!({ "name": "Ann", "agrees": true })).await.ok()?;
    play.pause(20..100).await;
    play.leave(tab).await;
    Some(())
}

/// An editor stops answering and is found dead by its pings.
pub(super) async fn frozen(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    play.write(&mut tab).await?;
    tab.session.freeze().await.ok()?;
    tokio::time::sleep(Duration::from_millis(2300)).await;
    Some(())
}
