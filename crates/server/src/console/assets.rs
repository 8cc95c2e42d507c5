//! Styles, scripts and pictures, embedded in the binary.
//!
//! Guarantees: nothing comes from another place than this program; a browser that has a file is told so by its hash. They say
//! nothing about anybody's documents, so they need no token.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use model::Digest;

use super::texts::Language;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Every file with its type.
const FILES: [(&str, &str, &str); 16] = [
    ("console.css", CSS, include_str!("../../assets/console.css")),
    ("icon.svg", SVG, include_str!("../../assets/icon.svg")),
    ("page.js", SCRIPT, include_str!("../../assets/page.js")),
    ("live.js", SCRIPT, include_str!("../../assets/live.js")),
    ("documents.js", SCRIPT, include_str!("../../assets/documents.js")),
    ("document.js", SCRIPT, include_str!("../../assets/document.js")),
    ("share.js", SCRIPT, include_str!("../../assets/share.js")),
    ("editor.js", SCRIPT, include_str!("../../assets/editor.js")),
    ("guest.js", SCRIPT, include_str!("../../assets/guest.js")),
    ("registrations.js", SCRIPT, include_str!("../../assets/registrations.js")),
    ("registration.js", SCRIPT, include_str!("../../assets/registration.js")),
    ("log.js", SCRIPT, include_str!("../../assets/log.js")),
    ("records.js", SCRIPT, include_str!("../../assets/records.js")),
    ("operations.js", SCRIPT, include_str!("../../assets/operations.js")),
    ("charts.js", SCRIPT, include_str!("../../assets/charts.js")),
    ("audit.js", SCRIPT, include_str!("../../assets/audit.js")),
];

/// What host pages load.
const CLIENT: [(&str, &str, &str); 2] = [
    ("saveguard.js", SCRIPT, include_str!("../../assets/client/saveguard.js")),
    ("saveguard.d.ts", TEXT, include_str!("../../assets/client/saveguard.d.ts")),
];

/// A file of the pages.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let texts = name.strip_prefix("texts-").and_then(|rest| rest.strip_suffix(".js"));
    match texts.and_then(Language::parse) {
        Some(language) => send(&headers, SCRIPT, &language.module()),
        None => find(&FILES, &name, &headers),
    }
}

/// A file for host pages.
pub(super) async fn client(Path(name): Path<String>, headers: HeaderMap) -> Response {
    find(&CLIENT, &name, &headers)
}

fn find(files: &[(&str, &'static str, &str)], name: &str, headers: &HeaderMap) -> Response {
    match files.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, text)) => send(headers, kind, text),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn send(headers: &HeaderMap, kind: &'static str, text: &str) -> Response {
    let tag = format!("\"{}\"", Digest::of(text.as_bytes()).short(16));
    // Compressed on its way, it came under the same tag, marked as weak.
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let is_known = known.is_some_and(|known| known.strip_prefix("W/").unwrap_or(known) == tag);
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], text.to_owned()).into_response()
    };
    let given = response.headers_mut();
    given.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        given.insert(header::ETAG, tag);
    }
    response
}
