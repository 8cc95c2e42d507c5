//! Operations by audience, share links and their guests: over HTTP, with people inside, across restarts, in a browser.

use std::collections::BTreeMap;

use fantoccini::Locator;
use futures_util::StreamExt as _;
use http::StatusCode;
use jiff::SignedDuration;
use ledger::shares::NewShare;
use model::access::{Caller, Role};
use model::sharing::{Allows, DownloadSwitch};
use model::{Digest, DocumentId, EditorKey};
use reqwest::Method;
use serde_json::{Value, json};
use understudy::server::{Opening, Session};

use crate::cli::{json as line_of, saveguard};
use crate::support::browser::Browser;
use crate::support::{Stage, admin};

const SHARES: &str = "/api/v1/documents/12345/shares";

async fn stage() -> Stage {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    stage
}

/// Makes a link; returns its token and its number.
async fn share(stage: &Stage, wish: &Value) -> (String, u64) {
    let made = stage.post(SHARES, wish).await;
    (made["token"].as_str().unwrap().to_owned(), made["details"]["number"].as_u64().unwrap())
}

/// Status and body of a call without any token but the link's own.
async fn call(stage: &Stage, method: Method, path: &str, body: Option<&Value>) -> (StatusCode, Value) {
    let mut request = stage.http.request(method, format!("{}{path}", stage.base));
    if let Some(body) = body {
        request = request.json(body);
    }
    let response = request.send().await.unwrap();
    let status = response.status();
    (status, response.json().await.unwrap_or_default())
}

async fn open(stage: &Stage, token: &str, wish: &Value) -> (StatusCode, Value) {
    call(stage, Method::POST, &format!("/api/v1/shares/{token}/open"), Some(wish)).await
}

/// A guest who is inside, and what they were given.
async fn enter(stage: &Stage, token: &str, name: &str) -> (Session, Value) {
    let (status, view) = open(stage, token, &json!({ "name": name })).await;
    assert_eq!(status, StatusCode::OK, "{view}");
    let session = stage.editor.open(&view["config"]).await.unwrap();
    assert_eq!(session.opened().await, Opening::Ready);
    (session, view)
}

async fn revoke(stage: &Stage, number: u64) {
    let path = format!("{SHARES}/{number}");
    let response = stage.request(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
}

async fn dropped(session: &Session) {
    let drop = session.wait_for(|message| (message["type"] == "drop").then_some(()));
    drop.await.expect("the guest is asked to leave");
}

/// The server tells of each entry apart, in no order: whoever counts waits after each.
async fn wait_for_presence(stage: &Stage, count: usize) {
    stage
        .wait_until("everybody is known to be inside", async || {
            stage.document("12345").await["editors"].as_array().unwrap().len() == count
        })
        .await;
}

async fn configure_as(stage: &Stage, role: Role, wish: &Value) -> (StatusCode, Value) {
    let caller = Caller { id: format!("a-{}", role.as_str()), role, ..admin() };
    let response = stage
        .http
        .post(format!("{}/api/v1/documents/12345/editor-config", stage.base))
        .bearer_auth(stage.token(&caller))
        .json(wish)
        .send()
        .await
        .unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_opens_for_what_it_may_and_is_refused_clearly_otherwise() {
    let stage = stage().await;
    let modes = ["view", "comment", "review", "fill", "edit"];
    let table = [
        (Role::Viewer, "+...."),
        (Role::Commenter, "++..."),
        (Role::Editor, "+++++"),
        (Role::Submitter, "+...."),
        (Role::Regulator, "+...."),
        (Role::Admin, "+++++"),
    ];

    let mut keys: BTreeMap<&str, String> = BTreeMap::new();
    for (role, expected) in table {
        for (mode, letter) in modes.into_iter().zip(expected.chars()) {
            let (status, answer) = configure_as(&stage, role, &json!({ "mode": mode })).await;
            if letter == '+' {
                assert_eq!(status, StatusCode::OK, "{role:?} {mode}: {answer}");
                keys.insert(mode, answer["key"].as_str().unwrap().to_owned());
            } else {
                assert_eq!((status, &answer["code"]), (StatusCode::FORBIDDEN, &json!("API_003")));
                assert!(answer["detail"].as_str().unwrap().contains(mode), "{answer}");
            }
        }
    }

    let edit = &keys["edit"];
    assert!(["comment", "review", "fill"].iter().all(|mode| keys[mode] == *edit), "one session: {keys:?}");
    assert_ne!(keys["view"], *edit);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn switches_and_limits_are_signed_and_the_server_lets_everybody_into_one_session() {
    let stage = stage().await;
    let switched = json!({ "mode": "comment", "download": false, "print": false, "copy": false });

    let (_, comment) = configure_as(&stage, Role::Commenter, &switched).await;
    let permissions = &comment["config"]["document"]["permissions"];
    let commenter = stage.editor.open(&comment["config"]).await.unwrap();
    assert_eq!(commenter.opened().await, Opening::Ready, "the source is served to the Document Server");
    wait_for_presence(&stage, 1).await;
    let editor = stage.edit("12345", "ann").await;

    assert_eq!(comment["config"]["editorConfig"]["mode"], "edit");
    for (name, expected) in [("edit", false), ("comment", true), ("review", false), ("fillForms", false)] {
        assert_eq!(permissions[name], expected, "{name}");
    }
    assert!(["download", "print", "copy"].iter().all(|name| permissions[name] == false));
    let source = comment["config"]["document"]["url"].as_str().unwrap();
    let refused = stage.http.get(source).send().await.unwrap();
    assert_eq!(
        refused.status(),
        StatusCode::FORBIDDEN,
        "a browser that reads the configuration gets nothing"
    );
    let mut raised = comment["config"].clone();
    raised["document"]["permissions"]["edit"] = json!(true);
    assert!(stage.editor.open(&raised).await.is_err(), "what the page says is not what was signed");
    wait_for_presence(&stage, 2).await;
    editor.write("With a commenter beside me.").await.unwrap();
    editor.close().await.unwrap();
    commenter.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_edits_under_their_own_name_and_nothing_of_the_company_is_told() {
    let stage = stage().await;
    let (token, number) = share(&stage, &json!({ "allows": "edit", "label": "for the auditors" })).await;

    let (status, link) = call(&stage, Method::GET, &format!("/api/v1/shares/{token}"), None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&link["allows"], &link["name"]), (&json!("edit"), &json!("report.docx")));
    let ann = stage.edit("12345", "ann").await;
    wait_for_presence(&stage, 1).await;
    let (guest, view) = enter(&stage, &token, " Gus\u{202e}\r\nTester ").await;
    assert_eq!(view["guest_name"], "Gus Tester (guest)");
    assert!(![&link, &view].iter().any(|told| told.to_string().contains("acme")), "{link} {view}");
    wait_for_presence(&stage, 2).await;
    ann.close().await.unwrap();
    guest.write("From outside.").await.unwrap();
    guest.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    let newest = stage.get("/api/v1/documents/12345/versions").await[0].clone();
    let id = format!("guest:{number}.1");
    assert_eq!((&newest["author_id"], &newest["author_name"]), (&json!(id), &json!("Gus Tester (guest)")));
    let (_, nameless) = open(&stage, &token, &json!({})).await;
    assert_eq!(nameless["guest_name"], "Guest 2");
    // Coming back with the ticket is no new visit.
    let (_, again) = open(&stage, &token, &json!({ "ticket": nameless["ticket"], "name": "x" })).await;
    assert_eq!(again["guest_name"], "Guest 2");
    let listed = stage.get(SHARES).await;
    assert_eq!((&listed[0]["uses"], &listed[0]["label"]), (&json!(2), &json!("for the auditors")));
    assert!(!listed.to_string().contains(&token), "the token is shown once");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_the_host_application_knows_can_be_a_guest() {
    let stage = stage().await;
    let impostor = Caller { id: "guest:1.1".to_owned(), ..admin() };

    let request = stage.http.get(format!("{}/api/v1/companies", stage.base));
    let response = request.bearer_auth(stage.token(&impostor)).send().await.unwrap();

    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_without_download_gives_the_bytes_to_nobody_but_the_server() {
    let stage = stage().await;
    let (with, _) = share(&stage, &json!({ "allows": "view" })).await;
    let (without, _) = share(&stage, &json!({ "allows": "view", "may_download": false })).await;

    for (token, expected) in [(&with, StatusCode::OK), (&without, StatusCode::FORBIDDEN)] {
        let (session, view) = enter(&stage, token, "Gus").await;
        let ticket = view["ticket"].as_str().unwrap();
        let path = format!("{}/api/v1/shares/{token}/download", stage.base);
        let download = stage.http.get(&path).query(&[("ticket", ticket)]).send().await.unwrap();
        assert_eq!(download.status(), expected);
        let bare = stage.http.get(&path).send().await.unwrap();
        assert_eq!(bare.status(), StatusCode::FORBIDDEN, "without a ticket");
        let source = view["config"]["document"]["url"].as_str().unwrap();
        assert_eq!(stage.http.get(source).send().await.unwrap().status(), expected);
        let permissions = &view["config"]["document"]["permissions"];
        assert_eq!(permissions["download"], expected == StatusCode::OK);
        assert_eq!(permissions["print"], expected == StatusCode::OK);
        session.close().await.unwrap();
    }
    let acts = stage.get("/api/v1/documents/12345/audit?user=guest:1.1").await;
    let actions: Vec<_> = acts["entries"].as_array().unwrap().iter().map(|act| &act["action"]).collect();
    assert_eq!(actions, ["share-used", "downloaded"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_link_drops_its_guest_and_their_last_save_is_committed() {
    let stage = stage().await;
    let (token, number) = share(&stage, &json!({ "allows": "edit" })).await;
    let (guest, view) = enter(&stage, &token, "Gus").await;
    wait_for_presence(&stage, 1).await;
    let (other, _) = share(&stage, &json!({ "allows": "edit" })).await;
    let (stays, _) = enter(&stage, &other, "Sue").await;
    wait_for_presence(&stage, 2).await;
    guest.write("The last words of a guest.").await.unwrap();

    revoke(&stage, number).await;
    revoke(&stage, number).await;

    dropped(&guest).await;
    wait_for_presence(&stage, 1).await;
    assert!(!stays.messages().iter().any(|message| message["type"] == "drop"), "only guests of that link");
    for wish in [json!({}), json!({ "ticket": view["ticket"] })] {
        assert_eq!(open(&stage, &token, &wish).await.0, StatusCode::NOT_FOUND);
    }
    let ticket = view["ticket"].as_str().unwrap();
    let download = format!("/api/v1/shares/{token}/download?ticket={ticket}");
    assert_eq!(call(&stage, Method::GET, &download, None).await.0, StatusCode::NOT_FOUND);
    stays.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("The last words of a guest."));
    let authors = stage.get("/api/v1/documents/12345/versions").await[0].clone();
    assert_eq!(authors["author_name"], "Gus (guest)");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_guest_saves_after_the_revocation_is_kept_and_they_are_asked_to_leave_whenever_they_come_back()
{
    let stage = stage().await;
    let (token, number) = share(&stage, &json!({ "allows": "edit" })).await;
    let (stubborn, _) = enter(&stage, &token, "Stu").await;
    stubborn.ignore_drop();
    wait_for_presence(&stage, 1).await;
    let (left, returning) = enter(&stage, &token, "Ret").await;
    wait_for_presence(&stage, 2).await;

    revoke(&stage, number).await;
    dropped(&stubborn).await;
    dropped(&left).await;
    stubborn.write("Typed although the link was revoked.").await.unwrap();
    // The Document Server lets in whoever has a configuration that has not expired.
    let back = stage.editor.open(&returning["config"]).await.unwrap();
    dropped(&back).await;
    stubborn.close().await.unwrap();
    back.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;

    assert!(stage.text("12345").await.contains("Typed although the link was revoked."));
    assert_eq!(stage.versions("12345").await, ["2", "1"]);
    assert_eq!(stage.kept("12345").await.len(), 0);
    let owed = async || stage.app().ledger.totals().await.unwrap().owed_publications;
    stage.wait_until("it is published", async || owed().await == 0).await;
    let verified = {
        let config = stage.app().config.clone();
        tokio::task::spawn_blocking(move || saveguard(&config, &["verify", "--read-data"])).await.unwrap()
    };
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_revoked_while_the_service_is_away_drops_its_guests_after_the_start() {
    let stage = stage().await;
    let (token, number) = share(&stage, &json!({ "allows": "edit" })).await;
    let (guest, _) = enter(&stage, &token, "Gus").await;
    let (viewing, _) = share(&stage, &json!({ "allows": "view" })).await;
    let viewed = stage.get(SHARES).await[1]["number"].as_u64().unwrap();
    let (viewer, _) = enter(&stage, &viewing, "Vi").await;
    guest.write("Before the restart.").await.unwrap();
    wait_for_presence(&stage, 1).await;

    let (paused, left) = stage.pause().await;
    assert_eq!(left, 0);
    for number in [number, viewed] {
        let config = paused.config().clone();
        let revoked = tokio::task::spawn_blocking(move || {
            saveguard(&config, &["share", "revoke", &number.to_string()])
        });
        assert!(revoked.await.unwrap().status.success());
    }
    let stage = paused.resume().await;

    dropped(&guest).await;
    dropped(&viewer).await;
    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Before the restart."));
    stage.stop().await;
}

/// A problem without the one thing that is new in every answer.
fn without_instance(mut problem: Value) -> Value {
    problem.as_object_mut().unwrap().remove("instance");
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_guessed_tokens_get_the_same_404_each_and_then_429() {
    let stage = stage().await;
    let (token, _) = share(&stage, &json!({ "allows": "view" })).await;
    let guess = async |number: u32| {
        let path = format!("/api/v1/shares/sgl_{number:043}");
        let (status, problem) = call(&stage, Method::GET, &path, None).await;
        (status, without_instance(problem).to_string())
    };

    let answers: Vec<_> = futures_util::stream::iter(0..10_000).map(guess).buffered(16).collect().await;

    let mut counts: BTreeMap<(u16, String), usize> = BTreeMap::new();
    for (status, problem) in answers {
        *counts.entry((status.as_u16(), problem)).or_default() += 1;
    }
    let counts: Vec<_> = counts.into_iter().map(|((status, _), count)| (status, count)).collect();
    // On however many instances.
    assert_eq!(counts, [(404, 100), (429, 9900)]);
    assert_eq!(open(&stage, &token, &json!({})).await.0, StatusCode::OK, "a good token works all the same");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_revoked_expired_and_deleted_look_exactly_alike() {
    let stage = stage().await;
    stage.docx("67890").await;
    let (revoked, number) = share(&stage, &json!({ "allows": "view" })).await;
    revoke(&stage, number).await;
    let gone = stage.post("/api/v1/documents/67890/shares", &json!({ "allows": "view" })).await;
    let gone = gone["token"].as_str().unwrap();
    let deletion = stage.request(Method::DELETE, "/api/v1/documents/67890").send().await.unwrap();
    assert_eq!(deletion.status(), StatusCode::NO_CONTENT);
    let expired = NewShare {
        hash: Digest::of(b"sgl_expired"),
        document: DocumentId::parse("12345").unwrap(),
        label: String::new(),
        allows: Allows::Edit,
        download: DownloadSwitch::On,
        password: None,
        expires_at: Some(stage.app().now() - SignedDuration::from_secs(1)),
        by: ledger::documents::Author::new("ann", "Ann"),
        at: stage.app().now() - SignedDuration::from_secs(3600),
    };
    stage.app().ledger.create_share(&expired).await.unwrap();

    let tokens = ["sgl_unknown", &revoked, "sgl_expired", gone, "%00", "%2e%2e%2f", &"x".repeat(2000)];
    let mut seen = Vec::new();
    for token in tokens {
        for (method, path, body) in [
            (Method::GET, format!("/api/v1/shares/{token}"), None),
            (Method::POST, format!("/api/v1/shares/{token}/open"), Some(json!({ "password": "guess it" }))),
            (Method::GET, format!("/api/v1/shares/{token}/download?ticket=x"), None),
        ] {
            let (status, problem) = call(&stage, method, &path, body.as_ref()).await;
            seen.push((status, without_instance(problem)));
        }
        let page = stage.http.get(format!("{}/s/{token}", stage.base)).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::NOT_FOUND);
    }
    assert!(seen.iter().all(|each| *each == seen[0] && each.0 == StatusCode::NOT_FOUND), "{seen:?}");
    // Told once per link, however often somebody tries.
    stage
        .wait_until("refusals are written down", async || {
            let acts = stage.get("/api/v1/documents/12345/audit?action=share-refused").await;
            let outcomes: Vec<_> =
                acts["entries"].as_array().unwrap().iter().map(|act| act["outcome"].clone()).collect();
            outcomes.len() == 2
                && outcomes.contains(&json!("revoked"))
                && outcomes.contains(&json!("expired"))
        })
        .await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_asked_for_and_wrong_ones_are_limited() {
    let stage = stage().await;
    let (token, _) = share(&stage, &json!({ "allows": "view", "password": "open sesame" })).await;
    let (other, _) = share(&stage, &json!({ "allows": "view", "password": "another one" })).await;
    let with = |password: &str| json!({ "password": password });

    let (_, link) = call(&stage, Method::GET, &format!("/api/v1/shares/{token}"), None).await;
    assert_eq!((&link["needs_password"], &link["name"]), (&json!(true), &json!(null)));
    let (status, missing) = open(&stage, &token, &json!({})).await;
    assert_eq!((status, &missing["code"]), (StatusCode::FORBIDDEN, &json!("API_012")));
    let (status, right) = open(&stage, &token, &with("open sesame")).await;
    assert_eq!(status, StatusCode::OK);
    // On however many instances.
    for _ in 0..10 {
        let (status, wrong) = open(&stage, &token, &with("another one")).await;
        assert_eq!(
            (status, without_instance(wrong)),
            (StatusCode::FORBIDDEN, without_instance(missing.clone()))
        );
    }
    let (status, problem) = open(&stage, &token, &with("open sesame")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("API_011")));

    let (status, _) = open(&stage, &token, &json!({ "ticket": right["ticket"] })).await;
    assert_eq!(status, StatusCode::OK, "whoever was let in is not shut out by others' guesses");
    assert_eq!(open(&stage, &other, &with("another one")).await.0, StatusCode::OK, "another link");
    assert_eq!(open(&stage, &other, &json!({ "ticket": right["ticket"] })).await.0, StatusCode::FORBIDDEN);
    let listed = stage.get(SHARES).await.to_string();
    assert!(!listed.contains("argon2") && !listed.contains("sesame"), "{listed}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_made_by_those_who_may_share_and_say_what_is_wrong_with_a_wish() {
    let stage = stage().await;
    let post = async |role: Role, wish: Value| {
        let request = stage.http.post(format!("{}{SHARES}", stage.base));
        let request = request.bearer_auth(stage.token(&Caller { role, ..admin() }));
        request.json(&wish).send().await.unwrap().status().as_u16()
    };

    for (role, _) in Role::ALL {
        let expected = if matches!(role, Role::Editor | Role::Admin) { 201 } else { 403 };
        assert_eq!(post(role, json!({ "allows": "edit" })).await, expected, "{role:?}");
    }
    for strange in [
        json!({}),
        json!({ "allows": "delete" }),
        json!({ "allows": "administer" }),
        json!({ "allows": "view", "password": "short" }),
        json!({ "allows": "view", "expires_hours": 0 }),
        json!({ "allows": "view", "label": "a\nb" }),
        json!({ "allows": "view", "unknown": 1 }),
    ] {
        assert_eq!(post(Role::Admin, strange.clone()).await, 400, "{strange}");
    }
    // A number of another document's link is no link of this one.
    stage.docx("67890").await;
    let path = "/api/v1/documents/67890/shares/1";
    let foreign = stage.request(Method::DELETE, path).send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_makes_lists_and_revokes_links() {
    let stage = stage().await;
    let password = stage.folder().join("password");
    std::fs::write(&password, "open sesame\n").unwrap();
    let run = async |arguments: Vec<String>| {
        let config = stage.app().config.clone();
        let running = tokio::task::spawn_blocking(move || {
            saveguard(&config, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        });
        running.await.unwrap()
    };
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();

    let mut create =
        words("share create 12345 --allows comment --label auditors --expires-hours 48 --no-download");
    create.extend(["--password-file".to_owned(), password.display().to_string()]);
    let made = run(create).await;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let link = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let token = link.rsplit('/').next().unwrap().to_owned();
    assert!(link.starts_with(&format!("{}/s/sgl_", stage.base)), "{link}");
    let (status, view) = open(&stage, &token, &json!({ "password": "open sesame" })).await;
    assert_eq!(status, StatusCode::OK, "{view}");
    assert_eq!(view["config"]["document"]["permissions"]["comment"], true);
    let listed = line_of(&run(words("share list 12345 --json")).await);
    assert_eq!((&listed[0]["uses"], &listed[0]["may_download"]), (&json!(1), &json!(false)));
    let table = String::from_utf8(run(words("share list 12345")).await.stdout).unwrap();
    assert!(table.contains("comment") && table.contains("auditors"), "{table}");
    assert!(run(words("share revoke 1")).await.status.success());
    assert_eq!(open(&stage, &token, &json!({ "password": "open sesame" })).await.0, StatusCode::NOT_FOUND);
    for strange in [
        "share revoke 99",
        "share create missing",
        "share create ../x",
        "share create 12345 --expires-hours 0",
    ] {
        assert_eq!(run(words(strange)).await.status.code(), Some(2), "{strange}");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_types_in_a_browser_and_is_shown_out_when_the_link_is_revoked() {
    let stage = stage().await;
    let wish = json!({ "allows": "edit", "password": "open sesame" });
    let (token, number) = share(&stage, &wish).await;
    let browser = Browser::start().await;

    browser.client.goto(&format!("{}/s/{token}", stage.base)).await.unwrap();
    browser.read("#door h1", "A document was shared with you").await;
    browser.see("#guest-name").await.send_keys("Gus").await.unwrap();
    browser.see("#password").await.send_keys("wrong password").await.unwrap();
    browser.see("#enter").await.click().await.unwrap();
    browser.read("#trouble-text", "password").await;
    browser.picture("guest-door").await;
    let password = browser.see("#password").await;
    password.clear().await.unwrap();
    password.send_keys("open sesame").await.unwrap();
    browser.see("#enter").await.click().await.unwrap();
    browser.enter_editor().await;
    let paragraph = browser.see("[data-p]:last-of-type").await;
    paragraph.click().await.unwrap();
    paragraph.send_keys(" Typed by a guest.").await.unwrap();
    wait_for_presence(&stage, 1).await;
    browser.see("#us-save").await.click().await.unwrap();
    stage.wait_for_head("12345", "1.1").await;
    browser.picture("guest-editor").await;
    revoke(&stage, number).await;
    browser.see("body[data-state=read-only]").await;

    stage.wait_for_head("12345", "2").await;
    assert!(stage.text("12345").await.contains("Typed by a guest."));
    let newest = stage.get("/api/v1/documents/12345/versions").await[0].clone();
    assert_eq!(newest["author_name"], "Gus (guest)");
    browser.client.goto(&format!("{}/s/{token}", stage.base)).await.unwrap();
    browser.read("main h1", "This link does not work").await;
    assert!(browser.client.find(Locator::Css("#door")).await.is_err());
    browser.stop().await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_while_a_guest_is_being_seated_keeps_them_out() {
    let stage = stage().await;
    let (token, number) = share(&stage, &json!({ "allows": "edit" })).await;
    let (_, view) = open(&stage, &token, &json!({})).await;
    let key = EditorKey::parse(view["key"].as_str().unwrap()).unwrap();

    revoke(&stage, number).await;

    let app = stage.app();
    let session = ledger::shares::GuestSession { share: number, guest: 1, key, until: app.now() };
    assert!(!app.ledger.seat_guest(&session, app.now()).await.unwrap());
    stage.stop().await;
}
