//! The identity provider of OpenID Connect, called from here: where its doors are, and what a code is worth.
//!
//! Guarantees: only the configured issuer is asked, and the doors it names are of its own scheme or https; no redirect is followed; time
//! and size are bounded; the client's secret goes to the token door only. Does not do: verify the token it gets. That is any token of
//! the host application ([`super::host_caller`]).

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::config::Provider;
use crate::telemetry::report;

/// One call.
const WITHIN: Duration = Duration::from_secs(10);
/// What providers say of themselves is some thousand bytes.
const BYTES_MAX: usize = 256 * 1024;

/// Where the provider is called.
#[derive(Debug, Clone)]
pub(crate) struct Doors {
    /// Where people are sent.
    pub(crate) authorization: Url,
    token: Url,
}

/// What a provider says of itself.
#[derive(Deserialize)]
struct Told {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
}

/// A code and what proves that it is ours.
#[derive(Debug)]
pub(crate) struct Redemption<'a> {
    pub(crate) code: &'a str,
    pub(crate) verifier: &'a str,
    pub(crate) redirect_uri: &'a str,
}

#[derive(Deserialize)]
struct Redeemed {
    id_token: String,
}

/// Asks the provider where its doors are.
pub(crate) async fn doors(provider: &Provider) -> Result<Doors, String> {
    let address = format!("{}/.well-known/openid-configuration", provider.issuer.trim_end_matches('/'));
    let told: Told = answer(client()?.get(address)).await?;
    if told.issuer != provider.issuer {
        return Err(format!("it calls itself `{}`", told.issuer));
    }
    let is_plain_allowed = provider.issuer.starts_with("http://");
    let read = |address: &str| match Url::parse(address) {
        Ok(url) if url.scheme() == "https" || (is_plain_allowed && url.scheme() == "http") => Ok(url),
        _ => Err("it names an address that is not https".to_owned()),
    };
    Ok(Doors { authorization: read(&told.authorization_endpoint)?, token: read(&told.token_endpoint)? })
}

/// Exchanges a code for an ID token.
pub(crate) async fn redeem(
    provider: &Provider,
    doors: &Doors,
    redemption: &Redemption<'_>,
) -> Result<String, String> {
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("grant_type", "authorization_code")
        .append_pair("code", redemption.code)
        .append_pair("code_verifier", redemption.verifier)
        .append_pair("redirect_uri", redemption.redirect_uri)
        .append_pair("client_id", &provider.client_id)
        .finish();
    let mut request = client()?
        .post(doors.token.clone())
        .header(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form);
    if let Some(secret) = &provider.client_secret {
        let encode = |text: &[u8]| url::form_urlencoded::byte_serialize(text).collect::<String>();
        request = request.basic_auth(encode(provider.client_id.as_bytes()), Some(encode(secret.as_bytes())));
    }
    Ok(answer::<Redeemed>(request).await?.id_token)
}

fn client() -> Result<reqwest::Client, String> {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    client.timeout(WITHIN).build().map_err(|cause| report(&cause))
}

async fn answer<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Result<T, String> {
    let mut response = request.send().await.map_err(|cause| report(&cause))?;
    if !response.status().is_success() {
        return Err(format!("it was answered {}", response.status()));
    }
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|cause| report(&cause))? {
        text.extend_from_slice(&chunk);
        if text.len() > BYTES_MAX {
            return Err(format!("it is larger than {BYTES_MAX} bytes"));
        }
    }
    serde_json::from_slice(&text).map_err(|cause| format!("it cannot be read: {cause}"))
}
