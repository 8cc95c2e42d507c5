//! Sessions and what open pages hear: who is inside, what changed, on a whole server.

use std::time::Duration;

use model::access::{Caller, Role};
use reqwest::{Method, StatusCode};
use serde_json::Value;
use understudy::Settings;

use crate::support::{Stage, admin};

impl Stage {
    async fn sessions(&self, id: &str) -> Vec<Value> {
        self.get(&format!("/api/v1/documents/{id}/sessions")).await.as_array().unwrap().clone()
    }

    /// Waits until the one session of a document is in a state.
    async fn session(&self, id: &str, state: &str) -> Value {
        let mut found = Value::Null;
        self.wait_until(&format!("a session that is {state}"), async || {
            found = self.sessions(id).await.first().cloned().unwrap_or_default();
            found["state"] == state
        })
        .await;
        found
    }

    /// Starts to listen; the events are read with [`Events::next`].
    async fn events(&self, id: &str, query: &str) -> Events {
        let path = format!("/api/v1/documents/{id}/events{query}");
        let response = self.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, text: String::new() }
    }
}

/// Server-sent events as they arrive.
struct Events {
    response: reqwest::Response,
    text: String,
}

struct Told {
    id: String,
    event: String,
    data: Value,
}

impl Events {
    /// The next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let line = block.lines().find_map(|line| line.strip_prefix(name));
                    line.map(|value| value.trim().to_owned())
                };
                // Others are heartbeats.
                let Some(event) = field("event:") else { continue };
                let data = serde_json::from_str(&field("data:").unwrap()).unwrap();
                return Some(Told { id: field("id:").unwrap(), event, data });
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn expect(&mut self, event: &str) -> Told {
        loop {
            let told = self.next().await.unwrap_or_else(|| panic!("the stream ended before {event}"));
            if told.event == event {
                return told;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_tells_who_is_in_it_since_when_and_on_what() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let ann = stage.edit("12345", "ann").await;
    let ben = stage.edit("12345", "ben").await;
    stage
        .wait_until("both inside", async || {
            let sessions = stage.sessions("12345").await;
            sessions.first().is_some_and(|session| session["people"].as_array().unwrap().len() == 2)
        })
        .await;

    let session = stage.session("12345", "editing").await;
    assert_eq!((session["base"].as_str(), session["unsaved"].as_str()), (Some("1"), Some("possible")));
    assert_eq!(session["people"][0]["id"], "ann");
    assert_eq!(session["people"][0]["name"], "User ann");
    // As times: as texts, a whole second comes after its own fractions.
    let since =
        |at: usize| session["people"][at]["since"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(since(0) <= since(1));
    assert!(session["key"].as_str().unwrap().starts_with("test_12345_edit_1."));
    let all = stage.get("/api/v1/operations/sessions").await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 1);
    ann.close().await.unwrap();
    ben.close().await.unwrap();
    let idle = stage.session("12345", "idle").await;
    assert_eq!((idle["unsaved"].as_str(), idle["people"].as_array().unwrap().len()), (Some("no"), 0));
    assert_eq!(stage.get("/api/v1/operations/sessions").await["sessions"], serde_json::json!([]));
    let with_idle = stage.get("/api/v1/operations/sessions?idle=true").await;
    assert_eq!(with_idle["sessions"][0]["key"], session["key"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_a_restart_and_is_put_right_by_the_servers_word() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.docx("other").await;
    let ann = stage.edit("12345", "ann").await;
    let ben = stage.edit("other", "ben").await;
    stage.session("12345", "editing").await;
    stage.session("other", "editing").await;

    let (paused, left) = stage.pause().await;
    assert_eq!(left, 0);
    // Nobody hears that Ben leaves.
    ben.close().await.unwrap();
    paused.editor.quiet().await;
    let stage = paused.resume().await;

    let session = stage.session("12345", "editing").await;
    assert_eq!(session["people"][0]["name"], "User ann");
    stage.session("other", "idle").await;
    assert_eq!(stage.session("12345", "editing").await["people"][0]["id"], "ann", "the server sees her");
    ann.close().await.unwrap();
    stage.session("12345", "idle").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashed_leaves_a_session_stranded_until_somebody_opens_it() {
    let stage =
        Stage::start_with(&[("SESSIONS_LOOK_SECONDS", "1")], Settings::default().with_time_scale(20.0)).await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Not saved yet.").await.unwrap();
    stage.session("12345", "editing").await;

    let stage = stage.with_crashed_editor().await;
    let stranded = stage.session("12345", "stranded").await;
    assert_eq!(stranded["unsaved"], "yes");
    let ben = stage.edit("12345", "ben").await;
    stage.session("12345", "editing").await;
    ben.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Not saved yet."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_pages_hear_of_versions_people_and_deletion() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let etag = async || {
        let path = "/api/v1/documents/12345/content";
        stage.request(Method::GET, path).send().await.unwrap().headers()["etag"].clone()
    };
    let (old_view, old_etag) = (stage.configure("12345", "vera", "view").await["key"].clone(), etag().await);
    let mut events = stage.events("12345", "").await;
    assert_eq!(events.expect("version").await.data["version"], "1");
    assert_eq!(events.expect("sessions").await.data["sessions"], serde_json::json!([]));

    let ann = stage.edit("12345", "ann").await;
    let inside = events.expect("sessions").await;
    assert_eq!(inside.data["sessions"][0]["people"][0]["id"], "ann");
    ann.write("News.").await.unwrap();
    ann.press_save().await.unwrap();
    let saved = events.expect("version").await;
    assert_eq!((saved.data["version"].as_str(), saved.id.as_str()), (Some("1.1"), "1.1-0"));
    assert_ne!(stage.configure("12345", "vera", "view").await["key"], old_view, "viewers get another key");
    let new_etag = etag().await;
    assert_ne!(new_etag, old_etag);
    assert!(new_etag.to_str().unwrap().contains(saved.data["sha256"].as_str().unwrap()));
    ann.close().await.unwrap();
    let last = events.expect("version").await;
    assert_eq!(
        (last.data["version"].as_str(), last.data["author_name"].as_str()),
        (Some("2"), Some("User ann"))
    );

    let deleted = stage.request(Method::DELETE, "/api/v1/documents/12345").send().await.unwrap();
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    events.expect("deleted").await;
    assert!(events.next().await.is_none(), "nothing follows");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_need_permission_and_end_when_the_service_stops() {
    let settings = Settings::default().with_time_scale(20.0);
    let stage = Stage::start_with(&[("SESSIONS_STREAMS_MAX", "1")], settings).await;
    stage.docx("12345").await;

    // One for each instance: the balancer goes round.
    let mut streams = Vec::new();
    for _ in stage.apps() {
        let mut events = stage.events("12345", "").await;
        events.expect("version").await;
        streams.push(events);
    }
    let path = "/api/v1/documents/12345/events";
    let refused = stage.request(Method::GET, path).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let stranger =
        Caller { companies: model::access::Companies::Only(Vec::new()), role: Role::Admin, ..admin() };
    let url = format!("{}{path}", stage.base);
    let foreign = stage.http.get(url).bearer_auth(stage.token(&stranger)).send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND);

    // A stop that waited for the stream would take ten minutes.
    let stopping = tokio::time::timeout(Duration::from_secs(60), stage.stop());
    let ended = async {
        for mut events in streams {
            while events.next().await.is_some() {}
        }
    };
    let (stopped, ()) = tokio::join!(stopping, ended);
    stopped.expect("the streams do not hold the service");
}

#[tokio::test(flavor = "multi_thread")]
async fn once_tells_how_things_stand_and_ends() {
    let stage = Stage::start().await;
    stage.docx("12345").await;

    let mut events = stage.events("12345", "?once=true").await;
    let told: Vec<String> =
        [events.next().await, events.next().await].into_iter().flatten().map(|told| told.event).collect();

    assert_eq!(told, ["version", "sessions"]);
    assert!(events.next().await.is_none());
    stage.stop().await;
}
