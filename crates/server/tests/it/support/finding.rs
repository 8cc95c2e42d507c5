//! Finds every byte that was ever typed or acknowledged, from outside.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::Value;
use understudy::journal::Note;
use understudy::machine::Verdict;

use super::Stage;

impl Stage {
    /// The statuses the server sent of its own accord, in order.
    pub(crate) fn statuses(&self) -> Vec<u8> {
        let callbacks = self.editor.journal().callbacks();
        callbacks
            .into_iter()
            .filter(|(_, body)| body.userdata.is_none())
            .map(|(_, body)| body.status)
            .collect()
    }

    /// Everything of a document that the interface serves: hash and text of versions, checkpoints and kept copies.
    pub(crate) async fn everything_served(&self, id: &str) -> BTreeMap<String, String> {
        let mut paths: Vec<(String, Value)> = Vec::new();
        for version in self.get(&format!("/api/v1/documents/{id}/versions")).await.as_array().unwrap() {
            let label = version["version"].as_str().unwrap();
            paths
                .push((format!("/api/v1/documents/{id}/content?version={label}"), version["sha256"].clone()));
        }
        for copy in self.kept(id).await {
            let path = format!("/api/v1/documents/{id}/kept/{}/content", copy["number"]);
            paths.push((path, copy["sha256"].clone()));
        }
        let mut served = BTreeMap::new();
        for (path, sha256) in paths {
            let response = self.request(Method::GET, &path).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            let bytes = response.bytes().await.unwrap();
            assert_eq!(model::Digest::of(&bytes).to_string(), sha256.as_str().unwrap(), "{path}");
            served.insert(sha256.as_str().unwrap().to_owned(), understudy::office::text_of(&bytes));
        }
        served
    }

    /// Ends a sequence: nothing is on its way, and every byte the server was ever told is findable.
    pub(crate) async fn expect_every_byte_findable(self, id: &str) {
        self.editor.quiet().await;
        self.wait_until("nothing is open", async || {
            self.app().ledger.totals().await.unwrap().open_saves == 0
        })
        .await;
        let served = self.everything_served(id).await;
        let changes = self.editor.journal().changes();
        assert!(!changes.is_empty(), "somebody typed something");
        for (change, whereabouts) in &changes {
            let is_findable = served.values().any(|text| text.contains(&**change));
            assert!(is_findable, "{change} is nowhere: {whereabouts:?}");
        }
        for sha256 in acknowledged(&self) {
            assert!(served.contains_key(&sha256), "a file that was answered 0 is nowhere: {sha256}");
        }
        self.stop().await;
    }
}

/// The hashes of the files whose delivery was answered 0.
fn acknowledged(stage: &Stage) -> BTreeSet<String> {
    let (mut produced, mut sent, mut found) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for entry in stage.editor.journal().entries() {
        match entry.note {
            Note::ContentProduced { path, sha256: Some(sha256), .. } => {
                produced.insert(path, sha256);
            }
            Note::CallbackSent { delivery, body, .. } => {
                let folder =
                    body.url.as_deref().and_then(|url| url.split("/files/data/").nth(1)?.split('/').next());
                if let Some(sha256) = folder.and_then(|folder| produced.get(folder)) {
                    sent.insert(delivery, sha256.clone());
                }
            }
            Note::CallbackAnswered { delivery, verdict: Verdict::Acknowledged, .. } => {
                found.extend(sent.remove(&delivery));
            }
            _ => {}
        }
    }
    found
}
