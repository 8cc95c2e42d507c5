//! Looks over the service's shoulder while it is being killed: readers that must always get a whole file, a published
//! name that must never vanish, and every answer 0 held against what the service shows right after it.
//!
//! Guarantees: what is accused here was seen from outside, through the API or in the published folder. A service that
//! is down accuses nobody.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use understudy::journal::Note;
use understudy::machine::{Verdict, status};
use understudy::office::sha256_hex;

use crate::checking::document_of;
use crate::chronicle::{Class, Violation};
use crate::world::{Host, NoAnswer, World};

const READER_PAUSE: Duration = Duration::from_millis(15);
const TREE_PAUSE: Duration = Duration::from_millis(4);
const PROMISE_PAUSE: Duration = Duration::from_millis(2);

/// What the watchers saw, for the check at rest.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Hashes of published files, by document.
    published: Mutex<BTreeMap<String, BTreeSet<String>>>,
    /// Documents whose published name must be there from now on.
    shown: Mutex<BTreeSet<String>>,
}

impl Seen {
    pub(crate) fn published(&self) -> BTreeMap<String, BTreeSet<String>> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// After a power cut only names that the service had noted as published must still be there.
    pub(crate) fn expect_only(&self, documents: BTreeSet<String>) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| documents.contains(id));
    }
}

/// Starts the watchers; they stop when the set is shut down.
pub(crate) fn begin(world: &Arc<World>, watchers: &mut JoinSet<()>) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    for host in world.hosts() {
        watchers.spawn(read_heads(Arc::clone(world), host));
    }
    watchers.spawn(read_tree(Arc::clone(world), Arc::clone(&seen)));
    watchers.spawn(follow_promises(Arc::clone(world)));
    seen
}

/// Reads the head of every document again and again: whole, and never an older one.
async fn read_heads(world: Arc<World>, host: Host) {
    let mut newest: HashMap<String, (u32, u32)> = HashMap::new();
    loop {
        for id in world.papers().into_keys() {
            let asked_ms = world.chronicle.now_ms();
            match host.bytes(&format!("/api/v1/documents/{id}/content")).await {
                Ok((bytes, label, hash)) => {
                    world.chronicle.count("heads read", 1);
                    check_head(&world, &id, (&bytes, &label, &hash));
                    let label = parse_label(&label);
                    world.history.note_head(&id, (asked_ms, world.chronicle.now_ms()), (label, hash));
                    let newest = newest.entry(id.clone()).or_insert(label);
                    if label < *newest {
                        let what = format!("the head went back from {newest:?} to {label:?}");
                        world.chronicle.accuse(Violation::new(Class::Damaged, what).of_document(&id));
                    }
                    *newest = label.max(*newest);
                }
                Err(NoAnswer::Refused(status, body)) if status.as_u16() < 500 => {
                    let what = format!("a reader was answered {status}: {body}");
                    world.chronicle.accuse(Violation::new(Class::Lost, what).of_document(&id));
                }
                Err(_) => {}
            }
            tokio::time::sleep(READER_PAUSE).await;
        }
        tokio::time::sleep(READER_PAUSE).await;
    }
}

fn check_head(world: &World, id: &str, (bytes, label, hash): (&[u8], &str, &str)) {
    let found = sha256_hex(bytes);
    if found != hash {
        let what = format!("a reader of content {label} got bytes with hash {found} instead of {hash}");
        world.chronicle.accuse(Violation::new(Class::Damaged, what).of_document(id));
    }
}

pub(crate) fn parse_label(label: &str) -> (u32, u32) {
    let (version, checkpoint) = label.split_once('.').unwrap_or((label, "0"));
    (version.parse().unwrap_or(0), checkpoint.parse().unwrap_or(0))
}

/// Reads the published file of every document again and again: once there, always there.
async fn read_tree(world: Arc<World>, seen: Arc<Seen>) {
    loop {
        for (id, paper) in world.papers() {
            let file = world.published_file(&id, &paper.name);
            let in_place = world.disk_in_place.read().await;
            let read = tokio::fs::read(&file).await;
            drop(in_place);
            match read {
                Ok(bytes) => {
                    world.chronicle.count("published files read", 1);
                    seen.shown.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
                    let mut published = seen.published.lock().unwrap_or_else(PoisonError::into_inner);
                    published.entry(id).or_default().insert(sha256_hex(&bytes));
                }
                Err(cause) => {
                    let was_shown = seen.shown.lock().unwrap_or_else(PoisonError::into_inner).contains(&id);
                    if was_shown {
                        let what = format!("the published file vanished: {cause}");
                        world.chronicle.accuse(Violation::new(Class::Damaged, what).of_document(&id));
                    }
                }
            }
            tokio::time::sleep(TREE_PAUSE).await;
        }
        tokio::time::sleep(TREE_PAUSE).await;
    }
}

/// Holds every answer 0 against what the service shows right after it.
async fn follow_promises(world: Arc<World>) {
    let mut next = 0;
    let mut contents: HashMap<String, String> = HashMap::new();
    let mut offered: HashMap<u64, (String, String)> = HashMap::new();
    loop {
        for entry in world.editor.journal().since(next) {
            next = entry.number + 1;
            match &entry.note {
                Note::ContentProduced { path, sha256: Some(sha256), .. } => {
                    contents.insert(path.clone(), sha256.clone());
                }
                Note::CallbackSent { delivery, body, .. }
                    if matches!(body.status, status::MUST_SAVE | status::MUST_FORCE_SAVE) =>
                {
                    let path = body.url.as_deref().and_then(|url| url.split("/files/data/").nth(1));
                    let path = path.and_then(|path| path.split('/').next());
                    if let Some(sha256) = path.and_then(|path| contents.get(path)) {
                        offered.insert(*delivery, (body.key.clone(), sha256.clone()));
                    }
                }
                Note::CallbackAnswered { delivery, verdict: Verdict::Acknowledged, .. } => {
                    if let Some((key, sha256)) = offered.remove(delivery) {
                        check_promise(&world, &key, &sha256).await;
                    }
                }
                _ => {}
            }
        }
        tokio::time::sleep(PROMISE_PAUSE).await;
    }
}

async fn check_promise(world: &World, key: &str, sha256: &str) {
    let Some(document) = document_of(key) else { return };
    for place in ["versions", "kept"] {
        match world.host.get(&format!("/api/v1/documents/{document}/{place}")).await {
            Ok(Value::Array(rows)) if rows.iter().any(|row| row["sha256"] == sha256) => {
                world.chronicle.count("promises checked", 1);
                return;
            }
            Ok(_) => {}
            // Dead before we could look: the check after the kill looks again.
            Err(_) => return,
        }
    }
    let what = format!("a save was answered 0 before it was kept: content {sha256}");
    world.chronicle.accuse(Violation::new(Class::Lost, what).of_document(&document).of_key(key));
}
