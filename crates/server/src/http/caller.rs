//! Who is calling: a bearer token ([`crate::callers`]), or the cookie of a page.
//!
//! Guarantees: every path to data goes through [`Session`]; a foreign thing looks exactly like a missing one, and costs the
//! same one lookup; a page's cookie is signed with a key of its own and counts for changes only when the browser says that
//! the request comes from our own pages. Does not do: verify bearer tokens, decide what a role may.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, Method, header};
use jiff::Timestamp;
use ledger::documents::{Author, Document};
use ledger::scopes::{Organisation, Registration};
use model::access::{Caller, Permission, may, may_for, may_operate, may_read_templates};
use model::{CompanyId, DocumentId, OrganisationId, RegistrationId, Scope};

use super::address::ClientAddress;
use super::answer::Problem;
use crate::app::App;
use crate::callers::{self, Checks, sign, verify_with_secrets};
use crate::config::Config;
use crate::opening::derive;

const COOKIE: &str = "saveguard_session";
/// Behind https: browsers take a cookie of this name from this very host only, so that no neighbour can sign somebody in.
const SECURE_COOKIE: &str = "__Host-saveguard_session";
const PAGE_PURPOSE: &str = "page";

/// Somebody with a valid token or cookie, and where they call from.
#[derive(Debug, Clone)]
pub struct Session(pub Caller, pub(crate) ClientAddress);

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

    /// The organisation, if this caller may do this for it; a foreign one looks exactly like a missing one.
    pub(crate) async fn organisation(
        &self,
        app: &App,
        id: &str,
        permission: Permission,
    ) -> Result<Organisation, Problem> {
        let id = OrganisationId::parse(id).map_err(|refused| Problem::id(&refused))?;
        self.allow_for(permission, &id)?;
        app.ledger.organisation(&id).await?.ok_or_else(Problem::not_found)
    }

    /// The registration, if this caller may do this for its organisation.
    pub(crate) async fn registration(
        &self,
        app: &App,
        (organisation, registration): (&str, &str),
        permission: Permission,
    ) -> Result<Registration, Problem> {
        let scope = scope(organisation, registration)?;
        self.allow_for(permission, &scope.organisation)?;
        app.ledger.registration(&scope).await?.ok_or_else(Problem::not_found)
    }

    /// Allows this for an organisation, or not.
    pub(crate) fn allow_for(
        &self,
        permission: Permission,
        organisation: &OrganisationId,
    ) -> Result<(), Problem> {
        if may_for(&self.0, permission, organisation) {
            Ok(())
        } else if may_for(&self.0, Permission::View, organisation) {
            Err(Problem::forbidden())
        } else {
            Err(Problem::not_found())
        }
    }

    /// Allows changing what is said of an organisation, or not: that is the installation's.
    pub(crate) fn allow_registering(&self, organisation: &OrganisationId) -> Result<(), Problem> {
        self.allow_for(Permission::View, organisation)?;
        self.allow_operating()
    }

    /// Allows reading templates, or not.
    pub(crate) fn allow_templates(&self) -> Result<(), Problem> {
        if may_read_templates(&self.0) { Ok(()) } else { Err(Problem::forbidden()) }
    }

    /// Allows administering something, whatever it is, or not.
    pub(crate) fn allow_administering(&self) -> Result<(), Problem> {
        let is_admin = self.0.role.permissions().contains(&Permission::Administer);
        if is_admin { Ok(()) } else { Err(Problem::forbidden()) }
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

/// The ids of a scope, from a path.
pub(crate) fn scope(organisation: &str, registration: &str) -> Result<Scope, Problem> {
    Ok(Scope {
        organisation: OrganisationId::parse(organisation).map_err(|refused| Problem::id(&refused))?,
        registration: RegistrationId::parse(registration).map_err(|refused| Problem::id(&refused))?,
    })
}

impl FromRequestParts<Arc<App>> for Session {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let (now, address) = (app.now(), ClientAddress::of(app, parts));
        if let Some(token) = bearer(&parts.headers) {
            let caller = callers::bearer(app, token).await?.ok_or_else(Problem::unauthorized)?;
            return Ok(Self(caller, address));
        }
        let token = cookie(&parts.headers, cookie_name(&app.config)).ok_or_else(Problem::unauthorized)?;
        let caller = PageTokens::new(&app.config).verify(token, now).ok_or_else(Problem::unauthorized)?;
        if !callers::still_counts(app, &caller).await? {
            return Err(Problem::unauthorized());
        }
        if is_change(&parts.method) && !comes_from_our_pages(&app.config, &parts.headers) {
            return Err(Problem::forbidden());
        }
        Ok(Self(caller, address))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .find_map(|each| each.trim().strip_prefix(name)?.strip_prefix('='))
}

fn cookie_name(config: &Config) -> &'static str {
    if config.server.public_url.scheme() == "https" { SECURE_COOKIE } else { COOKIE }
}

fn is_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// A browser tells where a request comes from; a cookie alone must not be enough to change something.
pub(crate) fn comes_from_our_pages(config: &Config, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => origin == config.server.public_url.origin().ascii_serialization(),
        (None, None) => false,
    }
}

/// A token as the host application would sign it; for the demo, the command line and tests.
pub fn sign_api_token(config: &Config, caller: &Caller, now: Timestamp, life: Duration) -> String {
    let secret = config.api.secrets.current.as_bytes();
    sign(secret, caller, &config.api.checks, (now, life))
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
        verify_with_secrets(self.keys.iter().map(Vec::as_slice), token, now)
    }

    /// The `Set-Cookie` value that signs a browser in.
    pub fn cookie(&self, caller: &Caller, now: Timestamp, (life, is_https): (Duration, bool)) -> String {
        let key = self.keys.first().map(Vec::as_slice).unwrap_or_default();
        let token = sign(key, caller, &Checks::default(), (now, life));
        let (name, secure) = if is_https { (SECURE_COOKIE, "; Secure") } else { (COOKIE, "") };
        format!("{name}={token}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}", life.as_secs())
    }

    /// The `Set-Cookie` value that signs a browser out.
    #[allow(clippy::fn_params_excessive_bools, reason = "what the address says")]
    pub fn no_cookie(is_https: bool) -> String {
        let (name, secure) = if is_https { (SECURE_COOKIE, "; Secure") } else { (COOKIE, "") };
        format!("{name}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0{secure}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, "a=b; saveguard_session=x.y.z; c=d".parse().unwrap());

        assert_eq!(cookie(&headers, COOKIE), Some("x.y.z"));
        headers.insert(header::COOKIE, "xsaveguard_session=1; saveguard_session2=2".parse().unwrap());
        assert_eq!(cookie(&headers, COOKIE), None);
        headers.insert(header::COOKIE, "saveguard_session=1; __Host-saveguard_session=2".parse().unwrap());
        assert_eq!(cookie(&headers, SECURE_COOKIE), Some("2"));
    }
}
