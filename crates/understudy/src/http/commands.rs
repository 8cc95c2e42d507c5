//! The command service over HTTP: tokens, parameters, answers.
//!
//! Guarantees: always 200; the body's `token` goes before the header's; with tokens on, only what the token says
//! counts; a bad token is error 6, an expired one 7, a missing key 1.
//!
//! Does not need `?shardkey=`, and ignores it like a server that is alone.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use super::{Shared, Site};
use crate::machine::{Command, CommandReply, command_error};
use crate::tokens::{TokenTrouble, verify};

pub(super) async fn command(
    State(site): Shared,
    headers: HeaderMap,
    Query(query): Query<BTreeMap<String, String>>,
    body: Bytes,
) -> Json<CommandReply> {
    let said = match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(said)) => said,
        _ => query.into_iter().map(|(name, value)| (name, Value::String(value))).collect(),
    };
    let key = said.get("key").and_then(Value::as_str).map(str::to_owned);
    let refuse =
        |error: u8, key: Option<String>| Json(CommandReply { key, error, ..CommandReply::default() });
    let parameters = match vouched(&site, &headers, said) {
        Ok(parameters) => parameters,
        Err(error) => return refuse(error, key),
    };
    let Some(command) = read(&parameters) else {
        return refuse(command_error::KEY, None);
    };
    let reply = site.desk.command(command, &site.base_url(&headers)).await;
    Json(reply.unwrap_or(CommandReply { error: command_error::INTERNAL, ..CommandReply::default() }))
}

/// The parameters that count.
fn vouched(site: &Site, headers: &HeaderMap, said: Map<String, Value>) -> Result<Map<String, Value>, u8> {
    if !site.settings.jwt.inbox {
        return Ok(said);
    }
    let in_body = said.get("token").and_then(Value::as_str).map(str::to_owned);
    let in_header = || {
        let header = headers.get(&site.settings.jwt.header)?.to_str().ok()?;
        header.strip_prefix("Bearer ").map(str::to_owned)
    };
    let token = in_body.or_else(in_header).ok_or(command_error::TOKEN)?;
    let claims =
        verify(&token, &site.settings.secrets.inbox, site.now_s()).map_err(|trouble| match trouble {
            TokenTrouble::Expired => command_error::TOKEN_EXPIRED,
            TokenTrouble::Invalid(_) => command_error::TOKEN,
        })?;
    let Value::Object(mut parameters) = claims else { return Err(command_error::TOKEN) };
    for nested in ["payload", "query"] {
        if let Some(Value::Object(more)) = parameters.get(nested).cloned() {
            parameters.extend(more);
        }
    }
    Ok(parameters)
}

/// The command meant; `None` if it needs a key and has none.
fn read(parameters: &Map<String, Value>) -> Option<Command> {
    let text = |name: &str| parameters.get(name).and_then(Value::as_str).map(str::to_owned);
    let key = text("key");
    let named = key.clone();
    let command = match text("c").unwrap_or_default().as_str() {
        "getForgottenList" => Command::GetForgottenList,
        "version" => Command::Version { key },
        "license" => Command::License { key },
        "info" => Command::Info { key: named?, userdata: text("userdata"), callback: text("callback") },
        "forcesave" => Command::ForceSave { key: named?, userdata: text("userdata") },
        "drop" => Command::Drop { key: named?, users: users(parameters.get("users")) },
        "meta" => Command::Meta {
            key: named?,
            meta: parameters.get("meta").filter(|meta| meta.is_object()).cloned(),
        },
        "getForgotten" => Command::GetForgotten { key: named? },
        "deleteForgotten" => Command::DeleteForgotten { key: named? },
        "saved" => Command::Saved { key: named?, status: text("status").unwrap_or_default() },
        _ => Command::Unknown { key: Some(named?) },
    };
    Some(command)
}

/// A list, or a list written as text.
fn users(value: Option<&Value>) -> Option<Vec<String>> {
    let list = match value? {
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    let Value::Array(list) = list else { return None };
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
