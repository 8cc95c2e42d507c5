//! The binary as people run it: exit codes, data on stdout, words on stderr.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use understudy::Settings;

use crate::support::site::{Site, blob, published};
use crate::support::variables::variables;
use crate::support::{SECRET, Stage, config};

/// Runs `saveguard` with the settings of a configuration, as an operator would on the same machine.
pub(crate) fn saveguard(config: &saveguard::config::Config, arguments: &[&str]) -> Output {
    saveguard_with(config, &[], arguments)
}

/// The same with more settings.
pub(crate) fn saveguard_with(
    config: &saveguard::config::Config,
    more: &[(&'static str, String)],
    arguments: &[&str],
) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_saveguard"));
    command.env_clear().args(arguments);
    let own = variables(config);
    command.envs(own.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)));
    command.env("SAVEGUARD_SAVING_FETCH_SPREAD_MS", "100");
    command.envs(more.iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)));
    command.output().unwrap()
}

async fn saveguard_beside(config: &saveguard::config::Config, arguments: &'static [&'static str]) -> Output {
    let config = config.clone();
    tokio::task::spawn_blocking(move || saveguard(&config, arguments)).await.unwrap()
}

pub(crate) fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.trim())
        .unwrap_or_else(|_| panic!("stdout: {text}\nstderr: {}", String::from_utf8_lossy(&output.stderr)))
}

pub(crate) fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_is_clean_beside_a_running_service_and_finds_every_flipped_bit() {
    let stage = Stage::start().await;
    let created = stage.docx("12345").await;
    stage
        .wait_until("it is published", async || {
            stage.app().ledger.totals().await.unwrap().owed_publications == 0
        })
        .await;
    let config = stage.app().config.clone();

    let clean = saveguard_beside(&config, &["verify", "--read-data", "--json"]).await;
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stdout));
    let report = json(&clean);
    assert_eq!(
        (&report["clean"], &report["documents"], &report["blobs"]),
        (&Value::Bool(true), &Value::from(1), &Value::from(1))
    );

    let blob = blob(&config, created["sha256"].as_str().unwrap());
    let whole = std::fs::read(&blob).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(&blob, &flipped).unwrap();
        let found = saveguard_beside(&config, &["verify", "--read-data", "--json"]).await;
        assert_eq!(found.status.code(), Some(1));
        assert_eq!(json(&found)["findings"][0]["invariant"], "blob-whole");
    }
    std::fs::remove_file(&blob).unwrap();
    let missing = saveguard_beside(&config, &["verify"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stdout).contains("is missing"));
    std::fs::write(&blob, &whole).unwrap();
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_mends_the_published_tree_and_adopts_strays_but_not_beside_a_service() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let config = stage.app().config.clone();
    let beside = saveguard_beside(&config, &["repair"]).await;
    assert_eq!(beside.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&beside.stderr).contains("another Saveguard"),
        "{}",
        String::from_utf8_lossy(&beside.stderr)
    );
    let (paused, _) = stage.pause().await;

    let published = published(&config).join("acme/plans/12345/report.docx");
    std::fs::write(&published, understudy::office::sample_docx("Outside", &["changed by another program"]))
        .unwrap();
    let stray = understudy::office::sample_docx("Stray", &["named by no row"]);
    let digest = understudy::office::sha256_hex(&stray);
    let file = blob(&config, &digest);
    std::fs::write(&file, &stray).unwrap();
    std::fs::write(file.with_file_name(format!("{digest}~test_12345_edit_9.k~2")), b"").unwrap();
    let before = saveguard_beside(&config, &["verify", "--json"]).await;
    let findings = json(&before)["findings"].as_array().unwrap().clone();
    assert_eq!(findings.len(), 2);
    assert!(findings.iter().all(|finding| finding["mendable"] == true), "{findings:?}");

    let repaired = saveguard_beside(&config, &["repair", "--json"]).await;
    assert!(repaired.status.success(), "{}", String::from_utf8_lossy(&repaired.stdout));
    let report = json(&repaired);
    assert_eq!(
        (&report["repaired"]["published"], &report["repaired"]["blobs_adopted"]),
        (&Value::from(1), &Value::from(1))
    );
    let after = saveguard_beside(&config, &["verify", "--read-data"]).await;
    assert!(after.status.success());
    paused.editor.stop().await;
}

#[test]
fn a_folder_without_data_is_not_called_clean() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "http://127.0.0.1:1", &[]);

    for command in ["verify", "repair"] {
        let output = saveguard(&config, &[command]);

        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("there is no ledger in"), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_vault_should_be_mounted_nobody_makes_an_empty_one() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage.wait_until("it is published", async || stage.is_published().await).await;
    let config = stage.app().config.clone();
    let (vault, elsewhere) = (config.server.data.join("vault"), stage.folder().join("elsewhere"));
    std::fs::rename(&vault, &elsewhere).unwrap();

    // What keeps this from starting keeps the service from starting.
    let output = saveguard_beside(&config, &["verify"]).await;

    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.contains("is its disk mounted?")), (Some(2), true), "{said}");
    assert!(!vault.exists());
    std::fs::rename(&elsewhere, &vault).unwrap();
    assert!(saveguard_beside(&config, &["verify", "--read-data"]).await.status.success());
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_of_the_running_service_are_shown() {
    let stage = Stage::start().await;
    let config = stage.app().config.clone();

    let shown = saveguard_beside(&config, &["lanes", "--json"]).await;

    // The api secret is generated in the data folder, where the command finds it.
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert_eq!(json(&shown)["is_empty"], true);
    stage.stop().await;
    let away = saveguard_beside(&config, &["lanes"]).await;
    assert_eq!(away.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&away.stderr).contains("does not answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_the_running_service_are_shown() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let config = stage.app().config.clone();
    let ann = stage.edit("12345", "ann").await;
    let inside = async || !stage.document("12345").await["editors"].as_array().unwrap().is_empty();
    stage.wait_until("Ann is inside", inside).await;

    let shown = saveguard_beside(&config, &["sessions", "--json"]).await;
    let table = saveguard_beside(&config, &["sessions"]).await;

    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert_eq!(
        (json(&shown)["state"].as_str(), json(&shown)["document"].as_str()),
        (Some("editing"), Some("12345"))
    );
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("editing") && table.contains("possible") && table.contains("User ann"), "{table}");
    ann.close().await.unwrap();
    stage.editor.quiet().await;
    stage.stop().await;
}

#[test]
fn the_documented_configuration_is_printed_and_mistakes_are_all_named() {
    let folder = tempfile::tempdir().unwrap();
    let right = config(folder.path(), "http://127.0.0.1:1", &[]);

    let printed = saveguard(&right, &["config"]);
    assert!(printed.status.success());
    assert_eq!(String::from_utf8_lossy(&printed.stdout).trim(), saveguard::config::DOCUMENTED.trim());
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "[server]\nlisten = \"x\"\nunheard = 1\n[log]\nformat = \"y\"").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_saveguard"));
    let checked = command.env_clear().args(["config", "--check", "--config"]).arg(&file).output().unwrap();
    assert_eq!(checked.status.code(), Some(1));
    let mistakes = String::from_utf8_lossy(&checked.stderr).into_owned();
    for expected in ["3 mistakes", "server.listen", "server.unheard", "log.format"] {
        assert!(mistakes.contains(expected), "{mistakes}");
    }
    let help = saveguard(&right, &["--help"]);
    for command in ["serve", "demo", "verify", "repair", "doctor", "lanes", "sessions", "config"] {
        assert!(String::from_utf8_lossy(&help.stdout).contains(command), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_plays_a_session_and_finds_all_well() {
    let stage = Stage::start().await;
    let config = stage.app().config.clone();
    for _ in 0..2 {
        let output = saveguard_beside(&config, &["doctor", "--json"]).await;
        let report = json(&output);
        assert!(output.status.success(), "{report:#}");
        let last = report["hops"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["name"], &last["health"]),
            (&"session: the final save is stored".into(), &"ok".into())
        );
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_starts_the_service_when_it_is_not_running() {
    let site = Site::new().await;
    let editor =
        understudy::start(Settings::default().with_time_scale(20.0).with_secret(SECRET)).await.unwrap();
    let config = site.config(&editor.url(), &[]);

    let output = saveguard_beside(&config, &["doctor"]).await;

    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("was not running and was started"), "{text}");
    editor.stop().await;
}

/// The first broken hop the doctor names.
async fn broken_hop(config: &saveguard::config::Config) -> String {
    let output = saveguard_beside(config, &["doctor", "--json"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let report = json(&output);
    let hop = report["hops"].as_array().unwrap().iter().find(|hop| hop["health"] == "fail").unwrap();
    assert!(hop["next"].as_str().is_some_and(|next| !next.is_empty()), "{hop}");
    hop["name"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_names_the_broken_hop() {
    let site = Site::new().await;
    let nowhere = site.config("http://127.0.0.1:1", &[]);
    assert_eq!(broken_hop(&nowhere).await, "the Document Server");

    let foreign =
        Settings::default().with_time_scale(20.0).with_secret("another secret of another installation");
    let editor = understudy::start(foreign).await.unwrap();
    let other_secret = site.config(&editor.url(), &[]);
    assert_eq!(broken_hop(&other_secret).await, "commands to the Document Server");
    editor.stop().await;

    let mut deaf = Settings::default().with_time_scale(20.0).with_secret(SECRET);
    deaf.secrets.outbox = understudy::tokens::Secret::new("a secret of its own in the other direction");
    let editor = understudy::start(deaf).await.unwrap();
    let other_direction = site.config(&editor.url(), &[]);
    assert_eq!(broken_hop(&other_direction).await, "session: its callback arrives");
    editor.stop().await;

    let editor =
        understudy::start(Settings::default().with_time_scale(20.0).with_secret(SECRET)).await.unwrap();
    let unreachable = site.config(&editor.url(), &[("SERVER_INTERNAL_URL", "http://127.0.0.1:1")]);
    assert_eq!(broken_hop(&unreachable).await, "session: the document opens");
    editor.stop().await;
}

#[test]
fn check_tells_whole_files_from_damaged_ones() {
    let folder = tempfile::tempdir().unwrap();
    let docx = understudy::office::sample_docx("Title", &["Some words."]);
    let [whole, torn] = ["whole.docx", "torn.docx"].map(|name| folder.path().join(name));
    std::fs::write(&whole, &docx).unwrap();
    std::fs::write(&torn, &docx[..docx.len() / 2]).unwrap();
    let check = |arguments: &[&Path]| {
        Command::new(env!("CARGO_BIN_EXE_saveguard")).arg("check").args(arguments).output().unwrap()
    };

    assert_eq!(check(&[&whole]).status.code(), Some(0));
    let both = check(&[Path::new("--json"), &whole, &torn]);
    let lines: Vec<Value> = both
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(both.status.code(), Some(1));
    let verdicts: Vec<_> =
        lines.iter().map(|line| (line["kind"].as_str(), line["verdict"].as_str())).collect();
    assert_eq!(verdicts, [(Some("docx"), Some("accept")), (Some("zip"), Some("refuse"))]);
    assert_eq!(lines[1]["findings"][0]["code"], "zip-directory");
    for no_file in [folder.path().join("missing.docx"), folder.path().to_owned(), "/dev/zero".into()] {
        assert_eq!(check(&[&no_file]).status.code(), Some(2), "{}", no_file.display());
    }
}

#[test]
fn data_that_nobody_reads_to_the_end_is_no_trouble() {
    let binary = env!("CARGO_BIN_EXE_saveguard");
    let script = format!("{binary} check --json {binary} {binary} {binary} | true");

    let output = Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();

    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
