//! Cookies of the pages: read by name. The one that signs in belongs to `http::caller`.

use http::{HeaderMap, header};

/// The value of a cookie.
pub(super) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .find_map(|each| each.trim().strip_prefix(name)?.strip_prefix('='))
}
