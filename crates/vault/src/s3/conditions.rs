//! Whether the store keeps its word on If-None-Match and If-Match, found out by trying.
//!
//! Guarantees: what is tried has a name of its own and is removed again; a store that cannot be reached is not taken for
//! one that ignores conditions.

use std::io;

use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};

/// Whether the store keeps its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conditions {
    Kept,
    Ignored,
}

/// Tries it out under a key that nobody has.
pub(super) async fn find_out(store: &AmazonS3, key: &Path) -> io::Result<Conditions> {
    let tried = try_out(store, key).await;
    let removed = store.delete(key).await;
    let conditions = tried.map_err(io::Error::other)?;
    removed.map_err(io::Error::other)?;
    if conditions == Conditions::Ignored {
        tracing::warn!("this S3 store ignores conditions on puts: every blob will be read back");
    }
    Ok(conditions)
}

async fn try_out(store: &AmazonS3, key: &Path) -> object_store::Result<Conditions> {
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
    store.put_opts(key, PutPayload::from_static(b"saveguard"), mode.into()).await
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
