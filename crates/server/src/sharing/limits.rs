//! The limits at the door for all instances together: each has its own [`Door`](super::door), and where there is Redis what all
//! of them counted is asked for, too.
//!
//! Guarantees: never more than one instance's own limits allow; never more in all, as long as Redis answers. Redis learns no
//! address and no token. Does not do: wait. A Redis that is away or slow is as none.

use std::time::Duration;

use jiff::Timestamp;
use model::Digest;

use super::door::{
    Full, MISSES_IN_TOTAL, MISSES_PER_ADDRESS, PASSWORDS_PER_ADDRESS, PASSWORDS_PER_LINK, VISITS_PER_LINK,
    WINDOW, origin,
};
use crate::app::App;

/// Somebody came with a token that opens nothing.
pub(super) async fn miss(app: &App, from: &str, now: Timestamp) -> Result<(), Full> {
    app.door.miss(from, now)?;
    at_most(app, &format!("miss:{}", place(from)), MISSES_PER_ADDRESS).await?;
    at_most(app, "miss", MISSES_IN_TOTAL).await
}

/// Somebody is about to try a password.
pub(super) async fn try_password(app: &App, share: u64, (from, now): (&str, Timestamp)) -> Result<(), Full> {
    app.door.try_password(share, from, now)?;
    let [here, everywhere] = passwords(share, from);
    at_most(app, &here, PASSWORDS_PER_ADDRESS).await?;
    at_most(app, &everywhere, PASSWORDS_PER_LINK).await
}

/// It was the right one, and does not count.
pub(super) async fn right_password(app: &App, share: u64, (from, now): (&str, Timestamp)) {
    app.door.right_password(share, from, now);
    if app.config.signals.is_some() {
        for counted in passwords(share, from) {
            app.signals.uncount(&counted).await;
        }
    }
}

/// Somebody is about to use a link.
pub(super) async fn use_link(app: &App, share: u64, now: Timestamp) -> Result<(), Full> {
    app.door.use_link(share, now)?;
    at_most(app, &format!("visit:{share}"), VISITS_PER_LINK).await
}

/// Whether this is the first refusal of its kind at a link in this window, and thus worth an entry.
pub(super) async fn is_news(app: &App, share: u64, (why, now): (&'static str, Timestamp)) -> bool {
    app.door.is_news(share, why, now) && at_most(app, &format!("refused:{share}:{why}"), 1).await.is_ok()
}

fn passwords(share: u64, from: &str) -> [String; 2] {
    [format!("password:{share}:{}", place(from)), format!("password:{share}")]
}

/// Where somebody comes from, as nobody can read it.
fn place(from: &str) -> String {
    Digest::of(format!("{:?}", origin(from)).as_bytes()).short(16).to_owned()
}

async fn at_most(app: &App, what: &str, most: u32) -> Result<(), Full> {
    if app.config.signals.is_none() {
        return Ok(());
    }
    let window = Duration::try_from(WINDOW).unwrap_or_default();
    if app.signals.count(what, window).await <= u64::from(most) {
        return Ok(());
    }
    Err(Full { seconds: u32::try_from(window.as_secs()).unwrap_or(u32::MAX) })
}
