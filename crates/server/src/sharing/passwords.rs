//! Passwords of share links: people choose them, so they are hashed slowly (Argon2id with its recommended cost).
//!
//! Guarantees: away from the threads that serve requests, a few at a time; who does not get a turn soon is told so.
//! Does not do: count attempts ([`Door`](super::Door) does).

use std::sync::Arc;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use ledger::LedgerError;

use super::ShareError;
use crate::app::App;

/// Each needs 19 MiB and a core for some ten milliseconds.
pub(super) const PARALLEL_MAX: usize = 2;
/// How long somebody waits for their turn.
const TURN_MAX: Duration = Duration::from_secs(10);
/// Longest password, in bytes: more is no password but work for us.
pub(super) const BYTES_MAX: usize = 256;

/// The form in which a password is kept.
pub(super) async fn hash(app: &App, password: String) -> Result<String, ShareError> {
    let salt: Vec<u8> = (0..2).flat_map(|_| app.random.bits().to_be_bytes()).collect();
    let hashed = aside(app, move || {
        let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt).ok()?;
        Some(hash.to_string())
    });
    hashed.await?.ok_or_else(|| ShareError::Invalid("The password cannot be used.".to_owned()))
}

/// Whether a password is the one that was kept.
pub(super) async fn is_right(app: &App, password: &str, kept: &str) -> Result<bool, ShareError> {
    let (password, kept) = (password.to_owned(), kept.to_owned());
    let verified = aside(app, move || {
        let kept = PasswordHash::new(&kept).ok()?;
        Some(Argon2::default().verify_password(password.as_bytes(), &kept).is_ok())
    });
    // A hash that cannot be read is no reason to let somebody in, nor to call their password wrong.
    verified.await?.ok_or_else(|| LedgerError::damaged("the hash of a share link's password").into())
}

async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ShareError> {
    let turn = Arc::clone(&app.door.hashing).acquire_owned();
    let turn = tokio::time::timeout(TURN_MAX, turn).await;
    let turn = turn.ok().and_then(Result::ok).ok_or(ShareError::Busy)?;
    let hashed = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    hashed.await.map_err(|_| ShareError::Busy)
}
