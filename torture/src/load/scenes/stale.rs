//! Tabs that are older than they think.

use std::time::Duration;

use understudy::journal::Note;
use understudy::machine::Verdict;
use understudy::server::FaultKind;

use crate::load::play::{Goodbye, Play};

/// The service stored the final save and its answer was lost; before it is repeated an old tab opens the key again,
/// while others work on with a new one. Leans on the *content comparison*: the old tab's save must not replace theirs.
pub(super) async fn fork(play: &mut Play) -> Option<()> {
    let mut ann = play.open("ann").await?;
    play.write(&mut ann).await?;
    let old = ann.grant.clone();
    play.arm(FaultKind::AnswerLost, &ann.key, (Some(2), 3)).await;
    let (from, key) = (play.now(), ann.key.clone());
    play.say(ann, Goodbye::Explicit).await;
    play.noted(from, |note| matches!(note, Note::CallbackAnswered { verdict: Verdict::Unheard, .. })).await?;
    let mut bob = play.enter("bob", &old).await.ok()?;
    let mut cid = play.open("cid").await?;
    play.world.chronicle.count(if cid.key == key { "forks joined" } else { "forks" }, 1);
    play.write(&mut cid).await?;
    play.write(&mut bob).await?;
    if play.dice.happens(30) {
        play.save(&bob).await;
    }
    if play.dice.happens(70) {
        play.leave(cid).await;
        play.pause(0..300).await;
        play.leave(bob).await;
    } else {
        play.leave(bob).await;
        play.leave(cid).await;
    }
    Some(())
}

/// Storing the final save takes so long that the Document Server lets an old tab open the spent key again: it fetches
/// the source once more and replays the changes that nobody acknowledged. Leans on *no late 0* (it would delete the new
/// session's changes) and on the *pinned base* (on the saved file the replayed changes would count twice).
pub(super) async fn revival(play: &mut Play) -> Option<()> {
    let mut ann = play.open("ann").await?;
    let old = ann.grant.clone();
    let (from, key) = (play.now(), ann.key.clone());
    play.write(&mut ann).await?;
    let _ = ann.session.press_save().await;
    play.answered(from, &key, 6).await?;
    play.write(&mut ann).await?;
    play.arm(FaultKind::BodySlow { over_ms: 2800 }, &key, (None, 1)).await;
    if play.dice.happens(20) {
        // A late refusal is as bad as a late 0: the server would keep the file and the changes, and count both.
        play.arm(FaultKind::ResultDamaged, &key, (None, 1)).await;
    }
    play.say(ann, Goodbye::Explicit).await;
    play.noted(from, |note| matches!(note, Note::CallbackSent { body, .. } if body.key == key && body.status == 2))
        .await?;
    tokio::time::sleep(Duration::from_millis(2050)).await;
    let mut bob = play.enter("bob", &old).await.ok()?;
    play.world.chronicle.count("keys revived", 1);
    play.write(&mut bob).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    play.leave(bob).await;
    Some(())
}
