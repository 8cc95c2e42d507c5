//! What every page has: who looks at it, in which language, where they are; and the page of trouble.
//!
//! Guarantees: a page is seen by whom the API would show the same things to, for it asks the same [`Session`]; nobody who is not
//! signed in sees more than the door; pages are not kept by anybody's cache.

use std::sync::Arc;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::response::{Html, IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use model::access::{Caller, Companies, Organisations, Permission, may_operate};

use super::sign_in;
use super::texts::Language;
use crate::app::App;
use crate::http::{Problem, Session};

/// Somebody who is signed in, looking at a page.
pub(super) struct Visitor {
    pub(super) session: Session,
    pub(super) language: Language,
    pub(super) here: String,
}

impl Visitor {
    /// What the frame around a page needs.
    pub(super) fn page(&self, section: &'static str) -> Page {
        let caller = &self.session.0;
        Page {
            language: self.language,
            here: self.here.clone(),
            section,
            user: caller.name.clone(),
            role: caller.role.as_str(),
            sees_submissions: caller.organisations != Organisations::NONE || may_operate(caller),
            operates: may_operate(caller),
            audits: may_audit_something(caller),
        }
    }

    /// A page, or the page of its trouble.
    pub(super) fn answer(&self, result: Result<Response, Problem>) -> Response {
        result.unwrap_or_else(|problem| trouble(self.page(""), problem))
    }
}

impl FromRequestParts<Arc<App>> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let language = Language::of(&parts.headers);
        let here = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        match Session::from_request_parts(parts, app).await {
            Ok(session) => Ok(Self { session, language, here }),
            Err(problem) => {
                let page = Page::of_nobody(language, here.clone());
                Err(match problem.clone().into_response().status() {
                    StatusCode::UNAUTHORIZED => sign_in::please(app, language, &here),
                    _ => trouble(page, problem),
                })
            }
        }
    }
}

/// Whether the page of the audit trail has anything for them: for a company, or for what was handed in.
fn may_audit_something(caller: &Caller) -> bool {
    may_operate(caller)
        || (caller.role.permissions().contains(&Permission::Audit)
            && (caller.companies != Companies::Only(Vec::new())
                || caller.organisations != Organisations::NONE))
}

/// The frame around a page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    language: Language,
    /// The path and query of this page.
    pub(super) here: String,
    /// Which entry of the navigation is the current one.
    pub(super) section: &'static str,
    /// Empty if nobody is signed in.
    pub(super) user: String,
    pub(super) role: &'static str,
    pub(super) sees_submissions: bool,
    pub(super) operates: bool,
    pub(super) audits: bool,
}

impl Page {
    /// A page of somebody who is not signed in.
    pub(super) fn of_nobody(language: Language, here: String) -> Self {
        let user = String::new();
        Self {
            language,
            here,
            section: "",
            user,
            role: "",
            sees_submissions: false,
            operates: false,
            audits: false,
        }
    }

    /// Words.
    pub(super) fn t(&self, key: &str) -> &'static str {
        self.language.text(key)
    }

    /// Words with a value in the place `{}`.
    pub(super) fn with(&self, key: &str, value: &dyn std::fmt::Display) -> String {
        self.t(key).replace("{}", &value.to_string())
    }

    /// Words with a number in the place `{n}`.
    pub(super) fn numbered(&self, key: &str, number: impl std::fmt::Display) -> String {
        self.t(key).replace("{n}", &number.to_string())
    }

    /// The words for one of a closed set; the word itself if there are none.
    pub(super) fn word(&self, group: &str, word: &str) -> String {
        self.language.find(&format!("{group}.{word}")).unwrap_or(word).to_owned()
    }

    /// Every word of a closed set, with its words.
    pub(super) fn group(&self, group: &str) -> Vec<(&'static str, &'static str)> {
        self.language.group(group)
    }

    /// The language of the page.
    pub(super) fn lang(&self) -> &'static str {
        self.language.code()
    }

    /// The other languages: code and name.
    pub(super) fn others(&self) -> Vec<(&'static str, &'static str)> {
        let all = Language::ALL.iter();
        all.filter(|(each, ..)| *each != self.language).map(|(_, code, name)| (*code, *name)).collect()
    }

    /// This page, for the query of a link.
    pub(super) fn here_encoded(&self) -> String {
        url::form_urlencoded::byte_serialize(self.here.as_bytes()).collect()
    }
}

/// A template as a response that no cache keeps.
pub(super) fn render(template: &impl Template) -> Result<Response, Problem> {
    let page = template.render().map_err(|cause| Problem::store(&cause))?;
    let mut response = Html(page).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[derive(Template)]
#[template(path = "trouble.html")]
struct Trouble {
    page: Page,
    title: &'static str,
    words: &'static str,
}

/// A page for people, with the status and the patience of the problem.
pub(super) fn trouble(page: Page, problem: Problem) -> Response {
    let answer = problem.into_response();
    let status = answer.status();
    let (title, words) = match status {
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST => ("trouble.not-found", "trouble.not-found-words"),
        StatusCode::FORBIDDEN => ("trouble.forbidden", "trouble.forbidden-words"),
        _ => ("trouble.not-now", "trouble.not-now-words"),
    };
    let (title, words) = (page.t(title), page.t(words));
    match render(&Trouble { page, title, words }) {
        Ok(mut response) => {
            *response.status_mut() = status;
            if let Some(seconds) = answer.headers().get(header::RETRY_AFTER) {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.clone());
            }
            response
        }
        Err(problem) => problem.into_response(),
    }
}

/// Bytes as people say them; the same in scripts (`page.js`).
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{}.{} MiB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

/// A time for people who have no script; scripts say it shorter.
pub(super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
