//! The claims of a host application's token, read and written.
//!
//! Guarantees: `sub`, `role` and `exp` are required; a claim that cannot be read makes the whole token count for nothing,
//! instead of opening less or more than was meant. Does not do: verify signatures.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use model::access::{Caller, Companies, Organisations, Role};
use model::sharing::is_guest;
use model::{CompanyId, OrganisationId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Two clocks never agree.
const CLOCK_TOLERANCE_SECONDS: i64 = 60;

/// The claims we know; others are ignored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    sub: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    companies: Value,
    #[serde(default)]
    organisations: Value,
    role: String,
    exp: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    aud: Value,
}

/// For whom and by whom a token must have been made. Not set means that it is not looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Option<String>,
}

impl Claims {
    /// The caller these claims describe, if they hold now.
    pub(crate) fn caller(self, checks: &Checks, now: Timestamp) -> Option<Caller> {
        // Nobody the host application knows may be taken for a guest.
        if !self.holds_at(now) || !self.passes(checks) || self.sub.is_empty() || is_guest(&self.sub) {
            return None;
        }
        Some(Caller {
            role: Role::parse(&self.role)?,
            companies: companies(&self.companies)?,
            organisations: organisations(&self.organisations)?,
            name: self.name.unwrap_or_else(|| self.sub.clone()),
            id: self.sub,
        })
    }

    fn holds_at(&self, now: Timestamp) -> bool {
        let now = now.as_second();
        let has_begun = self.nbf.is_none_or(|begins| begins.saturating_sub(CLOCK_TOLERANCE_SECONDS) <= now);
        has_begun && now < self.exp.saturating_add(CLOCK_TOLERANCE_SECONDS)
    }

    fn passes(&self, checks: &Checks) -> bool {
        let is_from_them = checks.issuer.is_none() || checks.issuer == self.iss;
        let is_for_us = checks.audience.as_deref().is_none_or(|us| match &self.aud {
            Value::String(one) => one == us,
            Value::Array(many) => many.iter().any(|one| one.as_str() == Some(us)),
            _ => false,
        });
        is_from_them && is_for_us
    }

    fn of(caller: &Caller, checks: &Checks, exp: i64) -> Self {
        Self {
            sub: caller.id.clone(),
            name: Some(caller.name.clone()),
            companies: match &caller.companies {
                Companies::All => Value::from("*"),
                Companies::Only(ids) => ids.iter().map(CompanyId::as_str).collect(),
            },
            organisations: match &caller.organisations {
                Organisations::All => Value::from("*"),
                Organisations::Only(ids) => ids.iter().map(OrganisationId::as_str).collect(),
            },
            role: caller.role.as_str().to_owned(),
            exp,
            nbf: None,
            iss: checks.issuer.clone(),
            aud: checks.audience.clone().map_or(Value::Null, Value::from),
        }
    }
}

/// A list, a star, or nothing.
enum Listed<T> {
    All,
    Only(Vec<T>),
}

fn listed<T, E>(claim: &Value, parse: impl Fn(&str) -> Result<T, E>) -> Option<Listed<T>> {
    match claim {
        Value::Null => Some(Listed::Only(Vec::new())),
        Value::String(all) if all == "*" => Some(Listed::All),
        Value::Array(ids) => {
            let ids: Option<Vec<_>> = ids.iter().map(|id| parse(id.as_str()?).ok()).collect();
            ids.map(Listed::Only)
        }
        _ => None,
    }
}

fn companies(claim: &Value) -> Option<Companies> {
    Some(match listed(claim, CompanyId::parse)? {
        Listed::All => Companies::All,
        Listed::Only(ids) => Companies::Only(ids),
    })
}

fn organisations(claim: &Value) -> Option<Organisations> {
    Some(match listed(claim, OrganisationId::parse)? {
        Listed::All => Organisations::All,
        Listed::Only(ids) => Organisations::Only(ids),
    })
}

/// A token for a caller, signed with a secret (HS256).
pub(crate) fn sign(
    secret: &[u8],
    caller: &Caller,
    checks: &Checks,
    (now, life): (Timestamp, Duration),
) -> String {
    let exp = now.as_second().saturating_add(i64::try_from(life.as_secs()).unwrap_or(i64::MAX / 2));
    let claims = Claims::of(caller, checks, exp);
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(secret))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_companies_claim_is_a_list_or_a_star_and_nothing_else() {
        assert_eq!(companies(&json!("*")), Some(Companies::All));
        assert_eq!(
            companies(&json!(["acme"])),
            Some(Companies::Only(vec![CompanyId::parse("acme").unwrap()]))
        );
        assert_eq!(companies(&Value::Null), Some(Companies::Only(Vec::new())));
        for strange in [json!("acme"), json!(1), json!(["../x"]), json!([1]), json!({}), json!(["*"])] {
            assert_eq!(companies(&strange), None, "{strange}");
            assert_eq!(organisations(&strange), None, "{strange}");
        }
    }

    fn claims(changes: Value) -> Claims {
        let mut claims = json!({ "sub": "ann", "role": "editor", "exp": 1000, "organisations": ["o1"] });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        serde_json::from_value(claims).unwrap()
    }

    #[test]
    fn claims_hold_between_their_times_with_a_minute_of_tolerance() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let counts =
            |changes: Value, second| claims(changes).caller(&Checks::default(), at(second)).is_some();

        assert!(counts(json!({}), 0) && counts(json!({}), 1059));
        assert!(!counts(json!({}), 1060));
        assert!(counts(json!({ "nbf": 500 }), 440) && !counts(json!({ "nbf": 500 }), 439));
        assert!(!counts(json!({ "exp": i64::MIN }), 0) && counts(json!({ "exp": i64::MAX }), 0));
        assert!(!counts(json!({ "sub": "" }), 0) && !counts(json!({ "role": "root" }), 0));
    }

    #[test]
    fn issuer_and_audience_are_looked_at_if_they_are_configured() {
        let checks =
            Checks { issuer: Some("https://id.example".to_owned()), audience: Some("saveguard".to_owned()) };
        let counts =
            |changes: Value| claims(changes).caller(&checks, Timestamp::from_second(0).unwrap()).is_some();
        let iss = "https://id.example";

        assert!(counts(json!({ "iss": iss, "aud": "saveguard" })));
        assert!(counts(json!({ "iss": iss, "aud": ["other", "saveguard"] })));
        for strange in [
            json!({}),
            json!({ "iss": iss }),
            json!({ "aud": "saveguard" }),
            json!({ "iss": "https://evil.example", "aud": "saveguard" }),
            json!({ "iss": iss, "aud": "saveguard2" }),
            json!({ "iss": iss, "aud": ["other"] }),
            json!({ "iss": iss, "aud": 1 }),
        ] {
            assert!(!counts(strange.clone()), "{strange}");
        }
    }

    #[test]
    fn organisations_reach_the_caller() {
        let caller =
            claims(json!({})).caller(&Checks::default(), Timestamp::from_second(0).unwrap()).unwrap();

        let expected = Organisations::Only(vec![OrganisationId::parse("o1").unwrap()]);
        assert_eq!(caller.organisations, expected);
        assert_eq!((caller.id.as_str(), caller.name.as_str()), ("ann", "ann"));
    }
}
