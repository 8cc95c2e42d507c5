//! What must be right about submissions, over HTTP, each behaviour under its number. Those about cells are in `sheets`, those about crashes beside the
//! flow.

use jiff::SignedDuration;
use ledger::documents::Author;
use ledger::logs::SubmitWish;
use model::SummaryLogId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::submitting::{FIRST, SECOND, Scene, stats};
use crate::support::Stage;
use crate::support::submissions::path_of;

fn id_of(log: &Value) -> SummaryLogId {
    SummaryLogId::parse(log["id"].as_str().unwrap()).unwrap()
}

fn sue() -> Author {
    Author::new("sue", "Sue")
}

impl Scene {
    /// Somebody confirmed, and whoever writes the versions is slow.
    async fn submitting(&self, log: &Value) {
        let now = self.stage.app().now();
        let wish = SubmitWish {
            scope: self.scope.clone(),
            log: id_of(log),
            who: sue(),
            at: now,
            until: now.checked_add(SignedDuration::from_hours(1)).unwrap(),
        };
        self.stage.app().ledger.begin_submission(&wish).await.unwrap();
    }

    /// Nobody writes them any more: the service takes it up.
    async fn left_alone(&self, log: &Value) -> Value {
        let app = self.stage.app();
        assert!(app.ledger.retry_log(&id_of(log), &sue(), app.now()).await.unwrap());
        self.settled(&self.link(log, "")).await
    }

    /// A preview that was refused as stale is computed again.
    async fn renewed(&self, log: &Value) -> Value {
        let link = self.link(log, "");
        self.stage
            .wait_until("the new preview", async || self.stage.get(&link).await["is_stale"] == false)
            .await;
        self.stage.get(&link).await
    }

    async fn tonnes(&self) -> Vec<(String, String)> {
        let view = self.stage.get(&path_of(&self.scope, "/records")).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let records = view["records"].as_array().unwrap();
        records.iter().map(|record| (text(&record["key"]), text(&record["values"]["TONNES"]))).collect()
    }

    async fn submissions(&self) -> usize {
        let view = self.stage.get(&path_of(&self.scope, "/submissions")).await;
        view["submissions"].as_array().unwrap().len()
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(key, tonnes)| ((*key).to_owned(), (*tonnes).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_1_of_two_previews_submitted_at_once_one_wins_under_parallel() {
    let scene = Scene::begin_with("parallel", "ignore").await;
    let (one, two) = (scene.preview(&FIRST).await, scene.preview(&SECOND).await);
    assert_eq!((&one["state"], &two["state"]), (&json!("validated"), &json!("validated")));

    let (a, b) = tokio::join!(scene.submit(&one), scene.submit(&two));

    let mut statuses = [a.status().as_u16(), b.status().as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 409], "exactly one begins");
    let (winner, loser, refusal) =
        if a.status() == StatusCode::ACCEPTED { (&one, &two, b) } else { (&two, &one, a) };
    assert_eq!(scene.settled(&scene.link(winner, "")).await["submission"], 1);
    let refusal: Value = refusal.json().await.unwrap();
    match refusal["code"].as_str().unwrap() {
        "SUB_001" => {}
        // The winner was done by then.
        "SUB_003" => drop(scene.renewed(loser).await),
        code => panic!("{code}"),
    }
    let loser = scene.stage.get(&scene.link(loser, "")).await;
    assert_eq!(loser["state"], "validated", "it may be confirmed yet");
    assert_eq!(scene.submissions().await, 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_1_under_one_active_there_is_one_preview_and_many_clicks_make_one_submission() {
    let scene = Scene::begin().await;
    let (older, newer) = (scene.preview(&FIRST).await, scene.preview(&SECOND).await);

    let (a, b, c) = tokio::join!(scene.submit(&newer), scene.submit(&older), scene.submit(&newer));

    assert!(a.status().is_success() && c.status().is_success(), "{} {}", a.status(), c.status());
    scene.refused(b, "SUB_002").await;
    assert_eq!(scene.settled(&scene.link(&newer, "")).await["submission"], 1);
    assert_eq!(scene.submissions().await, 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_2_a_submission_since_the_preview_is_refused_and_previewed_again_under_parallel() {
    let scene = Scene::begin_with("parallel", "ignore").await;
    let (one, two) = (scene.preview(&FIRST).await, scene.preview(&SECOND).await);
    assert_eq!(stats(&two), [3, 0, 0, 0]);
    scene.submitted(&one).await;

    let refused = scene.refused(scene.submit(&two).await, "SUB_003").await;

    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("made submission 1 at 20"), "who and when: {detail}");
    assert_eq!(scene.tonnes().await, pairs(&[("1000", "1.5"), ("1001", "2")]), "nothing was touched");
    assert_eq!(stats(&scene.renewed(&two).await), [1, 1, 1, 0], "it tells what would happen now");
    assert_eq!(scene.submitted(&two).await["submission"], 2, "confirmed again, it counts");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_2_under_one_active_a_newer_submission_leaves_the_older_preview_superseded() {
    let scene = Scene::begin().await;
    let (older, newer) = (scene.preview(&FIRST).await, scene.preview(&SECOND).await);
    scene.submitted(&newer).await;

    scene.refused(scene.submit(&older).await, "SUB_002").await;

    let older = scene.stage.get(&scene.link(&older, "")).await;
    assert_eq!((&older["state"], &older["superseded_by"]), (&json!("superseded"), &newer["id"]));
    assert_eq!(scene.tonnes().await, pairs(&[("1000", "1.25"), ("1001", "2"), ("1002", "3")]));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_3_a_preview_names_the_records_it_was_compared_with() {
    let scene = Scene::begin_with("parallel", "ignore").await;
    let (one, two) = (scene.preview(&FIRST).await, scene.preview(&FIRST).await);
    let basis = async |log: &Value| {
        let log = scene.stage.app().ledger.log_by_id(&id_of(log)).await.unwrap().unwrap();
        (log.basis, log.head)
    };
    assert_eq!(basis(&one).await, (Some(0), 0));

    scene.submitted(&one).await;

    assert_eq!(basis(&two).await, (Some(0), 1), "an older preview stays what it was compared with");
    assert_eq!(scene.stage.get(&scene.link(&two, "")).await["is_stale"], true);
    let three = scene.preview(&SECOND).await;
    assert_eq!((basis(&three).await, stats(&three)), ((Some(1), 1), [1, 1, 1, 0]));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_4_submit_pressed_again_has_the_same_result() {
    let scene = Scene::begin().await;
    let log = scene.preview(&FIRST).await;

    let clicks = futures_util::future::join_all((0..5).map(|_| scene.submit(&log))).await;

    let answers: Vec<u16> = clicks.iter().map(|answer| answer.status().as_u16()).collect();
    assert!(answers.iter().all(|status| [200, 202].contains(status)), "{answers:?}");
    let done = scene.settled(&scene.link(&log, "")).await;
    let again = scene.submit(&log).await;
    assert_eq!(again.status(), StatusCode::OK);
    let again: Value = again.json().await.unwrap();
    assert_eq!((&again["submission"], &again["submitted_at"]), (&json!(1), &done["submitted_at"]));
    assert_eq!(scene.submissions().await, 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_5_an_upload_during_a_submission_is_previewed_under_parallel() {
    let scene = Scene::begin_with("parallel", "ignore").await;
    let running = scene.preview(&FIRST).await;
    scene.submitting(&running).await;

    let during = scene.preview(&SECOND).await;

    assert_eq!((&during["state"], stats(&during)), (&json!("validated"), [3, 0, 0, 0]));
    scene.refused(scene.submit(&during).await, "SUB_001").await;
    assert_eq!(scene.left_alone(&running).await["submission"], 1);
    scene.refused(scene.submit(&during).await, "SUB_003").await;
    assert_eq!(stats(&scene.renewed(&during).await), [1, 1, 1, 0]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_5_an_upload_during_a_submission_is_refused_under_one_active() {
    let scene = Scene::begin().await;
    let running = scene.preview(&FIRST).await;
    scene.submitting(&running).await;

    let refused = scene.refused(scene.upload(&SECOND).await, "SUB_001").await;

    assert_eq!(refused["detail"], "A submission is in progress. Please wait.");
    assert_eq!(scene.left_alone(&running).await["submission"], 1);
    assert_eq!(stats(&scene.preview(&SECOND).await), [1, 1, 1, 0], "afterwards it is welcome");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_12_rows_that_shifted_are_seen_before_anybody_confirms() {
    let scene = Scene::begin().await;
    let first = scene.preview(&FIRST).await;
    scene.submitted(&first).await;

    // A row was inserted at the top, and the numbers stayed where they were.
    let shifted = [["1000", "East", "3"], ["1001", "North", "1.5"], ["1002", "South", "2"]];
    let log = scene.preview(&shifted).await;

    assert_eq!(stats(&log), [1, 2, 0, 0], "{log}");
    let view = scene.stage.get(&scene.link(&log, "/changes?change=updated")).await;
    let cells: Vec<&Value> = view["changes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|change| change["cells"].as_array().unwrap())
        .filter(|cell| cell["column"] == "SITE")
        .collect();
    let site = |old: &str, new: &str| json!({ "column": "SITE", "old": old, "new": new });
    assert_eq!(cells, [&site("North", "East"), &site("South", "North")], "{view}");
    let problems = scene.stage.get(&scene.link(&log, "/problems")).await;
    let warning = &problems["problems"][0];
    assert_eq!((&warning["code"], &warning["severity"]), (&json!("ROWS_SEEM_SHIFTED"), &json!("warning")));
    let sentence = warning["sentence"].as_str().unwrap();
    assert!(sentence.contains("1001 has those of 1000, and 1 more such"), "{sentence}");
    let refused = scene.refused(scene.submit(&log).await, "SUB_007").await;
    assert!(refused["next"].as_str().unwrap().contains("?despite="), "{refused}");
    assert_eq!(scene.tonnes().await, pairs(&[("1000", "1.5"), ("1001", "2")]));

    let despite = scene.link(&log, "/submit?despite=ROWS_SEEM_SHIFTED");
    let answer = scene.stage.request(Method::POST, &despite).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::ACCEPTED);

    assert_eq!(scene.settled(&scene.link(&log, "")).await["submission"], 2);
    assert_eq!(scene.tonnes().await, pairs(&[("1000", "3"), ("1001", "1.5"), ("1002", "2")]));
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_only_corrected_ask_nothing() {
    let scene = Scene::begin().await;
    let first = scene.preview(&FIRST).await;
    scene.submitted(&first).await;

    let log = scene.preview(&[["1000", "North", "1.75"], ["1001", "South", "2.25"]]).await;

    assert_eq!(stats(&log), [0, 2, 0, 0], "{log}");
    assert_eq!(scene.stage.get(&scene.link(&log, "/problems")).await["problems"], json!([]));
    scene.submitted(&log).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_19_there_and_back_again_is_three_versions_in_the_order_of_submissions() {
    let scene = Scene::begin().await;
    for tonnes in ["1.5", "1.25", "1.5"] {
        let log = scene.preview(&[["1000", "North", tonnes]]).await;
        scene.submitted(&log).await;
    }

    let history = scene.stage.get(&path_of(&scene.scope, "/records/load/1000")).await;

    let versions = history["versions"].as_array().unwrap();
    let told: Vec<_> = versions.iter().map(|each| (&each["submission"], &each["values"]["TONNES"])).collect();
    let expected =
        [(1, "1.5"), (2, "1.25"), (3, "1.5")].map(|(number, tonnes)| (json!(number), json!(tonnes)));
    assert_eq!(told, expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>(), "{history}");
    scene.end().await;
}

/// A workbook of the shipped template with one load.
fn load_of_january() -> Vec<u8> {
    let headers: Vec<&str> =
        "__SG_TABLE_LOADS_IN LOAD_ID RECEIVED_ON MATERIAL WASTE_CODE EVIDENCE_ISSUED GROSS_T TARE_T PACKING_T NET_T USABLE_SHARE COUNTED_T VEHICLE SUPPLIER SUPPLIER_PHONE"
            .split(' ')
            .collect();
    let rows: [&[&str]; 6] = [
        &["__SG_META_TEMPLATE", "waste-records"],
        &["__SG_META_VERSION", "2.1"],
        &["__SG_META_REGISTRATION", "r1-number"],
        &["__SG_META_ACCREDITATION", "A-1"],
        &headers,
        &[
            "",
            "1000",
            "2026-01-31",
            "Plastic",
            "15 01 02",
            "No",
            "26.5",
            "14.02",
            "0.08",
            "12.4",
            "0.875",
            "10.85",
            "AB12CDE",
        ],
    ];
    understudy::office::sample_xlsx(&rows).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn behaviour_19_the_same_row_under_other_dates_of_a_licence_is_changed() {
    let stage = Stage::start().await;
    let scope = stage.register("o1", "r1").await;
    let scene = Scene { stage, scope };
    let licence = path_of(&scene.scope, "/accreditations/a1");
    let upload = async |id: &str| {
        let path = path_of(&scene.scope, &format!("/summary-logs?name=loads.xlsx&id={id}"));
        let sent = scene.stage.request(Method::POST, &path).body(load_of_january()).send().await.unwrap();
        assert_eq!(sent.status(), StatusCode::ACCEPTED, "{}", sent.text().await.unwrap());
        scene.settled(&path_of(&scene.scope, &format!("/summary-logs/{id}"))).await
    };
    scene.stage.put_json(&licence, json!({ "number": "A-1", "from": "2026-01-01" })).await;
    let before = upload("before").await;
    assert_eq!(stats(&before), [1, 0, 0, 0], "{before}");
    scene.submitted(&before).await;

    scene.stage.put_json(&licence, json!({ "number": "A-1", "from": "2026-02-01" })).await;
    let after = upload("after").await;

    assert_eq!(stats(&after), [0, 1, 0, 0], "{after}");
    scene.submitted(&after).await;
    let history = scene.stage.get(&path_of(&scene.scope, "/records/load-in/1000")).await;
    let outcomes: Vec<&Value> =
        history["versions"].as_array().unwrap().iter().map(|version| &version["outcome"]).collect();
    assert_eq!(outcomes, ["included", "ignored"], "{history}");
    scene.end().await;
}
