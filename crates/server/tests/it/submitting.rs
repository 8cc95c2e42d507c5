//! Summary logs over HTTP, from a real workbook to records: every way the seed draws, every refusal, under both policies.

use jiff::SignedDuration;
use ledger::documents::Author;
use ledger::logs::SubmitWish;
use model::access::{Caller, Companies, Organisations, Role};
use model::{OrganisationId, Scope, SummaryLogId};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::Stage;
use crate::support::submissions::{path_of, scope};

/// A template as small as one can be: one active log, and removed rows are fatal.
const TEMPLATE: &str = include_str!("loads.toml");

/// A workbook of the template: rows of id, site and tonnes.
pub(crate) fn workbook(rows: &[[&str; 3]]) -> Vec<u8> {
    let mut all: Vec<Vec<&str>> = vec![
        vec!["__T_META_REGISTRATION", "R-1"],
        vec!["__T_META_VERSION", "1.0.0"],
        vec!["__T_TABLE_LOADS", "ID", "SITE", "TONNES"],
    ];
    all.extend(rows.iter().map(|[id, site, tonnes]| vec!["", *id, *site, *tonnes]));
    let all: Vec<&[&str]> = all.iter().map(Vec::as_slice).collect();
    understudy::office::sample_xlsx(&all).to_vec()
}

pub(crate) const FIRST: [[&str; 3]; 2] = [["1000", "North", "1.5"], ["1001", "South", "2"]];
pub(crate) const SECOND: [[&str; 3]; 3] =
    [["1000", "North", "1.25"], ["1001", "South", "2"], ["1002", "East", "3"]];

/// A registration whose workbooks are read by the small template.
pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) scope: Scope,
}

impl Scene {
    pub(crate) async fn begin() -> Self {
        Self::begin_with("one-active", "fatal").await
    }

    pub(crate) async fn begin_with(policy: &str, removed: &str) -> Self {
        let stage = Stage::start().await;
        let template = TEMPLATE
            .replace("policy = \"one-active\"", &format!("policy = \"{policy}\""))
            .replace("removed_row = \"fatal\"", &format!("removed_row = \"{removed}\""));
        let added = stage.request(Method::POST, "/api/v1/templates").body(template).send().await.unwrap();
        assert!(added.status().is_success(), "{}", added.text().await.unwrap());
        let scope = scope("o1", "r1");
        stage.put_json("/api/v1/organisations/o1", json!({})).await;
        stage.put_json(&path_of(&scope, ""), json!({ "number": "R-1", "template": "loads" })).await;
        Self { stage, scope }
    }

    pub(crate) async fn upload(&self, rows: &[[&str; 3]]) -> reqwest::Response {
        let path = path_of(&self.scope, "/summary-logs?name=loads.xlsx");
        self.stage.request(Method::POST, &path).body(workbook(rows)).send().await.unwrap()
    }

    /// Uploads and waits until the log needs somebody.
    pub(crate) async fn preview(&self, rows: &[[&str; 3]]) -> Value {
        let response = self.upload(rows).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        let link = response.headers()["location"].to_str().unwrap().to_owned();
        self.settled(&link).await
    }

    pub(crate) async fn settled(&self, link: &str) -> Value {
        let mut log = Value::Null;
        self.stage
            .wait_until("the log is settled", async || {
                log = self.stage.get(link).await;
                !["preprocessing", "validating", "submitting"].contains(&log["state"].as_str().unwrap())
            })
            .await;
        log
    }

    pub(crate) fn link(&self, log: &Value, below: &str) -> String {
        path_of(&self.scope, &format!("/summary-logs/{}{below}", log["id"].as_str().unwrap()))
    }

    pub(crate) async fn submit(&self, log: &Value) -> reqwest::Response {
        self.stage.request(Method::POST, &self.link(log, "/submit")).send().await.unwrap()
    }

    /// Submits and waits until that is done.
    pub(crate) async fn submitted(&self, log: &Value) -> Value {
        let response = self.submit(log).await;
        assert!(response.status().is_success(), "{}", response.text().await.unwrap());
        let log = self.settled(&self.link(log, "")).await;
        assert_eq!(log["state"], "submitted", "{log}");
        log
    }

    pub(crate) async fn refused(&self, response: reqwest::Response, code: &str) -> Value {
        assert_eq!(response.status(), StatusCode::CONFLICT);
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["code"], code, "{problem}");
        problem
    }

    pub(crate) async fn end(self) {
        self.stage.stop().await;
    }
}

pub(crate) fn stats(log: &Value) -> [u64; 4] {
    ["created", "updated", "unchanged", "removed"].map(|name| log["previewStats"][name].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workbook_is_read_previewed_confirmed_and_becomes_records() {
    let scene = Scene::begin().await;

    let first = scene.preview(&FIRST).await;
    assert_eq!((first["state"].as_str(), stats(&first)), (Some("validated"), [2, 0, 0, 0]), "{first}");
    assert_eq!(scene.submitted(&first).await["submission"], 1);
    let second = scene.preview(&SECOND).await;
    assert_eq!(stats(&second), [1, 1, 1, 0], "{second}");
    let changes = scene.stage.get(&scene.link(&second, "/changes?change=updated")).await;
    let cell = &changes["changes"][0]["cells"][0];
    assert_eq!(*cell, json!({ "column": "TONNES", "old": "1.5", "new": "1.25" }), "{changes}");
    let done = scene.submitted(&second).await;

    assert_eq!((&done["submission"], &done["applied"]), (&json!(2), &json!(2)));
    let history = scene.stage.get(&path_of(&scene.scope, "/records/load/1000")).await;
    let versions = history["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2, "{history}");
    assert!(versions.iter().all(|version| version["validatedAt"].is_string()), "{history}");
    let unchanged = scene.preview(&SECOND).await;
    assert_eq!(stats(&unchanged), [0, 0, 3, 0], "an unchanged workbook changes nothing: {unchanged}");
    assert_eq!(scene.submitted(&unchanged).await["submission"], 3, "and is a submission all the same");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_upload_wins_and_a_superseded_log_never_submits() {
    let scene = Scene::begin().await;
    let older = scene.preview(&FIRST).await;

    let newer = scene.preview(&SECOND).await;

    let refused = scene.refused(scene.submit(&older).await, "SUB_002").await;
    assert_eq!(refused["detail"], "A newer summary log has been uploaded");
    let older = scene.stage.get(&scene.link(&older, "")).await;
    assert_eq!((&older["state"], &older["superseded_by"]), (&json!("superseded"), &newer["id"]));
    assert_eq!(scene.submitted(&newer).await["submission"], 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_during_a_submission_is_refused_and_the_submission_is_finished_by_whoever_comes() {
    let scene = Scene::begin().await;
    let log = scene.preview(&FIRST).await;
    // Somebody began to submit and was killed: nobody works on it until its lease is over.
    let (app, now) = (scene.stage.app(), scene.stage.app().now());
    let wish = SubmitWish {
        scope: scene.scope.clone(),
        log: SummaryLogId::parse(log["id"].as_str().unwrap()).unwrap(),
        who: Author::new("sue", "Sue"),
        at: now,
        until: now.checked_add(SignedDuration::from_secs(2)).unwrap(),
    };
    app.ledger.begin_submission(&wish).await.unwrap();

    let refused = scene.refused(scene.upload(&SECOND).await, "SUB_001").await;

    assert_eq!(refused["detail"], "A submission is in progress. Please wait.");
    assert_eq!(scene.submit(&log).await.status(), StatusCode::ACCEPTED, "it is running");
    let done = scene.settled(&scene.link(&log, "")).await;
    assert_eq!((&done["state"], &done["submission"]), (&json!("submitted"), &json!(1)), "{done}");
    assert_eq!(scene.upload(&SECOND).await.status(), StatusCode::ACCEPTED);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_workbook_is_invalid_with_every_problem_in_its_cell() {
    let scene = Scene::begin().await;

    let log = scene.preview(&[["1000", "North", "a lot"], ["1001", "", "2"], ["1001", "South", "-1"]]).await;

    assert_eq!(log["state"], "invalid", "{log}");
    let told = scene.stage.get(&scene.link(&log, "/problems")).await;
    let mut found: Vec<(&str, &str)> = told["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| (problem["cell"].as_str().unwrap(), problem["code"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    let expected = [
        ("B5", "KEY_TWICE"),
        ("B6", "KEY_TWICE"),
        ("C5", "VALUE_REQUIRED"),
        ("D4", "MUST_BE_A_NUMBER"),
        ("D6", "TOO_SMALL"),
    ];
    assert_eq!(found, expected, "{told}");
    assert_eq!(log["problems"]["fatal"], 5);
    scene.refused(scene.submit(&log).await, "SUB_004").await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submit_that_is_repeated_gives_the_same_result_and_writes_nothing() {
    let scene = Scene::begin().await;
    let log = scene.preview(&FIRST).await;
    let done = scene.submitted(&log).await;

    let again = scene.submit(&log).await;

    assert_eq!(again.status(), StatusCode::OK);
    let again: Value = again.json().await.unwrap();
    assert_eq!((&again["submission"], &again["submitted_at"]), (&done["submission"], &done["submitted_at"]));
    let commits = scene.stage.get(&path_of(&scene.scope, "/submissions")).await;
    assert_eq!(commits["submissions"].as_array().unwrap().len(), 1, "{commits}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_10_removed_rows_are_told_or_end_as_the_template_says() {
    for (removed, state, expected) in
        [("fatal", "invalid", None), ("tombstone", "validated", Some(1)), ("ignore", "validated", Some(0))]
    {
        let scene = Scene::begin_with("one-active", removed).await;
        let first = scene.preview(&FIRST).await;
        scene.submitted(&first).await;

        let log = scene.preview(&FIRST[..1]).await;

        assert_eq!(log["state"], state, "{removed}: {log}");
        match expected {
            Some(count) => {
                assert_eq!(stats(&log)[3], count, "{removed}");
                scene.submitted(&log).await;
                let records = scene.stage.get(&path_of(&scene.scope, "/records")).await;
                let there = records["records"].as_array().unwrap().len() as u64;
                assert_eq!(there, 2 - count, "{removed}: {records}");
            }
            None => {
                let told = scene.stage.get(&scene.link(&log, "/problems")).await;
                assert_eq!(told["problems"][0]["code"], "ROW_REMOVED", "{told}");
                assert_eq!(told["problems"][0]["row_id"], "1001");
                assert_eq!(
                    (&told["problems"][0]["level"], &told["counts"][0]["count"]),
                    (&json!(4), &json!(1))
                );
            }
        }
        scene.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_a_log_hears_where_it_is_until_it_needs_somebody() {
    let scene = Scene::begin().await;
    let response = scene.upload(&FIRST).await;
    let link = response.headers()["location"].to_str().unwrap().to_owned();

    let stream = scene.stage.request(Method::GET, &format!("{link}/events")).send().await.unwrap();
    let told = stream.text().await.unwrap();

    let last = told.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!((&last["state"], stats(&last)), (&json!("validated"), [2, 0, 0, 0]), "{told}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_is_a_submission_of_its_own() {
    let scene = Scene::begin_with("one-active", "tombstone").await;
    let first = scene.preview(&FIRST).await;
    scene.submitted(&first).await;
    let second = scene.preview(&SECOND).await;
    scene.submitted(&second).await;

    let path = path_of(&scene.scope, "/submissions/2/undo");
    let undoing: Value = scene.stage.request(Method::POST, &path).send().await.unwrap().json().await.unwrap();
    let undoing = scene.settled(&scene.link(&undoing, "")).await;
    assert_eq!(stats(&undoing), [0, 1, 0, 1], "{undoing}");
    scene.submitted(&undoing).await;

    let history = scene.stage.get(&path_of(&scene.scope, "/records/load/1000")).await;
    let tonnes: Vec<&Value> =
        history["versions"].as_array().unwrap().iter().map(|version| &version["values"]["TONNES"]).collect();
    assert_eq!(tonnes, ["1.5", "1.25", "1.5"], "{history}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_20_another_organisations_log_looks_like_none() {
    let scene = Scene::begin().await;
    let log = scene.preview(&FIRST).await;
    let stranger = Caller {
        id: "sam".to_owned(),
        name: "Sam".to_owned(),
        role: Role::Submitter,
        companies: Companies::Only(Vec::new()),
        organisations: Organisations::Only(vec![OrganisationId::parse("o2").unwrap()]),
    };
    let token = scene.stage.token(&stranger);

    for below in ["", "/problems", "/changes", "/file", "/submit"] {
        let method = if below == "/submit" { Method::POST } else { Method::GET };
        let url = format!("{}{}", scene.stage.base, scene.link(&log, below));
        let answer = scene.stage.http.request(method.clone(), &url).bearer_auth(&token).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{below}");
        // Under their own organisation's path the id finds nothing either.
        let own = url.replace("/organisations/o1/", "/organisations/o2/");
        let answer = scene.stage.http.request(method, &own).bearer_auth(&token).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{below}");
    }
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_workbook_is_told_in_words() {
    let scene = Scene::begin().await;
    let path = path_of(&scene.scope, "/summary-logs");

    for bytes in [&b"no workbook at all"[..], &workbook(&FIRST)[..900], b""] {
        let response = scene.stage.request(Method::POST, &path).body(bytes.to_vec()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        let link = response.headers()["location"].to_str().unwrap().to_owned();
        let log = scene.settled(&link).await;
        assert_eq!(log["state"], "invalid", "{log}");
        let told = scene.stage.get(&format!("{link}/problems")).await;
        assert_eq!(told["problems"][0]["level"], 0, "{told}");
    }
    scene.end().await;
}
