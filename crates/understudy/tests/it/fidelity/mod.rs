//! Every scenario recorded from a real Document Server 9.3, played again: the callbacks must be the same.
//!
//! `fixtures/real-callbacks.jsonl` holds the 167 callbacks of 58 scenarios (tokens cut out), with how the host
//! answered each; `fixtures/real-commands.jsonl` the commands and their replies. A scenario here does what the
//! recorded clients did, the host answers as recorded, and the sequence of callbacks, their fields in order, their
//! values and their target addresses must equal the recording. What cannot be equal is named instead of compared:
//! keys (`K`), times (whole seconds or not, and which are equal), path numbers (which are equal), hashes,
//! signatures.
//!
//! In a few recordings the driver "typed" while a dialogue of the real editor blocked typing (`status1-error1`,
//! `status1-http500`, `forgotten-then-reopen-and-edit`): nothing reached the server there, so nothing is written
//! here.

mod forcing;
mod people;
mod reopening;
mod trouble;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use understudy::tokens::{Secret, verify};

use crate::host::{Callback, Reply, fields_in_order};
use crate::stage::{SECRET, Stage};

const CALLBACKS: &str = include_str!("../../../fixtures/real-callbacks.jsonl");
const COMMANDS: &str = include_str!("../../../fixtures/real-commands.jsonl");

/// A recorded callback.
struct Recorded {
    path: String,
    host_replied: String,
    body: Value,
    fields: Vec<String>,
}

fn recorded(scenario: &str) -> Vec<Recorded> {
    let lines = CALLBACKS.lines().map(|line| (line, serde_json::from_str::<Value>(line).unwrap()));
    let own = lines.filter(|(_, entry)| entry["scenario"] == scenario);
    own.map(|(line, entry)| Recorded {
        path: entry["path"].as_str().unwrap().to_owned(),
        host_replied: entry["host_replied"].as_str().unwrap().to_owned(),
        fields: fields_in_order(
            line.split_once("\"body\": ").unwrap().1.strip_suffix('}').unwrap().as_bytes(),
        ),
        body: entry["body"].clone(),
    })
    .collect()
}

/// Recorded commands of a scenario with their replies.
fn commands(scenario: &str) -> Vec<(Value, Value)> {
    let lines = COMMANDS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = lines.filter(|entry| entry["scenario"] == scenario);
    own.map(|entry| (entry["command"].clone(), entry["reply"].clone())).collect()
}

/// Names what may differ.
#[derive(Default)]
struct Names {
    known: BTreeMap<(&'static str, String), usize>,
}

impl Names {
    fn name(&mut self, kind: &'static str, value: &str) -> String {
        let next = self.known.keys().filter(|(other, _)| *other == kind).count() + 1;
        let number = *self.known.entry((kind, value.to_owned())).or_insert(next);
        format!("{kind}{number}")
    }

    fn body(&mut self, body: &Value) -> Value {
        let key = body["key"].as_str().unwrap().to_owned();
        let mut body = body.clone();
        let fields = body.as_object_mut().unwrap();
        fields.insert("key".into(), json!(self.name("K", &key)));
        for name in ["url", "changesurl"] {
            if let Some(url) = fields.get(name).and_then(Value::as_str).map(str::to_owned) {
                fields.insert(name.into(), json!(self.url(&url, &key)));
            }
        }
        if let Some(time) = fields.get("lastsave").and_then(Value::as_str).map(str::to_owned) {
            let kind = if time.ends_with(".000Z") { "whole-second-" } else { "moment-" };
            assert_eq!(time.len(), "2026-11-15T19:20:43.000Z".len());
            fields.insert("lastsave".into(), json!(self.name(kind, &time)));
        }
        for change in fields.get_mut("history").into_iter().flat_map(changes_of) {
            assert_eq!(change["documentSha256"].as_str().unwrap().len(), 64);
            assert_eq!(change["created"].as_str().unwrap().len(), "2026-11-15 19:20:43".len());
            change["documentSha256"] = json!("hash");
            change["created"] = json!("time");
        }
        if let Some(token) = fields.get_mut("token") {
            *token = json!("token");
        }
        body
    }

    /// The path with its number named, and the names of the query's fields.
    fn url(&mut self, url: &str, key: &str) -> String {
        let url = url::Url::parse(url).unwrap();
        let path = url.path().strip_prefix("/cache/files/data/").unwrap();
        let (folder, file) = path.split_once('/').unwrap();
        let number = folder.strip_prefix(key).unwrap().strip_prefix('_').unwrap();
        assert!(number.parse::<u32>().unwrap() < 10_000);
        let folder = self.name("save", folder);
        let query: Vec<String> = url
            .query_pairs()
            .map(|(name, value)| match &*name {
                "md5" | "expires" => name.into_owned(),
                "shardkey" => format!("shardkey={}", self.name("K", &value)),
                _ => format!("{name}={value}"),
            })
            .collect();
        format!("{folder}/{file}?{}", query.join("&"))
    }
}

fn changes_of(history: &mut Value) -> Vec<&mut Value> {
    history.get_mut("changes").and_then(Value::as_array_mut).into_iter().flatten().collect()
}

/// Which user's address a callback went to.
fn target(path: &str) -> &str {
    path.split_once("u=").unwrap().1
}

fn check(scenario: &str, played: &[Callback]) {
    let expected = recorded(scenario);
    let (mut theirs, mut ours) = (Names::default(), Names::default());
    let show = |status: &Value, fields: &[String], target: &str, body: Value| {
        format!("{status} to {target} {}\n    {body}", fields.join(","))
    };
    let expected: Vec<String> = expected
        .iter()
        .map(|entry| {
            show(&entry.body["status"], &entry.fields, target(&entry.path), theirs.body(&entry.body))
        })
        .collect();
    let played: Vec<String> = played
        .iter()
        .map(|entry| show(&entry.body["status"], &entry.fields, target(&entry.path), ours.body(&entry.body)))
        .collect();
    assert_eq!(
        played,
        expected,
        "\n{scenario}:\n  played\n  {}\n  recorded\n  {}",
        played.join("\n  "),
        expected.join("\n  ")
    );
}

/// The host answers as it was recorded to.
fn reply_as_recorded(stage: &Stage, scenario: &str) {
    for entry in recorded(scenario) {
        let reply = match entry.host_replied.as_str() {
            "ok" => Reply::Ok,
            "error1" => Reply::Error1,
            "reset" => Reply::Close,
            "hang" | "delay" => Reply::Held,
            "raw" => match scenario {
                "save-200-html" => Reply::Raw("text/html", "<html><body>Hello</body></html>"),
                "save-200-empty" => Reply::Raw("application/json", ""),
                "save-200-error0-as-text" => Reply::Raw("text/plain", r#"{"error":0}"#),
                "save-200-error-string0" => Reply::Raw("application/json", r#"{"error":"0"}"#),
                other => panic!("unknown raw reply in {other}"),
            },
            http => Reply::Http(http.strip_prefix("http").unwrap().parse().unwrap()),
        };
        stage.answers(entry.body["status"].as_u64().unwrap(), [reply]);
    }
}

/// Asks what was asked at the end of a recording; the answers must agree.
async fn check_commands(stage: &Stage, scenario: &str, skip: usize) {
    for (mut command, reply) in commands(scenario).into_iter().skip(skip) {
        let theirs = command.get("key").cloned().unwrap_or_default();
        if command.get("key").is_some() {
            command["key"] = json!(stage.key);
        }
        let got = stage.command(&command).await;
        assert_eq!(got["error"], reply["error"], "{scenario}: {command}");
        assert_eq!(got.get("users"), reply.get("users"), "{scenario}: {command}");
        if let (Some(theirs), Some(url)) = (theirs.as_str(), reply.get("url").and_then(Value::as_str)) {
            let path = |url: &str| url::Url::parse(url).unwrap().path().to_owned();
            assert_eq!(path(got["url"].as_str().unwrap()), path(url).replace(theirs, &stage.key));
        }
        if reply.get("keys").is_some() {
            assert!(got["keys"].as_array().unwrap().contains(&json!(stage.key)));
        }
    }
}

/// One user edits and closes the tab; the host answers as recorded.
async fn check_edit_and_close(scenario: &str) {
    let stage = Stage::set_with(scenario, |settings| {
        if scenario == "save-timeout" {
            settings.timings.callback_timeout_ms = 8_000;
        }
    })
    .await;
    reply_as_recorded(&stage, scenario);

    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

/// One user opens and closes the tab without a change.
async fn check_open_and_close(scenario: &str) {
    let stage = Stage::set_with(scenario, |settings| {
        if scenario == "status1-hang" {
            settings.timings.callback_timeout_ms = 8_000;
        }
    })
    .await;
    reply_as_recorded(&stage, scenario);

    let session = stage.opens("u1").await;
    stage.pass(10_000).await;
    session.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
    let warned = session.messages().iter().any(|message| message["type"] == "warning");
    assert_eq!(warned, scenario.starts_with("status1"), "{scenario}");
}

macro_rules! scenarios {
    ($check:ident: $($test:ident = $scenario:literal,)*) => {
        $(#[tokio::test] async fn $test() { $check($scenario).await; })*
    };
}

use scenarios;

scenarios! { check_edit_and_close:
    one_user_edits_and_closes = "single-edit-close",
    a_socket_client_edits_and_closes = "ws-single",
    a_refused_save_is_forgotten = "save-error1",
    a_save_met_with_500_is_tried_four_times_and_forgotten = "save-http500-always",
    a_save_met_with_500_twice_gets_through = "save-http500-twice-then-ok",
    a_save_met_with_429_is_tried_again = "save-http429",
    a_save_met_with_400_is_forgotten = "save-http400",
    a_save_met_with_401_is_forgotten = "save-http401",
    a_save_met_with_403_is_forgotten = "save-http403",
    a_save_met_with_404_is_forgotten = "save-http404",
    a_save_met_with_409_is_forgotten = "save-http409",
    a_save_met_with_413_is_forgotten = "save-http413",
    a_save_met_with_a_closed_connection_is_tried_four_times = "save-reset",
    a_save_answered_in_html_is_forgotten = "save-200-html",
    a_save_answered_with_nothing_is_forgotten = "save-200-empty",
    a_save_answered_zero_as_plain_text_is_done = "save-200-error0-as-text",
    a_save_answered_zero_as_a_string_is_done = "save-200-error-string0",
    a_save_that_times_out_is_tried_four_times = "save-timeout",
}

scenarios! { check_open_and_close:
    nothing_changed = "open-close-nochange",
    a_refused_status_1_only_warns = "status1-error1",
    a_failed_status_1_only_warns = "status1-http500",
    a_status_1_without_answer_only_warns = "status1-hang",
    a_refused_status_4_is_ignored = "status4-error1",
}

/// Runs the n-th recorded command now.
async fn command(stage: &Stage, scenario: &str, number: usize) {
    let (mut command, reply) = commands(scenario).swap_remove(number);
    command["key"] = json!(stage.key);
    if command.get("callback").is_some() {
        command["callback"] = json!(stage.host.url(&format!("/cb/{scenario}?u=info")));
    }
    let got = stage.command(&command).await;
    assert_eq!(got["error"], reply["error"], "{scenario}: {command}");
    assert_eq!(got.get("users"), reply.get("users"), "{scenario}: {command}");
}

#[test]
fn every_recorded_scenario_is_played() {
    let source = concat!(
        include_str!("mod.rs"),
        include_str!("forcing.rs"),
        include_str!("people.rs"),
        include_str!("reopening.rs"),
        include_str!("trouble.rs"),
    );
    let names: std::collections::BTreeSet<String> = CALLBACKS
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["scenario"].as_str().unwrap().to_owned())
        .collect();

    let missing: Vec<&String> =
        names.iter().filter(|name| !source.contains(&format!("\"{name}\""))).collect();

    assert_eq!(missing, Vec::<&String>::new());
    // Two more have no callbacks at all: `view-mode` and `ws-rejected-token`.
    assert_eq!(names.len(), 56);
}

#[tokio::test]
async fn requests_look_like_the_real_ones() {
    let stage = Stage::set("single-edit-close").await;
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    let secret = Secret::new(SECRET);
    let now_s = stage.server().clock().now_s() - 100;
    for callback in stage.callbacks() {
        let header = |name: &str| callback.headers.get(name).map(String::as_str).unwrap_or_default();
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("user-agent"), "Node.js/6.13");
        assert_eq!(header("accept"), "application/json, text/plain, */*");
        assert_eq!(header("connection"), "Keep-Alive");
        assert!(!header("content-length").is_empty());
        let nested =
            verify(header("authorization").strip_prefix("Bearer ").unwrap(), &secret, now_s).unwrap();
        let mut flat = verify(callback.body["token"].as_str().unwrap(), &secret, now_s).unwrap();
        let mut body = callback.body.clone();
        body.as_object_mut().unwrap().remove("token");
        assert_eq!(nested["payload"], body);
        assert_eq!(nested["exp"].as_u64().unwrap(), nested["iat"].as_u64().unwrap() + 300);
        flat.as_object_mut().unwrap().retain(|name, _| name != "iat" && name != "exp");
        assert_eq!(flat, body);
    }
    let (path, headers) = stage.host.last_download();
    let token = headers["authorization"].strip_prefix("Bearer ").unwrap();
    assert_eq!(verify(token, &secret, now_s).unwrap()["payload"], json!({"url": stage.host.url(&path)}));
}
