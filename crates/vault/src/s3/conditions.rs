//! Whether the store keeps its word on If-None-Match and If-Match, and looks at the hash of what it is sent: found out by trying.
//!
//! Guarantees: what is tried has a name of its own and is removed again; a store that cannot be reached is not taken for
//! a careless one.

use std::io;

use model::Digest;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};

use super::signing::{Known, of_known};

/// The content that it is tried with.
const TRIED: &[u8] = b"saveguard";

/// Whether the store keeps its word on conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conditions {
    Kept,
    Ignored,
}

/// Whether the store looks at the hash that a request is signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hashes {
    Checked,
    Ignored,
}

/// How the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Habits {
    pub(super) conditions: Conditions,
    pub(super) hashes: Hashes,
}

impl Habits {
    pub(super) fn is_careful(self) -> bool {
        self.conditions == Conditions::Kept && self.hashes == Hashes::Checked
    }
}

/// Tries it out under a key that nobody has.
pub(super) async fn find_out(store: &AmazonS3, key: &Path) -> io::Result<Habits> {
    let tried = try_out(store, key).await;
    let removed = store.delete(key).await;
    let habits = tried.map_err(io::Error::other)?;
    removed.map_err(io::Error::other)?;
    if habits.conditions == Conditions::Ignored {
        tracing::warn!("this S3 store ignores conditions on puts: every blob will be read back");
    }
    if habits.hashes == Hashes::Ignored {
        tracing::warn!(
            "this S3 store does not check the hash of what it is sent: every blob will be read back"
        );
    }
    Ok(habits)
}

async fn try_out(store: &AmazonS3, key: &Path) -> object_store::Result<Habits> {
    let conditions = try_conditions(store, key).await?;
    Ok(Habits { conditions, hashes: try_hash(store, key).await? })
}

/// Sends what is not what it is signed as. Stores refuse it in different ways, some as a mistake of their own: it was the hash if the
/// same content is taken with the right one.
async fn try_hash(store: &AmazonS3, key: &Path) -> object_store::Result<Hashes> {
    let known = Known { digest: Digest::of(b"something else"), size_bytes: TRIED.len() as u64 };
    // Once more after the right one: a store that was just overloaded refuses the wrong one without having looked.
    for _ in 0..2 {
        match of_known(known, put(store, key, PutMode::Overwrite)).await {
            Ok(_) => return Ok(Hashes::Ignored),
            Err(cause) if !is_answer(&cause) => return Err(cause),
            Err(_) => {}
        }
        put(store, key, PutMode::Overwrite).await?;
    }
    Ok(Hashes::Checked)
}

/// The store said no; it was not the line.
fn is_answer(cause: &Error) -> bool {
    matches!(cause, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
        || cause.to_string().contains("status code")
}

async fn try_conditions(store: &AmazonS3, key: &Path) -> object_store::Result<Conditions> {
    // Should it be refused, there is no bucket or no right to write, and that is what the caller hears.
    let first = match put(store, key, PutMode::Create).await {
        Err(cause) if is_unheard_of(&cause) => {
            put(store, key, PutMode::Overwrite).await?;
            return Ok(Conditions::Ignored);
        }
        first => first?,
    };
    match put(store, key, PutMode::Create).await {
        Err(Error::AlreadyExists { .. }) => {}
        Err(cause) if !is_unheard_of(&cause) => return Err(cause),
        _ => return Ok(Conditions::Ignored),
    }
    let Some(e_tag) = first.e_tag else { return Ok(Conditions::Ignored) };
    let stale = UpdateVersion { e_tag: Some(other_than(&e_tag)), version: None };
    match put(store, key, PutMode::Update(stale)).await {
        Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => Ok(Conditions::Kept),
        Err(cause) if !is_unheard_of(&cause) => Err(cause),
        _ => Ok(Conditions::Ignored),
    }
}

async fn put(store: &AmazonS3, key: &Path, mode: PutMode) -> object_store::Result<object_store::PutResult> {
    store.put_opts(key, PutPayload::from_static(TRIED), mode.into()).await
}

/// What a store answers that does not know conditions at all.
fn is_unheard_of(cause: &Error) -> bool {
    matches!(cause, Error::NotImplemented { .. } | Error::NotSupported { .. })
        || cause.to_string().contains("501 Not Implemented")
}

fn other_than(e_tag: &str) -> String {
    let zeros = "\"00000000000000000000000000000000\"";
    if e_tag == zeros { "\"10000000000000000000000000000000\"".to_owned() } else { zeros.to_owned() }
}
