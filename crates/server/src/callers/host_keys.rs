//! The keys of the host application: secrets for HS256, and published keys for RS256, ES256 and EdDSA.
//!
//! Guarantees: the algorithm belongs to the key. A token's `alg` is only compared with it, so that neither `none` nor a
//! public key taken for a secret opens anything. A key that cannot be used is left out, and said so; the others count.
//! Does not do: fetch keys ([`super::refreshing`]).

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use jiff::Timestamp;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use model::access::Caller;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::claims::{Checks, Claims};
use crate::config::{Api, JwksSource, Secrets};

/// More keys than anybody publishes. A token without a `kid` is tried with each, so their number needs a bound.
const KEYS_MAX: usize = 64;

/// The keys, and how their refreshing stands.
pub(crate) struct HostKeys {
    secrets: Vec<DecodingKey>,
    checks: Checks,
    published: RwLock<Arc<Vec<PinnedKey>>>,
    pub(super) source: Option<JwksSource>,
    pub(super) attempts: Mutex<Attempts>,
    /// Somebody needs fresh keys.
    pub(super) wanted: Notify,
    /// Counts the attempts that have ended.
    pub(super) ended: watch::Sender<u64>,
}

/// When keys were last fetched, and whether they are just now.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    pub(super) last: Option<Timestamp>,
    pub(super) is_running: bool,
}

/// A published key with the one algorithm it is for.
#[derive(Debug)]
pub(super) struct PinnedKey {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

/// What becomes of a token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It counts.
    Counts(Caller),
    /// It names a published key that is not known here.
    UnknownKey,
    /// It does not count.
    Refused,
}

impl HostKeys {
    /// The configured secrets; published keys come later.
    pub(crate) fn new(api: &Api) -> Self {
        Self {
            secrets: decoding_keys(&api.secrets),
            checks: api.checks.clone(),
            published: RwLock::default(),
            source: api.jwks.clone(),
            attempts: Mutex::default(),
            wanted: Notify::new(),
            ended: watch::Sender::new(0),
        }
    }

    /// Replaces the published keys.
    pub(super) fn publish(&self, keys: Vec<PinnedKey>) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    /// Whether a token counts at this time.
    pub(crate) fn verify(&self, token: &str, now: Timestamp) -> Verdict {
        let Ok(header) = jsonwebtoken::decode_header(token) else { return Verdict::Refused };
        let published = Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner));
        let named = |key: &&PinnedKey| header.kid.is_none() || header.kid == key.id;
        let secrets = self.secrets.iter().map(|key| (Algorithm::HS256, key));
        let candidates = secrets.chain(published.iter().filter(named).map(|key| (key.algorithm, &key.key)));
        for (algorithm, key) in candidates {
            if let Some(claims) = claims_of(token, algorithm, key) {
                return claims.caller(&self.checks, now).map_or(Verdict::Refused, Verdict::Counts);
            }
        }
        let is_known = header.kid.is_none() || published.iter().any(|key| key.id == header.kid);
        if is_known || self.source.is_none() { Verdict::Refused } else { Verdict::UnknownKey }
    }
}

fn decoding_keys(secrets: &Secrets) -> Vec<DecodingKey> {
    secrets.all().map(|secret| DecodingKey::from_secret(secret.as_bytes())).collect()
}

/// The caller of a token that one of these secrets signed (HS256).
pub(crate) fn verify_with_secrets<'a>(
    secrets: impl Iterator<Item = &'a [u8]>,
    token: &str,
    now: Timestamp,
) -> Option<Caller> {
    let keys: Vec<_> = secrets.map(DecodingKey::from_secret).collect();
    keys.iter()
        .find_map(|key| claims_of(token, Algorithm::HS256, key))
        .and_then(|claims| claims.caller(&Checks::default(), now))
}

/// The claims of a token that this key signed by this algorithm.
fn claims_of(token: &str, algorithm: Algorithm, key: &DecodingKey) -> Option<Claims> {
    let mut validation = Validation::new(algorithm);
    // Times, issuer and audience are judged by `Claims`, with the service's clock.
    validation.validate_exp = false;
    validation.validate_aud = false;
    jsonwebtoken::decode::<Claims>(token, key, &validation).ok().map(|decoded| decoded.claims)
}

/// The keys of a JWKS that can be used.
pub(super) fn read_jwks(text: &[u8]) -> Result<Vec<PinnedKey>, String> {
    let set: Value = serde_json::from_slice(text).map_err(|cause| format!("it is no JSON: {cause}"))?;
    let keys = set["keys"].as_array().ok_or("it has no list `keys`")?;
    if keys.len() > KEYS_MAX {
        return Err(format!("it has {} keys; {KEYS_MAX} are the limit", keys.len()));
    }
    let mut usable = Vec::new();
    for key in keys {
        match pinned(key) {
            Ok(key) => usable.push(key),
            Err(why) => {
                let id = key["kid"].as_str().unwrap_or("without kid");
                tracing::warn!(key = id, why, "a published key is left out");
            }
        }
    }
    if usable.is_empty() { Err("it has no usable key".to_owned()) } else { Ok(usable) }
}

/// A key with its algorithm, which follows from what the key is.
fn pinned(key: &Value) -> Result<PinnedKey, &'static str> {
    let jwk: Jwk = serde_json::from_value(key.clone()).map_err(|_| "it cannot be read")?;
    let (algorithm, named) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        // A secret that everybody can fetch is none.
        AlgorithmParameters::OctetKey(_) => return Err("it is a secret"),
        _ => return Err("its kind is none of RSA, P-256 and Ed25519"),
    };
    if jwk.common.key_algorithm.is_some_and(|says| says != named) {
        return Err("its algorithm is none of RS256, ES256 and EdDSA");
    }
    if !matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
        return Err("it is not for signatures");
    }
    let key = DecodingKey::from_jwk(&jwk).map_err(|_| "its numbers cannot be read")?;
    Ok(PinnedKey { id: jwk.common.key_id, algorithm, key })
}
