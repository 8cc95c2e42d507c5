//! Guests: from a token to a name and a seat.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ledger::documents::Document;
use ledger::shares::{Guest, GuestSession, RefusedVisit, Share, Visit};
use model::EditorKey;
use model::operations::{Audience, Operation, rule_on_operation};
use model::sharing::DownloadSwitch;

use super::door::Full;
use super::links::hash_of;
use super::{ShareError, limits, passwords};
use crate::app::App;
use crate::telemetry::{self, report};

/// The Document Server takes a configuration this much longer than it says.
const CONFIGURATION_GRACE: Duration = Duration::from_secs(60);

/// A link that counts, and what it opens.
#[derive(Debug, Clone)]
pub(crate) struct Visited {
    pub(crate) share: Share,
    pub(crate) document: Document,
}

impl From<Full> for ShareError {
    fn from(full: Full) -> Self {
        Self::TooMany { seconds: full.seconds }
    }
}

/// Finds the link of a token. Whatever does not count is a miss, and all misses look alike.
pub(crate) async fn visit(app: &Arc<App>, token: &str, from: &str) -> Result<Visited, ShareError> {
    let now = app.now();
    let found = app.ledger.share_by_hash(&hash_of(token)).await?;
    let share = match found {
        Some(share) if share.counts_at(now) => share,
        Some(ended) => return Err(miss(app, Some(&ended), (from, now)).await),
        None => return Err(miss(app, None, (from, now)).await),
    };
    match app.ledger.document(&share.document).await? {
        Some(document) if document.deleted_at.is_none() => Ok(Visited { share, document }),
        _ => Err(miss(app, None, (from, now)).await),
    }
}

async fn miss(app: &Arc<App>, ended: Option<&Share>, (from, now): (&str, Timestamp)) -> ShareError {
    if let Some(share) = ended {
        let why = if share.revoked_at.is_some() { "revoked" } else { "expired" };
        tell(app, share.number, why, (from, now));
    }
    match limits::miss(app, from, now).await {
        Ok(()) => ShareError::NotFound,
        Err(full) => {
            if limits::is_news(app, 0, ("guessing", now)).await {
                telemetry::alert("share-guessing");
                tracing::warn!("somebody tries many share links that do not exist");
            }
            full.into()
        }
    }
}

/// Checks the password, counts the use and gives it a guest.
pub(crate) async fn admit(
    app: &Arc<App>,
    visited: &Visited,
    (said_name, password): (Option<String>, Option<&str>),
    from: &str,
) -> Result<Guest, ShareError> {
    let share = &visited.share;
    if let Some(kept) = &share.password {
        check_password(app, (share.number, kept), password, from).await?;
    }
    let at = app.now();
    limits::use_link(app, share.number, at).await?;
    let visit = Visit { share: share.number, said_name, from: from.to_owned(), at };
    app.ledger.admit_guest(&visit).await?.ok_or(ShareError::NotFound)
}

async fn check_password(
    app: &Arc<App>,
    (share, kept): (u64, &str),
    password: Option<&str>,
    from: &str,
) -> Result<(), ShareError> {
    let now = app.now();
    let password = password.filter(|password| !password.is_empty() && password.len() <= passwords::BYTES_MAX);
    let Some(password) = password else { return Err(ShareError::Password) };
    if let Err(full) = limits::try_password(app, share, (from, now)).await {
        tell(app, share, "too-many-passwords", (from, now));
        return Err(full.into());
    }
    if passwords::is_right(app, password, kept).await? {
        limits::right_password(app, share, (from, now)).await;
        return Ok(());
    }
    tell(app, share, "wrong-password", (from, now));
    Err(ShareError::Password)
}

/// A guest who was admitted before and comes back, as a page does when it asks for a fresh configuration.
pub(crate) async fn returning(
    app: &App,
    visited: &Visited,
    number: Option<u64>,
) -> Result<Option<Guest>, ShareError> {
    match number {
        Some(number) => Ok(app.ledger.guest(visited.share.number, number).await?),
        None => Ok(None),
    }
}

/// Writes down which key a guest is about to be given. If the link was revoked meanwhile they do not get it.
pub(crate) async fn seat(app: &App, guest: &Guest, key: &EditorKey) -> Result<(), ShareError> {
    let at = app.now();
    let life = app.config.opening.config_token + CONFIGURATION_GRACE;
    let life = SignedDuration::try_from(life).unwrap_or(SignedDuration::MAX);
    let until = at.checked_add(life).unwrap_or(Timestamp::MAX);
    let session = GuestSession { share: guest.share, guest: guest.number, key: key.clone(), until };
    if app.ledger.seat_guest(&session, at).await? { Ok(()) } else { Err(ShareError::NotFound) }
}

/// Whether guests of a link may take the bytes away.
pub(crate) fn may_take_away(share: &Share) -> Result<(), ShareError> {
    let is_allowed = rule_on_operation(share.allows.role(), Operation::Download, Audience::Link).is_ok();
    if is_allowed && share.download == DownloadSwitch::On { Ok(()) } else { Err(ShareError::NoDownload) }
}

/// Tells the audit trail of a refusal, once per kind and window, beside the request: how long an answer takes says nothing.
fn tell(app: &Arc<App>, share: u64, why: &'static str, (from, at): (&str, Timestamp)) {
    let (app, from) = (Arc::clone(app), from.to_owned());
    tokio::spawn(async move {
        if !limits::is_news(&app, share, (why, at)).await {
            return;
        }
        let refused = RefusedVisit { share, why, from, at };
        if let Err(cause) = app.ledger.note_refused(&refused).await {
            tracing::warn!(share, error = %report(&cause), "a refusal at a share link could not be written down");
        }
    });
}
