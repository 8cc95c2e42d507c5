//! Records over HTTP: as they are and were, the history of one, exports, across organisations, erasing.

use model::Scope;
use model::access::{Organisations, Role};
use reqwest::Method;
use serde_json::{Value, json};

use crate::organisation_matrix::acting_for;
use crate::support::submissions::{KIND, load, path_of};
use crate::support::{Stage, admin};

/// Two submissions: three loads; then one of them is heavier, one is new and one is gone.
async fn two_submissions(stage: &Stage) -> Scope {
    let scope = stage.register("reprocessors", "site-1").await;
    let first = [
        load("1000", 7, &[("MATERIAL", "Plastic"), ("GROSS_T", "26.5"), ("SUPPLIER", "Ann Other")]),
        load("1001", 8, &[("MATERIAL", "Steel"), ("GROSS_T", "-4"), ("SUPPLIER", "=cmd|' /C calc'!A0")]),
        load("1002", 9, &[("MATERIAL", "Wood"), ("GROSS_T", "1"), ("NOTES", "a \"note\", kept")]),
    ];
    let mut second = [first[0].clone(), first[1].clone(), load("2000", 12, &[("MATERIAL", "Glass")])];
    second[0] = load("1000", 10, &[("MATERIAL", "Plastic"), ("GROSS_T", "27"), ("SUPPLIER", "Ann Other")]);
    second[2].outcome = "excluded".into();
    assert_eq!(stage.submit(&scope, "first", &first).await, 1);
    assert_eq!(stage.submit(&scope, "second", &second).await, 2);
    scope
}

fn keys(view: &Value) -> Vec<&str> {
    view["records"].as_array().unwrap().iter().map(|each| each["key"].as_str().unwrap()).collect()
}

/// Status and text of a call with a token.
async fn ask(stage: &Stage, token: &str, path: &str) -> (u16, String) {
    let response = stage.http.get(format!("{}{path}", stage.base)).bearer_auth(token).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_listed_filtered_and_read_as_they_were() {
    let stage = Stage::start().await;
    let scope = two_submissions(&stage).await;
    let list = async |query: &str| stage.get(&path_of(&scope, &format!("/records{query}"))).await;

    let now = list("").await;
    assert_eq!((&now["as_of"], keys(&now)), (&json!(2), vec!["1000", "1001", "2000"]));
    let record = &now["records"][0];
    assert_eq!(record["values"]["GROSS_T"], "27");
    assert_eq!((&record["submission"], &record["log"]), (&json!(2), &json!("second")));
    assert_eq!((&record["sheet"], &record["row"]), (&json!("Loads received"), &json!(10)));
    assert!(record["validatedAt"].is_string() && record["submitted_at"].is_string(), "{record}");
    assert_eq!(record["submitted_by"], "Sue Submitter");
    let between = now["records"][1]["submitted_at"].as_str().unwrap();
    for then in ["1", "first", "log:first", between] {
        let view = list(&format!("?as_of={then}")).await;
        assert_eq!((&view["as_of"], keys(&view)), (&json!(1), vec!["1000", "1001", "1002"]), "{then}");
        assert_eq!(view["records"][0]["values"]["GROSS_T"], "26.5");
    }
    assert_eq!(keys(&list("?as_of=0").await), Vec::<&str>::new());
    assert_eq!(keys(&list("?ended=true").await), ["1000", "1001", "1002", "2000"]);
    assert_eq!(keys(&list("?key_prefix=100").await), ["1000", "1001"]);
    assert_eq!(keys(&list("?outcome=excluded").await), ["2000"]);
    assert_eq!(keys(&list("?column=MATERIAL&value=Steel").await), ["1001"]);
    assert_eq!(keys(&list("?kind=load-out").await), Vec::<&str>::new());
    let page = list("?limit=2&as_of=2").await;
    assert_eq!(page["next"], json!({ "kind": KIND, "key": "1001" }));
    let rest = list(&format!("?limit=2&as_of=2&after_kind={KIND}&after_key=1001")).await;
    assert_eq!((keys(&rest), &rest["next"]), (vec!["2000"], &Value::Null));
    for (query, status) in [
        ("?as_of=3", 404),
        ("?as_of=99999999999999999999", 404),
        ("?as_of=third", 404),
        ("?as_of=../x", 400),
        ("?column=MATERIAL", 400),
        ("?limit=x", 400),
    ] {
        let path = path_of(&scope, &format!("/records{query}"));
        assert_eq!(ask(&stage, &stage.token(&admin()), &path).await.0, status, "{query}");
    }
    let submissions = stage.get(&path_of(&scope, "/submissions?limit=1")).await;
    assert_eq!(submissions["submissions"][0]["submission"], 2);
    assert_eq!(submissions["next"], 2);
    let stats = json!({ "created": 1, "updated": 1, "unchanged": 1, "removed": 1 });
    assert_eq!(submissions["submissions"][0]["stats"], stats);
    let older = stage.get(&path_of(&scope, "/submissions?before=2")).await;
    assert_eq!(older["submissions"][0]["log"], "first");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_record_tells_what_changed_and_from_which_cell() {
    let stage = Stage::start().await;
    let scope = two_submissions(&stage).await;
    let show = async |key: &str| stage.get(&path_of(&scope, &format!("/records/{KIND}/{key}"))).await;

    let changed = show("1000").await;
    let versions = changed["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!(versions[0]["change"], "created");
    assert_eq!(versions[0]["cells"]["GROSS_T"], "G7");
    assert_eq!(versions[1]["change"], "updated");
    assert_eq!(versions[1]["changes"], json!([{ "column": "GROSS_T", "old": "26.5", "new": "27" }]));
    assert_eq!((&versions[1]["cells"]["GROSS_T"], &versions[1]["log"]), (&json!("G10"), &json!("second")));
    assert!(versions.iter().all(|version| version["validatedAt"].is_string()));
    let page = stage.get(&path_of(&scope, &format!("/records/{KIND}/1000?after=1&limit=1"))).await;
    assert_eq!(page["versions"][0]["changes"], versions[1]["changes"], "a page compares with the one before");
    assert_eq!(page["next"], 2);
    let ended = show("1002").await;
    assert_eq!(ended["versions"][1]["change"], "removed");
    assert_eq!(ended["versions"][1]["values"], json!({}));
    let missing = path_of(&scope, &format!("/records/{KIND}/100"));
    assert_eq!(ask(&stage, &stage.token(&admin()), &missing).await.0, 404);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_hold_every_column_and_nothing_that_runs() {
    let stage = Stage::start().await;
    let scope = two_submissions(&stage).await;
    let export = async |query: &str| {
        let path = path_of(&scope, &format!("/records/export?{query}"));
        stage.request(Method::GET, &path).send().await.unwrap()
    };

    let response = export("format=csv&as_of=1").await;
    assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8");
    let table = response.text().await.unwrap();
    let lines: Vec<&str> = table.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 4, "{table}");
    let header: Vec<&str> = lines[0].split(',').collect();
    let facts = "organisation,registration,accreditation,kind,key,outcome,reason,measure,submission,submitted_at,validatedAt,log,sheet,row";
    assert!(lines[0].starts_with(&format!("{facts},LOAD_ID,RECEIVED_ON,MATERIAL")), "{table}");
    assert_eq!(header.last(), Some(&"NOTES"), "what only workbooks have comes last");
    assert!(lines[2].contains(",'=cmd|' /C calc'!A0") && lines[2].contains(",-4,"), "{table}");
    assert!(lines[3].contains("\"a \"\"note\"\", kept\""), "{table}");
    let lines = export("format=jsonl&outcome=included").await.text().await.unwrap();
    let records: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["values"]["GROSS_T"], "27");
    let workbook = export("format=xlsx").await;
    assert_eq!(workbook.status().as_u16(), 200);
    let bytes = workbook.bytes().await.unwrap();
    let report = office_check::check(
        std::io::Cursor::new(bytes.to_vec()),
        office_check::Hint::from_extension("xlsx"),
        &office_check::Limits::default(),
    );
    assert_eq!(report.kind.to_string(), "xlsx");
    assert!(report.extent.is_some_and(|extent| extent.cells > 30), "{:?}", report.findings);
    assert_eq!(export("format=pdf").await.status().as_u16(), 400);
    assert_eq!(export("").await.status().as_u16(), 400);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_regulator_sees_across_organisations_who_handed_in_and_who_did_not() {
    let stage = Stage::start().await;
    let scope = two_submissions(&stage).await;
    let silent = stage.register("silent", "site-9").await;
    stage.put_json("/api/v1/organisations/alone", json!({})).await;
    for each in [&scope, &silent] {
        let past = json!({ "opens": "2026-01-01", "due": "2026-04-28" });
        stage.put_json(&path_of(each, "/deadlines/2026%20Q1"), past).await;
    }
    stage.preview(&silent, "waiting", &[load("1", 7, &[])]).await;
    let regulator = |organisations| {
        stage.token(&model::access::Caller { organisations, ..acting_for(&[], Role::Regulator) })
    };
    let all = regulator(Organisations::All);
    let read = async |token: &str, path: &str| -> Value {
        let (status, text) = ask(&stage, token, path).await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };

    let standings = read(&all, "/api/v1/records/standings").await;
    let first = &standings["standings"][0];
    assert_eq!((&first["organisation"], &first["head"]), (&json!("reprocessors"), &json!(2)));
    assert!(first["submitted_at"].is_string());
    let second = &standings["standings"][1];
    assert_eq!((&second["registration"], &second["head"]), (&json!("site-9"), &json!(0)));
    assert_eq!(second["active"], json!(["waiting"]));
    let page = read(&all, "/api/v1/records/standings?limit=1").await;
    assert_eq!(page["next"], json!({ "organisation": "reprocessors", "registration": "site-1" }));
    let rest = "/api/v1/records/standings?limit=5&after_organisation=reprocessors&after_registration=site-1";
    assert_eq!(read(&all, rest).await["standings"][0]["organisation"], "silent");
    let late = read(&all, "/api/v1/records/overdue?on=2026-05-08").await;
    let who = |late: &Value| -> Vec<String> {
        let all = late["overdue"].as_array().unwrap().iter();
        all.map(|each| each["organisation"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(who(&late), ["reprocessors", "silent"], "nobody had submitted by then");
    assert_eq!((&late["overdue"][0]["days"], &late["on"]), (&json!(10), &json!("2026-05-08")));
    assert_eq!(who(&read(&all, "/api/v1/records/overdue").await), ["silent"]);
    assert_eq!(ask(&stage, &all, "/api/v1/records/overdue?on=tomorrow").await.0, 400);
    let (status, lines) = ask(&stage, &all, "/api/v1/records/export?format=jsonl").await;
    assert_eq!((status, lines.lines().count()), (200, 3));
    let (_, table) = ask(&stage, &all, "/api/v1/records/export?format=csv&as_of=2000-01-01T00:00:00Z").await;
    assert_eq!(table.lines().count(), 1, "{table}");
    let some = stage.token(&acting_for(&["silent"], Role::Regulator));
    let theirs = read(&some, "/api/v1/records/standings").await;
    assert_eq!(theirs["standings"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&stage, &some, "/api/v1/records/export?format=jsonl").await, (200, String::new()));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn personal_values_are_erased_with_a_reason_and_history_stays() {
    let stage = Stage::start().await;
    let scope = two_submissions(&stage).await;
    let path = path_of(&scope, "/records/erase");
    let erase = async |token: &str, wish: Value| {
        let request = stage.http.post(format!("{}{path}", stage.base)).bearer_auth(token);
        let response = request.json(&wish).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let wish =
        json!({ "kind": KIND, "keys": ["1000"], "columns": ["SUPPLIER"], "reason": "Ann asked for it" });
    let root = stage.token(&acting_for(&["reprocessors"], Role::Admin));
    let history = path_of(&scope, &format!("/records/{KIND}/1000"));
    let before = stage.get(&history).await;

    let submitter = stage.token(&acting_for(&["reprocessors"], Role::Submitter));
    assert_eq!(erase(&submitter, wish.clone()).await.0, 403);
    for (changed, value) in [
        ("columns", json!(["GROSS_T"])),
        ("columns", json!([])),
        ("columns", json!(["NOTES"])),
        ("keys", json!([])),
        ("all", json!(true)),
        ("reason", json!(" ")),
        ("kind", json!("load-out")),
    ] {
        let mut strange = wish.clone();
        strange[changed] = value;
        assert_eq!(erase(&root, strange.clone()).await.0, 400, "{strange}");
    }
    let (status, erased) = erase(&root, wish.clone()).await;
    assert_eq!((status, &erased["contents"]), (200, &json!(2)));
    assert_eq!(erase(&root, wish).await.1["contents"], 0, "again changes nothing");

    let after = stage.get(&history).await;
    for version in 0..2 {
        assert_eq!(after["versions"][version]["values"]["SUPPLIER"], "[erased]");
        assert_eq!(after["versions"][version]["hash"], before["versions"][version]["hash"]);
        assert!(after["versions"][version]["erased_at"].is_string());
    }
    let other = stage.get(&path_of(&scope, &format!("/records/{KIND}/1001"))).await;
    assert_ne!(other["versions"][0]["values"]["SUPPLIER"], "[erased]");
    let acts = stage.app().ledger.audit(&scope.chain(), 0, 100).await.unwrap();
    let told = acts.iter().filter(|(entry, _)| entry.action == "personal-values-erased");
    assert!(told.clone().count() >= 1 && told.clone().all(|(entry, _)| !entry.details.contains("Ann Other")));
    assert!(told.clone().all(|(entry, _)| entry.details.contains("Ann asked for it")));
    stage.stop().await;
}
