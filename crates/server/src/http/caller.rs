//! Who is calling: a bearer token of the host application, or the cookie of a page.
//!
//! Guarantees: HS256 pinned; `exp` and `sub` required; a page's cookie is signed with a key of its own and counts for
//! changes only when the browser says that the request comes from our own pages.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use ledger::documents::{Author, Document};
use model::access::{Caller, Companies, Permission, Role, may, may_operate};
use model::{CompanyId, DocumentId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::address::ClientAddress;
use super::answer::Problem;
use crate::app::App;
use crate::config::{Config, Secrets};
use crate::opening::derive;

const COOKIE: &str = "saveguard_session";
const PAGE_PURPOSE: &str = "page";
const CLOCK_TOLERANCE_SECONDS: i64 = 60;

/// Somebody with a valid token or cookie, and where they call from.
#[derive(Debug, Clone)]
pub struct Session(pub Caller, pub(crate) ClientAddress);

/// The claims of a host application's token.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    companies: Value,
    role: String,
    exp: i64,
}

impl Session {
    /// The document, if this caller may do this with it; a foreign one looks exactly like a missing one.
    pub(crate) async fn document(
        &self,
        app: &App,
        id: &str,
        permission: Permission,
    ) -> Result<Document, Problem> {
        let document = self.document_or_deleted(app, id, permission).await?;
        if document.deleted_at.is_some() { Err(Problem::not_found()) } else { Ok(document) }
    }

    /// The same, and it may be deleted.
    pub(crate) async fn document_or_deleted(
        &self,
        app: &App,
        id: &str,
        permission: Permission,
    ) -> Result<Document, Problem> {
        let id = DocumentId::parse(id).map_err(|refused| Problem::id(&refused))?;
        let document = app.ledger.document(&id).await?.ok_or_else(Problem::not_found)?;
        self.allow(permission, &document.company)?;
        Ok(document)
    }

    /// Allows this in a company, or not.
    pub(crate) fn allow(&self, permission: Permission, company: &CompanyId) -> Result<(), Problem> {
        if may(&self.0, permission, company) {
            Ok(())
        } else if may(&self.0, Permission::View, company) {
            Err(Problem::forbidden())
        } else {
            Err(Problem::not_found())
        }
    }

    /// Allows looking after the installation, or not.
    pub(crate) fn allow_operating(&self) -> Result<(), Problem> {
        if may_operate(&self.0) { Ok(()) } else { Err(Problem::forbidden()) }
    }

    /// The caller as an author, calling from where they do.
    pub fn author(&self) -> Author {
        Author::new(&self.0.id, &self.0.name).calling_from(&self.1.0)
    }
}

impl FromRequestParts<Arc<App>> for Session {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let (now, address) = (app.now(), ClientAddress::of(app, parts));
        if let Some(token) = bearer(&parts.headers) {
            return verify(&keys(&app.config.api.secrets), token, now)
                .map(|caller| Self(caller, address))
                .ok_or_else(Problem::unauthorized);
        }
        let token = cookie(&parts.headers).ok_or_else(Problem::unauthorized)?;
        let caller = PageTokens::new(&app.config).verify(token, now).ok_or_else(Problem::unauthorized)?;
        if is_change(&parts.method) && !is_from_our_pages(&app.config, &parts.headers) {
            return Err(Problem::forbidden());
        }
        Ok(Self(caller, address))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .find_map(|each| each.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

fn is_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// A browser tells where a request comes from; a cookie alone must not be enough to change something.
fn is_from_our_pages(config: &Config, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => origin == config.server.public_url.origin().ascii_serialization(),
        (None, None) => false,
    }
}

fn keys(secrets: &Secrets) -> Vec<DecodingKey> {
    secrets.all().map(|secret| DecodingKey::from_secret(secret.as_bytes())).collect()
}

fn verify(keys: &[DecodingKey], token: &str, now: Timestamp) -> Option<Caller> {
    let mut validation = Validation::new(Algorithm::HS256);
    // Time is judged below, by the service's clock.
    validation.validate_exp = false;
    validation.validate_aud = false;
    let claims =
        keys.iter().find_map(|key| jsonwebtoken::decode::<Claims>(token, key, &validation).ok())?.claims;
    if claims.exp.saturating_add(CLOCK_TOLERANCE_SECONDS) <= now.as_second() || claims.sub.is_empty() {
        return None;
    }
    Some(Caller {
        name: claims.name.unwrap_or_else(|| claims.sub.clone()),
        id: claims.sub,
        role: Role::parse(&claims.role)?,
        companies: companies(&claims.companies)?,
    })
}

fn companies(claim: &Value) -> Option<Companies> {
    match claim {
        Value::Null => Some(Companies::Only(Vec::new())),
        Value::String(all) if all == "*" => Some(Companies::All),
        Value::Array(ids) => {
            let ids: Option<Vec<_>> = ids.iter().map(|id| CompanyId::parse(id.as_str()?).ok()).collect();
            ids.map(Companies::Only)
        }
        _ => None,
    }
}

fn claims_of(caller: &Caller, exp: i64) -> Claims {
    Claims {
        sub: caller.id.clone(),
        name: Some(caller.name.clone()),
        companies: match &caller.companies {
            Companies::All => Value::from("*"),
            Companies::Only(ids) => ids.iter().map(CompanyId::as_str).collect(),
        },
        role: caller.role.as_str().to_owned(),
        exp,
    }
}

/// A token as the host application would sign it; for the demo, the command line and tests.
pub fn sign_api_token(config: &Config, caller: &Caller, now: Timestamp, life: Duration) -> String {
    sign(config.api.secrets.current.as_bytes(), caller, now, life)
}

fn sign(key: &[u8], caller: &Caller, now: Timestamp, life: Duration) -> String {
    let exp = now.as_second().saturating_add(i64::try_from(life.as_secs()).unwrap_or(i64::MAX / 2));
    jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims_of(caller, exp),
        &EncodingKey::from_secret(key),
    )
    .unwrap_or_default()
}

/// Cookies of our own pages.
pub struct PageTokens {
    keys: Vec<Vec<u8>>,
}

impl PageTokens {
    /// Derives the keys.
    pub fn new(config: &Config) -> Self {
        Self {
            keys: config.api.secrets.all().map(|secret| derive(secret.as_bytes(), PAGE_PURPOSE)).collect(),
        }
    }

    /// The caller of a cookie.
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<Caller> {
        let keys: Vec<_> = self.keys.iter().map(|key| DecodingKey::from_secret(key)).collect();
        verify(&keys, token, now)
    }

    /// The `Set-Cookie` value that signs a browser in.
    pub fn cookie(&self, caller: &Caller, now: Timestamp, (life, is_https): (Duration, bool)) -> String {
        let token = sign(self.keys.first().map(Vec::as_slice).unwrap_or_default(), caller, now, life);
        let secure = if is_https { "; Secure" } else { "" };
        format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}", life.as_secs())
    }
}

/// The caller of a token of the host application.
pub(crate) fn caller_of(config: &Config, token: &str, now: Timestamp) -> Option<Caller> {
    verify(&keys(&config.api.secrets), token, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_companies_claim_is_a_list_or_a_star_and_nothing_else() {
        use serde_json::json;
        assert_eq!(companies(&json!("*")), Some(Companies::All));
        assert_eq!(
            companies(&json!(["acme"])),
            Some(Companies::Only(vec![CompanyId::parse("acme").unwrap()]))
        );
        assert_eq!(companies(&Value::Null), Some(Companies::Only(Vec::new())));
        for strange in [json!("acme"), json!(1), json!(["../x"]), json!([1]), json!({})] {
            assert_eq!(companies(&strange), None, "{strange}");
        }
    }

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "a=b; saveguard_session=x.y.z; c=d".parse().unwrap());

        assert_eq!(cookie(&headers), Some("x.y.z"));
        headers.insert(header::COOKIE, "xsaveguard_session=1; saveguard_session2=2".parse().unwrap());
        assert_eq!(cookie(&headers), None);
    }
}
