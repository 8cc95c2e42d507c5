//! Signing in with OpenID Connect: the code flow with PKCE.
//!
//! 1. *Begin*: random state, nonce and verifier go into a signed cookie of ten minutes; the browser goes to the provider.
//! 2. *Come back*: the state must be the cookie's; the code is exchanged with the verifier; the ID token must count like any token of
//!    the host application (signature by a published key, issuer, audience, time, role) and carry the nonce. Then it becomes a
//!    cookie of the pages.
//!
//! Guarantees: a code that was not asked for by this very browser opens nothing; each attempt counts once, for its cookie is taken away.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::cookies;
use super::sign_in::{SignIn, door, entered, is_https};
use crate::app::App;
use crate::callers::{Redemption, doors, host_caller, redeem};
use crate::config::Provider;
use crate::http::Problem;
use crate::opening::derive;

const COOKIE: &str = "saveguard_sign_in";
const PURPOSE: &str = "sign-in";
/// Somebody may have to look for a second factor.
const LIFE_SECONDS: i64 = 600;

/// An attempt to sign in.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    state: String,
    nonce: String,
    verifier: String,
    next: String,
    until: i64,
}

/// What the provider sends people back with.
#[derive(Debug, Deserialize)]
pub(super) struct Returned {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
}

/// To the provider.
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(query): Query<SignIn>,
) -> Response {
    let Some(provider) = &app.config.api.provider else { return Problem::not_found().into_response() };
    let doors = match doors(provider).await {
        Ok(doors) => doors,
        Err(why) => {
            tracing::warn!(why, "the identity provider could not be asked");
            return door(&app, &headers, (&query.next, StatusCode::SERVICE_UNAVAILABLE));
        }
    };
    let begun = Begun {
        state: random(&app),
        nonce: random(&app),
        verifier: random(&app),
        next: query.next,
        until: app.now().as_second() + LIFE_SECONDS,
    };
    let mut address = doors.authorization;
    address
        .query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &provider.client_id)
        .append_pair("redirect_uri", &redirect_uri(&app))
        .append_pair("scope", "openid profile")
        .append_pair("state", &begun.state)
        .append_pair("nonce", &begun.nonce)
        .append_pair("code_challenge", &URL_SAFE_NO_PAD.encode(Sha256::digest(begun.verifier.as_bytes())))
        .append_pair("code_challenge_method", "S256");
    let mut response = Redirect::to(address.as_str()).into_response();
    add_cookie(&mut response, &cookie(&app, &seal(&app, &begun), LIFE_SECONDS));
    response
}

/// Back from the provider.
pub(super) async fn come_back(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(returned): Query<Returned>,
) -> Response {
    let Some(provider) = &app.config.api.provider else { return Problem::not_found().into_response() };
    let begun = cookies::value(&headers, COOKIE).and_then(|sealed| unseal(&app, sealed));
    let begun = begun.filter(|begun| begun.state == returned.state && app.now().as_second() < begun.until);
    let mut response = match begun {
        Some(begun) => match finish(&app, provider, (&begun, &returned.code)).await {
            Some(caller) => entered(&app, &caller, &begun.next),
            None => door(&app, &headers, (&begun.next, StatusCode::UNAUTHORIZED)),
        },
        None => door(&app, &headers, ("/", StatusCode::FORBIDDEN)),
    };
    add_cookie(&mut response, &cookie(&app, "", 0));
    response
}

async fn finish(
    app: &App,
    provider: &Provider,
    (begun, code): (&Begun, &str),
) -> Option<model::access::Caller> {
    let redirect_uri = redirect_uri(app);
    let redemption = Redemption { code, verifier: &begun.verifier, redirect_uri: &redirect_uri };
    let redeemed = match doors(provider).await {
        Ok(doors) => redeem(provider, &doors, &redemption).await,
        Err(why) => Err(why),
    };
    let token = match redeemed {
        Ok(token) => token,
        Err(why) => {
            tracing::warn!(why, "the identity provider did not give a token for its code");
            return None;
        }
    };
    // Verified first; what it says counts only then.
    let caller = host_caller(app, &token).await?;
    (nonce_of(&token)? == begun.nonce).then_some(caller)
}

/// The nonce of a token that was verified.
fn nonce_of(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    claims["nonce"].as_str().map(str::to_owned)
}

fn redirect_uri(app: &App) -> String {
    format!("{}/sign-in/return", app.config.server.public_url.as_str().trim_end_matches('/'))
}

/// 256 bits as text.
fn random(app: &App) -> String {
    let bytes: Vec<u8> = (0..4).flat_map(|_| app.random.bits().to_be_bytes()).collect();
    URL_SAFE_NO_PAD.encode(bytes)
}

fn mac(app: &App) -> Option<Hmac<Sha256>> {
    Hmac::new_from_slice(&derive(app.config.api.secrets.current.as_bytes(), PURPOSE)).ok()
}

fn seal(app: &App, begun: &Begun) -> String {
    let text = serde_json::to_vec(begun).unwrap_or_default();
    let Some(mut mac) = mac(app) else { return String::new() };
    mac.update(&text);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

fn unseal(app: &App, sealed: &str) -> Option<Begun> {
    let (text, seal) = sealed.split_once('.')?;
    let (text, seal) = (URL_SAFE_NO_PAD.decode(text).ok()?, URL_SAFE_NO_PAD.decode(seal).ok()?);
    let mut mac = mac(app)?;
    mac.update(&text);
    mac.verify_slice(&seal).ok()?;
    serde_json::from_slice(&text).ok()
}

fn cookie(app: &App, value: &str, seconds: i64) -> String {
    let secure = if is_https(app) { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path=/sign-in; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

fn add_cookie(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}
