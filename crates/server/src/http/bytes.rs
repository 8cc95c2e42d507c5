//! Bytes on their way out: length, ETag, ranges, and headers that keep a browser from running them.

use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ledger::documents::BlobFacts;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio_util::io::ReaderStream;

use super::answer::Problem;
use crate::app::App;
use crate::opening::read;

const CHUNK_BYTES: usize = 64 * 1024;

/// What a range header asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Part(Range<u64>),
    Unsatisfiable,
}

/// Sends a blob, or the part that was asked for.
pub(super) async fn send(
    app: &App,
    request: &HeaderMap,
    blob: &BlobFacts,
    name: &str,
) -> Result<Response, Problem> {
    let etag = format!("\"{}\"", blob.digest);
    if request.get(header::IF_NONE_MATCH).is_some_and(|known| matches(known, &etag)) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), &etag, name));
    }
    let asked = match request.get(header::IF_RANGE) {
        // A part of another content must not be glued to this one.
        Some(condition) if condition.as_bytes() != etag.as_bytes() => Asked::Whole,
        _ => asked(request.get(header::RANGE), blob.size_bytes),
    };
    let (status, range) = match asked {
        Asked::Whole => (StatusCode::OK, None),
        Asked::Part(range) => (StatusCode::PARTIAL_CONTENT, Some(range)),
        Asked::Unsatisfiable => {
            let mut response = StatusCode::RANGE_NOT_SATISFIABLE.into_response();
            set(response.headers_mut(), header::CONTENT_RANGE, &format!("bytes */{}", blob.size_bytes));
            return Ok(with_headers(response, &etag, name));
        }
    };
    let reader = read(app, &blob.digest, range.clone()).await?;
    let body = Body::from_stream(ReaderStream::with_capacity(reader, CHUNK_BYTES));
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    if let Some(range) = &range {
        set(
            headers,
            header::CONTENT_RANGE,
            &format!("bytes {}-{}/{}", range.start, range.end - 1, blob.size_bytes),
        );
    }
    let length = range.map_or(blob.size_bytes, |range| range.end - range.start);
    set(headers, header::CONTENT_LENGTH, &length.to_string());
    set(headers, header::CONTENT_TYPE, content_type(&blob.file_type));
    Ok(with_headers(response, &etag, name))
}

fn matches(known: &HeaderValue, etag: &str) -> bool {
    known.to_str().is_ok_and(|known| {
        known.split(',').any(|each| each.trim().trim_start_matches("W/") == etag || each.trim() == "*")
    })
}

fn with_headers(mut response: Response, etag: &str, name: &str) -> Response {
    let headers = response.headers_mut();
    set(headers, header::ETAG, etag);
    set(headers, header::ACCEPT_RANGES, "bytes");
    set(headers, header::CACHE_CONTROL, "private, no-cache");
    set(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(headers, header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'");
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    set(headers, header::CONTENT_DISPOSITION, &format!("attachment; filename*=UTF-8''{encoded}"));
    response
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// One range is served; anything else is answered with the whole, as the standard allows.
fn asked(range: Option<&HeaderValue>, size_bytes: u64) -> Asked {
    let text = range.and_then(|value| value.to_str().ok()).and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = text.filter(|text| !text.contains(',')).and_then(|text| text.split_once('-'))
    else {
        return Asked::Whole;
    };
    let (first, last) = (first.trim(), last.trim());
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(size_bytes),
        (Ok(first), Err(_)) if last.is_empty() => first..size_bytes,
        (Err(_), Ok(count)) if first.is_empty() => size_bytes.saturating_sub(count)..size_bytes,
        _ => return Asked::Whole,
    };
    if range.start < range.end { Asked::Part(range) } else { Asked::Unsatisfiable }
}

/// What bytes are sent as, by their type.
const CONTENT_TYPES: [(&str, &str); 5] = [
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("pdf", "application/pdf"),
    ("rtf", "application/rtf"),
];
/// Never as HTML: what people upload must not run in our pages.
const OTHER_TYPE: &str = "application/octet-stream";

fn content_type(file_type: &str) -> &'static str {
    CONTENT_TYPES.iter().find(|(kind, _)| *kind == file_type).map_or(OTHER_TYPE, |(_, content)| content)
}

/// Everything that bytes are sent as.
pub(super) fn content_types() -> impl Iterator<Item = &'static str> {
    CONTENT_TYPES.iter().map(|(_, content)| *content).chain([OTHER_TYPE])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Asked {
        asked(Some(&HeaderValue::from_str(text).unwrap()), 1000)
    }

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        assert_eq!(ask("bytes=0-99"), Asked::Part(0..100));
        assert_eq!(ask("bytes=990-"), Asked::Part(990..1000));
        assert_eq!(ask("bytes=-10"), Asked::Part(990..1000));
        assert_eq!(ask("bytes=500-5000"), Asked::Part(500..1000));
        assert_eq!(ask("bytes=0-18446744073709551615"), Asked::Part(0..1000));
        assert_eq!(ask("bytes=1000-"), Asked::Unsatisfiable);
        assert_eq!(ask("bytes=-0"), Asked::Unsatisfiable);
        for strange in ["bytes=0-1,5-6", "bytes=5-2", "lines=1-2", "bytes=a-b", "bytes=-", "bytes"] {
            assert_eq!(ask(strange), Asked::Whole, "{strange}");
        }
        assert_eq!(asked(None, 1000), Asked::Whole);
    }
}
