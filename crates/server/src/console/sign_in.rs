//! From a token of the host application to a cookie of our pages. API tokens are for programs and open no page.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Deserialize;

use crate::app::App;
use crate::callers::host_caller;
use crate::http::PageTokens;

/// A working day.
const COOKIE_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

#[derive(Debug, Deserialize)]
pub(super) struct SignIn {
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Please;

/// Exchanges a token for a cookie.
pub(super) async fn sign_in(State(app): State<Arc<App>>, Query(query): Query<SignIn>) -> Response {
    let now = app.now();
    let Some(caller) = host_caller(&app, &query.token).await else { return please() };
    let is_https = app.config.server.public_url.scheme() == "https";
    let cookie = PageTokens::new(&app.config).cookie(&caller, now, (COOKIE_LIFE, is_https));
    let mut response = Redirect::to(&local(&query.next)).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
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

/// The page of somebody who is not signed in.
pub(super) fn please() -> Response {
    let page = super::pages::render(&Please);
    match page {
        Ok(page) => (StatusCode::UNAUTHORIZED, page).into_response(),
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
}
