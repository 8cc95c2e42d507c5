//! Callbacks that overlap, overtake each other and come twice.

use std::time::Duration;

use serde_json::{Value, json};
use understudy::journal::Note;
use understudy::office::changes_in;
use understudy::server::FaultKind;
use understudy::tokens::{Outbox, Secret};

use crate::chronicle::{Class, Violation};
use crate::load::play::{Goodbye, Play, Tab};
use crate::world::DOCUMENT_SERVER_SECRET;

/// 6-6-2: changes and force saves faster than their files are fetched.
pub(super) async fn flurry(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    let times = u32::try_from(play.dice.number(1..4)).unwrap_or(1);
    let over_ms = play.dice.number(20..250);
    play.arm(FaultKind::BodySlow { over_ms }, &tab.key, (None, times)).await;
    for _ in 0..play.dice.number(2..4) {
        play.write(&mut tab).await?;
        let _ = tab.session.press_save().await;
        play.pause(0..30).await;
    }
    play.write(&mut tab).await?;
    play.leave(tab).await;
    Some(())
}

/// A 6 that is held up until the 2 was answered. Leans on the *order guard*: without it the older file becomes the head.
pub(super) async fn late_checkpoint(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    let key = tab.key.clone();
    let from = hold_up_checkpoint(play, &mut tab, 900).await?;
    play.write(&mut tab).await?;
    play.say(tab, Goodbye::Explicit).await;
    play.answered(from, &key, 6).await?;
    Some(())
}

/// A 6 that is held up until the next 6 was answered, with seconds between their changes, so that `lastsave` tells which
/// is older. Leans on the *order guard*.
pub(super) async fn spaced_checkpoints(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    let key = tab.key.clone();
    let from = hold_up_checkpoint(play, &mut tab, 3000).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    play.write(&mut tab).await?;
    let _ = tab.session.press_save().await;
    play.answered(from, &key, 6).await?;
    play.pause(50..200).await;
    play.leave(tab).await;
    Some(())
}

/// Something is written and force-saved, and the callback does not arrive before the next one was answered. Returns from
/// when on.
async fn hold_up_checkpoint(play: &mut Play, tab: &mut Tab, at_most_ms: u64) -> Option<u64> {
    play.write(tab).await?;
    play.arm(FaultKind::CallbackAfterNext { at_most_ms }, &tab.key, (Some(6), 1)).await;
    let (from, key) = (play.now(), tab.key.clone());
    let _ = tab.session.press_save().await;
    play.noted(
        from,
        |note| matches!(note, Note::CallbackSent { body, .. } if body.key == key && body.status == 6),
    )
    .await?;
    Some(from)
}

/// A callback that a proxy sends once more, after a newer one. Leans on the *inbox*: by `lastsave`, whose seconds are
/// equal here, the repeat would count as the newest.
pub(super) async fn echo(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    let (from, key) = (play.now(), tab.key.clone());
    for _ in 0..2 {
        let start = play.now();
        play.write(&mut tab).await?;
        let _ = tab.session.press_save().await;
        play.answered(start, &key, 6).await?;
    }
    repeat_first(play, from, &key).await;
    if play.dice.happens(50) {
        play.write(&mut tab).await?;
    }
    play.leave(tab).await;
    play.answered(from, &key, 2).await?;
    if play.dice.happens(50) {
        play.pause(0..200).await;
        repeat_first(play, from, &key).await;
    }
    Some(())
}

/// Sends the first save of a key again, signed anew as every delivery is.
async fn repeat_first(play: &Play, from: u64, key: &str) {
    let entries = play.world.editor.journal().since(from);
    let first = entries.iter().find_map(|entry| match &entry.note {
        Note::CallbackSent { url, body, .. } if body.key == key && body.url.is_some() => Some((url, body)),
        _ => None,
    });
    let Some((url, body)) = first else { return };
    let outbox = Outbox { secret: Secret::new(DOCUMENT_SERVER_SECRET), life_s: 300 };
    let mut body = (**body).clone();
    let token = outbox.sign_callback(&mut body, play.world.chronicle.now_ms() / 1000);
    play.world.chronicle.note_of(&play.document, format!("a callback {} of {key} comes again", body.status));
    play.world.chronicle.count("callbacks repeated by a proxy", 1);
    play.world.host.repeat_callback(url, &token, &json!(body)).await;
}

/// Somebody opens while the final save is being stored. Leans on the *open barrier*: what they get must hold that save.
pub(super) async fn barrier(play: &mut Play) -> Option<()> {
    let mut tab = play.open("ann").await?;
    let mut written = vec![play.write(&mut tab).await?];
    let over_ms = play.dice.number(150..450);
    play.arm(FaultKind::BodySlow { over_ms }, &tab.key, (None, 1)).await;
    written.push(play.write(&mut tab).await?);
    let (from, key) = (play.now(), tab.key.clone());
    play.say(tab, Goodbye::Explicit).await;
    play.noted(from, |note| {
        matches!(note, Note::FaultUsed { key: struck, fault } if *struck == key && fault.starts_with("BodySlow"))
    })
    .await?;
    let kills = play.world.kills();
    // What is slow may be the forgotten file, if nobody was there to take the save.
    let is_delivered = play.is_delivering(&key) && !is_on_its_way(play, from, &key);
    let granted = play.world.configure(&play.document, "bob").await;
    let Ok(grant) = granted else { return Some(()) };
    // Whoever is told to come again by the server has seen nothing; a slow machine can be late with that save.
    let Ok(mut tab) = play.enter("bob", &grant).await else { return Some(()) };
    // A service that died in between may not have received the save.
    if is_delivered && play.world.kills() == kills {
        check_base(play, &grant.base, &key, &written).await;
    }
    play.write(&mut tab).await?;
    play.leave(tab).await;
    Some(())
}

/// Whether a callback of the key was held up or lost on its way: what is slow is then the file of an earlier one.
fn is_on_its_way(play: &Play, from: u64, key: &str) -> bool {
    let entries = play.world.editor.journal().since(from);
    entries.iter().any(|entry| match &entry.note {
        Note::FaultUsed { key: struck, fault } => {
            struck == key && (fault.starts_with("CallbackLate") || fault.starts_with("CallbackLost"))
        }
        _ => false,
    })
}

async fn check_base(play: &Play, base: &str, key: &str, written: &[String]) {
    if play.goes_on(key) {
        return;
    }
    let path = format!("/api/v1/documents/{}/content?version={base}", play.document);
    let Ok((bytes, ..)) = play.world.host.bytes(&path).await else { return };
    let held = changes_in(&bytes);
    let missing: Vec<_> = written.iter().filter(|id| !held.contains(*id)).collect();
    if !missing.is_empty() && !is_kept_aside(play, &missing).await {
        let what =
            format!("an editor was given content {base} although a final save of {key} was being stored");
        let violation = Violation::new(Class::Damaged, what).of_document(&play.document).of_key(key);
        play.world.chronicle.accuse(violation.of_changes(missing));
    }
}

/// In a key that was revived, a save may have ended as a conflict copy.
async fn is_kept_aside(play: &Play, missing: &[&String]) -> bool {
    let path = format!("/api/v1/documents/{}/kept", play.document);
    let Ok(Value::Array(rows)) = play.world.host.get(&path).await else { return true };
    for number in rows.iter().filter_map(|row| row["number"].as_u64()) {
        let Ok((bytes, ..)) = play.world.host.bytes(&format!("{path}/{number}/content")).await else {
            continue;
        };
        let held = changes_in(&bytes);
        if missing.iter().all(|id| held.contains(*id)) {
            return true;
        }
    }
    false
}
