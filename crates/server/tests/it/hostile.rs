//! Forged, broken, oversized and hostile requests: each gets the right answer, a clear problem, and changes nothing.

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use model::access::{Caller, Role};
use reqwest::StatusCode;
use serde_json::{Value, json};
use understudy::server::FaultKind;

use crate::support::{SECRET, Stage, admin};

async fn problem(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let problem: Value = response.json().await.unwrap();
    for field in ["type", "title", "detail", "next", "name"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {problem}");
    }
    assert_eq!(problem["status"], status);
    assert!(problem["instance"].as_str().is_some_and(|id| id.starts_with("urn:uuid:")), "{problem}");
    (status, problem["code"].as_str().unwrap().to_owned())
}

fn signed(claims: &Value, algorithm: Algorithm, secret: &str) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret.as_bytes()))
        .unwrap()
}

fn seconds_from_now(seconds: i64) -> i64 {
    Timestamp::now().as_second() + seconds
}

async fn callback(stage: &Stage, body: &Value) -> reqwest::Response {
    stage.http.post(format!("{}/callback/12345", stage.base)).json(body).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn callbacks_that_cannot_be_trusted_change_nothing() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let key = stage.configure("12345", "ann", "edit").await["key"].clone();
    for status in 1..=7 {
        let claims = json!({ "key": key, "status": status, "url": "http://ds/x", "users": ["mallory"], "exp": seconds_from_now(300) });
        let right = signed(&claims, Algorithm::HS256, SECRET);
        let forged = [
            claims.clone(),
            json!({ "token": signed(&claims, Algorithm::HS256, &"w".repeat(40)) }),
            json!({ "token": signed(&claims, Algorithm::HS512, SECRET) }),
            json!({ "token": right[..right.len() - 3].to_owned() }),
            json!({ "token": "" }),
            json!({ "token": 7 }),
            json!([]),
        ];
        for body in forged {
            assert_eq!(problem(callback(&stage, &body).await).await, (403, "DOC_004".to_owned()), "{body}");
        }
    }
    assert_eq!(stage.document("12345").await["editors"], json!([]));
    assert_eq!(stage.app().ledger.totals().await.unwrap().open_saves, 0);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_token_is_told_apart_and_the_server_may_repeat() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let key = stage.configure("12345", "ann", "edit").await["key"].clone();

    for exp in [json!(seconds_from_now(-600)), Value::Null] {
        let claims = json!({ "key": key, "status": 2, "url": "http://ds/x", "exp": exp });
        let body = json!({ "token": signed(&claims, Algorithm::HS256, SECRET) });
        let response = callback(&stage, &body).await;
        assert_eq!(response.headers()["retry-after"], "1");
        assert_eq!(problem(response).await, (503, "DOC_004".to_owned()));
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_host_in_a_link_is_never_contacted_and_the_work_is_saved_all_the_same() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let view = stage.configure("12345", "ann", "edit").await;

    // The link names whatever host the browser used; nothing listens there.
    let session = stage.editor.open_from(&view["config"], "http://169.254.169.254:1").await.unwrap();
    session.opened().await;
    session.write("Safe.").await.unwrap();
    session.close().await.unwrap();

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Safe."));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_not_the_file_are_never_stored_as_one() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let faults = [
        FaultKind::BodyElsewhere { to: "http://169.254.169.254/".to_owned() },
        FaultKind::BodyHtml,
        FaultKind::LengthTooLong { by_bytes: 10 },
        FaultKind::BodyCut { percent: 90 },
        FaultKind::BodyStatus { status: 201 },
    ];
    for fault in faults {
        stage.editor.faults().clear();
        // A force save is sent once; all of its downloads go wrong.
        stage.editor.faults().arm(fault.clone().always());
        let session = stage.edit("12345", "ann").await;
        session.write("Again and again.").await.unwrap();
        session.press_save().await.unwrap();
        stage.editor.journal().wait_for(answered).await;
        stage.editor.faults().clear();
        session.close().await.unwrap();
        stage.editor.quiet().await;
        let head = stage.document("12345").await["head"].as_str().unwrap().to_owned();
        assert!(!head.contains('.'), "{fault:?} must not become a checkpoint");
    }
    stage
        .wait_until("all is finished", async || stage.app().ledger.totals().await.unwrap().open_saves == 0)
        .await;
    assert_eq!(stage.kept("12345").await.len(), 0);
    stage.stop().await;
}

fn answered(entry: &understudy::journal::Entry) -> Option<()> {
    format!("{:?}", entry.note).starts_with("CallbackAnswered").then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_result_is_quarantined_and_the_server_keeps_its_copy() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    // What is refused is fetched again, three times in all; this stays empty.
    stage.editor.faults().arm(FaultKind::BodyEmpty.times(3));

    let session = stage.edit("12345", "ann").await;
    session.write("Not nothing.").await.unwrap();
    session.close().await.unwrap();

    // Its forgotten copy is whole and is collected.
    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Not nothing."));
    assert_eq!(stage.kept("12345").await[0]["reason"], "damaged");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orphan_is_shown_to_those_who_look_after_the_installation_and_to_nobody_else() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let mut config = stage.configure("12345", "ann", "edit").await["config"].take();
    // As another installation with the same Document Server would open it, with our callback address by mistake.
    config["document"]["key"] = json!("prod_12345_edit_1.k");
    config.as_object_mut().unwrap().remove("token");
    config["token"] = json!(signed(&config, Algorithm::HS256, SECRET));

    let session = stage.editor.open(&config).await.unwrap();
    session.opened().await;
    session.write("Nobody's.").await.unwrap();
    session.close().await.unwrap();
    stage
        .wait_until("an orphan", async || stage.get("/api/v1/operations/status").await["orphans"] == 1)
        .await;

    let orphans = stage.get("/api/v1/operations/orphans").await;
    assert_eq!((&orphans[0]["kind"], &orphans[0]["key"]), (&json!("orphan"), &json!("prod_12345_edit_1.k")));
    let path = format!("/api/v1/operations/orphans/{}/content", orphans[0]["number"]);
    let response = stage.request(reqwest::Method::GET, &path).send().await.unwrap();
    assert!(understudy::office::text_of(&response.bytes().await.unwrap()).contains("Nobody's."));
    let viewer = Caller { role: Role::Viewer, ..admin() };
    for path in ["/api/v1/operations/orphans", &path] {
        let request = stage.http.get(format!("{}{path}", stage.base)).bearer_auth(stage.token(&viewer));
        assert_eq!(problem(request.send().await.unwrap()).await, (403, "API_003".to_owned()));
    }
    stage.pause().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_say_nothing_are_kept_as_orphans_and_answered_503() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    for (number, key) in
        ["no-scheme-at-all", "prod_12345_edit_1.k", "test_unheard-of_edit_1.k"].into_iter().enumerate()
    {
        let path = format!("/cache/files/data/{key}_{number}/output.docx/output.docx");
        let claims =
            json!({ "key": key, "status": 2, "url": format!("http://ds{path}"), "filetype": "docx" });

        let response = stage.deliver(&claims).await;

        assert_eq!(problem(response).await, (503, "DOC_005".to_owned()), "{key}");
    }
    let unreadable = stage.deliver(&json!({ "key": "not a key/..", "status": 2 })).await;
    assert_eq!(problem(unreadable).await, (503, "DOC_005".to_owned()));
    assert_eq!(stage.versions("12345").await, ["1"]);
    // Their links lead nowhere; at the end of the test they are still owed, which is right.
    stage.pause().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_bytes_are_refused_without_being_kept() {
    let stage = Stage::start_with(
        &[("SERVER_UPLOAD_MIB_MAX", "1"), ("SAVING_FETCH_MIB_MAX", "1")],
        understudy::Settings::default().with_time_scale(20.0),
    )
    .await;

    let upload = stage.upload("big", "big.txt", &vec![b'x'; 1024 * 1024 + 1]).await;
    assert_eq!(problem(upload).await, (413, "API_005".to_owned()));
    let long = stage
        .http
        .post(format!("{}/callback/12345", stage.base))
        .body(vec![b'x'; 9 * 1024 * 1024])
        .send()
        .await
        .unwrap();
    assert_eq!(problem(long).await, (413, "API_005".to_owned()));
    assert_eq!(stage.app().ledger.totals().await.unwrap().documents, 0);
    for app in stage.apps() {
        let spool = app.config.server.data.join("spool");
        assert_eq!(std::fs::read_dir(spool).unwrap().count(), 0);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_ids_are_refused_or_made_safe() {
    let stage = Stage::start().await;
    let docx = understudy::office::blank("docx");
    for name in [
        "../../etc/passwd",
        "..",
        "%2e%2e%2fx.docx",
        "a\0b.docx",
        "a/b.docx",
        "a\\b.docx",
        "",
        "x\u{202e}cod.exe",
    ] {
        let response = stage.upload("doc", name, &docx).await;
        assert_eq!(problem(response).await, (400, "DOC_007".to_owned()), "{name:?}");
    }
    for id in ["..", "../x", "a/b", "%2e%2e", "a b", "", &"x".repeat(65)] {
        let response = stage.upload(id, "x.docx", &docx).await;
        assert_eq!(problem(response).await, (400, "DOC_007".to_owned()), "{id:?}");
    }
    let long = format!("{}.docx", "é".repeat(150));
    let response = stage.upload("long", &long, &docx).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let name = response.json::<Value>().await.unwrap()["name"].as_str().unwrap().to_owned();
    assert!(name.len() <= 255 && name.ends_with(".docx"));
    let twins = [("nfc", "R\u{e9}sum\u{e9}.docx"), ("nfd", "Re\u{301}sume\u{301}.docx")];
    for (id, name) in twins {
        assert_eq!(stage.upload(id, name, &docx).await.status(), StatusCode::CREATED);
    }
    assert_eq!(stage.document("nfc").await["name"], stage.document("nfd").await["name"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_no_whole_file_is_refused() {
    let stage = Stage::start().await;
    let whole = understudy::office::blank("docx");

    for bytes in [&whole[..whole.len() / 2], b"", b"<html>not found</html>"] {
        let response = stage.upload("doc", "x.docx", bytes).await;
        assert_eq!(problem(response).await, (422, "DOC_002".to_owned()));
    }
    assert_eq!(stage.app().ledger.totals().await.unwrap().documents, 0);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_handler_sees_is_a_problem_like_any_other() {
    let stage = Stage::start().await;
    let company = json!({ "id": "new", "name": "New" });

    let method = stage.request(reqwest::Method::PUT, "/api/v1/companies").send().await.unwrap();
    assert_eq!(method.headers()["allow"], "GET,HEAD,POST");
    assert_eq!(problem(method).await, (405, "API_004".to_owned()));
    let post = || stage.request(reqwest::Method::POST, "/api/v1/companies");
    let unmarked = post().body(company.to_string()).send().await.unwrap();
    assert_eq!(problem(unmarked).await, (415, "API_004".to_owned()));
    let array = post().json(&json!(["new", "New"])).send().await.unwrap();
    assert_eq!(problem(array).await, (400, "API_004".to_owned()));
    let large = post().json(&json!({ "id": "new", "name": "x".repeat(300_000) })).send().await.unwrap();
    assert_eq!(problem(large).await, (413, "API_005".to_owned()));
    assert_eq!(post().json(&company).send().await.unwrap().status(), StatusCode::CREATED);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_places_that_nothing_can_have_are_not_a_failure_of_the_store() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let most = u64::MAX;
    let get = async |path: String| stage.request(reqwest::Method::GET, &path).send().await.unwrap();

    for path in [
        format!("/api/v1/operations/orphans/{most}/content"),
        format!("/api/v1/documents/12345/kept/{most}/content"),
        format!("/api/v1/documents/12345/diff?from=kept:{most}"),
    ] {
        assert_eq!(problem(get(path).await).await, (404, "API_001".to_owned()));
    }
    for act in ["use", "dismiss"] {
        let path = format!("/api/v1/documents/12345/kept/{most}/{act}");
        let answer = stage.request(reqwest::Method::POST, &path).send().await.unwrap();
        assert_eq!(problem(answer).await, (404, "API_001".to_owned()), "{act}");
    }
    let trail = get(format!("/api/v1/documents/12345/audit?after=1~12345~{most}")).await;
    assert_eq!(trail.json::<Value>().await.unwrap()["entries"], json!([]));
    stage.stop().await;
}

/// Every text that can be asked with, in every question that is described, with bytes that not every store can hold.
#[tokio::test(flavor = "multi_thread")]
async fn no_text_in_a_question_is_a_failure_of_the_store() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let described = stage.get("/api/openapi.json").await;
    let mut asked = 0;
    for (path, item) in described["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().into_iter().flatten();
        for parameter in parameters.filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            let place = filled(path);
            for text in ["\0", "a\0b", "\u{fffd}", "'; DROP TABLE documents; --", "%", "\u{202e}"] {
                let request = stage.request(reqwest::Method::GET, &place).query(&[(name, text)]);
                let status = request.send().await.unwrap().status();
                assert!(!status.is_server_error(), "{place}?{name}={text:?} is answered {status}");
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "only {asked} questions");
    stage.stop().await;
}

/// A path with things that are there, as far as they are known.
fn filled(path: &str) -> String {
    let ids = [("{company}", "acme"), ("{project}", "plans"), ("{document}", "12345"), ("{id}", "12345")];
    let path = ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id));
    let parts = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part });
    parts.collect::<Vec<_>>().join("/")
}
