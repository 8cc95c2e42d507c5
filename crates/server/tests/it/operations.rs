//! Health, readiness, metrics, lanes, the API description, and the orderly end.

use std::time::Duration;

use reqwest::Method;
use understudy::server::FaultKind;

use crate::support::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn health_and_readiness_answer_without_a_token() {
    let stage = Stage::start().await;

    for path in ["/healthz", "/readyz"] {
        let response = stage.http.get(format!("{}{path}", stage.base)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
    }
    stage.apps().for_each(|app| app.stop_being_ready());
    let ready = stage.http.get(format!("{}/readyz", stage.base)).send().await.unwrap();
    assert_eq!(ready.status().as_u16(), 503);
    let alive = stage.http.get(format!("{}/healthz", stage.base)).send().await.unwrap();
    assert_eq!(alive.status().as_u16(), 200);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newcomers_are_served_until_balancers_have_noticed_that_the_service_stops() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;
    session.write("Last words.").await.unwrap();

    stage.app().stop_being_ready();

    let response = stage.request(Method::GET, "/api/v1/companies").send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newcomers_are_told_to_come_back_while_the_service_stops() {
    let stage = Stage::start().await;
    stage.apps().for_each(|app| app.turn_newcomers_away());

    let response = stage.request(Method::GET, "/api/v1/companies").send().await.unwrap();

    assert_eq!(response.status().as_u16(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(response.json::<serde_json::Value>().await.unwrap()["code"], "API_007");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_show_saves_in_progress() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::BodySlow { over_ms: 1500 }.always());
    let session = stage.edit("12345", "ann").await;
    session.write("Slow.").await.unwrap();
    session.close().await.unwrap();

    stage
        .wait_until("a lane appears", async || {
            let lanes = stage.get("/api/v1/operations/lanes").await;
            lanes["lanes"]
                .as_array()
                .unwrap()
                .iter()
                .any(|lane| lane["name"] == "callback-12345" && lane["preparing"] == 1)
        })
        .await;
    stage.wait_for_head("12345", "2").await;
    stage
        .wait_until("the lane goes", async || stage.get("/api/v1/operations/lanes").await["is_empty"] == true)
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_every_step_of_a_save() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;
    session.write("Counted.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    stage
        .wait_until("all metrics are there", async || {
            let text = stage.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
            [
                "saveguard_callbacks_total{status=\"2\",answer=\"saved\"}",
                "saveguard_saves_total{outcome=\"version\"}",
                "saveguard_save_step_seconds_count{step=\"fetch\"}",
                "saveguard_save_step_seconds_count{step=\"check\"}",
                "saveguard_save_step_seconds_count{step=\"store\"}",
                "saveguard_save_step_seconds_count{step=\"commit\"}",
                "saveguard_callback_answer_seconds_count",
                "saveguard_openings_total{mode=\"edit\",result=\"opened\"}",
                "saveguard_publications_total{result=\"published\"}",
                "saveguard_ledger_rows{kind=\"documents\"}",
                "saveguard_lanes{",
                "saveguard_ready 1",
            ]
            .iter()
            .all(|name| text.contains(name))
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_description_is_served_and_names_every_route() {
    let stage = Stage::start().await;

    let description = stage.get("/api/openapi.json").await;

    assert!(description["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!(description["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    for path in [
        "/callback/{document}",
        "/stream/{document}",
        "/api/v1/documents/{document}/editor-config",
        "/api/v1/operations/lanes",
    ] {
        assert!(description["paths"].get(path).is_some(), "{path}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_says_nothing_is_not_waited_for() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    // Half a callback, then silence: it must not keep others waiting.
    let mut silent = tokio::net::TcpStream::connect(stage.service.address()).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(
        &mut silent,
        b"POST /callback/12345 HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    )
    .await
    .unwrap();

    let answered = tokio::time::timeout(Duration::from_secs(20), stage.document("12345")).await;

    assert!(answered.is_ok());
    drop(silent);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_service_is_kept_out_of_the_data_folder() {
    let stage = Stage::start().await;
    let mut config = stage.app().config.clone();
    config.server.listen.set_port(0);

    let second = saveguard::service::Service::start(config, model::Guards::ALL).await;

    let message = second.err().unwrap().to_string();
    assert!(message.contains("another Saveguard"), "{message}");
    stage.stop().await;
}
