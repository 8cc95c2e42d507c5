//! A save as one trace, seen by a collector: the real program, and a small receiver of OTLP over HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use saveguard::clock::{Clock as _, SystemClock};
use saveguard::http::sign_api_token;
use serde_json::{Value, json};
use understudy::Settings;

use crate::support::serving::{Serving, until};
use crate::support::site::Site;
use crate::support::{SECRET, admin};

type Spans = Arc<Mutex<Vec<Value>>>;

/// Listens for spans; returns its address.
async fn collect(spans: Spans) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/traces", post(receive)).with_state(spans);
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1/traces")
}

async fn receive(State(spans): State<Spans>, Json(body): Json<Value>) -> Json<Value> {
    let resource = &body["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "saveguard");
    let arrived = resource["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    spans.lock().unwrap().extend(arrived);
    Json(json!({}))
}

/// The spans of the trace that a callback with a commit began, by name.
fn save_in(spans: &[Value]) -> Option<BTreeMap<String, Value>> {
    let commit = spans.iter().find(|span| span["name"] == "commit")?;
    let own = spans.iter().filter(|span| span["traceId"] == commit["traceId"]);
    let own: BTreeMap<String, Value> =
        own.map(|span| (span["name"].as_str().unwrap().to_owned(), span.clone())).collect();
    own.contains_key("POST /callback/{document}").then_some(own)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_is_one_trace_from_the_callback_to_the_commit() {
    let spans = Spans::default();
    let endpoint = collect(Arc::clone(&spans)).await;
    let site = Site::new().await;
    let editor =
        understudy::start(Settings::default().with_time_scale(20.0).with_secret(SECRET)).await.unwrap();
    let config = site.config(&editor.url(), &[]);
    let _serving = Serving::start(&config, &[("TRACES_ENDPOINT", &endpoint)], &[]);
    let base = config.server.public_url.as_str().trim_end_matches('/').to_owned();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    until(async || http.get(format!("{base}/healthz")).send().await.ok()).await;
    let token = sign_api_token(&config, &admin(), SystemClock.now(), Duration::from_secs(600));
    let call = async |path: &str, body: reqwest::Body| {
        let request = http.post(format!("{base}{path}")).bearer_auth(&token);
        let request = request.header("content-type", "application/json");
        let request =
            request.header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        request.body(body).send().await.unwrap().json::<Value>().await.unwrap()
    };
    call("/api/v1/companies", json!({ "id": "acme", "name": "Acme" }).to_string().into()).await;
    call("/api/v1/companies/acme/projects", json!({ "id": "p", "name": "P" }).to_string().into()).await;
    let bytes = understudy::office::sample_docx("Report", &["It begins."]);
    call("/api/v1/companies/acme/projects/p/documents?id=12345&name=report.docx", bytes.into()).await;
    let view = call("/api/v1/documents/12345/editor-config", "{\"mode\":\"edit\"}".into()).await;
    let session = editor.open(&view["config"]).await.unwrap();
    session.opened().await;
    session.write("Traced.").await.unwrap();
    session.close().await.unwrap();

    let save = until(async || save_in(&spans.lock().unwrap())).await;

    let callback = &save["POST /callback/{document}"];
    assert_eq!((&callback["kind"], &callback["parentSpanId"]), (&json!(2), &json!("")));
    for step in ["fetch", "check", "store", "commit"] {
        let span = &save[step];
        let parent = &save["callback-12345"];
        assert_eq!(span["traceId"], callback["traceId"], "{step}");
        assert_eq!(parent["traceId"], callback["traceId"]);
        let (began, ended) = (nanoseconds(&span["startTimeUnixNano"]), nanoseconds(&span["endTimeUnixNano"]));
        assert!(began <= ended && began + 1_000_000 >= nanoseconds(&callback["startTimeUnixNano"]), "{step}");
    }
    let spans = spans.lock().unwrap();
    let opening = spans.iter().find(|span| span["name"] == "POST /api/v1/documents/{document}/editor-config");
    let opening = opening.unwrap();
    assert_eq!(opening["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736", "a caller's trace goes on");
    assert_eq!(opening["parentSpanId"], "00f067aa0ba902b7");
    let text = json!(*spans).to_string();
    assert!(!text.contains("report.docx") && !text.contains(&token), "nothing secret is in a span");
}

fn nanoseconds(value: &Value) -> u128 {
    value.as_str().unwrap().parse().unwrap()
}
