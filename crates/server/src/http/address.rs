//! Where a request comes from: the address of the connection, or what a proxy tells if the operator said that there is one.
//!
//! Guarantees: a header counts only if it was configured; what is written down is an address and nothing else.
//! Does not do: decide anything. No permission depends on an address; only how often somebody may miss does.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;

use crate::app::App;

/// The other end of a connection; the listener leaves it with every request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// The address of whoever called, as text; empty if it is not known.
#[derive(Debug, Clone)]
pub(crate) struct ClientAddress(pub(crate) String);

impl ClientAddress {
    /// The address a request comes from.
    pub(super) fn of(app: &App, parts: &Parts) -> Self {
        let told =
            app.config.server.client_address_header.as_ref().and_then(|name| told(&parts.headers, name));
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
        Self(told.or(peer).map(|address| address.to_canonical().to_string()).unwrap_or_default())
    }
}

impl FromRequestParts<Arc<App>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self::of(app, parts))
    }
}

/// Each proxy adds the address it saw at the end; those before it may be anybody's invention.
fn told(headers: &HeaderMap, name: &http::HeaderName) -> Option<IpAddr> {
    let last = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    let address = last.parse::<IpAddr>().ok();
    address
        .or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
        .or_else(|| last.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_counts_and_only_addresses_do() {
        let name = http::HeaderName::from_static("x-forwarded-for");
        let told = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(&name, value.parse().unwrap());
            }
            told(&headers, &name).map(|address| address.to_string())
        };

        assert_eq!(told(&["192.0.2.1"]).as_deref(), Some("192.0.2.1"));
        assert_eq!(told(&["10.0.0.1, 192.0.2.1:5000"]).as_deref(), Some("192.0.2.1"));
        assert_eq!(told(&["10.0.0.1", "2001:db8::1"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(told(&["[2001:db8::1]:80"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(told(&["[2001:db8::1]"]).as_deref(), Some("2001:db8::1"));
        for strange in ["", "unknown", "192.0.2.1, somebody", "\"><script>"] {
            assert_eq!(told(&[strange]), None, "{strange}");
        }
    }
}
