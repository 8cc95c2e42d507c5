//! The last hour for operators, of all instances: saves and how long their answers took.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use crate::app::App;
use crate::instances::{self, Subject};
use crate::pulse::{SLOT_SECONDS, SLOTS, last_slot_seconds, own, together};

/// The last hour, slot by slot, the oldest first. The last slot is not over yet.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PulseView {
    /// How long a slot is.
    slot_seconds: u64,
    /// How many there are when some instance has run for an hour.
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

/// Saves and the time to their answers in the last hour, on all instances.
#[utoipa::path(get, path = "/api/v1/operations/pulse", tag = "operations", security(("bearer" = [])),
    responses((status = 200, body = PulseView), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_pulse(
    State(app): State<Arc<App>>,
    session: Session,
) -> Result<Json<PulseView>, Problem> {
    session.allow_operating()?;
    let mut told = vec![(Duration::ZERO, own())];
    let others = instances::heard(&app, Subject::Pulse).await;
    told.extend(others.into_iter().map(|heard| (heard.age, heard.what)));
    let beats = together(&told);
    Ok(Json(PulseView {
        slot_seconds: SLOT_SECONDS,
        slots_max: SLOTS,
        last_slot_seconds: last_slot_seconds(),
        saves: beats.iter().map(|beat| beat.saves).collect(),
        p50_ms: beats.iter().map(|beat| beat.p50_ms).collect(),
        p95_ms: beats.iter().map(|beat| beat.p95_ms).collect(),
    }))
}
