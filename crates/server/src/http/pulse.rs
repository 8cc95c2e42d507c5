//! The last hour of this process for operators: saves and how long their answers took.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use crate::pulse::{SLOT_SECONDS, SLOTS, last_hour, last_slot_seconds};

/// The last hour, slot by slot, the oldest first. The last slot is not over yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PulseView {
    /// How long a slot is.
    slot_seconds: u64,
    /// How many there are when the process has run for an hour.
    slots_max: u64,
    /// How far the last slot is, in seconds.
    last_slot_seconds: u64,
    /// Saves that were stored, in each slot.
    saves: Vec<u32>,
    /// Half of the callbacks were answered within so many ms; none without callbacks.
    p50_ms: Vec<Option<f64>>,
    /// Nineteen of twenty were.
    p95_ms: Vec<Option<f64>>,
}

/// Saves and the time to their answers in the last hour of this process.
#[utoipa::path(get, path = "/api/v1/operations/pulse", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = PulseView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_pulse(session: Session) -> Result<Json<PulseView>, Problem> {
    session.allow_operating()?;
    let beats = last_hour();
    Ok(Json(PulseView {
        slot_seconds: SLOT_SECONDS,
        slots_max: SLOTS,
        last_slot_seconds: last_slot_seconds(),
        saves: beats.iter().map(|beat| beat.saves).collect(),
        p50_ms: beats.iter().map(|beat| beat.p50_ms).collect(),
        p95_ms: beats.iter().map(|beat| beat.p95_ms).collect(),
    }))
}
