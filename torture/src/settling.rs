//! The end of a round: everybody leaves, faults are over, and the service comes to rest.
//!
//! Guarantees: what does not come to rest is accused as stuck, with what was left. Every document is opened for editing
//! and closed again, which also brings back changes that only an opening can bring back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use understudy::server::KeyState;

use crate::checking::document_of;
use crate::chronicle::{Class, Violation};
use crate::dice::Dice;
use crate::load::Visitor;
use crate::world::{Host, World};

/// Recovery runs once a second, and needs two rounds for what one of them found.
const REST_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(40);
/// How often stranded changes are looked for.
const VISITS_MAX: u32 = 4;

/// Waits until nothing is left to do anywhere. Returns whether that happened.
pub(crate) async fn rest(world: &World) -> bool {
    let deadline = Instant::now() + REST_PATIENCE;
    let mut left = String::new();
    while Instant::now() < deadline {
        left = what_is_left(world).await;
        if left.is_empty() {
            return true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let violation = Violation::new(Class::Stuck, format!("the service does not come to rest: {left}"));
    let violation = match forgotten(world).await.first() {
        Some(key) => violation.of_document(&document_of(key).unwrap_or_default()).of_key(key),
        None => violation,
    };
    world.chronicle.accuse(violation);
    false
}

/// What is still going on, in words.
async fn what_is_left(world: &World) -> String {
    if !world.editor.is_quiet().await {
        return "the understudy has callbacks to send".to_owned();
    }
    let forgotten = forgotten(world).await;
    if !forgotten.is_empty() {
        return format!("forgotten files are left: {}", forgotten.join(", "));
    }
    for host in world.hosts() {
        let left = what_is_left_at(&host).await;
        if !left.is_empty() {
            return left;
        }
    }
    String::new()
}

async fn what_is_left_at(host: &Host) -> String {
    let Ok(status) = host.get("/api/v1/operations/status").await else {
        return "the service does not answer".to_owned();
    };
    let owed = ["open_saves", "owed_publications", "depot_blobs"].iter().find(|name| status[**name] != 0);
    if let Some(name) = owed {
        return format!("{name} is {}", status[*name]);
    }
    match host.get("/api/v1/operations/lanes").await {
        Ok(lanes) if lanes["is_empty"] == true && lanes["jobs"] == 0 => String::new(),
        Ok(lanes) => format!("the lanes are not empty: {lanes}"),
        Err(_) => "the service does not answer".to_owned(),
    }
}

/// Keys whose forgotten file nobody has. One that is damaged on the server, too, stays there: its bytes are in quarantine. One
/// beside held changes waits for a visit, which takes both away.
async fn forgotten(world: &World) -> Vec<String> {
    forgotten_of(world, |state| state.changes.is_empty()).await
}

async fn forgotten_beside_changes(world: &World) -> Vec<String> {
    forgotten_of(world, |state| !state.changes.is_empty()).await
}

async fn forgotten_of(world: &World, is_meant: impl Fn(&KeyState) -> bool) -> Vec<String> {
    let mut left = Vec::new();
    for (key, state) in world.editor.keys().await {
        if !is_meant(&state) {
            continue;
        }
        let Some(sha256) = state.forgotten_sha256 else { continue };
        let document = document_of(&key).unwrap_or_default();
        if !is_quarantined(world, &document, &sha256).await {
            left.push(key);
        }
    }
    left
}

/// Opens and closes every document, and again those the Document Server still holds changes of.
pub(crate) async fn visit_all(world: &Arc<World>) -> bool {
    let mut documents: BTreeSet<String> = world.papers().into_keys().collect();
    for visit in 0..VISITS_MAX {
        for document in &documents {
            visit_one(world, document, visit).await;
        }
        if !rest(world).await {
            return false;
        }
        documents = stranded(world).await;
        if documents.is_empty() {
            return true;
        }
        world.chronicle.count("documents visited again", documents.len() as u64);
    }
    let left = forgotten_beside_changes(world).await;
    for key in &left {
        let what = format!("{VISITS_MAX} visits did not take the forgotten file away");
        let violation = Violation::new(Class::Stuck, what).of_key(key);
        world.chronicle.accuse(violation.of_document(&document_of(key).unwrap_or_default()));
    }
    left.is_empty()
}

async fn visit_one(world: &Arc<World>, document: &str, visit: u32) {
    let dice = Dice::of(world.setting.seed).part(&format!("visit {document}"), u64::from(visit));
    let is_opened = Visitor::new(world, document, dice).visit().await;
    if !is_opened && needs_a_person(world, document).await {
        world.chronicle.count("documents that wait for a person", 1);
    } else if !is_opened {
        let what = "the document cannot be opened for editing";
        world.chronicle.accuse(Violation::new(Class::Stuck, what).of_document(document));
    }
}

/// Documents with changes in the Document Server that nobody is working on.
async fn stranded(world: &World) -> BTreeSet<String> {
    let keys = world.editor.keys().await.into_iter();
    let documents: BTreeSet<String> = keys
        .filter(|(_, state)| !state.changes.is_empty())
        .filter_map(|(key, _)| document_of(&key))
        .collect();
    let mut stranded = BTreeSet::new();
    for document in documents {
        if !needs_a_person(world, &document).await {
            stranded.insert(document);
        }
    }
    stranded
}

/// Whether the server holds changes of a document beside a forgotten file that it built damaged: typing on that file would
/// be in vain, and only a person may take it away.
async fn needs_a_person(world: &World, document: &str) -> bool {
    for (key, state) in world.editor.keys().await {
        let is_it = document_of(&key).as_deref() == Some(document) && !state.changes.is_empty();
        if let (true, Some(sha256)) = (is_it, state.forgotten_sha256)
            && is_quarantined(world, document, &sha256).await
        {
            return true;
        }
    }
    false
}

async fn is_quarantined(world: &World, document: &str, sha256: &str) -> bool {
    let kept = world.host.get(&format!("/api/v1/documents/{document}/kept")).await.unwrap_or_default();
    let mut rows = kept.as_array().into_iter().flatten();
    rows.any(|row| row["kind"] == "quarantine" && row["sha256"] == sha256)
}
