//! The tokens shared with the Document Server: HS256 and nothing else.
//!
//! Guarantees: the algorithm is pinned, whatever a token's header says; `exp` must be there and be a number; a token
//! that is signed rightly but expired is told apart from a forged one, because the answer differs (503 against 403).
//! Two secrets count during a rotation. Does not do: our own tokens (`http::caller`, `opening::stream`).

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Value, json};

use crate::config::Secrets;

/// Clocks differ; the Document Server itself allows a minute.
const CLOCK_TOLERANCE_SECONDS: i64 = 60;
/// Tokens we send with commands are used at once.
const COMMAND_TOKEN_SECONDS: i64 = 300;

/// Signs for and verifies from the Document Server.
pub struct Tokens {
    signing: EncodingKey,
    verifying: Vec<DecodingKey>,
}

/// Why a token does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefused {
    /// There is none.
    #[error("there is no token")]
    Missing,
    /// It was not signed with the shared secret by HS256.
    #[error("the token was not signed with the shared secret")]
    Forged,
    /// It was signed rightly and is no longer (or not yet) valid, or says nothing usable about that: a wrong clock?
    #[error("the token is signed rightly but expired or not yet valid: do the clocks agree?")]
    Expired,
}

impl Tokens {
    /// Takes the shared secrets.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            signing: EncodingKey::from_secret(secrets.current.as_bytes()),
            verifying: secrets.all().map(|secret| DecodingKey::from_secret(secret.as_bytes())).collect(),
        }
    }

    /// Signs claims that are valid for a while.
    pub fn sign(&self, claims: &Value, now: Timestamp, seconds: i64) -> String {
        let mut claims = claims.clone();
        claims["iat"] = json!(now.as_second());
        claims["exp"] = json!(now.as_second() + seconds);
        // HS256 over JSON that we made cannot fail; an empty token would be refused by the other side.
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing).unwrap_or_default()
    }

    /// Signs a command.
    pub fn sign_command(&self, claims: &Value, now: Timestamp) -> String {
        self.sign(claims, now, COMMAND_TOKEN_SECONDS)
    }

    /// Verifies a token; returns its claims.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Value, TokenRefused> {
        let mut validation = Validation::new(Algorithm::HS256);
        // Time is judged below, by our own clock, and apart from the signature.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let claims = self
            .verifying
            .iter()
            .find_map(|key| jsonwebtoken::decode::<Value>(token, key, &validation).ok())
            .map(|data| data.claims)
            .ok_or(TokenRefused::Forged)?;
        if is_valid_at(&claims, now.as_second()) { Ok(claims) } else { Err(TokenRefused::Expired) }
    }
}

fn is_valid_at(claims: &Value, now: i64) -> bool {
    let not_expired =
        claims["exp"].as_i64().is_some_and(|exp| exp.saturating_add(CLOCK_TOLERANCE_SECONDS) > now);
    let has_begun = match &claims["nbf"] {
        Value::Null => true,
        begins => begins.as_i64().is_some_and(|nbf| nbf.saturating_sub(CLOCK_TOLERANCE_SECONDS) <= now),
    };
    not_expired && has_begun
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn secrets(letter: &str) -> Secrets {
        Secrets { current: Secret::parse(&letter.repeat(40)).unwrap(), previous: None }
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_794_770_000).unwrap()
    }

    fn raw(header: &Value, claims: &Value, secret: &str) -> String {
        use base64::Engine as _;
        use hmac::{KeyInit as _, Mac as _};
        let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        let signed =
            format!("{}.{}", encode(header.to_string().as_bytes()), encode(claims.to_string().as_bytes()));
        let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(signed.as_bytes());
        format!("{signed}.{}", encode(&mac.finalize().into_bytes()))
    }

    #[test]
    fn what_is_signed_verifies_until_it_expires() {
        let tokens = Tokens::new(&secrets("a"));
        let token = tokens.sign(&json!({ "key": "k" }), now(), 300);

        let later = |seconds| Timestamp::from_second(now().as_second() + seconds).unwrap();
        assert_eq!(tokens.verify(&token, now()).unwrap()["key"], "k");
        assert!(tokens.verify(&token, later(359)).is_ok(), "a minute of tolerance");
        assert_eq!(tokens.verify(&token, later(361)), Err(TokenRefused::Expired));
    }

    #[test]
    fn only_the_pinned_algorithm_and_the_shared_secret_count() {
        let tokens = Tokens::new(&secrets("a"));
        let claims = json!({ "key": "k", "exp": now().as_second() + 300 });
        let right = "a".repeat(40);

        assert!(
            tokens.verify(&raw(&json!({ "alg": "HS256", "typ": "JWT" }), &claims, &right), now()).is_ok()
        );
        for algorithm in ["none", "None", "HS384", "HS512", "RS256", "hs256", ""] {
            let token = raw(&json!({ "alg": algorithm, "typ": "JWT" }), &claims, &right);
            assert_eq!(tokens.verify(&token, now()), Err(TokenRefused::Forged), "{algorithm}");
        }
        for token in ["", "a.b", "a.b.c", "....", &raw(&json!({ "alg": "HS256" }), &claims, &"b".repeat(40))]
        {
            assert_eq!(tokens.verify(token, now()), Err(TokenRefused::Forged), "{token}");
        }
        let whole = raw(&json!({ "alg": "HS256" }), &claims, &right);
        assert_eq!(tokens.verify(&whole[..whole.len() - 2], now()), Err(TokenRefused::Forged));
    }

    #[test]
    fn a_time_that_is_no_number_never_counts_as_valid() {
        let tokens = Tokens::new(&secrets("a"));
        let soon = now().as_second() + 300;
        for exp in [json!(soon.to_string()), json!(null), json!(-1), json!([soon]), json!(true), json!(1e300)]
        {
            let token = raw(&json!({ "alg": "HS256" }), &json!({ "exp": exp }), &"a".repeat(40));
            assert!(tokens.verify(&token, now()).is_err(), "{exp}");
        }
        let missing = raw(&json!({ "alg": "HS256" }), &json!({}), &"a".repeat(40));
        assert_eq!(tokens.verify(&missing, now()), Err(TokenRefused::Expired));
        let late = raw(&json!({ "alg": "HS256" }), &json!({ "exp": soon, "nbf": soon }), &"a".repeat(40));
        assert_eq!(tokens.verify(&late, now()), Err(TokenRefused::Expired));
    }

    #[test]
    fn two_secrets_count_during_a_rotation() {
        let old = Tokens::new(&secrets("a"));
        let both = Secrets { previous: Some(secrets("a").current), ..secrets("b") };
        let token = old.sign(&json!({}), now(), 300);

        assert!(Tokens::new(&both).verify(&token, now()).is_ok());
        assert_eq!(Tokens::new(&secrets("b")).verify(&token, now()), Err(TokenRefused::Forged));
        assert_eq!(
            old.verify(&Tokens::new(&both).sign(&json!({}), now(), 300), now()),
            Err(TokenRefused::Forged)
        );
    }
}
