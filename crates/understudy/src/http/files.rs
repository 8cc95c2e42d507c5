//! Results, forgotten copies and open copies over their signed links.
//!
//! Guarantees: 403 for a forged link, 410 for an expired one, 404 for what is not there; the right type and
//! length. The open copy of a session is served as what our editor edits ([`crate::office::Shape`] in JSON), under
//! the name the real server gives its own form (`Editor.bin`). Faults of the harness strike on results only.
//!
//! Does not serve ranges.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use std::collections::BTreeMap;

use super::{Shared, Site};
use crate::clock::Clock;
use crate::links::{Claim, LinkTrouble};
use crate::machine::{Content, Machine};
use crate::office;
use crate::server::{FaultKind, Point, damaged};

/// Pieces in which a slow body comes.
const PIECES: usize = 20;

const BREATH: std::time::Duration = std::time::Duration::from_millis(5);

pub(super) async fn serve(
    State(site): Shared,
    uri: Uri,
    Path((area, folder, file, name)): Path<(String, String, String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    let parameter = |name: &str| query.get(name).map(String::as_str);
    let claim = Claim { path: uri.path(), md5: parameter("md5"), expires: parameter("expires") };
    match site.links.check(&claim, site.now_s()) {
        Ok(()) => {}
        Err(LinkTrouble::Forged) => return StatusCode::FORBIDDEN.into_response(),
        Err(LinkTrouble::Expired) => return StatusCode::GONE.into_response(),
    }
    let up_ms = site.settings.clock.now_ms().saturating_sub(site.started_ms);
    if file != name || up_ms < site.settings.serve_files_after_ms {
        return StatusCode::NOT_FOUND.into_response();
    }
    let wanted = (area.clone(), folder.clone(), file.clone());
    let found = site.desk.look(move |machine| find(machine, &wanted)).await.ok().flatten();
    let Some((key, content)) = found else { return StatusCode::NOT_FOUND.into_response() };
    if area == "data" && file == "Editor.bin" {
        return editable(content).await;
    }
    // The record of changes is no result: a fault that is meant for the result must not be used up on it.
    let is_record = area == "data" && file == "changes.zip";
    let faults = if is_record { Vec::new() } else { site.faults.strike(Point::Download, &key, None) };
    respond(&site, content.bytes, &content.ext, &faults)
}

/// The file a link names, and the key it belongs to.
fn find(machine: &Machine, (area, folder, file): &(String, String, String)) -> Option<(String, Content)> {
    let durable = machine.durable();
    match (area.as_str(), file.as_str()) {
        ("forgotten", _) => Some((folder.clone(), durable.forgotten(folder)?.clone())),
        ("data", name) if name == "Editor.bin" || name.starts_with("origin.") => {
            let base = durable.record(folder)?.base.as_ref()?;
            Some((folder.clone(), base.content.clone()))
        }
        ("data", file) => {
            let saved = durable.saved(folder)?;
            let content = match file {
                "changes.zip" => saved.changes_zip.as_ref()?,
                "formsdata.json" => saved.forms.as_ref()?,
                _ => saved.file.as_ref()?,
            };
            Some((saved.key.clone(), content.clone()))
        }
        _ => None,
    }
}

async fn editable(content: Content) -> Response {
    let shape = tokio::task::spawn_blocking(move || office::shape_of(&content.bytes, &content.ext)).await;
    match shape {
        Ok(shape) => axum::Json(shape).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn respond(site: &Site, bytes: Bytes, ext: &str, faults: &[FaultKind]) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(media_type(ext)));
    headers.insert(CONTENT_DISPOSITION, axum::http::HeaderValue::from_static("attachment"));
    let length = |length: u64| [(CONTENT_LENGTH, length.to_string())];
    let size = bytes.len();
    let Some(fault) = faults.first() else {
        return (headers, bytes).into_response();
    };
    match fault {
        FaultKind::BodySlow { over_ms } => {
            (headers, length(size as u64), slowly(&site.settings.clock, bytes, *over_ms)).into_response()
        }
        FaultKind::BodyStuck => {
            (headers, length(size as u64), stuck(bytes.slice(..size / 2))).into_response()
        }
        FaultKind::BodyCut { percent } => {
            let kept = size * usize::from((*percent).min(100)) / 100;
            (headers, whole(bytes.slice(..kept))).into_response()
        }
        FaultKind::LengthTooLong { by_bytes } => {
            (headers, length(size as u64 + by_bytes), whole(bytes)).into_response()
        }
        FaultKind::LengthTooShort => (headers, length(size as u64 / 2), whole(bytes)).into_response(),
        FaultKind::BodyEmpty => (headers, Bytes::new()).into_response(),
        FaultKind::BodyHtml => {
            let page = "<!DOCTYPE html><title>502 Bad Gateway</title><h1>502 Bad Gateway</h1>";
            ([(CONTENT_TYPE, "text/html")], page).into_response()
        }
        FaultKind::BodyElsewhere { to } => (StatusCode::FOUND, [(LOCATION, to.clone())]).into_response(),
        FaultKind::BodyStatus { status } => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response()
        }
        FaultKind::BodyDamaged => (headers, damaged(&bytes)).into_response(),
        _ => (headers, bytes).into_response(),
    }
}

/// A body without a length of its own. It takes a breath before it ends, so that what was written gets out even
/// if the end turns out to be wrong.
fn whole(bytes: Bytes) -> Body {
    Body::from_stream(stream::unfold(Some(bytes), |bytes| async {
        match bytes {
            Some(bytes) => Some((Ok::<_, Infallible>(bytes), None)),
            None => {
                tokio::time::sleep(BREATH).await;
                None
            }
        }
    }))
}

fn stuck(bytes: Bytes) -> Body {
    use futures_util::StreamExt;
    Body::from_stream(stream::iter([Ok::<_, Infallible>(bytes)]).chain(stream::pending()))
}

fn slowly(clock: &Clock, bytes: Bytes, over_ms: u64) -> Body {
    let step = bytes.len().div_ceil(PIECES).max(1);
    let wait_ms = over_ms / PIECES as u64;
    let pieces = stream::unfold((clock.clone(), bytes), move |(clock, mut rest)| async move {
        if rest.is_empty() {
            return None;
        }
        drop(clock.sleep(wait_ms).await);
        let piece = rest.split_to(step.min(rest.len()));
        Some((Ok::<_, Infallible>(piece), (clock, rest)))
    });
    Body::from_stream(pieces)
}

fn media_type(ext: &str) -> &'static str {
    match ext {
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "odt" => "application/vnd.oasis.opendocument.text",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        "csv" => "text/csv",
        "json" => "application/json",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}
