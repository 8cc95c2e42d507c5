//! From the embedded ledger to PostgreSQL, and a PostgreSQL that was restored from a backup.

use std::path::PathBuf;
use std::process::{Command, Output};

use ledger::documents::{BlobFacts, UnnamedBlob};
use ledger::postgres::throwaway::{Database, Server};
use model::{DocumentId, Scope};
use reqwest::Method;
use saveguard::config::{Config, Engine, Postgres};
use serde_json::{Value, json};
use understudy::Settings;
use understudy::office::sample_docx;
use understudy::server::{Opening, Session};

use crate::cli::{json as json_of, saveguard};
use crate::support::Stage;
use crate::support::engines::Choice;
use crate::support::site::Site;
use crate::support::submissions::{load, path_of};

async fn stage_on(choice: Choice) -> Stage {
    Stage::start_on(Site::on(choice).await, &[], Settings::default().with_time_scale(20.0)).await
}

async fn run(config: &Config, arguments: &[&str]) -> Output {
    let config = config.clone();
    let arguments: Vec<String> = arguments.iter().map(|&each| each.to_owned()).collect();
    let run = move || saveguard(&config, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// The same configuration with its ledger in a database.
fn on_postgres(config: &Config, database: &Database) -> Config {
    let ledger = Engine::Postgres(Postgres {
        url: database.url(),
        ca_file: None,
        connections_max: 8,
        wait_max: std::time::Duration::from_secs(3),
    });
    Config { ledger, ..config.clone() }
}

/// A content that no save brought, kept aside.
async fn keep_aside(stage: &Stage, id: &str, words: &str) -> u64 {
    let app = stage.app();
    let mut writer = app.spool.begin();
    writer.write(&sample_docx("Aside", &[words])).await.unwrap();
    let spooled = writer.finish().await.unwrap();
    let document = DocumentId::parse(id).unwrap();
    app.vault.put(&spooled, &vault::Sidecar::Uploaded { to_become: document.clone() }).await.unwrap();
    let blob = BlobFacts::plain(spooled.digest, spooled.size_bytes, "docx");
    let found =
        UnnamedBlob { blob, document: Some(document), key: None, is_record_of_changes: false, at: app.now() };
    app.ledger.keep_unnamed(&found).await.unwrap().unwrap()
}

async fn edit(stage: &Stage, id: &str, words: &str) {
    let session = stage.edit(id, "ann").await;
    session.write(words).await.unwrap();
    session.close().await.unwrap();
}

/// Versions, a kept copy, links, a deleted document, records of two submissions and a preview that another one replaced.
async fn furnish(stage: &Stage) -> Scope {
    stage.docx("12345").await;
    edit(stage, "12345", "Second.").await;
    stage.wait_for_head("12345", "2").await;
    keep_aside(stage, "12345", "Kept.").await;
    stage.upload("gone", "Größe \u{1f4c4}.txt", b"text").await;
    let deleted = stage.request(Method::DELETE, "/api/v1/documents/gone").send().await.unwrap();
    assert!(deleted.status().is_success());
    for allows in ["view", "edit"] {
        stage.post("/api/v1/documents/12345/shares", &json!({ "allows": allows })).await;
    }
    stage.post("/api/v1/tokens", &json!({ "name": "host", "role": "viewer", "companies": ["acme"] })).await;
    let scope = stage.register("reprocessors", "site-1").await;
    let rows = [load("1000", 7, &[("MATERIAL", "Plastic")]), load("1001", 8, &[("MATERIAL", "Wood")])];
    assert_eq!(stage.submit(&scope, "first", &rows).await, 1);
    assert_eq!(stage.submit(&scope, "second", &rows[..1]).await, 2);
    stage.preview(&scope, "replaced", &rows).await;
    stage.preview(&scope, "waiting", &rows).await;
    stage.wait_until("it is published", async || stage.is_published().await).await;
    scope
}

/// What people can ask for.
async fn everything(stage: &Stage, scope: &Scope) -> Vec<(String, Value)> {
    let mut paths: Vec<String> = [
        "/api/v1/companies/acme",
        "/api/v1/companies/acme/projects",
        "/api/v1/companies/acme/documents",
        "/api/v1/companies/acme/documents?deleted=true",
        "/api/v1/documents/12345",
        "/api/v1/documents/12345/versions",
        "/api/v1/documents/12345/history",
        "/api/v1/documents/12345/kept",
        "/api/v1/documents/12345/shares",
        "/api/v1/documents/12345/audit",
        "/api/v1/tokens",
        "/api/v1/templates",
    ]
    .map(str::to_owned)
    .to_vec();
    for below in ["/records", "/records?as_of=1", "/submissions", "/summary-logs"] {
        paths.push(path_of(scope, below));
    }
    let mut answers = Vec::new();
    for path in paths {
        let answer = stage.get(&path).await;
        answers.push((path, answer));
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_ledger_is_copied_into_postgresql_answers_the_same_and_goes_on() {
    let stage = stage_on(Choice::Embedded).await;
    let scope = furnish(&stage).await;
    let database = Server::shared().await.unwrap().empty_database().await.unwrap();
    let config = on_postgres(&stage.app().config, &database);
    let copy = ["ledger", "copy", "--to", "postgres", "--json"];

    let beside = run(&config, &copy).await;
    assert_eq!(beside.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&beside.stderr).contains("another Saveguard"), "{beside:?}");
    let before = everything(&stage, &scope).await;
    let (mut paused, left) = stage.pause().await;
    assert_eq!(left, 0);
    let copied = run(&config, &copy).await;
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(json_of(&copied)["clean"], true, "{copied:?}");
    assert!(json_of(&copied)["copied"]["rows"].as_u64().unwrap() > 40, "{copied:?}");
    let again = run(&config, &copy).await;
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"), "{again:?}");
    let verified = run(&config, &["verify", "--read-data", "--json"]).await;
    assert_eq!(json_of(&verified)["clean"], true, "{verified:?}");

    paused.change(|each| *each = config.clone());
    let stage = paused.resume().await;

    for ((path, then), (_, now)) in before.iter().zip(everything(&stage, &scope).await) {
        assert_eq!(*then, now, "{path}");
    }
    edit(&stage, "12345", "Third.").await;
    stage.wait_for_head("12345", "3").await;
    assert!(stage.text("12345").await.contains("Third."));
    let numbers: Vec<u64> =
        stage.kept("12345").await.iter().map(|copy| copy["number"].as_u64().unwrap()).collect();
    let next = keep_aside(&stage, "12345", "Kept later.").await;
    assert!(numbers.iter().all(|number| *number < next), "{next} after {numbers:?}");
    assert_eq!(stage.submit(&scope, "third", &[load("1002", 9, &[("MATERIAL", "Glass")])]).await, 3);
    stage.wait_until("it is published", async || stage.is_published().await).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_fails_on_its_way_leaves_nothing_in_postgresql() {
    let stage = stage_on(Choice::Embedded).await;
    furnish(&stage).await;
    let database = Server::shared().await.unwrap().database().await.unwrap();
    // The last table refuses whatever comes.
    database.execute("ALTER TABLE record_versions ADD CHECK (false)").await.unwrap();
    let config = on_postgres(&stage.app().config, &database);
    let (paused, _) = stage.pause().await;

    let failed = run(&config, &["ledger", "copy", "--to", "postgres"]).await;

    assert_eq!(failed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("nothing was copied"), "{failed:?}");
    database.execute("ALTER TABLE record_versions DROP CONSTRAINT record_versions_check1").await.unwrap();
    let copied = run(&config, &["ledger", "copy", "--to", "postgres", "--json"]).await;
    assert!(copied.status.success(), "it was empty: {copied:?}");
    paused.editor.stop().await;
}

/// A program of PostgreSQL's.
fn postgresql(program: &str, arguments: &[&str]) {
    let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap();
    let newest = versions.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u32>().ok()).max();
    let path: PathBuf = format!("/usr/lib/postgresql/{}/bin/{program}", newest.unwrap()).into();
    let output = Command::new(path).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

async fn open(stage: &Stage, user: &str) -> (String, Session) {
    let view = stage.configure("12345", user, "edit").await;
    let session = stage.editor.open(&view["config"]).await.unwrap();
    assert!(matches!(session.opened().await, Opening::Ready), "the document opens");
    (view["key"].as_str().unwrap().to_owned(), session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_restored_from_a_dump_begins_again_and_nothing_is_lost_or_issued_twice() {
    let stage = stage_on(Choice::Postgres).await;
    stage.docx("12345").await;
    let (first_key, ann) = open(&stage, "ann").await;
    ann.write("Typed before the backup.").await.unwrap();
    let (dump, at) = (stage.folder().join("ledger.dump"), stage.app().now().to_string());
    let url = stage.site.engines.as_ref().unwrap().database.url();
    let file = dump.to_str().unwrap();
    postgresql("pg_dump", &["--format=custom", "--file", file, &url]);
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let (second_key, bob) = open(&stage, "bob").await;
    bob.write("Typed after the backup.").await.unwrap();
    let copied = stage.folder().join("copied-vault");
    let store = if stage.app().config.stores.sftp.is_some() { "sftp" } else { "local" };
    let copy = ["vault", "copy", "--from", store, "--to", copied.to_str().unwrap()];
    assert!(run(&stage.app().config, &copy).await.status.success(), "bytes after the ledger");

    let (mut paused, _) = stage.pause().await;
    let restored = Server::shared().await.unwrap().empty_database().await.unwrap();
    postgresql("pg_restore", &["--dbname", &restored.url(), file]);
    let config = on_postgres(paused.config(), &restored);
    let begun = run(&config, &["ledger", "begin-again", "--backed-up", &at, "--json"]).await;
    assert!(begun.status.success(), "{begun:?}");
    assert_eq!((&json_of(&begun)["documents"], &json_of(&begun)["live_keys"]), (&json!(1), &json!(1)));
    let verified = json_of(&run(&config, &["verify", "--read-data", "--json"]).await);
    let findings = verified["findings"].as_array().unwrap();
    let only_newer = findings
        .iter()
        .all(|each| ["unnamed-blob", "published"].contains(&each["invariant"].as_str().unwrap()));
    assert!(only_newer, "{verified:#}");
    paused.change(|each| *each = config.clone());
    let stage = paused.resume().await;
    bob.close().await.unwrap();

    let has_bobs = async || stage.kept("12345").await.iter().any(|copy| copy["reason"] == "key-adopted");
    stage.wait_until("the unknown session is kept", has_bobs).await;
    let served = stage.everything_served("12345").await;
    assert!(served.values().any(|text| text.contains("Typed after the backup.")), "{served:?}");
    let (third_key, cyd) = open(&stage, "cyd").await;
    assert!(![first_key, second_key].contains(&third_key), "{third_key}");
    cyd.write("It goes on.").await.unwrap();
    cyd.close().await.unwrap();
    stage
        .wait_until("her save is the head", async || stage.text("12345").await.contains("It goes on."))
        .await;
    let trail = stage.app().ledger.audit("saveguard:installation", 0, 100).await.unwrap();
    assert!(trail.iter().any(|(entry, _)| entry.action == "ledger-restored"));
    stage.wait_until("it is published", async || stage.is_published().await).await;
    stage.stop().await;
}
