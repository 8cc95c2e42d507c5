//! Organisations, registrations, accreditations, deadlines and templates over HTTP.

use model::access::{Caller, Companies, Organisations, Role};
use model::{CompanyId, OrganisationId};
use reqwest::Method;
use serde_json::{Value, json};

use crate::organisation_matrix::{acting_for, template};
use crate::support::{Stage, admin};

/// Status and body of a call.
async fn call(stage: &Stage, (method, path): (Method, &str), body: &Value) -> (u16, Value) {
    let response = stage.request(method, path).json(body).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or(Value::Null))
}

async fn put(stage: &Stage, path: &str, body: Value) -> Value {
    let (status, answer) = call(stage, (Method::PUT, path), &body).await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

async fn add(stage: &Stage, text: String) -> (u16, Value) {
    let response = stage.request(Method::POST, "/api/v1/templates").body(text).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_an_organisation_is_what_was_put_last() {
    let stage = Stage::start().await;
    let (organisation, registration) =
        ("/api/v1/organisations/o1", "/api/v1/organisations/o1/registrations/r1");

    put(&stage, organisation, json!({ "name": "One", "number": "50001" })).await;
    let first =
        put(&stage, registration, json!({ "number": "R/1", "material": "glass", "until": "2026-12-31" }))
            .await;
    let second = put(&stage, registration, json!({ "number": "R/1", "title": "Glass" })).await;
    let accreditation = format!("{registration}/accreditations/a1");
    put(&stage, &accreditation, json!({ "number": "A/1", "from": "2026-01-01", "until": null })).await;
    put(&stage, &format!("{registration}/deadlines/2026%20Q1"), json!({ "due": "2026-04-30" })).await;
    put(
        &stage,
        &format!("{registration}/deadlines/2026%20Q1"),
        json!({ "due": "2026-04-28", "opens": "2026-04-01" }),
    )
    .await;

    assert_eq!((&first["title"], &first["until"]), (&json!("r1"), &json!("2026-12-31")));
    assert_eq!((&second["material"], &second["until"]), (&Value::Null, &Value::Null));
    assert_eq!(second["created_at"], first["created_at"]);
    assert_eq!(stage.get(registration).await, second);
    assert_eq!(stage.get("/api/v1/organisations/o1/registrations").await, json!([second]));
    assert_eq!(stage.get(organisation).await["number"], "50001");
    let accreditations = stage.get(&format!("{registration}/accreditations")).await;
    assert_eq!(
        (&accreditations[0]["number"], &accreditations[0]["from"]),
        (&json!("A/1"), &json!("2026-01-01"))
    );
    let deadlines = stage.get(&format!("{registration}/deadlines")).await;
    assert_eq!(deadlines, json!([{ "period": "2026 Q1", "opens": "2026-04-01", "due": "2026-04-28" }]));
    let gone = stage.request(Method::DELETE, &format!("{registration}/deadlines/2026%20Q1")).send();
    assert_eq!(gone.await.unwrap().status().as_u16(), 204);
    assert_eq!(stage.get(&format!("{registration}/deadlines")).await, json!([]));
    let chain = stage.app().ledger.audit("organisation:o1", 0, 100).await.unwrap();
    let acts: Vec<&str> = chain.iter().map(|(entry, _)| entry.action.as_str()).collect();
    let expected = [
        "organisation-created",
        "registration-created",
        "registration-changed",
        "accreditation-created",
        "deadline-set",
        "deadline-changed",
        "deadline-removed",
    ];
    assert_eq!(acts, expected);
    assert!(chain.iter().all(|(entry, _)| entry.actor == "root"));
    let moved = stage.get("/api/v1/organisations/o1/audit?action=deadline-changed").await;
    assert_eq!(moved["entries"][0]["details"]["before"]["due"], "2026-04-30", "{moved}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_in_words() {
    let stage = Stage::start().await;
    let registration = "/api/v1/organisations/o1/registrations/r1";
    put(&stage, "/api/v1/organisations/o1", json!({})).await;
    put(&stage, registration, json!({ "number": "R/1" })).await;

    for (path, body, status, code, words) in [
        ("/api/v1/organisations/o1", json!({ "name": " " }), 400, "API_004", "A name needs"),
        ("/api/v1/organisations/o1", json!({ "number": "a\nb" }), 400, "API_004", "`number`"),
        ("/api/v1/organisations/o1", json!({ "nmae": "x" }), 400, "API_004", "unknown field"),
        ("/api/v1/organisations/..%2Fx", json!({}), 400, "DOC_007", "not an id"),
        ("/api/v1/organisations/nobody/registrations/r1", json!({}), 404, "API_001", "no such thing"),
        ("/api/v1/organisations/o1/registrations/r2", json!({ "number": "R/1" }), 409, "API_006", "`R/1`"),
        (registration, json!({ "from": "1.4.2026" }), 400, "API_004", "`from`"),
        (registration, json!({ "from": "2026-04-02", "until": "2026-04-01" }), 400, "API_004", "after"),
        (registration, json!({ "template": "nothing" }), 422, "SUB_022", "`nothing`"),
        ("/api/v1/organisations/o1/registrations/r9/accreditations/a1", json!({}), 404, "API_001", "no such"),
        (
            "/api/v1/organisations/o1/registrations/r1/deadlines/Q1",
            json!({ "due": "soon" }),
            400,
            "API_004",
            "`due`",
        ),
        (
            "/api/v1/organisations/o1/registrations/r1/deadlines/%0A",
            json!({ "due": "2026-04-28" }),
            400,
            "API_004",
            "period",
        ),
        (
            "/api/v1/organisations/o1/registrations/r1/deadlines/Q1",
            json!({ "due": "2026-04-28", "opens": "2026-04-29" }),
            400,
            "API_004",
            "after",
        ),
    ] {
        let (answered, problem) = call(&stage, (Method::PUT, path), &body).await;
        assert_eq!((answered, problem["code"].as_str()), (status, Some(code)), "{path} {body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{path} {body}: {problem}");
    }
    let missing =
        stage.request(Method::DELETE, &format!("{registration}/deadlines/Q9")).send().await.unwrap();
    assert_eq!(missing.status().as_u16(), 404);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submitter_lists_their_own_organisations_and_a_regulator_all_page_by_page() {
    let stage = Stage::start().await;
    for id in ["o1", "o2", "o3"] {
        put(&stage, &format!("/api/v1/organisations/{id}"), json!({})).await;
    }
    let listed = async |caller: &Caller, query: &str| {
        let request = stage.http.get(format!("{}/api/v1/organisations{query}", stage.base));
        let answer: Value =
            request.bearer_auth(stage.token(caller)).send().await.unwrap().json().await.unwrap();
        answer
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };

    let submitter = acting_for(&["o3", "o1", "unknown", "o1"], Role::Submitter);
    let regulator = Caller { organisations: Organisations::All, ..acting_for(&[], Role::Regulator) };

    assert_eq!(listed(&submitter, "").await, ["o1", "o3"]);
    assert_eq!(listed(&submitter, "?limit=1").await, ["o1"]);
    assert_eq!(listed(&submitter, "?after=o1").await, ["o3"]);
    assert_eq!(listed(&regulator, "").await, ["o1", "o2", "o3"]);
    assert_eq!(listed(&regulator, "?after=o1&limit=1").await, ["o2"]);
    assert_eq!(listed(&admin(), "").await, ["o1", "o2", "o3"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_added_once_assigned_and_retired() {
    let stage = Stage::start().await;
    put(&stage, "/api/v1/organisations/o1", json!({})).await;

    let (added, view) = add(&stage, template("2.9")).await;
    let (again, _) = add(&stage, template("2.9")).await;
    let (taken, problem) = add(&stage, template("2.9") + "# changed\n").await;
    add(&stage, template("2.10")).await;

    assert_eq!((added, again, taken), (201, 200, 409), "{view} {problem}");
    assert_eq!(problem["code"], "SUB_021");
    let versions = stage.get("/api/v1/templates").await;
    assert_eq!((&versions[0]["version"], &versions[1]["version"]), (&json!("2.10"), &json!("2.9")));
    let text =
        stage.request(Method::GET, "/api/v1/templates/waste-records/versions/2.9").send().await.unwrap();
    assert_eq!(text.headers()["content-type"], "application/toml");
    assert_eq!(text.text().await.unwrap(), template("2.9"));
    let registration = "/api/v1/organisations/o1/registrations/r1";
    put(&stage, registration, json!({ "template": "waste-records" })).await;
    for version in ["2.9", "2.10", "2.10"] {
        let path = format!("/api/v1/templates/waste-records/versions/{version}/retire");
        assert_eq!(stage.request(Method::POST, &path).send().await.unwrap().status().as_u16(), 204);
    }
    let (refused, problem) = call(
        &stage,
        (Method::PUT, "/api/v1/organisations/o1/registrations/r2"),
        &json!({ "template": "waste-records" }),
    )
    .await;
    assert_eq!((refused, &problem["code"]), (422, &json!("SUB_022")));
    let renamed = put(&stage, registration, json!({ "template": "waste-records", "title": "Glass" })).await;
    assert_eq!(renamed["template"], "waste-records", "what was assigned stays assigned");
    for path in ["/api/v1/templates/waste-records/versions/3", "/api/v1/templates/none/versions/1"] {
        assert_eq!(call(&stage, (Method::GET, path), &Value::Null).await.0, 404);
        assert_eq!(call(&stage, (Method::POST, &format!("{path}/retire")), &Value::Null).await.0, 404);
    }
    assert_eq!(call(&stage, (Method::GET, "/api/v1/templates/x/versions/01"), &Value::Null).await.0, 400);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_mistakes_is_refused_with_all_of_them() {
    let stage = Stage::start().await;
    let broken =
        template("2.1").replace("type = \"yes-no\"", "type = \"maybe\"").replace("scale = 4", "scale = 99");

    let (status, problem) = add(&stage, broken).await;

    assert_eq!((status, &problem["code"]), (422, &json!("SUB_020")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.lines().count() >= 3 && detail.contains("line "), "{detail}");
    assert_eq!(stage.get("/api/v1/templates").await, json!([]));
    for (body, expected) in
        [(vec![0xff, 0xfe], 400), (vec![b'#'; 4 * 1024 * 1024 + 1], 413), (Vec::new(), 422)]
    {
        let sent = stage.request(Method::POST, "/api/v1/templates").body(body).send().await.unwrap();
        assert_eq!(sent.status().as_u16(), expected);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_makes_a_token_for_an_organisation_they_do_not_act_for() {
    let stage = Stage::start().await;
    put(&stage, "/api/v1/organisations/o1", json!({})).await;
    let acme = Companies::Only(vec![CompanyId::parse("acme").unwrap()]);
    let organisations = Organisations::Only(vec![OrganisationId::parse("o1").unwrap()]);
    let company_admin = Caller { companies: acme, organisations, ..admin() };
    let made = async |caller: &Caller, companies: Value, organisations: Value| {
        let wish = json!({ "name": "x", "role": "submitter", "companies": companies, "organisations": organisations });
        let request =
            stage.http.post(format!("{}/api/v1/tokens", stage.base)).bearer_auth(stage.token(caller));
        let response = request.json(&wish).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };

    assert_eq!(made(&company_admin, json!(["acme"]), json!(["o1"])).await.0, 201);
    assert_eq!(made(&company_admin, json!(["acme"]), json!(["o1", "o2"])).await.0, 404);
    assert_eq!(made(&company_admin, json!(["acme"]), json!(["*"])).await.0, 404);
    assert_eq!(made(&company_admin, json!([]), json!(["o1"])).await.0, 403);
    assert_eq!(made(&admin(), json!([]), json!([])).await.0, 400);
    let (status, token) = made(&admin(), json!([]), json!(["o1"])).await;
    assert_eq!(status, 201, "{token}");

    let bearer = token["token"].as_str().unwrap();
    let own = stage.http.get(format!("{}/api/v1/organisations/o1", stage.base)).bearer_auth(bearer).send();
    assert_eq!(own.await.unwrap().status().as_u16(), 200);
    let companies =
        stage.http.get(format!("{}/api/v1/companies/acme", stage.base)).bearer_auth(bearer).send();
    assert_eq!(companies.await.unwrap().status().as_u16(), 404);
    let seen = stage
        .http
        .get(format!("{}/api/v1/tokens", stage.base))
        .bearer_auth(stage.token(&company_admin))
        .send();
    assert_eq!(seen.await.unwrap().json::<Value>().await.unwrap().as_array().unwrap().len(), 1);
    let trail = stage.app().ledger.audit("saveguard:installation", 0, 100).await.unwrap();
    assert!(trail.iter().any(|(entry, _)| entry.action == "token-created" && entry.details.contains("o1")));
    stage.stop().await;
}
