//! API tokens: made here, shown once, known again by their hash.
//!
//! Guarantees: 256 random bits; only the SHA-256 is kept, so that a copy of the ledger opens nothing; looked up at every
//! request, so that a revocation counts at once. Does not do: say who may make one (`model::access::may_manage`).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ledger::LedgerError;
use ledger::callers::{ApiToken, NewApiToken};
use ledger::documents::Author;
use model::Digest;
use model::access::{Caller, Companies, Organisations, Role};
use model::names::title;

use crate::app::App;
use crate::telemetry::report;

/// Lets people and secret scanners recognise one; a JWT begins with `ey`.
const PREFIX: &str = "sg_";
/// `sg_` and 32 bytes in base64url.
const LENGTH: usize = 46;
/// The last use is known this exactly. Finer would cost a write per request.
const LAST_USED_STEP: SignedDuration = SignedDuration::from_hours(1);
/// A hundred years.
const EXPIRES_DAYS_MAX: u32 = 36_500;

/// A token somebody wants.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) companies: Companies,
    pub(crate) organisations: Organisations,
    pub(crate) expires_days: Option<u32>,
}

/// Refuses what cannot be meant, with words for people.
pub(crate) fn check(wish: &Wish) -> Result<(), String> {
    title(&wish.name).map_err(|refused| refused.to_string())?;
    if wish.expires_days.is_some_and(|days| !(1..=EXPIRES_DAYS_MAX).contains(&days)) {
        return Err(format!("A token expires after 1 to {EXPIRES_DAYS_MAX} days, or never."));
    }
    if wish.companies == Companies::Only(Vec::new()) && wish.organisations == Organisations::NONE {
        return Err("A token needs at least one company or organisation.".to_owned());
    }
    Ok(())
}

/// Makes a token. Its text is in no other place than the answer.
pub(crate) async fn issue(app: &App, wish: Wish, by: Author) -> Result<(String, ApiToken), LedgerError> {
    let text = make(app);
    let at = app.now();
    let new = NewApiToken {
        hash: hash_of(&text),
        name: wish.name.trim().to_owned(),
        role: wish.role,
        companies: wish.companies,
        organisations: wish.organisations,
        expires_at: wish.expires_days.map(|days| after(at, days)),
        by,
        at,
    };
    let token = app.ledger.create_api_token(&new).await?;
    tracing::info!(token = token.number, "API token {} was made", token.number);
    Ok((text, token))
}

fn make(app: &App) -> String {
    let bytes: Vec<u8> = (0..4).flat_map(|_| app.random.bits().to_be_bytes()).collect();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

fn after(at: Timestamp, days: u32) -> Timestamp {
    at.checked_add(SignedDuration::from_hours(i64::from(days) * 24)).unwrap_or(Timestamp::MAX)
}

/// A slow hash protects what can be guessed. Nobody guesses 256 random bits, so a fast one protects them as well, and a
/// request does not have to wait for it.
fn hash_of(token: &str) -> Digest {
    Digest::of(token.as_bytes())
}

/// Whether a bearer token is meant as one of these.
pub(super) fn is_one(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// The bearer of a token; `None` if it does not count. One that is unknown, revoked or expired costs the same one lookup.
pub(super) async fn bearer(app: &App, token: &str) -> Result<Option<Caller>, LedgerError> {
    if token.len() != LENGTH {
        return Ok(None);
    }
    let now = app.now();
    let found = app.ledger.api_token_by_hash(&hash_of(token)).await?;
    let Some(found) = found.filter(|found| found.counts_at(now)) else { return Ok(None) };
    if is_worth_noting(found.last_used_at, now) {
        note_use(app, found.number, now);
    }
    Ok(Some(found.bearer()))
}

/// Whether a caller whose page was opened some time ago may go on: whoever came with an API token only while that token counts.
pub(crate) async fn still_counts(app: &App, caller: &Caller) -> Result<bool, LedgerError> {
    let Some(number) = caller.id.strip_prefix("token:").and_then(|number| number.parse().ok()) else {
        return Ok(true);
    };
    let found = app.ledger.api_token(number).await?;
    Ok(found.is_some_and(|found| found.counts_at(app.now())))
}

fn is_worth_noting(last_used: Option<Timestamp>, now: Timestamp) -> bool {
    last_used.is_none_or(|last_used| now.duration_since(last_used) >= LAST_USED_STEP)
}

/// Beside the request, which neither waits for this nor fails with it.
fn note_use(app: &App, number: u64, now: Timestamp) {
    let ledger = Arc::clone(&app.ledger);
    tokio::spawn(async move {
        if let Err(cause) = ledger.note_api_token_used(number, now).await {
            tracing::warn!(token = number, error = %report(&cause), "the use of an API token could not be noted");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_noted_once_an_hour() {
        let at = |second| Timestamp::from_second(second).unwrap();

        assert!(is_worth_noting(None, at(0)));
        assert!(!is_worth_noting(Some(at(0)), at(3599)));
        assert!(is_worth_noting(Some(at(0)), at(3600)));
        assert!(!is_worth_noting(Some(at(5000)), at(0)), "a clock that went back");
    }

    #[test]
    fn wishes_have_a_name_a_life_and_a_company() {
        let wish = Wish {
            name: "export".to_owned(),
            role: Role::Viewer,
            companies: Companies::All,
            organisations: Organisations::NONE,
            expires_days: Some(1),
        };

        assert_eq!(check(&wish), Ok(()));
        let companies = Companies::Only(Vec::new());
        assert_eq!(check(&Wish { companies, organisations: Organisations::All, ..wish.clone() }), Ok(()));
        for strange in [
            Wish { name: " ".to_owned(), ..wish.clone() },
            Wish { name: "a\nb".to_owned(), ..wish.clone() },
            Wish { name: "x".repeat(201), ..wish.clone() },
            Wish { expires_days: Some(0), ..wish.clone() },
            Wish { expires_days: Some(u32::MAX), ..wish.clone() },
            Wish { companies: Companies::Only(Vec::new()), ..wish.clone() },
        ] {
            assert!(check(&strange).is_err(), "{strange:?}");
        }
    }
}
