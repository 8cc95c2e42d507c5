//! Webhooks with a real receiver: signed, in order, again after trouble, and across a restart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, StatusCode};
use reqwest::Method;
use saveguard::clock::{Clock as _, SystemClock};
use saveguard::config::{Config, Webhook};
use saveguard::http::sign_api_token;
use serde_json::Value;
use understudy::server::FaultKind;

use crate::support::serving::{Serving, until};
use crate::support::site::Site;
use crate::support::{Stage, admin};

const SECRET: &str = "the secret of the receiver, which is long enough";

/// What arrived, in order, and how the receiver behaves.
#[derive(Clone, Default)]
struct Receiver {
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    /// Answers to give before everything is fine.
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Receiver {
    /// Listens; returns its address.
    async fn listen(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/hook", post(receive)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/hook")
    }

    fn behave(&self, answers: &[u16]) {
        *self.answers.lock().unwrap() = answers.iter().rev().copied().collect();
    }

    fn ids(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(id, _)| id.clone()).collect()
    }

    /// The labels of a document's events in the order they came, each id once.
    fn labels(&self, document: &str) -> Vec<String> {
        let mut seen = std::collections::HashSet::new();
        let heard = self.heard.lock().unwrap();
        let heard =
            heard.iter().filter(|(id, body)| body["data"]["document"] == document && seen.insert(id.clone()));
        heard.map(|(_, body)| body["data"]["label"].as_str().unwrap_or("?").to_owned()).collect()
    }

    fn types(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|(_, body)| body["type"].as_str().unwrap().to_owned()).collect()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, at) = (header("webhook-id"), header("webhook-timestamp"));
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(format!("{id}.{at}.{}", std::str::from_utf8(&body).unwrap()).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header("webhook-signature"), expected, "everything that comes is signed");
    let answer = receiver.answers.lock().unwrap().pop().unwrap_or(204);
    if answer != 500 {
        // With 502 it was taken and the answer was lost on its way.
        receiver.heard.lock().unwrap().push((id, serde_json::from_slice(&body).unwrap()));
    }
    if answer == 0 {
        // It has heard, and never gets to say so.
        std::future::pending::<()>().await;
    }
    StatusCode::from_u16(answer).unwrap()
}

/// A stage whose service is told to call a receiver.
async fn stage_with(receiver: &Receiver) -> Stage {
    let (mut paused, _) = Stage::start().await.pause().await;
    let url = receiver.listen().await;
    paused.change(|config| with_webhook(config, &url));
    paused.resume().await
}

fn with_webhook(config: &mut Config, url: &str) {
    use model::webhooks::Event;
    let secret = saveguard::config::Secret::parse(SECRET).unwrap();
    let webhook =
        Webhook { name: "crm".to_owned(), url: url.parse().unwrap(), secret, events: Event::ALL.to_vec() };
    config.webhooks = vec![webhook];
}

async fn edit(stage: &Stage, id: &str, text: &str) {
    let session = stage.edit(id, "ann").await;
    session.write(text).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_are_told_signed_and_in_order_whatever_the_receiver_does() {
    let receiver = Receiver::default();
    let stage = stage_with(&receiver).await;
    receiver.behave(&[500, 502, 500]);

    stage.docx("12345").await;
    edit(&stage, "12345", "Two.").await;
    stage.wait_for_head("12345", "2").await;
    edit(&stage, "12345", "Three.").await;
    stage.wait_for_head("12345", "3").await;
    stage.wait_until("all is told", async || receiver.labels("12345").len() == 3).await;

    assert_eq!(receiver.labels("12345"), ["1", "2", "3"]);
    let ids = receiver.ids();
    assert_eq!(ids[0], ids[1], "what was answered wrongly comes again under its id");
    assert!(receiver.types().iter().all(|kind| kind == "document.saved"));
    stage
        .wait_until("nothing waits", async || {
            stage.get("/api/v1/operations/webhooks").await["targets"][0]["waiting"] == 0
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_cannot_be_told_of_holds_up_no_other_and_survives_a_restart() {
    let receiver = Receiver::default();
    let stage = stage_with(&receiver).await;
    receiver.behave(&[500]);
    stage.docx("1").await;
    stage.wait_until("the first was refused", async || receiver.answers.lock().unwrap().is_empty()).await;

    let other = understudy::office::sample_docx("Other", &["Another."]);
    assert_eq!(stage.upload("2", "other.docx", &other).await.status(), StatusCode::CREATED);
    // Ended without a word, as a killed process does: what it had in hand is in the outbox.
    let (paused, _) = stage.pause().await;
    let stage = paused.resume().await;

    stage
        .wait_until("both are told", async || receiver.labels("1") == ["1"] && receiver.labels("2") == ["1"])
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quarantine_recovery_and_deletion_are_told_in_their_order() {
    let receiver = Receiver::default();
    let stage = stage_with(&receiver).await;
    stage.docx("12345").await;
    stage.editor.faults().arm(FaultKind::BodyEmpty.times(3));
    edit(&stage, "12345", "It arrives empty, and its forgotten copy is whole.").await;
    stage.wait_for_head("12345", "2").await;
    stage
        .wait_until("the document can be deleted", async || {
            let response = stage.request(Method::DELETE, "/api/v1/documents/12345").send().await.unwrap();
            response.status().is_success()
        })
        .await;

    stage
        .wait_until("the deletion is told", async || {
            receiver.types().last().is_some_and(|last| last == "document.deleted")
        })
        .await;

    let expected = ["document.saved", "document.quarantined", "document.recovered", "document.deleted"];
    assert_eq!(receiver.types(), expected);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_is_listed_and_can_be_tried_again() {
    let receiver = Receiver::default();
    let stage = stage_with(&receiver).await;
    receiver.behave(&[410]);
    stage.docx("12345").await;
    stage
        .wait_until("it was given up", async || {
            stage.get("/api/v1/operations/webhooks").await["targets"][0]["dead"] == 1
        })
        .await;

    let dead = stage.get("/api/v1/operations/webhooks").await["dead"][0].clone();
    assert_eq!(
        (&dead["document"], &dead["last_error"]),
        (&Value::from("12345"), &Value::from("it answered 410"))
    );
    receiver.heard.lock().unwrap().clear();
    let path = format!("/api/v1/operations/webhooks/{}/retry", dead["number"]);
    assert_eq!(stage.request(Method::POST, &path).send().await.unwrap().status(), StatusCode::NO_CONTENT);
    stage.wait_until("it is told", async || receiver.labels("12345") == ["1"]).await;
    stage
        .wait_until("it is written down", async || {
            stage.get("/api/v1/operations/webhooks").await["targets"][0]["delivered"] == 1
        })
        .await;
    assert_eq!(stage.request(Method::POST, &path).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_before_it_could_write_down_that_it_was_heard_tells_again_under_the_same_id() {
    let receiver = Receiver::default();
    receiver.behave(&[0]);
    let url = receiver.listen().await;
    let site = Site::new().await;
    let config = site.config("http://127.0.0.1:9", &[]);
    let file = site.path().join("saveguard.toml");
    let hook = format!(
        "[[webhook]]\nname = \"crm\"\nurl = \"{url}\"\nsecret = \"{SECRET}\"\nevents = [\"saved\"]\n"
    );
    std::fs::write(&file, hook).unwrap();
    let arguments = ["--config", file.to_str().unwrap()];
    let base = config.server.public_url.as_str().trim_end_matches('/').to_owned();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let token = sign_api_token(&config, &admin(), SystemClock.now(), Duration::from_secs(600));
    let post = async |path: &str, body: reqwest::Body| {
        let request = http.post(format!("{base}{path}")).bearer_auth(&token);
        request.header("content-type", "application/json").body(body).send().await.unwrap().status()
    };

    let serving = Serving::start(&config, &[], &arguments);
    until(async || http.get(format!("{base}/healthz")).send().await.ok()).await;
    post("/api/v1/companies", "{\"id\":\"acme\",\"name\":\"Acme\"}".into()).await;
    post("/api/v1/companies/acme/projects", "{\"id\":\"p\",\"name\":\"P\"}".into()).await;
    let bytes = understudy::office::sample_docx("Report", &["It begins."]);
    let created =
        post("/api/v1/companies/acme/projects/p/documents?id=12345&name=report.docx", bytes.into()).await;
    assert_eq!(created, StatusCode::CREATED);
    until(async || (receiver.ids().len() == 1).then_some(())).await;
    drop(serving);
    let _serving = Serving::start(&config, &[], &arguments);

    until(async || (receiver.ids().len() == 2).then_some(())).await;

    let ids = receiver.ids();
    assert_eq!(ids[0], ids[1]);
}
