//! Pages, styles, scripts and answers of the API leave compressed, if the browser can read that.
//!
//! Guarantees: only texts of known length are compressed; streams, downloads and events pass as they are. No page holds a secret beside what
//! somebody else could put into its address, so lengths tell nothing that must not be told.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Below this, a packet is a packet.
const WORTHWHILE_BYTES: u64 = 1024;
/// Above this, somebody takes data away; it should not keep a thread from others.
const COMPRESSED_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Most of the gain for little of the time.
const LEVEL: u32 = 4;
const TEXTS: [&str; 5] =
    ["text/html", "text/css", "text/javascript", "application/json", "application/problem+json"];

pub(super) async fn compress(request: Request, next: Next) -> Response {
    let is_wanted = request.method() != Method::HEAD && accepts(request.headers());
    let mut response = next.run(request).await;
    if !is_text(response.headers()) {
        return response;
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let length = response.body().size_hint().exact();
    if !is_wanted || !length.is_some_and(|bytes| (WORTHWHILE_BYTES..=COMPRESSED_BYTES_MAX).contains(&bytes)) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        // Never a success without its text.
        parts.status = StatusCode::INTERNAL_SERVER_ERROR;
        return Response::from_parts(parts, Body::empty());
    };
    let Some(small) = compressed(&bytes) else { return Response::from_parts(parts, Body::from(bytes)) };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.remove(header::CONTENT_LENGTH);
    weaken(&mut parts.headers);
    Response::from_parts(parts, Body::from(small))
}

/// The same text in other bytes: a strong tag would promise the same bytes.
fn weaken(headers: &mut HeaderMap) {
    let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).filter(|tag| tag.starts_with('"'));
    if let Some(Ok(weak)) = tag.map(|tag| HeaderValue::from_str(&format!("W/{tag}"))) {
        headers.insert(header::ETAG, weak);
    }
}

/// Whether `gzip` is among what a client reads, and not refused.
fn accepts(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|each| {
        let (name, weight) = each.split_once(';').unwrap_or((each, ""));
        name.trim().eq_ignore_ascii_case("gzip")
            && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    TEXTS.contains(&kind)
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_DISPOSITION)
}

fn compressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(LEVEL));
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_used_if_it_is_asked_for() {
        let asks = |words: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, words.parse().unwrap());
            accepts(&headers)
        };

        assert!(asks("gzip, deflate, br") && asks("br;q=1.0, GZIP;q=0.5"));
        assert!(!asks("") && !asks("identity") && !asks("gzip;q=0, br") && !asks("xgzip"));
    }

    #[test]
    fn only_texts_that_are_no_downloads_are_compressed() {
        let of = |pairs: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
            }
            is_text(&headers)
        };

        assert!(
            of(&[("content-type", "text/html; charset=utf-8")])
                && of(&[("content-type", "application/json")])
        );
        assert!(!of(&[]) && !of(&[("content-type", "text/event-stream")]));
        assert!(!of(&[("content-type", "application/jsonl")]));
        assert!(!of(&[("content-type", "application/json"), ("content-disposition", "attachment")]));
    }
}
