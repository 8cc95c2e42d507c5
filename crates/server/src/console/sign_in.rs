//! From a token to a cookie of our pages, and out again.
//!
//! A host application sends people here with its JWT; whoever has a token of either kind can also put it into the form. The cookie
//! is signed, `HttpOnly` and `SameSite`, and `Secure` behind https.
//!
//! Guarantees: a form counts only if it comes from our own page or from an allowed origin, so that nobody is signed in as somebody
//! else without noticing; whoever goes on afterwards stays on our pages; a cookie made of an API token is worth nothing from the
//! moment the token is revoked (`http::caller`). Does not do: passwords; OpenID Connect (`provider`).

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use model::access::Caller;
use serde::Deserialize;

use super::page::{Page, Visitor, render};
use super::texts::{self, Language};
use crate::app::App;
use crate::callers;
use crate::http::{PageTokens, Problem, comes_from_our_pages};

/// A working day.
const COOKIE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// A year.
const LANGUAGE_LIFE_SECONDS: u32 = 365 * 24 * 60 * 60;

#[derive(Debug, Default, Deserialize)]
pub(super) struct SignIn {
    #[serde(default)]
    token: String,
    #[serde(default)]
    pub(super) next: String,
}

impl SignIn {
    /// Out of a form.
    fn of_form(body: &[u8]) -> Self {
        let mut wish = Self::default();
        for (name, value) in url::form_urlencoded::parse(body) {
            match name.as_ref() {
                "token" => wish.token = value.trim().to_owned(),
                "next" => wish.next = value.into_owned(),
                _ => {}
            }
        }
        wish
    }
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Door {
    page: Page,
    next: String,
    has_provider: bool,
    was_refused: bool,
}

impl Door {
    fn next_encoded(&self) -> String {
        url::form_urlencoded::byte_serialize(self.next.as_bytes()).collect()
    }
}

/// The door; with a token in the link, straight through it.
pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(query): Query<SignIn>,
) -> Response {
    if query.token.is_empty() {
        return door(&app, &headers, (&query.next, StatusCode::OK));
    }
    // Links come from host applications, whose people have JWTs. API tokens never stand in links.
    match callers::host_caller(&app, &query.token).await {
        Some(caller) => entered(&app, &caller, &query.next),
        None => door(&app, &headers, (&query.next, StatusCode::UNAUTHORIZED)),
    }
}

/// The form of the door.
pub(super) async fn enter(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Response {
    let wish = SignIn::of_form(&body);
    if !comes_from_our_pages(&app.config, &headers) && !comes_from_a_host(&app, &headers) {
        return door(&app, &headers, (&wish.next, StatusCode::FORBIDDEN));
    }
    match callers::bearer(&app, &wish.token).await {
        Ok(Some(caller)) => entered(&app, &caller, &wish.next),
        Ok(None) => door(&app, &headers, (&wish.next, StatusCode::UNAUTHORIZED)),
        Err(cause) => Problem::from(cause).into_response(),
    }
}

/// Out; only from our own pages, as the visitor says.
pub(super) async fn leave(State(app): State<Arc<App>>, _visitor: Visitor) -> Response {
    let response = Redirect::to("/sign-in").into_response();
    with_cookie(response, &PageTokens::no_cookie(is_https(&app)))
}

/// The switch of languages. A preference, so a link may set it.
pub(super) async fn language(Path(code): Path<String>, Query(query): Query<SignIn>) -> Response {
    let response = Redirect::to(&local(&query.next)).into_response();
    let Some(language) = Language::parse(&code) else { return response };
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={LANGUAGE_LIFE_SECONDS}",
        texts::COOKIE,
        language.code()
    );
    with_cookie(response, &cookie)
}

fn comes_from_a_host(app: &App, headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|value| value.to_str().ok());
    origin.is_some_and(|origin| app.config.server.allowed_origins.iter().any(|allowed| allowed == origin))
}

pub(super) fn is_https(app: &App) -> bool {
    app.config.server.public_url.scheme() == "https"
}

pub(super) fn entered(app: &App, caller: &Caller, next: &str) -> Response {
    let cookie = PageTokens::new(&app.config).cookie(caller, app.now(), (COOKIE_LIFE, is_https(app)));
    with_cookie(Redirect::to(&local(next)).into_response(), &cookie)
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Only paths of ours are gone to.
fn local(next: &str) -> String {
    let is_ours = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        && !next.chars().any(char::is_control);
    if is_ours { next.to_owned() } else { "/".to_owned() }
}

/// The door, after what happened at it.
pub(super) fn door(app: &App, headers: &HeaderMap, (next, status): (&str, StatusCode)) -> Response {
    let next = local(next);
    let encoded: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    let page = Page::of_nobody(Language::of(headers), format!("/sign-in?next={encoded}"));
    let has_provider = app.config.api.provider.is_some();
    show(&Door { page, next, has_provider, was_refused: status != StatusCode::OK }, status)
}

/// The door instead of a page that only those who are signed in see.
pub(super) fn please(app: &App, language: Language, here: &str) -> Response {
    let next = local(here);
    let page = Page::of_nobody(language, next.clone());
    let has_provider = app.config.api.provider.is_some();
    show(&Door { page, next, has_provider, was_refused: false }, StatusCode::UNAUTHORIZED)
}

fn show(door: &Door, status: StatusCode) -> Response {
    match render(door) {
        Ok(mut response) => {
            *response.status_mut() = status;
            response
        }
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_paths_are_gone_to() {
        assert_eq!(local("/edit/12345"), "/edit/12345");
        for foreign in ["", "https://evil", "//evil", "/\\evil", "javascript:1", "/a\nb"] {
            assert_eq!(local(foreign), "/", "{foreign:?}");
        }
    }

    #[test]
    fn a_form_gives_token_and_place() {
        let wish = SignIn::of_form(b"token=+a.b.c%0A&next=%2Fedit%2F1&other=x");

        assert_eq!((wish.token.as_str(), wish.next.as_str()), ("a.b.c", "/edit/1"));
    }
}
