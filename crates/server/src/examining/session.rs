//! A whole editing session, played hop by hop.

use std::time::Duration;

use serde_json::{Value, json};
use understudy::client::{Client, ClientError, Options};
use understudy::server::Opening;

use super::{CALLER, Chart, Patient};
use crate::telemetry::report;

const COMPANY: &str = "saveguard-doctor";
const PROJECT: &str = "probe";
const DOCUMENT: &str = "saveguard-doctor-probe";
/// How long a hop of the session may take: a real server converts in seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

const OPEN: &str = "session: the document opens";
const SEEN: &str = "session: its callback arrives";
const FORCE_SAVE: &str = "session: a force save is stored";
const CLOSE: &str = "session: the final save is stored";

/// Plays the session; stops at the first broken hop.
pub(super) async fn play(patient: &Patient, chart: &mut Chart) {
    let config = match prepare(patient).await {
        Ok(config) => config,
        Err(cause) => {
            let next = "Look at the service's log; the store or the Document Server's word about an older session is missing.";
            return chart.fail("session: a configuration", cause, next);
        }
    };
    chart.ok("session: a configuration", "signed and handed out");
    let refused_before = refused_callbacks(patient).await;
    let Some(client) = open(patient, &config, chart).await else { return };
    if !is_seen(patient, refused_before, chart).await {
        let _ = client.close().await;
        return;
    }
    if is_understudy(patient).await {
        change_and_close(patient, client, chart).await;
    } else {
        let _ = client.close().await;
        let detail = "only its own editor can change a document on a real Document Server";
        chart.skip(FORCE_SAVE, detail);
        chart.skip(CLOSE, "without a change there is nothing to save");
    }
}

/// A document of the doctor's own, and a configuration to edit it.
async fn prepare(patient: &Patient) -> Result<Value, String> {
    let named = |id: &str| json!({ "id": id, "name": "Saveguard doctor" });
    ensure(patient, "/api/v1/companies", Body::Json(named(COMPANY))).await?;
    ensure(patient, &format!("/api/v1/companies/{COMPANY}/projects"), Body::Json(named(PROJECT))).await?;
    let upload =
        format!("/api/v1/companies/{COMPANY}/projects/{PROJECT}/documents?id={DOCUMENT}&name=probe.docx");
    let bytes =
        understudy::office::sample_docx("Saveguard doctor", &["This document is only for the doctor."]);
    ensure(patient, &upload, Body::Bytes(bytes)).await?;
    let path = format!("/api/v1/documents/{DOCUMENT}/editor-config");
    let response = post(patient, &path, Body::Json(json!({ "mode": "edit" }))).await?;
    let status = response.status();
    let answer: Value =
        response.json().await.map_err(|cause| format!("no JSON came back: {}", report(&cause)))?;
    if !status.is_success() {
        let words = |name: &str| answer[name].as_str().unwrap_or_default();
        return Err(format!("{status} {} {}", words("detail"), words("next")));
    }
    Ok(answer["config"].clone())
}

enum Body {
    Json(Value),
    Bytes(bytes::Bytes),
}

async fn post(patient: &Patient, path: &str, body: Body) -> Result<reqwest::Response, String> {
    let url = format!("{}{path}", patient.base);
    let request = patient.http.post(&url).bearer_auth(&patient.token).timeout(PATIENCE);
    let request = match body {
        Body::Json(body) => request.json(&body),
        Body::Bytes(body) => request.body(body),
    };
    request.send().await.map_err(|cause| format!("{path} does not answer: {}", report(&cause)))
}

/// Makes something, unless an earlier examination did.
async fn ensure(patient: &Patient, path: &str, body: Body) -> Result<(), String> {
    let response = post(patient, path, body).await?;
    match response.status().as_u16() {
        200..=299 | 409 => Ok(()),
        status => Err(format!("{path} answered {status}: {}", response.text().await.unwrap_or_default())),
    }
}

async fn open(patient: &Patient, config: &Value, chart: &mut Chart) -> Option<Client> {
    let server = patient.config.document_server.internal_url.as_str().trim_end_matches('/');
    let options = Options { patience: PATIENCE, ..Options::default() };
    let opened = match Client::open(server, config, options).await {
        Ok(client) => client.opened().await.map(|opening| (client, opening)),
        Err(cause) => Err(cause),
    };
    match opened {
        Ok((client, Opening::Ready)) => {
            chart.ok(OPEN, "the Document Server fetched its source from us");
            Some(client)
        }
        Ok((_, Opening::Failed(code))) => {
            let next = "The Document Server cannot fetch from `server.internal_url`: a firewall, a name it cannot resolve, or \
                        its filter for private addresses (request-filtering-agent.allowPrivateIPAddress).";
            chart.fail(OPEN, format!("it could not fetch the source (error {code})"), next);
            None
        }
        Ok((_, other)) => {
            chart.fail(OPEN, format!("it answered: {other:?}"), "Try again; if it stays, look at its logs.");
            None
        }
        Err(ClientError::Refused { code, description }) => {
            let next = "Give both sides the same secret, and see that the clocks agree.";
            chart.fail(OPEN, format!("it refused our configuration: {code} {description}"), next);
            None
        }
        Err(cause) => {
            let next = "A proxy between us and the Document Server may not let WebSockets through.";
            chart.fail(OPEN, report(&cause), next);
            None
        }
    }
}

/// Status 1 names us: the Document Server reached our callback and we trusted it.
async fn is_seen(patient: &Patient, refused_before: Option<f64>, chart: &mut Chart) -> bool {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while tokio::time::Instant::now() < deadline {
        let editors = document(patient).await.map(|document| document["editors"].clone()).unwrap_or_default();
        if editors.as_array().is_some_and(|editors| editors.iter().any(|editor| editor == CALLER)) {
            chart.ok(SEEN, "the Document Server reached us and its signature is right");
            return true;
        }
        if refused_callbacks(patient).await > refused_before {
            let next = "Its outgoing secret or header differ: compare `services.CoAuthoring.secret.outbox` and \
                        `token.outbox.header` with `document_server.secret` and `document_server.jwt_header`.";
            chart.fail(SEEN, "the Document Server reached us, but its token was refused", next);
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let next = "The Document Server cannot post to `server.internal_url`: a firewall, a name it cannot resolve, a proxy \
                that redirects, or its filter for private addresses.";
    chart.fail(SEEN, "no callback came", next);
    false
}

async fn change_and_close(patient: &Patient, client: Client, chart: &mut Chart) {
    let before = head(patient).await.unwrap_or_default();
    let changed = async {
        client.write("The doctor was here.").await?;
        client.force_save().await
    };
    if let Err(cause) = changed.await {
        return chart.fail(FORCE_SAVE, report(&cause), "Look at the Document Server's logs.");
    }
    let next = "The save was sent and is not stored: the service's log says at which step it stopped.";
    if !wait_until(patient, |document| document["head"] != before.as_str()).await {
        return chart.fail(FORCE_SAVE, "the force save never became a checkpoint", next);
    }
    chart.ok(FORCE_SAVE, "fetched, checked, stored and committed");
    if let Err(cause) = client.close().await {
        return chart.fail(CLOSE, report(&cause), "Look at the Document Server's logs.");
    }
    let is_version = |document: &Value| {
        document["head"].as_str().is_some_and(|head| !head.contains('.') && head != before)
    };
    if !wait_until(patient, is_version).await {
        return chart.fail(CLOSE, "the final save never became a version", next);
    }
    let version = head(patient).await.unwrap_or_default();
    chart.ok(CLOSE, format!("version {version} of the doctor's own document"));
}

async fn head(patient: &Patient) -> Option<String> {
    document(patient).await?["head"].as_str().map(str::to_owned)
}

async fn document(patient: &Patient) -> Option<Value> {
    let url = format!("{}/api/v1/documents/{DOCUMENT}", patient.base);
    patient.http.get(&url).bearer_auth(&patient.token).send().await.ok()?.json().await.ok()
}

async fn wait_until(patient: &Patient, is_so: impl Fn(&Value) -> bool) -> bool {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if document(patient).await.is_some_and(|document| is_so(&document)) {
            return true;
        }
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// How many callbacks were refused so far, from the service's own metrics.
async fn refused_callbacks(patient: &Patient) -> Option<f64> {
    let url = format!("{}/metrics", patient.base);
    let text = patient.http.get(&url).bearer_auth(&patient.token).send().await.ok()?.text().await.ok()?;
    let refused = text
        .lines()
        .filter(|line| line.starts_with("saveguard_callbacks_total") && line.contains("answer=\"refused\""));
    Some(refused.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}

/// The stand-in of the demo takes changes from anybody who speaks its language.
async fn is_understudy(patient: &Patient) -> bool {
    let base = patient.config.document_server.internal_url.as_str().trim_end_matches('/');
    let asked = patient.http.get(format!("{base}/understudy/changes")).send().await;
    asked.is_ok_and(|response| response.status().is_success())
}
