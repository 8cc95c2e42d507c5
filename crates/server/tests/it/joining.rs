//! What joins documents, outside uploaders and submissions: receipts, marked workbooks, submitting a document, notices, and operators.

use hmac::{Hmac, KeyInit as _, Mac as _};
use model::access::{Caller, Companies, Role};
use model::submissions::{Problem, Severity};
use model::{CompanyId, Digest, Scope};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use understudy::Settings;

use crate::cli::{json as line_of, saveguard};
use crate::organisation_matrix::acting_for;
use crate::support::submissions::{load, path_of};
use crate::support::{Stage, admin};

const NOTICE_SECRET: &str = "the secret shared with the outside uploader";

async fn call(stage: &Stage, token: &str, (method, path): (Method, &str), body: &Value) -> (u16, Value) {
    let request = stage.http.request(method, format!("{}{path}", stage.base)).bearer_auth(token);
    let response = request.json(body).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap_or(Value::Null))
}

fn workbook() -> Vec<u8> {
    understudy::office::sample_xlsx(&[&["Load", "Tonnes"], &["1000", "26.5"]]).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_signed_and_every_change_of_it_is_found() {
    let stage = Stage::start().await;
    let scope = stage.register("reprocessors", "site-1").await;
    stage.submit(&scope, "first", &[load("1000", 7, &[("MATERIAL", "Wood")])]).await;
    stage.preview(&scope, "second", &[load("1000", 7, &[("MATERIAL", "Steel")])]).await;

    let receipt = stage.get(&path_of(&scope, "/summary-logs/first/receipt")).await;

    let said = &receipt["receipt"];
    assert_eq!((&said["log"], &said["submission"]), (&json!("first"), &json!(1)));
    assert_eq!(said["sha256"], Digest::of(b"first").to_string());
    assert_eq!(said["stats"]["created"], 1);
    assert!(said["validatedAt"].is_string() && said["submitted_at"].is_string());
    let acts = stage.app().ledger.audit(&scope.chain(), 0, 100).await.unwrap();
    let told = acts.iter().find(|(entry, _)| entry.sequence == said["audit"]["sequence"].as_u64().unwrap());
    assert_eq!(told.unwrap().1.to_string(), said["audit"]["hash"].as_str().unwrap());
    let unsubmitted = path_of(&scope, "/summary-logs/second/receipt");
    let response = stage.request(Method::GET, &unsubmitted).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 404, "there is none before it is submitted");

    let anybody = stage.token(&acting_for(&["another"], Role::Submitter));
    let verify =
        async |body: &Value| call(&stage, &anybody, (Method::POST, "/api/v1/receipts/verify"), body).await.1;
    assert_eq!(verify(&receipt).await, json!({ "is_ours": true, "receipt": said }));
    assert_eq!(verify(&json!({ "token": receipt["token"] })).await["is_ours"], true);
    let mut changed = receipt.clone();
    changed["receipt"]["submission"] = json!(2);
    assert_eq!(verify(&changed).await, json!({ "is_ours": false }));
    assert_eq!(
        verify(&json!({ "token": format!("x{}", receipt["token"].as_str().unwrap()) })).await["is_ours"],
        false
    );

    let check = async |receipt: &Value| {
        let file = stage.folder().join("receipt.json");
        std::fs::write(&file, receipt.to_string()).unwrap();
        let config = stage.app().config.clone();
        let file = file.display().to_string();
        let checking =
            tokio::task::spawn_blocking(move || saveguard(&config, &["receipt", "verify", "--json", &file]));
        checking.await.unwrap()
    };
    let (good, bad) = (check(&receipt).await, check(&changed).await);
    assert_eq!((good.status.code(), bad.status.code()), (Some(0), Some(1)));
    assert_eq!(line_of(&good), json!({ "is_ours": true, "receipt": said }));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_submitted_and_its_outcome_stands_beside_it() {
    let stage = Stage::start().await;
    let scope = stage.register("reprocessors", "site-1").await;
    assert_eq!(stage.upload("book", "returns.xlsx", &workbook()).await.status().as_u16(), 201);
    let path = path_of(&scope, "/summary-logs/from-document");
    let acme = Companies::Only(vec![CompanyId::parse("acme").unwrap()]);
    let both = stage.token(&Caller { companies: acme, ..acting_for(&["reprocessors"], Role::Submitter) });
    let wish = json!({ "document": "book", "version": "1", "id": "from-book" });

    let organisation_only = stage.token(&acting_for(&["reprocessors"], Role::Submitter));
    assert_eq!(call(&stage, &organisation_only, (Method::POST, &path), &wish).await.0, 404);
    let regulator = stage.token(&acting_for(&["reprocessors"], Role::Regulator));
    assert_eq!(call(&stage, &regulator, (Method::POST, &path), &wish).await.0, 403);
    let missing = json!({ "document": "book", "version": "7" });
    assert_eq!(call(&stage, &both, (Method::POST, &path), &missing).await.0, 404);
    let (status, log) = call(&stage, &both, (Method::POST, &path), &wish).await;
    assert_eq!((status, &log["document"]), (202, &json!(["book", "1"])), "{log}");
    assert_eq!(
        call(&stage, &both, (Method::POST, &path), &wish).await.1["id"],
        "from-book",
        "again finds it"
    );

    let beside = "/api/v1/documents/book/summary-logs";
    stage
        .wait_until("the workbook to be read", async || {
            let shown = call(&stage, &both, (Method::GET, beside), &Value::Null).await.1;
            shown["logs"][0]["state"] == "invalid"
        })
        .await;
    let shown = call(&stage, &both, (Method::GET, beside), &Value::Null).await.1;
    assert_eq!((&shown["logs"][0]["id"], &shown["logs"][1]), (&json!("from-book"), &Value::Null));
    assert!(shown["logs"][0]["problems"]["fatal"].as_u64().unwrap() > 0, "{shown}");
    let company_only = Companies::Only(vec![CompanyId::parse("acme").unwrap()]);
    let company_only = stage.token(&Caller { companies: company_only, ..acting_for(&[], Role::Viewer) });
    let seen = call(&stage, &company_only, (Method::GET, beside), &Value::Null).await;
    assert_eq!(seen, (200, json!({ "logs": [] })), "who does not act for the organisation hears nothing");
    stage.stop().await;
}

fn wrong_cell() -> Problem {
    Problem {
        code: "NET_DOES_NOT_ADD_UP".to_owned(),
        severity: Severity::Fatal,
        level: 3,
        sheet: Some("Sheet1".to_owned()),
        cell: Some("B2".to_owned()),
        header: Some("Tonnes".to_owned()),
        row_id: Some("1000".to_owned()),
        value: Some("26.5".to_owned()),
        sentence: "The weights do not add up.".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_workbook_comes_back_marked_and_opens_as_a_document() {
    let stage = Stage::start().await;
    let scope = stage.register("reprocessors", "site-1").await;
    stage.reject(&scope, "wrong", (&workbook(), wrong_cell())).await;

    let marked = path_of(&scope, "/summary-logs/wrong/marked");
    let response = stage.request(Method::GET, &marked).send().await.unwrap();

    assert_eq!(response.status().as_u16(), 200);
    assert!(response.headers()["content-disposition"].to_str().unwrap().contains("marked"));
    let length: u64 = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let bytes = response.bytes().await.unwrap();
    assert_eq!(bytes.len() as u64, length);
    let report = office_check::check(
        std::io::Cursor::new(bytes.to_vec()),
        office_check::Hint::from_extension("xlsx"),
        &office_check::Limits::default(),
    );
    assert_eq!(report.kind.to_string(), "xlsx");
    assert!(report.extent.unwrap().sheets > 1, "a sheet lists the problems");

    let path = path_of(&scope, "/summary-logs/wrong/open-as-document");
    let place = json!({ "company": "acme", "project": "plans", "id": "to-correct" });
    let (status, document) = call(&stage, &stage.token(&admin()), (Method::POST, &path), &place).await;
    assert_eq!((status, &document["name"]), (201, &json!("wrong (marked).xlsx")), "{document}");
    assert_eq!(document["sha256"], Digest::of(&bytes).to_string());
    let submitter = stage.token(&acting_for(&["reprocessors"], Role::Submitter));
    assert_eq!(
        call(&stage, &submitter, (Method::POST, &path), &place).await.0,
        404,
        "the company is not theirs"
    );
    stage.reject(&scope, "no-workbook", (b"no workbook", wrong_cell())).await;
    let marked = path_of(&scope, "/summary-logs/no-workbook/marked");
    let refused = stage.request(Method::GET, &marked).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 422);
    stage.stop().await;
}

fn signature(secret: &str, at: i64, text: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}.").as_bytes());
    mac.update(text);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at},v1={hex}")
}

fn notice(scope: &Scope, upload: &str, bytes: &[u8]) -> Value {
    json!({
        "upload_id": upload, "organisation": scope.organisation.as_str(), "registration": scope.registration.as_str(),
        "name": "returns.xlsx", "sha256": Digest::of(bytes).to_string(), "size_bytes": bytes.len(),
    })
}

struct Uploader<'a> {
    stage: &'a Stage,
    secret: &'a str,
    late_seconds: i64,
}

impl Uploader<'_> {
    fn signed(&self, text: &[u8]) -> String {
        signature(self.secret, self.stage.app().now().as_second() - self.late_seconds, text)
    }

    async fn put(&self, bytes: &[u8], digest: &str) -> u16 {
        let url = format!("{}/api/v1/uploads/{digest}", self.stage.base);
        let request = self.stage.http.put(url).header("saveguard-signature", self.signed(digest.as_bytes()));
        request.body(bytes.to_vec()).send().await.unwrap().status().as_u16()
    }

    async fn tell(&self, notice: &Value) -> (u16, Value) {
        let (url, body) = (format!("{}/api/v1/upload-notices", self.stage.base), notice.to_string());
        let request = self.stage.http.post(url).header("saveguard-signature", self.signed(body.as_bytes()));
        let response = request.header("content-type", "application/json").body(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outside_uploader_brings_a_file_and_tells_of_it_once() {
    let settings = [("SUBMITTING_NOTICE_SECRET", NOTICE_SECRET)];
    let stage = Stage::start_with(&settings, Settings::default().with_time_scale(20.0)).await;
    let scope = stage.register("reprocessors", "site-1").await;
    let (bytes, other) = (workbook(), b"another file".to_vec());
    let digest = Digest::of(&bytes).to_string();
    let uploader = Uploader { stage: &stage, secret: NOTICE_SECRET, late_seconds: 0 };
    let told = notice(&scope, "upload-1", &bytes);

    let stranger = Uploader { secret: "a secret that nobody knows of here", ..uploader };
    let late = Uploader { late_seconds: 301, ..uploader };
    for untrusted in [&stranger, &late] {
        assert_eq!(untrusted.put(&bytes, &digest).await, 403);
        let (status, problem) = untrusted.tell(&told).await;
        assert_eq!((status, &problem["code"]), (403, &json!("SUB_006")));
    }
    let (status, problem) = uploader.tell(&told).await;
    assert_eq!((status, &problem["code"]), (422, &json!("SUB_006")), "the file is not here yet");
    assert_eq!(uploader.put(&other, &digest).await, 422, "other bytes than announced");
    assert_eq!(uploader.put(&bytes, "xyz").await, 400);
    assert_eq!(uploader.put(&bytes, &digest).await, 204);
    assert_eq!(uploader.put(&bytes, &digest).await, 204, "again is fine");

    let (status, log) = uploader.tell(&told).await;
    assert_eq!((status, &log["sha256"]), (202, &json!(digest)), "{log}");
    assert_eq!(uploader.tell(&told).await.1["id"], log["id"], "the same upload is the same log");
    assert_eq!(uploader.put(&other, &Digest::of(&other).to_string()).await, 204);
    assert_eq!(uploader.tell(&notice(&scope, "upload-1", &other)).await.0, 422, "another file under its id");
    let mut wrong_size = notice(&scope, "upload-2", &bytes);
    wrong_size["size_bytes"] = json!(1);
    assert_eq!(uploader.tell(&wrong_size).await.0, 422);
    let nowhere = crate::support::submissions::scope("reprocessors", "nowhere");
    assert_eq!(uploader.tell(&notice(&nowhere, "upload-3", &bytes)).await.0, 404);
    assert_eq!(uploader.tell(&json!({ "upload_id": "x" })).await.0, 400);
    stage
        .wait_until("the workbook to be read", async || {
            let id = log["id"].as_str().unwrap();
            stage.get(&path_of(&scope, &format!("/summary-logs/{id}"))).await["state"] == "invalid"
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_no_notice_is_taken() {
    let stage = Stage::start().await;
    let uploader = Uploader { stage: &stage, secret: "", late_seconds: 0 };

    assert_eq!(uploader.put(b"x", &Digest::of(b"x").to_string()).await, 403);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_list_retry_and_release_what_is_on_its_way() {
    let stage = Stage::start().await;
    let scope = stage.register("reprocessors", "site-1").await;
    let silent = stage.register("reprocessors", "site-2").await;
    stage.preview(&scope, "previewed", &[load("1000", 7, &[])]).await;
    let (_, run) = stage.bring(&silent, "begun", &workbook()).await;
    stage.app().ledger.begin_validation(&run, stage.app().now()).await.unwrap();
    let root = stage.token(&admin());
    let post = async |path: &str| call(&stage, &root, (Method::POST, path), &json!({})).await.0;
    let run = async |arguments: &[&str]| {
        let config = stage.app().config.clone();
        let arguments: Vec<String> = arguments.iter().map(|each| (*each).to_owned()).collect();
        let running = tokio::task::spawn_blocking(move || {
            saveguard(&config, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        });
        running.await.unwrap()
    };

    let listed = stage.get("/api/v1/operations/submissions").await;
    let states: Vec<_> =
        listed["submissions"].as_array().unwrap().iter().map(|each| &each["state"]).collect();
    assert_eq!(states, [&json!("validating"), &json!("validated")]);
    let by_cli = line_of(&run(&["submission", "list", "--json"]).await);
    assert_eq!(by_cli, listed["submissions"], "both say the same");
    let table = String::from_utf8(run(&["submission", "list", "--state", "validated"]).await.stdout).unwrap();
    assert!(table.contains("previewed") && !table.contains("begun"), "{table}");
    assert_eq!(run(&["submission", "list", "--state", "lost"]).await.status.code(), Some(2));

    assert_eq!(post("/api/v1/operations/submissions/previewed/retry").await, 404, "nothing is owed");
    assert_eq!(post("/api/v1/operations/submissions/missing/retry").await, 404);
    assert_eq!(post("/api/v1/operations/submissions/begun/retry").await, 204);
    stage
        .wait_until("the workbook to be read after all", async || {
            stage.get(&path_of(&silent, "/summary-logs/begun")).await["state"] == "invalid"
        })
        .await;
    assert_eq!(run(&["submission", "retry", "begun"]).await.status.code(), Some(1));
    let released = run(&["submission", "release", "previewed", "--json"]).await;
    let expected = json!({ "log": "previewed", "is_done": true, "state": "superseded" });
    assert_eq!((released.status.code(), line_of(&released)), (Some(0), expected));
    assert_eq!(
        post("/api/v1/operations/submissions/previewed/release").await,
        404,
        "it holds nothing any more"
    );
    let acts = stage.app().ledger.audit(&scope.chain(), 0, 100).await.unwrap();
    assert!(acts.iter().any(|(entry, _)| entry.actor == "saveguard-cli"), "{acts:?}");
    stage.stop().await;
}
