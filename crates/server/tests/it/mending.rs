//! Bytes that are damaged or gone in the vault are found by `verify --read-data` and mended by `repair --from`, on every vault.

use std::path::{Path, PathBuf};
use std::process::Output;

use saveguard::config::Config;
use serde_json::{Value, json as value};
use understudy::Running;

use crate::cli::{files_below, json, saveguard_with};
use crate::support::engines::Place;
use crate::support::{Stage, stores};

/// A service that has stopped, with what it left.
struct Left {
    editor: Running,
    _folder: Place,
    config: Config,
    settings: Vec<(&'static str, String)>,
    backup: String,
}

impl Left {
    /// Three documents, a backup of all, and nobody at work any more.
    async fn behind() -> Self {
        let stage = Stage::start().await;
        for id in ["1", "2", "3"] {
            let bytes = understudy::office::sample_docx("Report", &[&format!("document {id}")]);
            assert!(stage.upload(id, "report.docx", &bytes).await.status().is_success());
        }
        stage
            .wait_until("all is published", async || {
                stage.app().ledger.totals().await.unwrap().owed_publications == 0
            })
            .await;
        let config = stage.app().config.clone();
        let settings = stores::settings(stage.folder());
        let backup = stage.folder().join("backup").display().to_string();
        let Stage { service, editor, folder: _folder, .. } = stage;
        let left = Self { editor, _folder, config, settings, backup };
        let backed_up = left.run(&["backup", &left.backup]).await;
        assert!(backed_up.status.success(), "{backed_up:?}");
        service.stop().await;
        left
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let (config, settings) = (self.config.clone(), self.settings.clone());
        let arguments: Vec<String> = arguments.iter().map(|&each| each.to_owned()).collect();
        let running = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            saveguard_with(&config, &settings, &arguments)
        });
        running.await.unwrap()
    }

    /// Where the vault keeps its files.
    fn vault(&self) -> PathBuf {
        stores::far_folder().unwrap_or_else(|| self.config.server.data.clone())
    }

    /// The files of the blobs, in order.
    fn blobs(&self) -> Vec<PathBuf> {
        let is_blob = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.len() == 64 && path.components().any(|part| part.as_os_str() == "blobs")
        };
        let mut blobs: Vec<PathBuf> = files_below(&self.vault()).into_iter().filter(is_blob).collect();
        blobs.sort();
        blobs
    }
}

fn is_aside(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "damaged")
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_and_missing_bytes_are_found_and_mended_from_another_vault() {
    let left = Left::behind().await;
    let blobs = left.blobs();
    assert_eq!(blobs.len(), 3);
    let mut flipped = std::fs::read(&blobs[0]).unwrap();
    flipped[100] ^= 1;
    std::fs::write(&blobs[0], &flipped).unwrap();
    std::fs::write(&blobs[1], b"cut short").unwrap();
    std::fs::remove_file(&blobs[2]).unwrap();
    let found = left.run(&["verify", "--read-data", "--json"]).await;
    assert_eq!(found.status.code(), Some(1));
    let findings: Vec<Value> = json(&found)["findings"].as_array().unwrap().clone();
    let mut invariants: Vec<&str> = findings.iter().map(|each| each["invariant"].as_str().unwrap()).collect();
    invariants.sort_unstable();
    assert_eq!(invariants, ["blob-present", "blob-whole", "blob-whole"]);

    let alone = left.run(&["repair", "--read-data", "--json"]).await;
    assert_eq!(alone.status.code(), Some(1), "nobody has the bytes");
    assert_eq!(json(&alone)["repaired"]["blobs_mended"], 0);
    let source = format!("{}/vault", left.backup);
    let repaired = left.run(&["repair", "--from", &source, "--json"]).await;

    assert!(repaired.status.success(), "{repaired:?}");
    assert_eq!(
        (&json(&repaired)["repaired"]["blobs_mended"], &json(&repaired)["clean"]),
        (&value!(3), &value!(true))
    );
    let verified = left.run(&["verify", "--read-data", "--json"]).await;
    assert_eq!(json(&verified)["clean"], true, "{}", json(&verified));
    let mut aside: Vec<Vec<u8>> = files_below(&left.vault())
        .iter()
        .filter(|path| is_aside(path))
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    aside.sort_by_key(Vec::len);
    assert_eq!(aside, [b"cut short".to_vec(), flipped], "what was damaged is kept");
    left.editor.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_damaged_too_mends_nothing_and_what_is_no_vault_is_refused() {
    let left = Left::behind().await;
    let blobs = left.blobs();
    let mut flipped = std::fs::read(&blobs[0]).unwrap();
    flipped[100] ^= 1;
    std::fs::write(&blobs[0], &flipped).unwrap();
    let name = blobs[0].file_name().unwrap().to_str().unwrap();
    let copy = Path::new(&left.backup).join("vault/blobs").join(&name[..2]).join(name);
    std::fs::write(&copy, b"damaged as well").unwrap();

    let source = format!("{}/vault", left.backup);
    let repaired = left.run(&["repair", "--from", &source, "--json"]).await;
    let refused = left.run(&["repair", "--from", &left.backup]).await;

    assert_eq!(repaired.status.code(), Some(1));
    assert_eq!(json(&repaired)["repaired"]["blobs_mended"], 0);
    assert_eq!(std::fs::read(&blobs[0]).unwrap(), flipped, "nothing was replaced by something worse");
    assert_eq!(refused.status.code(), Some(2));
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("is no vault"), "{words}");
    assert!(!Path::new(&left.backup).join("blobs").exists(), "and none was made of it");
    left.editor.stop().await;
}
