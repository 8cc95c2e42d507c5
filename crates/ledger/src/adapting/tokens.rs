//! Whom a token is for, as the text of a row and back.
//!
//! Guarantees: a row that says anything else than we write opens nothing.

use model::access::{Companies, Organisations};
use model::{CompanyId, OrganisationId};
use serde_json::Value;

pub(crate) fn companies_text(companies: &Companies) -> Value {
    match companies {
        Companies::All => Value::from("*"),
        Companies::Only(ids) => ids.iter().map(CompanyId::as_str).collect(),
    }
}

pub(crate) fn organisations_text(organisations: &Organisations) -> Value {
    match organisations {
        Organisations::All => Value::from("*"),
        Organisations::Only(ids) => ids.iter().map(OrganisationId::as_str).collect(),
    }
}

/// What a row must say; a token that says something else opens nothing.
pub(crate) fn companies(text: &str) -> Option<Companies> {
    match serde_json::from_str(text).ok()? {
        Value::String(all) if all == "*" => Some(Companies::All),
        Value::Array(ids) => {
            let ids: Option<_> = ids.iter().map(|id| CompanyId::parse(id.as_str()?).ok()).collect();
            ids.map(Companies::Only)
        }
        _ => None,
    }
}

pub(crate) fn organisations(text: &str) -> Option<Organisations> {
    match serde_json::from_str(text).ok()? {
        Value::String(all) if all == "*" => Some(Organisations::All),
        Value::Array(ids) => {
            let ids: Option<_> = ids.iter().map(|id| OrganisationId::parse(id.as_str()?).ok()).collect();
            ids.map(Organisations::Only)
        }
        _ => None,
    }
}
