//! A far vault that goes away and comes back, as the whole server sees it.

use reqwest::{Method, StatusCode};
use saveguard::config::StoreKind;
use test_stores::{Mode, Proxy, S3Server};
use understudy::Settings;

use crate::support::Stage;
use crate::support::stores::s3_settings;
use crate::support::variables::variables;

struct Far {
    _server: S3Server,
    proxy: Proxy,
    settings: Vec<(&'static str, String)>,
}

impl Far {
    fn start(depot: &str) -> Self {
        let server = S3Server::on_disk();
        let proxy = Proxy::before(server.port());
        let mut settings = s3_settings(&proxy.endpoint(), std::path::Path::new("far"));
        settings.push(("VAULT_DEPOT", depot.to_owned()));
        Self { _server: server, proxy, settings }
    }

    async fn stage(&self) -> Stage {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Stage::start_with(&settings, Settings::default().with_time_scale(20.0)).await
    }
}

async fn ready(stage: &Stage) -> (StatusCode, String) {
    let response = stage.request(Method::GET, "/readyz").send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_go_on_while_the_far_vault_is_away_and_are_delivered_when_it_is_back() {
    let far = Far::start("allowed");
    let stage = far.stage().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;

    far.proxy.set(Mode::Refuse);
    session.write("Nobody is there.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    assert!(stage.text("12345").await.contains("Nobody is there."), "read from the depot");
    let (status, text) = ready(&stage).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("wait in the depot"), "{text}");
    assert!(stage.get("/api/v1/operations/status").await["depot_blobs"].as_u64().unwrap() > 0);
    let metrics = stage.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(!metrics.contains("saveguard_depot_blobs 0"), "{metrics}");

    far.proxy.set(Mode::Pass);
    stage
        .wait_until("it is delivered", async || {
            stage.get("/api/v1/operations/status").await["depot_blobs"] == 0
        })
        .await;
    assert!(stage.text("12345").await.contains("Nobody is there."), "read from the far vault");
    assert_eq!(ready(&stage).await, (StatusCode::OK, "ready\n".to_owned()));
    stage
        .wait_until("it is published", async || {
            stage.app().ledger.totals().await.unwrap().owed_publications == 0
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_depot_forbidden_saves_are_put_off_and_nothing_is_lost() {
    let far = Far::start("forbidden");
    let stage = far.stage().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;

    far.proxy.set(Mode::Refuse);
    session.write("Kept by the server.").await.unwrap();
    session.close().await.unwrap();
    stage.editor.quiet().await;
    assert_eq!(ready(&stage).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stage.document("12345").await["head"], "1", "nothing was wrongly taken");

    far.proxy.set(Mode::Pass);
    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Kept by the server."));
    stage
        .wait_until("all is settled", async || {
            let totals = stage.app().ledger.totals().await.unwrap();
            totals.owed_publications == 0 && totals.open_saves == 0
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_moves_to_a_far_vault_beside_the_running_service_and_what_is_there_is_not_copied_again() {
    let server = S3Server::on_disk();
    let stage = Stage::start().await;
    for id in ["1", "2", "3"] {
        stage.docx(id).await;
    }
    let session = stage.edit("1", "ann").await;
    session.write("Moving house.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("1", "2").await;
    let settings = s3_settings(&server.endpoint(), std::path::Path::new("far"));
    let copy = || {
        let config = &stage.app().config;
        let from = if config.stores.vault == StoreKind::Sftp { "sftp" } else { "local" };
        // The bucket is named beside the store that is used.
        let bucket = settings.iter().skip(1).cloned();
        let settings: Vec<_> = variables(config).into_iter().chain(bucket).collect();
        let output = saveguard(&settings, &["vault", "copy", "--from", from, "--to", "s3", "--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };

    let first = copy();
    let second = copy();

    assert_eq!(first["blobs"], first["copied_blobs"]);
    assert!(first["blobs"].as_u64().unwrap() >= 2, "{first}");
    assert_eq!((&second["blobs"], &second["copied_blobs"]), (&first["blobs"], &serde_json::json!(0)));
    // Switched over, the documents are there.
    let (mut paused, _) = stage.pause().await;
    let with_s3: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let far = crate::support::config(paused.site.path(), "http://127.0.0.1:1", &with_s3);
    paused.change(|config| config.stores = far.stores.clone());
    let stage = paused.resume().await;
    assert!(stage.text("1").await.contains("Moving house."));
    stage.stop().await;
}

fn saveguard(settings: &[(&str, String)], arguments: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_saveguard"))
        .env_clear()
        .envs(settings.iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)))
        .args(arguments)
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_tree_is_taken_in_with_its_backups_as_history() {
    let stage = Stage::start().await;
    let root = stage.folder().join("old");
    let document = root.join("globex/site/77");
    std::fs::create_dir_all(&document).unwrap();
    let file = |words: &str| understudy::office::sample_docx("Report", &[words]);
    std::fs::write(document.join("report.docx.20250101T100000.bak"), file("First.")).unwrap();
    std::fs::write(document.join("report.docx.20250301T100000.bak"), b"broken").unwrap();
    std::fs::write(document.join("report.docx.20250201T100000.bak"), file("Second.")).unwrap();
    std::fs::write(document.join("report.docx"), file("First.")).unwrap();
    std::fs::write(document.join("report.docx.tmp.0"), b"half").unwrap();
    let import = || {
        let settings = variables(&stage.app().config);
        let output = saveguard(&settings, &["import", root.to_str().unwrap(), "--json"]);
        assert_eq!(output.status.code(), Some(1), "a broken backup is told of: {output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };

    let first = import();
    let second = import();

    assert_eq!((&first["documents"], &first["contents"]), (&serde_json::json!(1), &serde_json::json!(3)));
    assert!(first["left_out"][0].as_str().unwrap().contains("20250301"), "{first}");
    assert_eq!((&second["contents"], &second["known"]), (&serde_json::json!(0), &serde_json::json!(3)));
    assert_eq!(stage.versions("77").await, ["3", "2", "1"]);
    assert!(stage.text("77").await.contains("First."), "the file itself is the head");
    stage
        .wait_until("it is published", async || {
            stage.app().ledger.totals().await.unwrap().owed_publications == 0
        })
        .await;
    stage.stop().await;
}
