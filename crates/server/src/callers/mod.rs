//! Who is calling: from the text behind `Bearer` to a caller.
//!
//! Two kinds of tokens count. The host application signs JWTs for its users: with a secret shared with us (HS256) or with a
//! private key whose public half it publishes as a JWKS ([`host_keys`], kept fresh by [`refreshing`]). And programs carry API
//! tokens that Saveguard made ([`api_tokens`]).
//!
//! Guarantees: what a token says of itself never chooses how it is verified; a revoked API token counts for nothing from the
//! next request on; trouble with the ledger is told as such and never as a wrong token.
//! Does not do: decide what a caller may do (`model::access`), read requests (`http::caller`).

mod api_tokens;
mod claims;
mod host_keys;
mod provider;
mod refreshing;

#[cfg(test)]
mod tests;

use ledger::LedgerError;
use model::access::Caller;

pub(crate) use api_tokens::{Wish, check, issue, still_counts};
pub(crate) use claims::{Checks, sign};
pub(crate) use host_keys::{HostKeys, verify_with_secrets};
pub(crate) use provider::{Redemption, doors, redeem};
pub(crate) use refreshing::{follow, refresh};

use crate::app::App;
use host_keys::Verdict;

/// The caller of a bearer token of either kind; `None` if it does not count.
pub(crate) async fn bearer(app: &App, token: &str) -> Result<Option<Caller>, LedgerError> {
    if api_tokens::is_one(token) {
        api_tokens::bearer(app, token).await
    } else {
        Ok(host_caller(app, token).await)
    }
}

/// The caller of a token of the host application.
pub(crate) async fn host_caller(app: &App, token: &str) -> Option<Caller> {
    let verdict = match app.host_keys.verify(token, app.now()) {
        // The host application may have begun to sign with a new key.
        Verdict::UnknownKey if refreshing::refreshed(app).await => app.host_keys.verify(token, app.now()),
        verdict => verdict,
    };
    match verdict {
        Verdict::Counts(caller) => Some(caller),
        Verdict::UnknownKey | Verdict::Refused => None,
    }
}
