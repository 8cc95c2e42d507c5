//! Conversions, callbacks, answers and downloads that fail.

use std::time::Duration;

use understudy::journal::Note;
use understudy::server::FaultKind;

use crate::load::play::{Goodbye, Play};

/// Reopened while a final save is repeated, because its callback or its answer was lost.
pub(super) async fn back_in_retry(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    play.write(&mut tab).await?;
    let lost = play.dice.one_of(&[FaultKind::AnswerLost, FaultKind::CallbackLost]).clone();
    let times = u32::try_from(play.dice.number(1..4)).unwrap_or(1);
    play.arm(lost, &tab.key, (Some(2), times)).await;
    let (from, key) = (play.now(), tab.key.clone());
    play.say(tab, Goodbye::Explicit).await;
    play.answered(from, &key, 2).await?;
    let mut tab = play.open("bob").await?;
    if play.dice.happens(70) {
        play.write(&mut tab).await?;
    }
    play.leave(tab).await;
    Some(())
}

/// An editing session on a bad road: callbacks and answers are late, lost or doubled.
pub(super) async fn rough_road(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    for _ in 0..play.dice.number(1..4) {
        let by_ms = play.dice.number(20..300);
        let kinds = [
            FaultKind::CallbackLate { by_ms },
            FaultKind::CallbackTwice,
            FaultKind::AnswerLost,
            FaultKind::CallbackLost,
            FaultKind::CallbackAfterNext { at_most_ms: by_ms },
        ];
        let (kind, status) = (play.dice.one_of(&kinds).clone(), *play.dice.one_of(&[1, 2, 2, 4, 6, 6]));
        play.arm(kind, &tab.key, (Some(status), 1)).await;
    }
    for _ in 0..play.dice.number(1..4) {
        play.write(&mut tab).await?;
        if play.dice.happens(50) {
            play.save(&tab).await;
        }
        play.pause(0..50).await;
    }
    play.leave(tab).await;
    Some(())
}

/// The Document Server cannot build the file: status 3 or 7, with or without something. Leans on *status 3 is never
/// answered 0*: on 0 it would delete the changes it could not build.
pub(super) async fn no_result(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    play.write(&mut tab).await?;
    let failure = play.dice.one_of(&[FaultKind::ConversionFails, FaultKind::ConversionCorrupts]).clone();
    if !play.is_repeating(&tab.key) {
        play.arm(failure, &tab.key, (None, 1)).await;
    }
    if play.dice.happens(30) {
        play.save(&tab).await;
        play.pause(30..80).await;
    }
    let (from, key) = (play.now(), tab.key.clone());
    play.say(tab, Goodbye::Explicit).await;
    play.noted(
        from,
        |note| matches!(note, Note::CallbackSent { body, .. } if body.key == key && body.status != 1),
    )
    .await?;
    play.pause(0..100).await;
    let mut tab = play.open("bob").await?;
    play.write(&mut tab).await?;
    play.leave(tab).await;
    Some(())
}

/// The file cannot be fetched, or not as it was. Leans on the *quarantine*.
pub(super) async fn bad_download(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    play.write(&mut tab).await?;
    let kinds = [
        (3, FaultKind::BodyDamaged),
        (2, FaultKind::ResultDamaged),
        (1, FaultKind::BodyCut { percent: 60 }),
        (1, FaultKind::LengthTooLong { by_bytes: 10 }),
        (1, FaultKind::LengthTooShort),
        (1, FaultKind::BodyEmpty),
        (1, FaultKind::BodyHtml),
        (1, FaultKind::BodyStatus { status: 500 }),
        (1, FaultKind::BodyStatus { status: 404 }),
    ];
    let (kind, times) =
        (play.dice.weighted(&kinds).clone(), u32::try_from(play.dice.number(1..5)).unwrap_or(1));
    // What the server itself spoils again and again nobody can save.
    let times = if kind == FaultKind::ResultDamaged { 1 } else { times };
    if !play.is_repeating(&tab.key) {
        play.arm(kind, &tab.key, (None, times)).await;
    }
    if play.dice.happens(40) {
        play.save(&tab).await;
        play.write(&mut tab).await?;
    }
    play.leave(tab).await;
    play.pause(0..200).await;
    if play.dice.happens(50) {
        let mut tab = play.open("bob").await?;
        play.write(&mut tab).await?;
        play.leave(tab).await;
    }
    Some(())
}

/// Downloads fail until the link is dead: the save is given up and comes back as a forgotten file.
pub(super) async fn dead_link(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    play.write(&mut tab).await?;
    play.arm(FaultKind::BodyStatus { status: 500 }, &tab.key, (None, 200)).await;
    play.leave(tab).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    Some(())
}
