//! Pages of other origins: which may call us from a browser.
//!
//! Guarantees: only configured origins, none by default; only the interface and the client module, never our own pages or
//! what belongs to the Document Server; never with cookies, so a page can do no more than its token allows.

use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::config::Config;

/// How long a browser may remember what it asked for.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The layer that answers browsers; `None` if no other origin is allowed.
pub(super) fn layer(config: &Config) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> =
        config.server.allowed_origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let is_allowed = move |origin: &HeaderValue, request: &Parts| {
        let path = request.uri.path();
        origins.contains(origin) && (path.starts_with("/api/") || path.starts_with("/client/"))
    };
    let told = ["saveguard-version", "saveguard-freshness"].map(HeaderName::from_static);
    Some(
        CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(is_allowed))
            .allow_methods([
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::PUT,
                Method::PATCH,
                Method::DELETE,
            ])
            .allow_headers([
                header::AUTHORIZATION,
                header::CONTENT_TYPE,
                header::IF_MATCH,
                header::IF_NONE_MATCH,
                header::RANGE,
                HeaderName::from_static("last-event-id"),
            ])
            .expose_headers(told.into_iter().chain([header::ETAG, header::RETRY_AFTER]).collect::<Vec<_>>())
            .max_age(REMEMBERED),
    )
}
