//! The history as editors show it, names, save-as, people and mentions: over HTTP and with people inside.

use http::StatusCode;
use jiff::Timestamp;
use reqwest::Method;
use saveguard::editors::onlyoffice::Tokens;
use serde_json::{Value, json};
use understudy::server::Opening;

use crate::support::Stage;

async fn problem(response: reqwest::Response) -> (StatusCode, String) {
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

/// Three people work in one session and leave.
async fn three_authors(stage: &Stage) {
    stage.docx("12345").await;
    let mut sessions = Vec::new();
    for (who, words) in [("ann", "Ann was here."), ("ben", "So was Ben."), ("cat", "And Cat.")] {
        let session = stage.edit("12345", who).await;
        session.write(words).await.unwrap();
        sessions.push(session);
    }
    for session in &sessions {
        session.close().await.unwrap();
    }
    stage.wait_for_head("12345", "2").await;
}

/// What anybody with the link gets: the Document Server has no other token.
async fn fetch(stage: &Stage, link: &Value) -> (StatusCode, Vec<u8>) {
    let response = stage.http.get(link.as_str().unwrap()).send().await.unwrap();
    (response.status(), response.bytes().await.unwrap().to_vec())
}

async fn content(stage: &Stage, version: &str) -> Vec<u8> {
    let path = format!("/api/v1/documents/12345/content?version={version}");
    stage.request(Method::GET, &path).send().await.unwrap().bytes().await.unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_lists_three_authors_and_its_links_serve_what_they_name() {
    let stage = Stage::start().await;
    three_authors(&stage).await;

    let history = stage.get("/api/v1/documents/12345/history").await;

    assert_eq!(history["currentVersion"], "2");
    let entries = history["history"].as_array().unwrap();
    let versions: Vec<_> = entries.iter().map(|entry| entry["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["1", "2"]);
    let authors: Vec<_> =
        entries[1]["changes"].as_array().unwrap().iter().map(|each| each["user"]["name"].clone()).collect();
    assert_eq!(authors, ["User ann", "User ben", "User cat"]);
    assert_eq!((&entries[0]["kind"], &entries[1]["kind"]), (&json!("upload"), &json!("save")));
    assert!(entries[1]["serverVersion"].is_string() && entries[1]["created"].as_str().unwrap().len() == 19);
    assert!(entries[1]["size_bytes"].as_u64().unwrap() > 0);

    let data = stage.get("/api/v1/documents/12345/history/2").await;
    assert_eq!(
        (&data["key"], &data["previous"]["key"]),
        (&entries[1]["key"], &entries[0]["key"]),
        "the editor compares them"
    );
    assert_eq!(fetch(&stage, &data["url"]).await, (StatusCode::OK, content(&stage, "2").await));
    assert_eq!(fetch(&stage, &data["previous"]["url"]).await, (StatusCode::OK, content(&stage, "1").await));
    let (status, record) = fetch(&stage, &data["changesUrl"]).await;
    assert!(status == StatusCode::OK && record.starts_with(b"PK"), "a zip, as the server sent it");
    let tokens = Tokens::new(&stage.app().config.document_server.secrets);
    let claims = tokens.verify(data["token"].as_str().unwrap(), Timestamp::now()).unwrap();
    for part in ["fileType", "key", "url", "version", "previous", "changesUrl"] {
        assert_eq!(claims[part], data[part], "{part}");
    }
    let versions = stage.get("/api/v1/documents/12345/versions").await;
    assert_eq!((&versions[0]["has_changes"], &versions[1]["has_changes"]), (&json!(true), &json!(false)));
    assert!(versions[0]["key"].as_str().unwrap().contains("_edit_"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_server_opens_a_version_of_the_history_to_view() {
    let stage = Stage::start().await;
    three_authors(&stage).await;
    let data = stage.get("/api/v1/documents/12345/history/1").await;
    assert!(
        data.get("previous").is_none() && data.get("changesUrl").is_none(),
        "nothing was before the first"
    );
    let editing = stage.edit("12345", "ann").await;
    let config = json!({
        "document": { "key": data["key"], "url": data["url"], "fileType": data["fileType"] },
        "editorConfig": { "mode": "view", "user": { "id": "ben", "name": "Ben" } },
        "token": data["token"],
    });

    let session = stage.editor.open(&config).await.unwrap();

    assert!(matches!(session.opened().await, Opening::Ready));
    session.close().await.unwrap();
    editing.close().await.unwrap();
    let edit_key = stage.configure("12345", "ann", "edit").await["key"].clone();
    assert_ne!(edit_key, data["key"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_of_the_history_open_one_content_each_and_nothing_else() {
    let stage = Stage::start().await;
    three_authors(&stage).await;
    stage.upload("other", "other.docx", &understudy::office::sample_docx("Other", &["Secret."])).await;
    let data = stage.get("/api/v1/documents/12345/history/2").await;
    let token_of = |link: &Value| link.as_str().unwrap().split_once("token=").unwrap().1.to_owned();
    let (source, changes) = (token_of(&data["url"]), token_of(&data["changesUrl"]));
    let status =
        async |path: String| stage.http.get(format!("{}{path}", stage.base)).send().await.unwrap().status();

    for (path, token) in [
        ("/stream/other", &source),
        ("/stream/other/changes", &changes),
        ("/stream/12345", &changes),
        ("/stream/12345/changes", &source),
    ] {
        assert_eq!(status(format!("{path}?token={token}")).await, StatusCode::FORBIDDEN, "{path}");
    }
    let missing = stage.request(Method::GET, "/api/v1/documents/12345/history/9").send().await.unwrap();
    assert_eq!(problem(missing).await, (StatusCode::NOT_FOUND, "API_001".to_owned()));
    let nonsense = stage.request(Method::GET, "/api/v1/documents/12345/history/x").send().await.unwrap();
    assert_eq!(problem(nonsense).await, (StatusCode::BAD_REQUEST, "API_004".to_owned()));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_the_head_is_in_the_history_and_others_are_not() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    for (words, head) in [("One.", "1.1"), ("Two.", "1.2")] {
        ann.write(words).await.unwrap();
        ann.press_save().await.unwrap();
        stage.wait_for_head("12345", head).await;
    }

    let history = stage.get("/api/v1/documents/12345/history").await;

    assert_eq!(history["currentVersion"], "1.2");
    let versions: Vec<_> =
        history["history"].as_array().unwrap().iter().map(|each| each["version"].clone()).collect();
    assert_eq!(versions, ["1", "1.2"]);
    let data = stage.get("/api/v1/documents/12345/history/1.2").await;
    assert_eq!(fetch(&stage, &data["url"]).await, (StatusCode::OK, content(&stage, "1.2").await));
    let page = stage.get("/api/v1/documents/12345/versions?limit=1&before=1.2").await;
    assert_eq!(page.as_array().unwrap().len(), 1);
    assert_eq!(page[0]["version"], "1.1");
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_renamed_while_it_is_edited_and_everybody_sees_it() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let folder = stage.published("acme/plans/12345");
    stage.wait_until("it is published", async || folder.join("report.docx").exists()).await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("Under any name.").await.unwrap();

    let renamed = stage.post("/api/v1/documents/12345/rename", &json!({ "name": "letter" })).await;

    assert_eq!(renamed["name"], "letter.docx", "what it is stays in its name");
    let told = ann.wait_for(|message| {
        (message["type"] == "meta")
            .then(|| message["messages"]["title"].as_str().unwrap_or_default().to_owned())
    });
    assert_eq!(told.await.as_deref(), Some("letter.docx"));
    stage
        .wait_until("the tree follows", async || {
            folder.join("letter.docx").exists() && !folder.join("report.docx").exists()
        })
        .await;
    for hostile in ["../letter", "a/b", "..", "%2e%2e%2fx", "", "a\u{202e}b", "nul\u{0}"] {
        let request =
            stage.request(Method::POST, "/api/v1/documents/12345/rename").json(&json!({ "name": hostile }));
        assert_eq!(
            problem(request.send().await.unwrap()).await,
            (StatusCode::BAD_REQUEST, "DOC_007".to_owned()),
            "{hostile:?}"
        );
    }
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Under any name."));
    let acts = stage.get("/api/v1/documents/12345/audit?action=document-renamed").await;
    assert!(acts.to_string().contains("letter.docx"), "{acts}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_editor_saves_as_becomes_a_document_of_its_own() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let ann = stage.edit("12345", "ann").await;
    ann.write("For a copy.").await.unwrap();
    let link = ann.copy_link().await.unwrap().unwrap();
    let save_as = async |url: &str, title: &str| {
        let wish = json!({ "url": url, "title": title, "file_type": "docx" });
        stage.request(Method::POST, "/api/v1/documents/12345/save-as").json(&wish).send().await.unwrap()
    };

    let made = save_as(&link, "copy.docx").await;

    assert_eq!(made.status(), StatusCode::CREATED);
    let made: Value = made.json().await.unwrap();
    assert_eq!(
        (&made["name"], &made["project"], &made["head"]),
        (&json!("copy.docx"), &json!("plans"), &json!("1"))
    );
    assert!(stage.text(made["id"].as_str().unwrap()).await.contains("For a copy."));
    assert_eq!(stage.document("12345").await["head"], "1", "the document itself did not change");
    let path = link.split_once("/cache/files").unwrap().1;
    for elsewhere in [
        format!("http://169.254.169.254/cache/files{path}"),
        stage.editor.url() + "/info/info.json",
        format!("{}/cache/files/../../command", stage.editor.url()),
        "file:///etc/passwd".to_owned(),
    ] {
        assert_eq!(
            problem(save_as(&elsewhere, "x.docx").await).await,
            (StatusCode::BAD_REQUEST, "API_004".to_owned()),
            "{elsewhere}"
        );
    }
    assert_eq!(
        problem(save_as(&link, "../x.docx").await).await,
        (StatusCode::BAD_REQUEST, "DOC_007".to_owned())
    );
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_offered_and_mentions_are_written_down() {
    let stage = Stage::start().await;
    three_authors(&stage).await;

    let users = stage.get("/api/v1/documents/12345/users?kind=mention").await;
    let chosen = stage.get("/api/v1/documents/12345/users?kind=info&ids=ann,nobody").await;

    assert_eq!(users["c"], "mention");
    let ids: Vec<_> =
        users["users"].as_array().unwrap().iter().map(|user| user["id"].as_str().unwrap()).collect();
    assert!(["ann", "ben", "cat"].iter().all(|who| ids.contains(who)), "{ids:?}");
    assert!(!ids.iter().any(|id| ["saveguard", "document-server", "published-tree"].contains(id)), "{ids:?}");
    assert_eq!(chosen["users"].as_array().unwrap().len(), 1);
    let wish = json!({ "emails": ["ben@example.org"], "message": "Look.", "action_link": { "action": { "type": "comment" } } });
    let mentioned = stage.post("/api/v1/documents/12345/mentions", &wish).await;
    assert_eq!(mentioned["number"], 1);
    let stored = stage.app().ledger.mentions(0, 10).await.unwrap();
    assert_eq!((stored.len(), stored[0].mention.message.as_str()), (1, "Look."));
    let acts = stage.get("/api/v1/documents/12345/audit?action=people-mentioned").await;
    assert_eq!(acts["entries"].as_array().or(acts.as_array()).unwrap().len(), 1, "{acts}");
    for strange in [
        json!({ "emails": [] }),
        json!({ "emails": ["nobody"] }),
        json!({ "emails": ["a@b"], "message": "x".repeat(20_000) }),
    ] {
        let refused = stage
            .request(Method::POST, "/api/v1/documents/12345/mentions")
            .json(&strange)
            .send()
            .await
            .unwrap();
        assert_eq!(problem(refused).await, (StatusCode::BAD_REQUEST, "API_004".to_owned()));
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_changed_in_the_published_tree_becomes_a_version_or_a_copy_while_somebody_edits() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let file = stage.published("acme/plans/12345/report.docx");
    stage
        .wait_until("it is published", async || {
            file.exists() && stage.app().ledger.totals().await.unwrap().owed_publications == 0
        })
        .await;
    let overwrite = |text: &str| {
        std::fs::write(
            &file,
            understudy::office::sample_docx("Report", &[text, "and more of it, so that its length differs"]),
        )
        .unwrap();
        // As if it had been written a while ago: files that are being written are left alone.
        let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        std::fs::File::options().append(true).open(&file).unwrap().set_modified(earlier).unwrap();
    };

    overwrite("From outside.");

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("From outside."));
    let versions = stage.get("/api/v1/documents/12345/versions").await;
    assert_eq!(versions[0]["origin"], "external");
    let settled = async || stage.app().ledger.totals().await.unwrap().owed_publications == 0;
    stage.wait_until("it is published again", settled).await;

    let ann = stage.edit("12345", "ann").await;
    ann.write("From inside.").await.unwrap();
    overwrite("From outside, while somebody edits: much longer than before.");
    stage.wait_until("it is kept", async || stage.kept("12345").await.len() == 1).await;
    let kept = stage.kept("12345").await.remove(0);
    assert_eq!((&kept["kind"], &kept["reason"]), (&json!("conflict"), &json!("external-change")));
    ann.close().await.unwrap();
    stage.wait_for_head("12345", "3").await;
    assert!(stage.text("12345").await.contains("From inside."));
    let number = &kept["number"];
    let diff = stage.get(&format!("/api/v1/documents/12345/diff?to=kept:{number}")).await;
    assert_eq!(diff["from"], "3", "a kept copy is compared with the head");
    stage.post(&format!("/api/v1/documents/12345/kept/{number}/use"), &json!({})).await;
    assert!(stage.text("12345").await.contains("while somebody edits"));
    let used = stage.get("/api/v1/documents/12345/audit?action=kept-copy-used").await;
    assert!(used.to_string().contains("kept-copy-used"));
    stage.wait_until("all is published", settled).await;
    stage.stop().await;
}
