//! JSON Web Tokens in both directions, as the real server makes and checks them.
//!
//! Guarantees: tokens to the host are HS256 with `exp = iat + life`; tokens from the host may be HS256, HS384 or
//! HS512, need no `exp`, and are good for 60 s beyond it; expiry is judged by our own clock. Secrets never
//! appear in debug output.
//!
//! Does not decide what claims mean: see [`crate::admission`] and `crate::http`.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::machine::{Body, Conn};

/// How far clocks may differ.
pub const CLOCK_TOLERANCE_S: u64 = 60;

/// A header token this long or longer makes the server drop history and changes link.
pub const HEADER_TOKEN_LENGTH_MAX: usize = 7168;

/// How long a session may come back.
const SESSION_LIFE_S: u64 = 30 * 24 * 3600;

/// A secret that does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(secret: impl Into<String>) -> Secret {
        Secret(secret.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("***")
    }
}

impl From<&str> for Secret {
    fn from(secret: &str) -> Secret {
        Secret::new(secret)
    }
}

/// Why a token is no good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenTrouble {
    Expired,
    Invalid(String),
}

/// Checks a token and returns its claims.
pub fn verify(token: &str, secret: &Secret, now_s: u64) -> Result<Value, TokenTrouble> {
    let mut rules = Validation::new(Algorithm::HS256);
    rules.algorithms = vec![Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
    rules.required_spec_claims.clear();
    rules.validate_exp = false;
    rules.validate_aud = false;
    let key = DecodingKey::from_secret(secret.0.as_bytes());
    let claims = decode::<Value>(token, &key, &rules).map_err(|trouble| {
        use jsonwebtoken::errors::ErrorKind;
        TokenTrouble::Invalid(match trouble.kind() {
            ErrorKind::InvalidSignature => "invalid signature".to_owned(),
            ErrorKind::InvalidAlgorithm => "invalid algorithm".to_owned(),
            _ => "invalid token".to_owned(),
        })
    })?;
    let expires_s = claims.claims.get("exp").and_then(Value::as_u64);
    if expires_s.is_some_and(|expires_s| now_s >= expires_s + CLOCK_TOLERANCE_S) {
        return Err(TokenTrouble::Expired);
    }
    Ok(claims.claims)
}

/// Signs claims as they are.
pub fn sign(claims: &impl Serialize, secret: &Secret) -> String {
    let key = EncodingKey::from_secret(secret.0.as_bytes());
    // Signing with a shared secret fails only if the claims are no JSON object, which ours always are.
    encode(&Header::new(Algorithm::HS256), claims, &key).unwrap_or_default()
}

/// Tokens to the host.
#[derive(Clone, Debug)]
pub struct Outbox {
    pub secret: Secret,
    pub life_s: u64,
}

#[derive(Serialize)]
struct HeaderClaims<'a, P: Serialize> {
    payload: &'a P,
    iat: u64,
    exp: u64,
}

#[derive(Serialize)]
struct BodyClaims<'a> {
    #[serde(flatten)]
    body: &'a Body,
    iat: u64,
    exp: u64,
}

#[derive(Serialize)]
struct UrlPayload<'a> {
    url: &'a str,
}

impl Outbox {
    /// Signs a callback: sets the body's `token`, reduces the body if the header token would be too long, and
    /// returns the header token.
    pub fn sign_callback(&self, body: &mut Body, now_s: u64) -> String {
        let exp = now_s + self.life_s;
        let body_token = sign(&BodyClaims { body, iat: now_s, exp }, &self.secret);
        let header_of = |body: &Body| sign(&HeaderClaims { payload: body, iat: now_s, exp }, &self.secret);
        let mut header = header_of(body);
        if body.is_save() && header.len() >= HEADER_TOKEN_LENGTH_MAX {
            body.changesurl = None;
            body.history = Some(Default::default());
            header = header_of(body);
        }
        body.token = Some(body_token);
        header
    }

    /// The token that goes with the GET of a source.
    pub fn sign_url(&self, url: &str, now_s: u64) -> String {
        let payload = UrlPayload { url };
        sign(&HeaderClaims { payload: &payload, iat: now_s, exp: now_s + self.life_s }, &self.secret)
    }
}

/// Tokens with which a client comes back to its session.
#[derive(Clone, Debug)]
pub struct SessionTokens {
    secret: Secret,
}

impl SessionTokens {
    pub fn new(secret: Secret) -> SessionTokens {
        SessionTokens { secret }
    }

    pub fn sign(&self, conn: &Conn, now_ms: u64) -> String {
        let now_s = now_ms / 1000;
        let claims = json!({
            "document": {"key": conn.key, "permissions": conn.permissions},
            "editorConfig": {
                "user": {"id": conn.user.id, "name": conn.user.name, "index": conn.user.index},
                "ds_view": conn.view,
                "ds_isCloseCoAuthoring": conn.closed,
                "ds_sessionTimeConnect": conn.since_ms,
            },
            "iat": now_s,
            "exp": now_s + SESSION_LIFE_S,
        });
        sign(&claims, &self.secret)
    }

    pub fn verify(&self, token: &str, now_s: u64) -> Result<Value, TokenTrouble> {
        verify(token, &self.secret, now_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{History, HistoryChange, HistoryUser};

    fn outbox() -> Outbox {
        Outbox { secret: "s".into(), life_s: 300 }
    }

    fn save(authors: usize) -> Body {
        let change = |n: usize| HistoryChange {
            document_sha256: "0".repeat(64),
            created: "2026-11-15 19:20:43".into(),
            user: HistoryUser { id: format!("u{n}"), name: format!("User {n}") },
        };
        let changes = Some((0..authors).map(change).collect());
        let history = History { server_version: Some("9.3.0".into()), changes };
        Body {
            key: "k".into(),
            status: 2,
            history: Some(history),
            changesurl: Some("http://ds/changes".into()),
            ..Body::default()
        }
    }

    #[test]
    fn both_tokens_carry_the_body_one_flat_and_one_as_payload() {
        let mut body = save(1);

        let header = outbox().sign_callback(&mut body, 1_000);

        let flat = verify(body.token.as_deref().unwrap(), &"s".into(), 1_000).unwrap();
        let nested = verify(&header, &"s".into(), 1_000).unwrap();
        assert_eq!(flat["key"], "k");
        assert_eq!((flat["iat"].as_u64(), flat["exp"].as_u64()), (Some(1_000), Some(1_300)));
        assert_eq!(nested["payload"]["history"], flat["history"]);
        assert_eq!(nested["exp"], 1_300);
        assert!(nested["payload"].get("token").is_none());
    }

    #[test]
    fn a_header_token_too_long_strips_the_plain_body_but_not_the_body_token() {
        let mut body = save(60);

        let header = outbox().sign_callback(&mut body, 1_000);

        let flat = verify(body.token.as_deref().unwrap(), &"s".into(), 1_000).unwrap();
        let nested = verify(&header, &"s".into(), 1_000).unwrap();
        assert!(header.len() < HEADER_TOKEN_LENGTH_MAX);
        assert_eq!(body.history, Some(History::default()));
        assert_eq!(body.changesurl, None);
        assert_eq!(nested["payload"]["history"], json!({}));
        assert_eq!(flat["history"]["changes"].as_array().unwrap().len(), 60);
        assert_eq!(flat["changesurl"], "http://ds/changes");
    }

    #[test]
    fn an_expired_token_is_good_for_a_minute_more() {
        let token = sign(&json!({"exp": 1_000}), &"s".into());

        assert!(verify(&token, &"s".into(), 1_059).is_ok());
        assert_eq!(verify(&token, &"s".into(), 1_060), Err(TokenTrouble::Expired));
    }

    #[test]
    fn a_token_of_another_secret_is_invalid_and_secrets_do_not_show() {
        let token = sign(&json!({}), &"s".into());

        assert_eq!(verify(&token, &"t".into(), 0), Err(TokenTrouble::Invalid("invalid signature".into())));
        assert_eq!(format!("{:?}", Secret::new("s")), "***");
    }
}
