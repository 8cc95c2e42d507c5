//! The rows of `organisation_matrix` about what is handed in: summary logs, records and receipts.

use reqwest::Method;
use serde_json::json;

use crate::organisation_matrix::{Row, Sent, row};
use crate::support::Stage;
use crate::support::submissions::{KIND, load, scope};

/// The log whose rows are the records of the organisation.
pub(crate) const LOG: &str = "tainted-log";

/// A submission with the word in everything.
pub(crate) async fn taint(stage: &Stage) {
    let rows = [load("tainted", 7, &[("SUPPLIER", "tainted"), ("MATERIAL", "tainted")])];
    stage.submit(&scope("tainted", "tainted"), LOG, &rows).await;
}

/// A path below a registration.
macro_rules! below {
    ($path:literal) => {
        concat!("/api/v1/organisations/{organisation}/registrations/{registration}", $path)
    };
}

/// All of them. For the operator, a regulator, a submitter, who acts for another organisation, who acts for none.
pub(crate) fn rows() -> Vec<Row> {
    const SEEN: [u16; 5] = [200, 200, 200, 404, 404];
    const ACROSS: [u16; 5] = [200, 200, 403, 403, 403];
    let get = |path, statuses| row(Method::GET, path, Sent::Nothing, statuses);
    let post = |path, body, statuses| row(Method::POST, path, Sent::Json(body), statuses);
    let place = json!({ "company": "acme", "project": "plans" });
    let erasure = json!({ "kind": KIND, "all": true, "columns": ["SUPPLIER"], "reason": "tainted" });
    vec![
        get(below!("/summary-logs"), SEEN),
        // The registration has no template.
        row(
            Method::POST,
            below!("/summary-logs"),
            Sent::Text("tainted".to_owned()),
            [409, 403, 409, 404, 404],
        ),
        get(below!("/summary-logs/{log}"), SEEN),
        get(below!("/summary-logs/{log}/events"), SEEN),
        post(below!("/summary-logs/{log}/submit"), json!({}), [200, 403, 200, 404, 404]),
        get(below!("/summary-logs/{log}/file"), SEEN),
        get(below!("/summary-logs/{log}/problems"), SEEN),
        get(below!("/summary-logs/{log}/changes"), SEEN),
        get(below!("/summary-logs/{log}/receipt"), SEEN),
        // Its bytes are no workbook.
        get(below!("/summary-logs/{log}/marked"), [422, 422, 422, 404, 404]),
        // The company is asked before the workbook is looked at.
        post(below!("/summary-logs/{log}/open-as-document"), place, [422, 404, 404, 404, 404]),
        post(
            below!("/summary-logs/from-document"),
            json!({ "document": "missing" }),
            [404, 403, 404, 404, 404],
        ),
        get(below!("/submissions"), SEEN),
        post(below!("/submissions/{number}/undo"), json!({}), [409, 403, 409, 404, 404]),
        get(below!("/records"), SEEN),
        get(below!("/records/{kind}/{key}"), SEEN),
        get(below!("/records/export?format=jsonl"), SEEN),
        post(below!("/records/erase"), erasure, [200, 403, 403, 404, 404]),
        get("/api/v1/records/standings", ACROSS),
        get("/api/v1/records/overdue", ACROSS),
        get("/api/v1/records/export?format=csv", ACROSS),
        // It says nothing but what was sent.
        post("/api/v1/receipts/verify", json!({ "token": "x" }), [200; 5]),
    ]
}
