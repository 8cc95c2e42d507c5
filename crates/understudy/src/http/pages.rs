//! Health, information, and the graceful shutdown.
//!
//! Guarantees: the shapes of the real server: health is always 200 with the text `true`; the shutdown answers
//! when everything is saved.
//!
//! Does not measure anything.

use axum::Json;
use axum::extract::State;
use axum::http::Method;
use serde_json::{Value, json};

use super::Shared;
use crate::machine::{Machine, Shutdown};
use crate::times;

pub(super) async fn health() -> &'static str {
    "true"
}

pub(super) async fn info(State(site): Shared) -> Json<Value> {
    let version = &site.settings.version;
    let now_ms = site.settings.clock.now_ms() / 1000 * 1000;
    let none = json!({"edit": {"min": 0, "avr": 0, "max": 0}, "view": {"min": 0, "avr": 0, "max": 0}});
    Json(json!({
        "connectionsStat": {"hour": none, "day": none, "week": none, "month": none, "year": none},
        "licenseInfo": {"type": 3, "mode": 0, "connections": 20, "connectionsView": 20, "packageType": 0},
        "serverInfo": {"buildVersion": version, "buildNumber": 1, "date": times::iso(now_ms)},
        "quota": {
            "edit": {"connectionsCount": 0, "usersCount": {"unique": 0, "anonymous": 0}},
            "view": {"connectionsCount": 0, "usersCount": {"unique": 0, "anonymous": 0}},
            "byMonth": [],
        },
    }))
}

/// `PUT` begins a shutdown, `DELETE` calls it off; both answer `true` or `false` when they are through.
pub(super) async fn shut_down(State(site): Shared, method: Method) -> String {
    let what = if method == Method::PUT { Shutdown::Begin } else { Shutdown::CallOff };
    let done = site.desk.shut_down(what).await.is_ok_and(|reply| reply.done);
    done.to_string()
}

pub(super) async fn is_shut_down(State(site): Shared) -> Json<Value> {
    let shutdown = site.desk.look(Machine::is_shut_down).await.unwrap_or(true);
    Json(json!({"shutdown": shutdown}))
}
