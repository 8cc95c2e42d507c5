//! `saveguard drain`: everything that is being typed is saved, nobody is dropped, and what is at risk is named.

use reqwest::Method;
use serde_json::{Value, json};
use understudy::server::FaultKind;

use crate::cli::{json as json_of, saveguard};
use crate::support::Stage;

async fn drain(stage: &Stage, seconds: &'static str) -> (Option<i32>, Value) {
    let config = stage.app().config.clone();
    let arguments = ["drain", "--within", seconds, "--json"];
    let output = tokio::task::spawn_blocking(move || saveguard(&config, &arguments)).await.unwrap();
    (output.status.code(), json_of(&output))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_saves_what_is_being_typed_and_drops_nobody() {
    let stage = Stage::start().await;
    for id in ["1", "2", "3"] {
        stage.docx(id).await;
    }
    let ann = stage.edit("1", "ann").await;
    let bob = stage.edit("2", "bob").await;
    let _idle = stage.edit("3", "cyd").await;
    ann.write("Ann's unsaved words.").await.unwrap();
    bob.write("Bob's unsaved words.").await.unwrap();

    let (code, view) = drain(&stage, "30").await;

    assert_eq!((code, &view["is_safe"], &view["at_risk"]), (Some(0), &json!(true), &json!(0)), "{view}");
    assert_eq!(view["sessions"], 3);
    assert!(stage.text("1").await.contains("Ann's unsaved words."));
    assert!(stage.text("2").await.contains("Bob's unsaved words."));
    assert_eq!(stage.versions("3").await, ["1"], "nothing was typed there");
    ann.write("Ann is still inside.").await.unwrap();
    ann.close().await.unwrap();
    stage.wait_for_head("1", "2").await;
    assert!(stage.text("1").await.contains("Ann is still inside."));
    let trail = stage.app().ledger.audit("saveguard:installation", 0, 100).await.unwrap();
    assert!(trail.iter().any(|(entry, _)| entry.action == "drain-asked"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_in_time_is_at_risk_and_named() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Hard to get.").await.unwrap();
    stage.editor.faults().arm(FaultKind::BodySlow { over_ms: 5_000 }.always());

    let (code, view) = drain(&stage, "2").await;

    assert_eq!((code, &view["is_safe"]), (Some(1), &json!(false)), "{view}");
    assert_eq!(view["left"][0]["document"], "12345");
    stage.editor.faults().clear();
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let (code, view) = drain(&stage, "30").await;
    assert_eq!((code, &view["at_risk"]), (Some(0), &json!(0)), "{view}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_without_a_document_server_says_so() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Out of reach.").await.unwrap();
    let Stage { service, others, editor, site: _site, .. } = stage;
    let config = service.app.config.clone();
    editor.stop().await;

    let arguments = ["drain", "--within", "1", "--json"];
    let output = tokio::task::spawn_blocking(move || saveguard(&config, &arguments)).await.unwrap();

    let view = json_of(&output);
    assert_eq!((output.status.code(), &view["left"][0]["why"]), (Some(1), &json!("server-away")), "{view}");
    for service in others.into_iter().chain([service]) {
        service.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_has_a_deadline_within_reason() {
    let stage = Stage::start().await;

    for seconds in [json!(0), json!(3601), json!("soon")] {
        let request = stage.request(Method::POST, "/api/v1/operations/drain");
        let response = request.json(&json!({ "seconds": seconds })).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 400, "{seconds}");
    }
    stage.stop().await;
}
