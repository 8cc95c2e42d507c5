//! The audit trail from outside: asked over HTTP, exported, checked by two verifiers, manipulated in every way we know.

use std::path::PathBuf;
use std::process::{Command, Output};

use model::CompanyId;
use model::access::{Caller, Companies, Role};
use reqwest::Method;
use saveguard::config::StoreKind;
use serde_json::{Value, json};

use crate::cli::saveguard as on_data;
use crate::support::{Stage, admin};

/// A document that Ann edited once: uploaded, opened, saved, key retired.
async fn edited(stage: &Stage, id: &str) {
    stage.docx(id).await;
    let session = stage.edit(id, "ann").await;
    session.write("More.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head(id, "2").await;
}

async fn acts(stage: &Stage, path: &str) -> Vec<Value> {
    stage.get(path).await["entries"].as_array().unwrap().clone()
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_tells_who_did_what_from_where_and_what_came_of_it() {
    let stage = Stage::start().await;
    edited(&stage, "12345").await;

    let entries = acts(&stage, "/api/v1/documents/12345/audit").await;
    let told: Vec<_> = entries
        .iter()
        .map(|entry| ["actor", "from", "action", "outcome"].map(|field| entry[field].as_str().unwrap()))
        .collect();

    assert_eq!(
        told,
        [
            ["root", "127.0.0.1", "document-uploaded", "done"],
            ["ann", "127.0.0.1", "key-issued", "done"],
            ["ann", "document-server", "save-committed", "version"],
            ["saveguard", "saveguard", "key-retired", "done"],
        ]
    );
    assert_eq!(entries[2]["details"]["label"], "2");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_are_found_by_person_kind_and_time_page_by_page() {
    let stage = Stage::start().await;
    edited(&stage, "one").await;
    edited(&stage, "two").await;
    let of_company = "/api/v1/companies/acme/audit";

    let by_ann = acts(&stage, &format!("{of_company}?user=ann")).await;
    assert_eq!(actions(&by_ann), ["key-issued", "save-committed", "key-issued", "save-committed"]);
    let saves = acts(&stage, &format!("{of_company}?user=ann&action=save-committed")).await;
    assert_eq!(saves.iter().map(|entry| &entry["chain"]).collect::<Vec<_>>(), ["one", "two"]);
    let second = saves[1]["at"].as_str().unwrap();
    assert_eq!(acts(&stage, &format!("{of_company}?action=save-committed&from={second}")).await, saves[1..]);
    assert_eq!(acts(&stage, &format!("{of_company}?action=save-committed&to={second}")).await, saves[..1]);

    let whole = acts(&stage, &format!("{of_company}?limit=1000")).await;
    let (mut joined, mut after) = (Vec::new(), String::new());
    loop {
        let page = stage.get(&format!("{of_company}?limit=3{after}")).await;
        joined.extend(page["entries"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(joined, whole);
    let strange = stage.request(Method::GET, &format!("{of_company}?after=x")).send().await.unwrap();
    assert_eq!(strange.status().as_u16(), 400);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_and_regulators_read_the_trail() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let status = async |role: Role, path: &str| {
        let companies = Companies::Only(vec![CompanyId::parse("acme").unwrap()]);
        let token = stage.token(&Caller { role, companies, ..admin() });
        let request = stage.http.get(format!("{}{path}", stage.base)).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };

    for path in ["/api/v1/documents/12345/audit", "/api/v1/companies/acme/audit"] {
        for role in [Role::Regulator, Role::Admin] {
            assert_eq!(status(role, path).await, 200, "{path}");
        }
        for role in [Role::Viewer, Role::Commenter, Role::Editor, Role::Submitter] {
            assert_eq!(status(role, path).await, 403, "{path}");
        }
    }
    assert_eq!(status(Role::Viewer, "/api/v1/documents/12345/versions/1/receipt").await, 200);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_tells_the_address_only_where_the_operator_says_so() {
    for (changes, expected) in
        [(vec![], "127.0.0.1"), (vec![("SERVER_CLIENT_ADDRESS_HEADER", "X-Forwarded-For")], "192.0.2.7")]
    {
        let stage = Stage::start_with(&changes, understudy::Settings::default()).await;
        let path = "/api/v1/companies/acme/projects/plans/documents?id=1&name=a.txt";
        let upload = stage.request(Method::POST, path).header("X-Forwarded-For", "10.9.9.9, 192.0.2.7");
        assert_eq!(upload.body("text").send().await.unwrap().status().as_u16(), 201);

        assert_eq!(acts(&stage, "/api/v1/documents/1/audit").await[0]["from"], expected);
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_has_a_receipt_that_the_trail_confirms() {
    let stage = Stage::start().await;
    edited(&stage, "12345").await;
    let path = "/api/v1/documents/12345/versions/2/receipt";

    let receipt = stage.get(path).await;
    let version = &stage.get("/api/v1/documents/12345/versions").await[0];
    for field in ["sha256", "size_bytes", "committed_at", "version"] {
        assert_eq!(receipt[field], version[field], "{field}");
    }
    let hash = receipt["sha256"].as_str().unwrap();
    let vault = if stage.app().config.stores.vault == StoreKind::Sftp { "sftp" } else { "local" };
    assert_eq!(receipt["stored"]["vault"], vault);
    assert_eq!(receipt["stored"]["locator"], format!("sha256:{hash}"));
    let entry = &acts(&stage, "/api/v1/documents/12345/audit?action=save-committed").await[0];
    for field in ["chain", "sequence", "hash"] {
        assert_eq!(receipt["audit"][field], entry[field], "{field}");
    }
    for (missing, status) in [("9", 404), ("1.1", 404), ("x", 400)] {
        let path = format!("/api/v1/documents/12345/versions/{missing}/receipt");
        let response = stage.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{missing}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_tells_when_the_bytes_were_last_read_back() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let read_back = async || {
        stage.get("/api/v1/documents/12345/versions/1/receipt").await["stored"]["read_back_at"].clone()
    };
    assert_eq!(read_back().await, Value::Null);

    stage.text("12345").await;
    stage.app().recovery_wanted.notify_one();
    stage.wait_until("the read is noted", async || read_back().await != Value::Null).await;
    let by_reading = read_back().await;

    let config = stage.app().config.clone();
    let verified = tokio::task::spawn_blocking(move || on_data(&config, &["verify", "--read-data"]));
    assert!(verified.await.unwrap().status.success());
    let by_verifying = read_back().await;
    assert!(by_verifying.as_str() > by_reading.as_str(), "{by_verifying} after {by_reading}");
    stage.stop().await;
}

/// Runs `saveguard` without any settings.
fn saveguard(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_saveguard"));
    command.env_clear().args(arguments).env("SAVEGUARD_LOG_FILTER", "error").output().unwrap()
}

/// Files in a folder of their own, and the verifier of the page.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let page = include_str!("../../../../docs/audit-format.md");
        let script = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
        assert!(script.lines().count() <= 40, "it is meant to be read");
        std::fs::write(folder.path().join("verifier.py"), script).unwrap();
        Self { folder }
    }

    fn file(&self, text: &str) -> PathBuf {
        let file = self.folder.path().join("trail.jsonl");
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Whether our verifier and the one of the page find a file sound; they must agree.
    fn is_sound(&self, text: &str) -> bool {
        let file = self.file(text);
        let ours = saveguard(&["audit", "verify", file.to_str().unwrap()]);
        let script = self.folder.path().join("verifier.py");
        let theirs = Command::new("python3").arg(script).arg(&file).output().unwrap();
        assert!(matches!(ours.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&ours.stderr));
        assert_eq!(
            ours.status.success(),
            theirs.status.success(),
            "ours: {}\ntheirs: {}",
            String::from_utf8_lossy(&ours.stdout),
            String::from_utf8_lossy(&theirs.stderr)
        );
        ours.status.success()
    }
}

/// An exported trail of two edited documents, all of it anchored, from the command line.
async fn exported(arguments: &'static [&'static str]) -> String {
    let stage = Stage::start().await;
    edited(&stage, "one").await;
    edited(&stage, "two").await;
    let (paused, _) = stage.pause().await;
    let output = on_data(paused.config(), arguments);
    paused.editor.stop().await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What is done to the lines, and how.
type Manipulation = (&'static str, fn(&mut Vec<Value>));

/// The lines after a manipulation, with a last line that fits.
fn changed(text: &str, change: impl Fn(&mut Vec<Value>)) -> String {
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.pop();
    change(&mut lines);
    let count = lines.len() - 1;
    lines.push(json!({ "end": true, "entries": count }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn at(lines: &[Value], chain: &str, sequence: u64) -> usize {
    lines.iter().position(|line| line["chain"] == chain && line["sequence"] == sequence).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_trail_is_sound_and_every_manipulation_is_found() {
    let text = exported(&["audit", "export"]).await;
    let bench = Bench::new();
    assert!(bench.is_sound(&text), "{text}");
    assert!(bench.is_sound(&changed(&text, |_| {})));

    let cut = text.trim_end().rsplit_once('\n').unwrap().0;
    assert!(!bench.is_sound(&format!("{cut}\n")), "the file was cut off");
    let manipulations: [Manipulation; 9] = [
        ("the end of a chain was cut off", |lines| {
            lines.retain(|line| line["chain"] != "one" || line["sequence"].as_u64().unwrap() < 3)
        }),
        ("a whole chain was cut off", |lines| lines.retain(|line| line["chain"] != "two")),
        ("an entry was removed", |lines| drop(lines.remove(at(lines, "one", 2)))),
        ("an entry was edited", |lines| {
            let at = at(lines, "one", 3);
            lines[at]["actor"] = json!("bob");
        }),
        ("an outcome was edited", |lines| {
            let at = at(lines, "one", 3);
            lines[at]["outcome"] = json!("conflict");
        }),
        ("two entries changed places", |lines| {
            let (one, other) = (at(lines, "one", 2), at(lines, "one", 3));
            lines.swap(one, other);
        }),
        ("an entry of another chain was put in", |lines| {
            let (one, other) = (at(lines, "one", 2), at(lines, "two", 2));
            lines[one] = lines[other].clone();
            lines[one]["chain"] = json!("one");
        }),
        ("an entry stands twice", |lines| {
            let at = at(lines, "one", 2);
            lines.insert(at, lines[at].clone());
        }),
        ("an anchor was edited", |lines| {
            let at = lines.iter().position(|line| line["action"] == "heads-anchored").unwrap();
            let details = lines[at]["details"].as_str().unwrap().replace("one", "owe");
            lines[at]["details"] = json!(details);
        }),
    ];
    for (what, manipulation) in manipulations {
        assert!(!bench.is_sound(&changed(&text, manipulation)), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_shows_what_was_cut_off_with_all_its_anchors() {
    let text = exported(&["audit", "export", "--document", "one"]).await;
    let bench = Bench::new();
    assert!(bench.is_sound(&text));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let save = &lines[at(&lines, "one", 3)];
    let expected = format!("one:3:{}", save["hash"].as_str().unwrap());
    let verify = |text: &str| {
        let file = bench.file(text);
        let verified =
            saveguard(&["audit", "verify", file.to_str().unwrap(), "--expect", &expected, "--json"]);
        let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
        (verified.status.code(), report)
    };

    let (code, report) = verify(&text);
    assert_eq!(
        (code, &report["sound"], &report["scope"]["document"]),
        (Some(0), &json!(true), &json!("one"))
    );
    let shorter = changed(&text, |lines| {
        lines.retain(|line| line["chain"] == Value::Null || line["sequence"].as_u64().unwrap() < 2)
    });
    assert!(bench.is_sound(&shorter), "nobody in the file has seen more");
    let (code, report) = verify(&shorter);
    assert_eq!(code, Some(1));
    assert!(report["flaws"][0].as_str().unwrap().contains("cut off"), "{report}");
    let strange = saveguard(&["audit", "verify", "/nothing/here"]);
    assert_eq!(strange.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_trail_is_exported_over_http_too() {
    let stage = Stage::start().await;
    edited(&stage, "one").await;
    stage.docx("two").await;
    let bench = Bench::new();

    for (path, chains) in [
        ("/api/v1/companies/acme/audit", vec!["company:acme", "one", "two"]),
        ("/api/v1/documents/one/audit", vec!["one"]),
    ] {
        let request = stage.request(Method::GET, path).header("accept", "application/jsonl");
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/jsonl");
        let text = response.text().await.unwrap();
        let mut found: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["chain"].clone()).collect();
        found.retain(|chain| *chain != Value::Null);
        found.dedup();
        assert_eq!(found, chains, "{path}");
        assert!(bench.is_sound(&text), "{path}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_finds_a_chain_that_was_cut_off_together_with_its_head() {
    let stage = Stage::start().await;
    edited(&stage, "12345").await;
    let (paused, _) = stage.pause().await;
    assert!(on_data(paused.config(), &["verify"]).status.success());

    let cut = "DELETE FROM audit WHERE chain = '12345' AND sequence > 2;
        UPDATE documents SET (audit_sequence, audit_hash, anchored_sequence) =
        (SELECT sequence, hash, sequence FROM audit WHERE chain = '12345' ORDER BY sequence DESC LIMIT 1);";
    if let Some(engines) = &paused.site.engines {
        let database = &engines.database;
        database.execute("DROP TRIGGER audit_is_append_only_delete ON audit").await.unwrap();
        database.execute(cut).await.unwrap();
    } else {
        let script =
            "import sqlite3, sys; ledger = sqlite3.connect(sys.argv[1]); ledger.executescript(sys.argv[2])";
        let statements = format!("DROP TRIGGER audit_is_append_only_delete; {cut}");
        let file = paused.config().server.data.join("ledger.sqlite");
        let python = Command::new("python3").args(["-c", script]).arg(file).arg(statements).status();
        assert!(python.unwrap().success());
    }

    let found = on_data(paused.config(), &["verify"]);
    assert_eq!(found.status.code(), Some(1));
    let told = String::from_utf8_lossy(&found.stdout);
    assert!(told.contains("audit-anchor: the audit chain of 12345 ends at entry 2"), "{told}");
}
