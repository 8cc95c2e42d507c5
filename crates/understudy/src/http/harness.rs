//! What a harness in another process needs: the journal, the whereabouts of changes, faults.
//!
//! Guarantees: reads never change anything; the journal comes as JSON lines.
//!
//! Does not ask for a token: the server listens on loopback only.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use crate::machine::Machine;
use crate::server::Fault;

#[derive(Deserialize)]
pub(super) struct Since {
    #[serde(default)]
    since: u64,
}

pub(super) async fn journal(State(site): Shared, Query(Since { since }): Query<Since>) -> String {
    let entries = site.journal.since(since);
    let lines = entries.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default() + "\n");
    lines.collect()
}

pub(super) async fn changes(State(site): Shared) -> Json<Value> {
    Json(json!(site.journal.changes()))
}

pub(super) async fn key(State(site): Shared, Path(key): Path<String>) -> Result<Json<Value>, StatusCode> {
    let look = move |machine: &Machine| {
        let record = machine.durable().record(&key)?;
        Some(json!({
            "row": record.row,
            "changes": record.changes,
            "base_sha256": record.base.as_ref().map(|base| &base.content.sha256),
            "forgotten_sha256": record.forgotten.as_ref().map(|file| &file.sha256),
            "editors": machine.conns_of(&key).filter(|(_, conn)| conn.edits()).count(),
        }))
    };
    let found = site.desk.look(look).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    found.map(Json).ok_or(StatusCode::NOT_FOUND)
}

pub(super) async fn faults(State(site): Shared) -> Json<Vec<Fault>> {
    Json(site.faults.armed())
}

pub(super) async fn arm(State(site): Shared, Json(fault): Json<Fault>) -> StatusCode {
    site.faults.arm(fault);
    StatusCode::NO_CONTENT
}

pub(super) async fn clear(State(site): Shared) -> StatusCode {
    site.faults.clear();
    StatusCode::NO_CONTENT
}

/// Whether nothing is going on and nothing is about to.
pub(super) async fn quiet(State(site): Shared) -> Json<Value> {
    let quiet = site.desk.look(Machine::is_quiet).await.unwrap_or(true);
    Json(json!({"quiet": quiet}))
}
