//! The page of a share link: asks for a name and, if the link has one, a password, then opens the editor.
//!
//! Guarantees: needs no cookie and sets none; a link that opens nothing gets the same page, whatever the reason, with the status the
//! API answers. Does not do: check passwords; its script asks the API, as any other page of a guest would.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};

use super::page::{Page, render};
use super::texts::Language;
use crate::app::App;
use crate::http::{ClientAddress, Problem, api_url_of};
use crate::sharing::visit;

#[derive(Template)]
#[template(path = "guest.html")]
struct GuestPage {
    page: Page,
    token: String,
    api_url: String,
    /// Empty as long as a password is to be given.
    name: String,
    allows: &'static str,
    needs_password: bool,
    may_download: bool,
}

#[derive(Template)]
#[template(path = "link_gone.html")]
struct LinkGone {
    page: Page,
}

/// The page behind a link.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    address: ClientAddress,
    headers: HeaderMap,
    Path(token): Path<String>,
) -> Response {
    let page = Page::of_nobody(Language::of(&headers), format!("/s/{token}"));
    let page = match visit(&app, &token, &address.0).await {
        Ok(visited) => {
            let needs_password = visited.share.password.is_some();
            render(&GuestPage {
                page,
                token,
                api_url: api_url_of(&app.config),
                name: if needs_password { String::new() } else { visited.document.name.to_string() },
                allows: visited.share.allows.as_str(),
                needs_password,
                may_download: visited.share.download == model::sharing::DownloadSwitch::On,
            })
        }
        Err(refused) => gone(page, Problem::from(refused)),
    };
    let mut response = page.unwrap_or_else(IntoResponse::into_response);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A page for people, with the status and the headers of the problem.
fn gone(page: Page, problem: Problem) -> Result<Response, Problem> {
    let answer = problem.into_response();
    let mut response = (answer.status(), render(&LinkGone { page })?).into_response();
    if let Some(seconds) = answer.headers().get(header::RETRY_AFTER) {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.clone());
    }
    Ok(response)
}
