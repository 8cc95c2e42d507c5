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

use std::collections::BTreeMap;

use serde_json::{Value, json};
use understudy::server::{FaultKind, Opening};
use understudy::tokens::{Secret, sign, verify};

use crate::host::{Callback, Reply, Source, fields_in_order};
use crate::stage::{SECRET, Stage};

const CALLBACKS: &str = include_str!("../../fixtures/real-callbacks.jsonl");
const COMMANDS: &str = include_str!("../../fixtures/real-commands.jsonl");

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

#[tokio::test]
async fn two_users() {
    let stage = Stage::set("two-users").await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("mine").await.unwrap();
    stage.pass(4_000).await;
    u2.write("yours").await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass(7_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check("two-users", &stage.callbacks());
}

#[tokio::test]
async fn the_last_editor_leaves_first() {
    let scenario = "two-users-last-editor-leaves-first";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u2.write("yours").await.unwrap();
    stage.pass(4_000).await;
    u1.write("mine").await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass(7_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn both_close_at_the_same_instant() {
    let scenario = "two-users-same-instant-close";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("mine").await.unwrap();
    stage.pass(4_000).await;
    u2.hang_up().await.unwrap();
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn one_user_in_two_tabs() {
    let scenario = "same-user-two-tabs";
    let stage = Stage::set(scenario).await;
    let first = stage.opens("u1").await;
    let second = stage.opens("u1").await;
    first.write("mine").await.unwrap();
    stage.pass(4_000).await;
    first.hang_up().await.unwrap();
    stage.pass(4_000).await;
    second.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
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

#[tokio::test]
async fn force_save_by_command() {
    let scenario = "forcesave-command";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    command(&stage, scenario, 0).await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 1).await;
    stage.pass(4_000).await;
    command(&stage, scenario, 2).await;
    u1.write("two").await.unwrap();
    command(&stage, scenario, 3).await;
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn force_save_then_more_edits() {
    let scenario = "forcesave-command-then-edit-close";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    stage.pass(4_000).await;
    u1.write("two").await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn force_save_by_button() {
    let scenario = "forcesave-button";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    assert_eq!(u1.press_save().await.unwrap().code, 0);
    stage.pass(4_000).await;
    assert_eq!(u1.press_save().await.unwrap().code, 4);
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_force_save_met_with_500_is_sent_again_when_asked_for_again() {
    let scenario = "forcesave-http500";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    stage.pass(12_000).await;
    command(&stage, scenario, 1).await;
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_refused_force_save_warns_whoever_pressed() {
    let scenario = "forcesave-error1";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    u1.press_save().await.unwrap();
    stage.pass(4_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    let outcome = u1.messages().into_iter().find(|message| message["type"] == "forceSave").unwrap();
    assert_eq!(outcome["messages"]["success"], false);
}

#[tokio::test]
async fn a_force_save_that_times_out_is_not_repeated() {
    let scenario = "forcesave-timeout";
    let stage = Stage::set_with(scenario, |settings| settings.timings.callback_timeout_ms = 8_000).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    stage.pass(12_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn force_save_by_timer() {
    let scenario = "forcesave-timer";
    let stage = Stage::set_with(scenario, |settings| {
        settings.autosave = true;
        settings.timings.autosave_interval_ms = 20_000;
        settings.timings.autosave_step_ms = 5_000;
    })
    .await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    stage.pass(45_000).await;
    u1.write("two").await.unwrap();
    stage.pass(45_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn many_force_saves_some_within_one_second() {
    let scenario = "ws-many-forcesaves";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    for pause_ms in [1_000, 1_000, 1_000, 420, 5_000] {
        u1.write("words").await.unwrap();
        assert_eq!(u1.press_save().await.unwrap().code, 0);
        stage.pass(pause_ms).await;
    }
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_slow_host_sees_two_force_saves_and_the_final_save_overlap() {
    let scenario = "ws-slow-reply-to-6-then-close";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    u1.press_save().await.unwrap();
    stage.pass(1_500).await;
    u1.write("two").await.unwrap();
    u1.press_save().await.unwrap();
    stage.pass(1_000).await;
    assert_eq!(stage.host.held(), 2);
    u1.hang_up().await.unwrap();
    stage.pass(7_000).await;
    stage.host.release(Reply::Ok);
    stage.host.release(Reply::Ok);
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_client_that_freezes_is_noticed_by_its_pings() {
    let scenario = "ws-client-vanishes";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    u1.freeze().await.unwrap();
    stage.pass(44_000).await;
    assert_eq!(stage.statuses(), [1]);
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn coming_back_after_the_save_began_means_refresh() {
    let scenario = "reopen-within-5s";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let u2 = stage.opens("u2").await;
    u1.write("one").await.unwrap();
    stage.pass(4_000).await;
    u2.hang_up().await.unwrap();
    stage.pass(50).await;
    u1.hang_up().await.unwrap();
    stage.pass(6_000).await;
    let u3 = stage.opens("u3").await;
    assert_eq!(u3.opened().await, Opening::Refresh);
    u3.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_spent_key_means_refresh() {
    let scenario = "reopen-same-key-after-save";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.pass(16_000).await;
    let again = stage.opens("u1").await;
    assert_eq!(again.opened().await, Opening::Refresh);
    again.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_key_whose_save_awaits_its_answer_means_refresh() {
    let scenario = "reopen-while-save-callback-pending";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.edits_and_closes("u1").await;
    stage.pass(10_000).await;
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Refresh);
    stage.host.release(Reply::Ok);
    stage.pass(5_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn viewers_cause_no_callbacks() {
    let stage = Stage::set("view-mode").await;
    let config = understudy::EditorConfig { mode: Some("view".into()), ..stage.config("u1") };
    let u1 = stage.opens_with(&config).await.unwrap();
    stage.pass(2_000).await;
    assert_eq!(u1.opened().await, Opening::Ready);
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check("view-mode", &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn drop_makes_the_editor_leave_at_once() {
    let scenario = "drop-command";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    command(&stage, scenario, 0).await;
    command(&stage, scenario, 1).await;
    stage.pass(1_000).await;
    assert_eq!(stage.statuses(), [1, 1, 2], "without the save delay");
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_failing_converter_gives_7_and_3_without_files() {
    let scenario = "convert-fails-on-save";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    stage.server().faults().arm(FaultKind::ConversionFails.always());
    command(&stage, scenario, 0).await;
    stage.pass(6_000).await;
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 1).await;
}

#[tokio::test]
async fn a_converter_that_leaves_a_damaged_file_gives_3_with_it() {
    let scenario = "convert-corrupted-on-save";
    let stage = Stage::set(scenario).await;
    stage.server().faults().arm(FaultKind::ConversionCorrupts.always());
    stage.edits_and_closes("u1").await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn changes_survive_a_3_that_was_refused() {
    let scenario = "ws-convert-fails-host-error1";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.server().faults().arm(FaultKind::ConversionFails.times(1));
    stage.edits_and_closes("u1").await;
    stage.pass(9_000).await;
    let u2 = stage.opens("u2").await;
    assert!(u2.messages().iter().any(|message| message["type"] == "authChanges"));
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn changes_do_not_survive_a_3_that_was_acknowledged() {
    let scenario = "ws-convert-fails-host-ok-then-reopen";
    let stage = Stage::set(scenario).await;
    stage.server().faults().arm(FaultKind::ConversionFails.times(1));
    let id = stage.edits_and_closes("u1").await;
    stage.pass(9_000).await;
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Refresh);
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
    assert!(stage.server().journal().change(&id).unwrap().is_lost());
}

/// Refused and forgotten, opened again under the same key, closed.
async fn check_forgotten(scenario: &str) {
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.edits_and_closes("u1").await;
    stage.pass(15_000).await;
    let downloads = stage.host.downloads();
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Ready);
    assert_eq!(stage.host.downloads(), downloads, "the forgotten copy comes first");
    let warning = u2.messages().into_iter().find(|message| message["type"] == "warning").unwrap();
    assert_eq!(warning["code"], -201);
    // A whole second would not show that it is the present moment.
    stage.pass(3).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    let asked_at_the_end = commands(scenario).iter().filter(|(_, reply)| reply["error"] == 1).count();
    let asked = commands(scenario).len();
    check_commands(&stage, scenario, asked - asked_at_the_end).await;
}

scenarios! { check_forgotten:
    a_forgotten_copy_is_saved_without_edits = "forgotten-then-reopen-same-key",
    a_forgotten_copy_is_saved_although_typing_was_blocked = "forgotten-then-reopen-and-edit",
}

#[tokio::test]
async fn a_document_that_cannot_be_opened() {
    let scenario = "open-fails";
    let stage = Stage::set(scenario).await;
    stage.host.serves(Source::Bytes("this is no document".into()));
    let u1 = stage.opens("u1").await;
    assert!(matches!(u1.opened().await, Opening::Failed(_)));
    u1.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn a_host_that_is_down_for_ten_seconds_gets_the_fourth_delivery() {
    let scenario = "save-refused";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.host.go_down().await;
    stage.pass(10_600).await;
    stage.host.come_back().await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_host_that_is_down_for_long_finds_the_file_forgotten() {
    let scenario = "save-refused-for-long";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.host.go_down().await;
    stage.pass(27_000).await;
    stage.host.come_back().await;
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn a_graceful_shutdown_saves_at_once() {
    let scenario = "graceful-shutdown";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    let url = format!("{}/internal/cluster/inactive", stage.server().url());
    let put = tokio::spawn(reqwest::Client::new().put(&url).send());
    stage.host.wait_for(1).await;
    while !stage.server().is_shutting_down().await {
        tokio::task::yield_now().await;
    }
    stage.pass(1_000).await;
    assert_eq!(stage.statuses(), [1, 2], "without the save delay");
    stage.pass(40_000).await;
    assert_eq!(put.await.unwrap().unwrap().text().await.unwrap(), "true");
    assert_eq!(u1.opened().await, Opening::Ready);
    assert!(u1.is_disconnected());
    let refused = stage.opens("u2").await;
    assert_eq!(refused.opened().await, Opening::Disconnected(Some(4001)));

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn a_killed_server_says_nothing_until_the_same_key_is_opened() {
    let scenario = "server-crash-restart";
    let mut stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    u1.write("one").await.unwrap();
    stage.crash().await;
    stage.restart().await;
    stage.pass(150_000).await;
    command(&stage, scenario, 0).await;
    command(&stage, scenario, 1).await;
    let u2 = stage.opens("u2").await;
    assert!(u2.messages().iter().any(|message| message["type"] == "authChanges"));
    stage.pass(7).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn somebody_else_comes_within_the_save_delay() {
    let scenario = "ws-reopen-within-5s";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.pass(2_000).await;
    let u2 = stage.opens("u2").await;
    stage.pass(9_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    assert_eq!(stage.host.downloads(), 1);
}

#[tokio::test]
async fn the_same_user_comes_back_within_the_save_delay() {
    let scenario = "ws-same-user-back-within-5s";
    let stage = Stage::set(scenario).await;
    stage.edits_and_closes("u1").await;
    stage.pass(2_000).await;
    let again = stage.opens("u1").await;
    again.write("more").await.unwrap();
    stage.pass(4_000).await;
    again.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[tokio::test]
async fn somebody_comes_between_two_retries() {
    let scenario = "ws-reopen-during-retry-window";
    let stage = Stage::set(scenario).await;
    reply_as_recorded(&stage, scenario);
    stage.edits_and_closes("u1").await;
    stage.pass(7_400).await;
    let u2 = stage.opens("u2").await;
    assert_eq!(u2.opened().await, Opening::Ready);
    stage.pass(12_000).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
    check_commands(&stage, scenario, 0).await;
}

#[tokio::test]
async fn a_token_of_another_secret_is_rejected() {
    let stage = Stage::set("ws-rejected-token").await;
    let mut config = stage.config("u1").plain();
    config["token"] = json!(sign(&config, &Secret::new("another")));

    let refused = stage.server().open(&config).await;

    assert!(refused.is_err_and(|error| error.to_string().contains("4006")));
    check("ws-rejected-token", &stage.callbacks());
}

#[tokio::test]
async fn two_documents_of_one_host() {
    let scenario = "ws-two-docs-same-host";
    let stage = Stage::set(scenario).await;
    let u1 = stage.opens("u1").await;
    let second = format!("{}-second", stage.key);
    let u2 = stage.opens_with(&stage.config_for(&second, "u2")).await.unwrap();
    stage.pass(2_000).await;
    u1.write("one").await.unwrap();
    u2.write("two").await.unwrap();
    u1.hang_up().await.unwrap();
    stage.pass(200).await;
    u2.hang_up().await.unwrap();
    stage.pass_long().await;

    check(scenario, &stage.callbacks());
}

#[test]
fn every_recorded_scenario_is_played() {
    let source = include_str!("fidelity.rs");
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
