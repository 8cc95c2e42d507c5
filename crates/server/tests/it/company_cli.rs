//! `saveguard company`, `project` and `token`, beside a running service.

use std::process::Output;

use serde_json::json;

use crate::cli::{json as line_of, saveguard};
use crate::support::Stage;

pub(crate) async fn run(stage: &Stage, arguments: &[&str]) -> Output {
    let config = stage.app().config.clone();
    let arguments: Vec<String> = arguments.iter().map(|each| (*each).to_owned()).collect();
    let running = tokio::task::spawn_blocking(move || {
        saveguard(&config, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    });
    running.await.unwrap()
}

pub(crate) async fn expect(stage: &Stage, arguments: &[&str]) -> Output {
    let output = run(stage, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

pub(crate) async fn refused(stage: &Stage, arguments: &[&str]) -> String {
    let output = run(stage, arguments).await;
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn companies_and_projects_are_made_listed_renamed_and_limited() {
    let stage = Stage::start().await;

    expect(&stage, &["company", "create", "zeta", "--name", "Zeta", "--documents", "3"]).await;
    expect(&stage, &["company", "rename", "zeta", "Zeta & Co"]).await;
    expect(&stage, &["project", "create", "zeta", "plans"]).await;
    expect(&stage, &["project", "rename", "zeta", "plans", "Plans"]).await;
    let listed = line_of(&expect(&stage, &["company", "list", "--json"]).await);
    let projects = line_of(&expect(&stage, &["project", "list", "zeta", "--json"]).await);

    assert_eq!((&listed[1]["id"], &listed[1]["name"]), (&json!("zeta"), &json!("Zeta & Co")));
    assert_eq!(listed[1]["quota"], json!({ "documents": 3, "bytes": null }));
    assert_eq!((&projects[0]["id"], &projects[0]["name"]), (&json!("plans"), &json!("Plans")));
    assert_eq!(stage.get("/api/v1/companies/zeta").await["name"], "Zeta & Co");
    expect(&stage, &["company", "quota", "zeta", "--bytes", "100"]).await;
    let quota = json!({ "documents": null, "bytes": 100 });
    assert_eq!(stage.get("/api/v1/companies/zeta").await["quota"], quota);
    let table = String::from_utf8(expect(&stage, &["company", "list"]).await.stdout).unwrap();
    assert!(
        table.contains("COMPANY") && table.contains("0 of 100") && table.contains("Zeta & Co"),
        "{table}"
    );
    let projects = String::from_utf8(expect(&stage, &["project", "list", "zeta"]).await.stdout).unwrap();
    assert!(projects.contains("plans") && projects.contains("Plans"), "{projects}");
    for (arguments, expected) in [
        (["company", "create", "zeta"].as_slice(), "exists already"),
        (&["company", "create", "../x"], "not an id"),
        (&["company", "rename", "missing", "x"], "not in the ledger"),
        (&["company", "rename", "zeta", " "], "A name needs"),
        (&["project", "create", "missing", "x"], "not in the ledger"),
        (&["project", "list", "missing"], "there is no company"),
    ] {
        let words = refused(&stage, arguments).await;
        assert!(words.contains(expected), "{arguments:?}: {words}");
    }
    let verified = line_of(&expect(&stage, &["verify", "--json"]).await);
    assert_eq!(verified["clean"], true, "{verified}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_made_on_the_command_line_counts_at_once_and_so_does_its_revocation() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let create = ["token", "create", "--name", "export", "--role", "viewer", "--company", "acme"];

    let made = expect(&stage, &create).await;
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();

    let read = async || {
        let request = stage.http.get(format!("{}/api/v1/documents/12345", stage.base)).bearer_auth(&token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(read().await, 200);
    let listed = line_of(&expect(&stage, &["token", "list", "--json"]).await);
    assert_eq!((&listed[0]["name"], &listed[0]["companies"]), (&json!("export"), &json!(["acme"])));
    assert_eq!((&listed[0]["created_by"], &listed[0]["revoked_at"]), (&json!("saveguard-cli"), &json!(null)));
    expect(&stage, &["token", "revoke", &listed[0]["number"].to_string()]).await;
    assert_eq!(read().await, 401);

    let everything = [
        "token",
        "create",
        "--name",
        "all",
        "--role",
        "admin",
        "--company",
        "*",
        "--expires-days",
        "1",
        "--json",
    ];
    let all = line_of(&expect(&stage, &everything).await);
    assert_eq!(all["details"]["companies"], json!(["*"]));
    let table = String::from_utf8(expect(&stage, &["token", "list"]).await.stdout).unwrap();
    assert!(table.contains("revoked") && !table.contains("sg_"), "{table}");
    for (arguments, expected) in [
        (["token", "create", "--name", "x", "--role", "root", "--company", "acme"].as_slice(), "no role"),
        (
            &["token", "create", "--name", "x", "--role", "viewer", "--company", "missing"],
            "not in the ledger",
        ),
        (&["token", "create", "--name", "", "--role", "viewer", "--company", "acme"], "A name needs"),
        (&["token", "revoke", "999"], "not in the ledger"),
    ] {
        let words = refused(&stage, arguments).await;
        assert!(words.contains(expected), "{arguments:?}: {words}");
    }
    stage.stop().await;
}
