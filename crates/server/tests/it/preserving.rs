//! Backups made beside a running service, and what a restored one does with sessions it does not know.

use std::path::Path;

use reqwest::Method;
use saveguard::config::Config;
use serde_json::Value;
use understudy::server::{Opening, Session};

use crate::cli::{json, saveguard};
use crate::support::Stage;

async fn run(config: &Config, arguments: &[&str]) -> std::process::Output {
    let (config, arguments) = (config.clone(), arguments.iter().map(|&each| each.to_owned()));
    let arguments: Vec<String> = arguments.collect();
    tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        saveguard(&config, &arguments)
    })
    .await
    .unwrap()
}

async fn back_up(stage: &Stage, folder: &Path) -> Value {
    let output = run(&stage.app().config, &["backup", folder.to_str().unwrap(), "--json"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

/// The configuration of a stage with another data folder.
fn elsewhere(stage: &Stage, name: &str) -> Config {
    let mut config = stage.app().config.clone();
    config.server.data = stage.folder().join(name);
    config
}

async fn open(stage: &Stage, user: &str) -> (String, Session) {
    let view = stage.configure("12345", user, "edit").await;
    let session = stage.editor.open(&view["config"]).await.unwrap();
    assert!(matches!(session.opened().await, Opening::Ready), "the document opens");
    (view["config"]["document"]["key"].as_str().unwrap().to_owned(), session)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_whole_its_repeat_copies_only_what_is_new_and_it_restores_clean() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let folder = stage.folder().join("backup");

    let first = back_up(&stage, &folder).await;
    let session = stage.edit("12345", "ann").await;
    session.write("After the first backup.").await.unwrap();
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let second = back_up(&stage, &folder).await;
    let third = back_up(&stage, &folder).await;

    let copied = [&first, &second, &third].map(|made| made["copied_blobs"].as_u64().unwrap());
    assert_eq!(copied, [1, 2, 0], "a save brings its content and the record of its changes");
    assert_eq!(third["manifest"]["blobs"], 3);
    let sums = folder.join(third["manifest"]["sums"]["name"].as_str().unwrap());
    let checked = std::process::Command::new("sha256sum").arg("-c").arg(&sums).current_dir(&folder).output();
    assert!(checked.unwrap().status.success(), "the list of hashes is what everybody can check");
    let snapshots = std::fs::read_dir(&folder).unwrap();
    let snapshots =
        snapshots.filter(|each| each.as_ref().unwrap().file_name().to_string_lossy().starts_with("ledger-"));
    assert_eq!(snapshots.count(), 1, "older snapshots are gone");
    assert!(!folder.join("secrets").exists());

    let config = elsewhere(&stage, "restored");
    let restored = run(&config, &["restore", folder.to_str().unwrap(), "--json"]).await;
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert_eq!(json(&restored)["restored"]["documents"], 1);
    let verified = run(&config, &["verify", "--read-data", "--json"]).await;
    assert_eq!(json(&verified)["clean"], true, "{}", json(&verified));
    assert_eq!(json(&verified)["blobs"], 3);
    let published = config.server.data.join("published/acme/plans/12345/report.docx");
    let text = understudy::office::text_of(&std::fs::read(published).unwrap());
    assert!(text.contains("After the first backup."), "{text}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_the_restored_ledger_does_not_know_is_kept_and_no_key_comes_twice() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let folder = stage.folder().join("backup");
    let (first_key, ann) = open(&stage, "ann").await;
    ann.write("Typed before the backup.").await.unwrap();
    back_up(&stage, &folder).await;
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let (second_key, bob) = open(&stage, "bob").await;
    bob.write("Typed after the backup.").await.unwrap();

    let config = elsewhere(&stage, "restored");
    let (mut paused, _) = stage.pause().await;
    let restored = run(&config, &["restore", folder.to_str().unwrap(), "--json"]).await;
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert_eq!(json(&restored)["restored"]["live_keys"], 1);
    paused.configs = vec![config];
    let stage = paused.resume().await;
    assert_eq!(stage.document("12345").await["head"], "1");
    bob.close().await.unwrap();

    stage.wait_until("the unknown session is kept", async || stage.kept("12345").await.len() == 1).await;
    let kept = stage.kept("12345").await;
    assert_eq!(kept[0]["reason"], "key-adopted", "{}", kept[0]);
    assert_eq!(kept[0]["code"], "DOC_008");
    let path = format!("/api/v1/documents/12345/kept/{}/content", kept[0]["number"]);
    let bytes = stage.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap();
    let text = understudy::office::text_of(&bytes);
    assert!(text.contains("Typed before the backup.") && text.contains("Typed after the backup."), "{text}");
    let (third_key, cyd) = open(&stage, "cyd").await;
    assert!(![first_key, second_key].contains(&third_key), "{third_key}");
    cyd.write("It goes on.").await.unwrap();
    cyd.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_outlives_a_restore_saves_into_the_head() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let folder = stage.folder().join("backup");
    let (key, ann) = open(&stage, "ann").await;
    ann.write("One.").await.unwrap();
    back_up(&stage, &folder).await;

    let config = elsewhere(&stage, "restored");
    let (mut paused, _) = stage.pause().await;
    let restored = run(&config, &["restore", folder.to_str().unwrap(), "--json"]).await;
    assert!(restored.status.success());
    paused.configs = vec![config];
    let stage = paused.resume().await;
    let (joined, bob) = open(&stage, "bob").await;
    bob.write("Two.").await.unwrap();
    ann.close().await.unwrap();
    bob.close().await.unwrap();

    assert_eq!(joined, key, "the server has people inside, so it is their session");
    stage.wait_for_head("12345", "2").await;
    let text = stage.text("12345").await;
    assert!(text.contains("One.") && text.contains("Two."), "{text}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_touches_nothing_that_is_there_and_is_taken_up_where_it_broke_off() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let folder = stage.folder().join("backup");
    let made = back_up(&stage, &folder).await;
    let restore = ["restore", folder.to_str().unwrap()];

    let onto = run(&stage.app().config, &restore).await;
    let into = run(&stage.app().config, &["backup", stage.app().config.server.data.to_str().unwrap()]).await;
    assert_eq!((onto.status.code(), into.status.code()), (Some(2), Some(2)));
    let full = elsewhere(&stage, "full");
    std::fs::create_dir_all(&full.server.data).unwrap();
    std::fs::write(full.server.data.join("precious"), b"x").unwrap();
    let refused = run(&full, &restore).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is not empty"));

    let broken = elsewhere(&stage, "broken");
    std::fs::create_dir_all(&broken.server.data).unwrap();
    std::fs::write(broken.server.data.join("restoring"), made["manifest"]["name"].as_str().unwrap()).unwrap();
    let snapshot = folder.join(made["manifest"]["ledger"]["name"].as_str().unwrap());
    std::fs::write(broken.server.data.join("ledger.sqlite"), std::fs::read(&snapshot).unwrap()).unwrap();
    let verified = run(&broken, &["verify"]).await;
    assert!(String::from_utf8_lossy(&verified.stderr).contains("not finished"), "half a folder is not used");
    let taken_up = run(&broken, &restore).await;
    assert!(taken_up.status.success(), "{}", String::from_utf8_lossy(&taken_up.stderr));
    assert!(run(&broken, &["verify", "--read-data"]).await.status.success());

    let mut bytes = std::fs::read(&snapshot).unwrap();
    bytes[4000] ^= 1;
    std::fs::write(&snapshot, bytes).unwrap();
    let damaged = run(&elsewhere(&stage, "damaged"), &restore).await;
    assert_eq!(damaged.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&damaged.stderr).contains("another hash"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_blob_is_named_and_keeps_nothing_else_from_the_backup() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let bytes = understudy::office::sample_docx("Other", &["Whole."]);
    stage.upload("67890", "other.docx", &bytes).await;
    let digest = understudy::office::sha256_hex(&bytes);
    let blob = stage.app().config.server.data.join("vault/blobs").join(&digest[..2]).join(&digest);
    std::fs::write(&blob, b"not these bytes").unwrap();
    let folder = stage.folder().join("backup");

    let output = run(&stage.app().config, &["backup", folder.to_str().unwrap(), "--json"]).await;

    assert_eq!(output.status.code(), Some(1));
    let manifest = &json(&output)["manifest"];
    assert_eq!((&manifest["blobs"], &manifest["lacking"][0]), (&Value::from(1), &Value::from(digest)));
    std::fs::write(&blob, &bytes).unwrap();
    stage.stop().await;
}
