//! Every route x who calls it. The data belong to the company `tainted`, and that word is in all of them: it must never come
//! back to anybody else.
//!
//! A route that is listed neither here nor in `organisation_matrix` fails the test, so that nobody adds one without saying who
//! may call it.

use std::collections::BTreeSet;

use model::access::{Caller, Companies, Role};
use model::{CompanyId, DocumentId};
use reqwest::Method;
use saveguard::http::openapi;
use serde_json::{Value, json};

use crate::organisation_matrix;
use crate::support::{Stage, admin};

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    /// An admin of another company, with a token of the host application.
    Other,
    /// A program with an API token of another company, as admin.
    OtherApiToken,
    /// A viewer of the company whose data they are.
    Viewer,
    /// A viewer's API token of that company.
    ViewerApiToken,
    /// Its admin.
    Admin,
    /// A guest with a share link of one of its documents, who tries the link's token as a bearer token too.
    Link,
}

/// What a route must answer.
struct Row {
    method: Method,
    path: &'static str,
    body: Value,
    /// Its own admin.
    admin: u16,
    /// Its own viewer.
    viewer: u16,
    /// Admins of another company.
    other: u16,
    nobody: u16,
    /// Whoever has a share link: what nobody gets, but where the token is in the path.
    link: u16,
}

fn row(method: Method, path: &'static str, body: Value, [admin, viewer, other]: [u16; 3]) -> Row {
    Row { method, path, body, admin, viewer, other, nobody: 401, link: 401 }
}

/// A route of guests. The token in its path is what counts: all others call it with one that does not exist.
fn guests(row: Row, link: u16) -> Row {
    Row { nobody: 404, link, ..row }
}

/// The whole interface.
fn rows() -> Vec<Row> {
    let get = |path, statuses| row(Method::GET, path, Value::Null, statuses);
    let post = |path, body, statuses| row(Method::POST, path, body, statuses);
    let open = |row: Row, nobody| Row { nobody, link: nobody, ..row };
    let named = json!({ "id": "tainted-new", "name": "tainted" });
    let new_name = json!({ "name": "tainted too" });
    let new_token = json!({ "name": "tainted", "role": "viewer", "companies": ["tainted"] });
    let mention = json!({ "emails": ["tainted@example.org"], "message": "tainted" });
    let save_as = json!({ "url": "http://tainted.example/x", "title": "tainted", "file_type": "txt" });
    vec![
        get("/api/v1/companies", [200, 200, 200]),
        post("/api/v1/companies", named.clone(), [403, 403, 403]),
        get("/api/v1/companies/{company}", [200, 200, 404]),
        row(Method::PATCH, "/api/v1/companies/{company}", new_name.clone(), [200, 403, 404]),
        row(Method::PUT, "/api/v1/companies/{company}/quota", json!({}), [403, 403, 404]),
        get("/api/v1/companies/{company}/projects", [200, 200, 404]),
        post("/api/v1/companies/{company}/projects", named, [201, 403, 404]),
        row(Method::PATCH, "/api/v1/companies/{company}/projects/{project}", new_name, [200, 403, 404]),
        get("/api/v1/companies/{company}/documents", [200, 200, 404]),
        post("/api/v1/companies/{company}/projects/{project}/documents", Value::Null, [201, 403, 404]),
        get("/api/v1/documents/{document}", [200, 200, 404]),
        get("/api/v1/documents/{document}/versions", [200, 200, 404]),
        get("/api/v1/documents/{document}/history", [200, 200, 404]),
        get("/api/v1/documents/{document}/history/{version}", [200, 200, 404]),
        post("/api/v1/documents/{document}/rename", json!({ "name": "tainted too.txt" }), [200, 403, 404]),
        // The link is looked at only after the caller may edit.
        post("/api/v1/documents/{document}/save-as", save_as, [400, 403, 404]),
        get("/api/v1/documents/{document}/users?kind=mention", [200, 403, 404]),
        post("/api/v1/documents/{document}/mentions", mention, [201, 403, 404]),
        get("/api/v1/documents/{document}/content", [200, 200, 404]),
        get("/api/v1/documents/{document}/download", [200, 200, 404]),
        // Without `If-Match`, which is asked for only after the caller may edit.
        row(Method::PUT, "/api/v1/documents/{document}/content", json!("tainted"), [428, 403, 404]),
        post("/api/v1/documents/{document}/versions/{version}/restore", json!({}), [200, 403, 404]),
        get("/api/v1/documents/{document}/versions/{version}/receipt", [200, 200, 404]),
        get("/api/v1/documents/{document}/diff", [200, 200, 404]),
        get("/api/v1/documents/{document}/audit", [200, 403, 404]),
        get("/api/v1/companies/{company}/audit", [200, 403, 404]),
        get("/api/v1/documents/{document}/summary-logs", [200, 200, 404]),
        get("/api/v1/documents/{document}/kept", [200, 200, 404]),
        get("/api/v1/documents/{document}/kept/{number}/content", [200, 200, 404]),
        post("/api/v1/documents/{document}/kept/{number}/use", Value::Null, [200, 403, 404]),
        post("/api/v1/documents/{document}/kept/{number}/dismiss", Value::Null, [204, 403, 404]),
        get("/api/v1/documents/{document}/shares", [200, 403, 404]),
        post("/api/v1/documents/{document}/shares", json!({ "allows": "edit" }), [201, 403, 404]),
        row(Method::DELETE, "/api/v1/documents/{document}/shares/{number}", Value::Null, [204, 403, 404]),
        guests(get("/api/v1/shares/{token}", [404, 404, 404]), 200),
        guests(post("/api/v1/shares/{token}/open", json!({}), [404, 404, 404]), 200),
        // Without the ticket one gets for opening.
        guests(get("/api/v1/shares/{token}/download", [404, 404, 404]), 403),
        row(Method::DELETE, "/api/v1/documents/{document}", Value::Null, [204, 403, 404]),
        post("/api/v1/documents/{document}/undelete", Value::Null, [200, 403, 404]),
        post("/api/v1/documents/{document}/editor-config", json!({ "mode": "edit" }), [200, 403, 404]),
        get("/api/v1/documents/{document}/sessions", [200, 200, 404]),
        get("/api/v1/documents/{document}/events", [200, 200, 404]),
        get("/api/v1/tokens", [200, 403, 200]),
        post("/api/v1/tokens", new_token, [201, 403, 404]),
        row(Method::DELETE, "/api/v1/tokens/{number}", Value::Null, [204, 403, 404]),
        // The Document Server's: they ask for tokens of their own, and no caller's token is one.
        open(post("/callback/{document}", json!({ "key": "tainted", "status": 2 }), [403, 403, 403]), 403),
        open(get("/stream/{document}", [403, 403, 403]), 403),
        open(get("/stream/{document}/changes", [403, 403, 403]), 403),
        // An outside uploader's: the signature counts, and no caller's token is one.
        open(row(Method::PUT, "/api/v1/uploads/{sha256}", json!("tainted"), [403, 403, 403]), 403),
        open(post("/api/v1/upload-notices", json!({ "upload_id": "tainted" }), [403, 403, 403]), 403),
        // Nobody's.
        open(get("/healthz", [200, 200, 200]), 200),
        open(get("/readyz", [200, 200, 200]), 200),
    ]
    .into_iter()
    .chain(operations())
    .collect()
}

/// What those who look after the installation ask.
fn operations() -> Vec<Row> {
    let get = |path, statuses| row(Method::GET, path, Value::Null, statuses);
    let post = |path, body, statuses| row(Method::POST, path, body, statuses);
    vec![
        get("/api/v1/operations/sessions", [403, 403, 403]),
        get("/api/v1/operations/drain", [403, 403, 403]),
        post("/api/v1/operations/drain", json!({}), [403, 403, 403]),
        get("/api/v1/operations/examination", [403, 403, 403]),
        post("/api/v1/operations/examination", json!({}), [403, 403, 403]),
        get("/api/v1/operations/pulse", [403, 403, 403]),
        get("/api/v1/operations/instances", [403, 403, 403]),
        get("/api/v1/operations/webhooks", [403, 403, 403]),
        post("/api/v1/operations/webhooks/{number}/retry", json!({}), [403, 403, 403]),
        get("/api/v1/operations/submissions", [403, 403, 403]),
        post("/api/v1/operations/submissions/{log}/retry", Value::Null, [403, 403, 403]),
        post("/api/v1/operations/submissions/{log}/release", Value::Null, [403, 403, 403]),
        get("/api/v1/operations/lanes", [403, 403, 403]),
        get("/api/v1/operations/status", [403, 403, 403]),
        get("/api/v1/operations/orphans", [403, 403, 403]),
        get("/api/v1/operations/orphans/{number}/content", [403, 403, 403]),
        post("/api/v1/operations/orphans/{number}/dismiss", Value::Null, [403, 403, 403]),
        post("/api/v1/operations/prune", json!({}), [403, 403, 403]),
        get("/metrics", [403, 403, 403]),
    ]
}

/// The pages, which the OpenAPI document does not describe.
fn pages() -> Vec<Row> {
    let get = |path, statuses| row(Method::GET, path, Value::Null, statuses);
    vec![
        get("/", [200, 200, 200]),
        get("/document/{document}", [200, 200, 404]),
        get("/edit/{document}", [200, 403, 404]),
        get("/view/{document}", [200, 200, 404]),
        guests(get("/s/{token}", [404, 404, 404]), 200),
    ]
}

/// Everything that can be called, as the server describes it.
fn described() -> BTreeSet<(String, String)> {
    let description = serde_json::to_value(openapi()).unwrap();
    let paths = description["paths"].as_object().unwrap();
    let methods = ["get", "put", "post", "delete", "patch", "head", "options", "trace"];
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = methods.iter().filter(|method| item.get(**method).is_some());
        methods.map(|method| (method.to_uppercase(), path.clone()))
    });
    operations.collect()
}

/// The ids a path is called with.
struct Ids {
    company: &'static str,
    project: &'static str,
    document: &'static str,
    kept: u64,
    token: u64,
    share: u64,
    /// The token of a share link.
    link: String,
}

const MISSING: Ids = Ids {
    company: "missing",
    project: "missing",
    document: "missing-1",
    kept: 999_999,
    token: 999_999,
    share: 999_999,
    link: String::new(),
};
/// A token that no share link has.
const NO_LINK: &str = "sgl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

impl Ids {
    fn fill(&self, path: &str) -> String {
        let number = match path {
            path if path.contains("/tokens/") => self.token,
            path if path.contains("/shares/") => self.share,
            _ => self.kept,
        };
        path.replace("{company}", self.company)
            .replace("{project}", self.project)
            .replace("{document}", self.document)
            .replace("{number}", &number.to_string())
            .replace("{version}", "1")
            .replace("{token}", if self.link.is_empty() { NO_LINK } else { &self.link })
    }

    fn body(&self, body: &Value) -> Value {
        let mut body = body.clone();
        if body.get("companies").is_some() {
            body["companies"] = json!([self.company]);
        }
        body
    }
}

struct Theatre {
    stage: Stage,
    /// As members of the company call it.
    tainted: Ids,
    /// As a guest with one of its share links calls it.
    shared: Ids,
    bearers: Vec<(Who, Option<String>)>,
}

fn of(company: &str, role: Role) -> Caller {
    Caller { role, companies: Companies::Only(vec![CompanyId::parse(company).unwrap()]), ..admin() }
}

impl Theatre {
    async fn open() -> Self {
        let stage = Stage::start().await;
        stage.docx("12345").await;
        let tainted = taint(&stage).await;
        let link = share(&stage).await.0;
        let shared = Ids { link: link.clone(), ..taint_again(&tainted) };
        let api_token = async |company: &str, role: &str| {
            let wish =
                json!({ "name": format!("{company}'s program"), "role": role, "companies": [company] });
            stage.post("/api/v1/tokens", &wish).await["token"].as_str().unwrap().to_owned()
        };
        let bearers = vec![
            (Who::Nobody, None),
            (Who::Other, Some(stage.token(&of("acme", Role::Admin)))),
            (Who::OtherApiToken, Some(api_token("acme", "admin").await)),
            (Who::Viewer, Some(stage.token(&of("tainted", Role::Viewer)))),
            (Who::ViewerApiToken, Some(api_token("tainted", "viewer").await)),
            (Who::Admin, Some(stage.token(&of("tainted", Role::Admin)))),
            (Who::Link, Some(link)),
        ];
        Self { stage, tainted, shared, bearers }
    }

    fn ids_for(&self, who: Who) -> &Ids {
        if who == Who::Link { &self.shared } else { &self.tainted }
    }

    /// Status, headers and body of a call.
    async fn call(&self, row: &Row, ids: &Ids, bearer: Option<&str>) -> (u16, String, Vec<u8>) {
        let url = format!("{}{}", self.stage.base, ids.fill(row.path));
        let mut request = self.stage.http.request(row.method.clone(), url);
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        if row.path.ends_with("/documents") && row.method == Method::POST {
            let query = [("name", "tainted.txt"), ("id", "tainted-new")];
            request = request.query(&query).body("tainted");
        } else if row.path.ends_with("/events") {
            // Otherwise it would not end.
            request = request.query(&[("once", "true")]);
        } else if !row.body.is_null() {
            request = request.json(&ids.body(&row.body));
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), format!("{:?}", response.headers()));
        let body = response.bytes().await.unwrap().to_vec();
        if row.path.starts_with("/api/") {
            return (status, headers, body);
        }
        let asked = ids.fill(row.path);
        let page = without_echo(String::from_utf8_lossy(&body).into_owned(), &asked);
        (status, without_echo(headers, &asked), page.into_bytes())
    }
}

/// A company with one of everything, each with the word in it.
async fn taint(stage: &Stage) -> Ids {
    let named = json!({ "id": "tainted", "name": "tainted" });
    stage.post("/api/v1/companies", &named).await;
    stage.post("/api/v1/companies/tainted/projects", &named).await;
    let upload = stage
        .request(Method::POST, "/api/v1/companies/tainted/projects/tainted/documents")
        .query(&[("id", "tainted-1"), ("name", "tainted.txt")])
        .body("tainted")
        .send();
    assert_eq!(upload.await.unwrap().status().as_u16(), 201);
    let wish = json!({ "name": "tainted", "role": "editor", "companies": ["tainted"] });
    let token = stage.post("/api/v1/tokens", &wish).await["details"]["number"].as_u64().unwrap();
    Ids {
        company: "tainted",
        project: "tainted",
        document: "tainted-1",
        kept: keep(stage).await,
        token,
        share: share(stage).await.1,
        link: String::new(),
    }
}

fn taint_again(ids: &Ids) -> Ids {
    Ids { link: String::new(), ..*ids }
}

/// The token and the number of a new share link.
async fn share(stage: &Stage) -> (String, u64) {
    let wish = json!({ "allows": "edit", "label": "tainted" });
    let made = stage.post("/api/v1/documents/tainted-1/shares", &wish).await;
    (made["token"].as_str().unwrap().to_owned(), made["details"]["number"].as_u64().unwrap())
}

/// A conflict copy.
async fn keep(stage: &Stage) -> u64 {
    let app = stage.app();
    let document = DocumentId::parse("tainted-1").unwrap();
    let mut writer = app.spool.begin();
    writer.write(b"a tainted copy").await.unwrap();
    let spooled = writer.finish().await.unwrap();
    let sidecar = vault::Sidecar::Uploaded { to_become: document.clone() };
    app.vault.put(&spooled, &sidecar).await.unwrap();
    let found = ledger::documents::UnnamedBlob {
        blob: ledger::documents::BlobFacts::plain(spooled.digest, spooled.size_bytes, "txt"),
        document: Some(document),
        key: None,
        is_record_of_changes: false,
        at: app.now(),
    };
    app.ledger.keep_unnamed(&found).await.unwrap().unwrap()
}

fn expected(row: &Row, who: Who) -> u16 {
    match who {
        Who::Nobody => row.nobody,
        Who::Other | Who::OtherApiToken => row.other,
        Who::Viewer | Who::ViewerApiToken => row.viewer,
        Who::Admin => row.admin,
        Who::Link => row.link,
    }
}

fn is_tainted(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).to_lowercase().contains("tainted")
}

/// A page without the address it was asked for: it says it again for the switch of languages and for whoever signs in, and whoever
/// asked knows it.
fn without_echo(text: String, asked: &str) -> String {
    let escapes = ["/", "%2F", "%252F"].map(|slash| asked.replace('/', slash));
    escapes.iter().fold(text, |text, each| if each.len() > 3 { text.replace(each, "") } else { text })
}

/// A problem without the one thing that is new in every answer. Pages have none.
fn without_instance(body: &[u8]) -> String {
    match serde_json::from_slice::<Value>(body) {
        Ok(mut problem) => {
            problem.as_object_mut().map(|problem| problem.remove("instance"));
            problem.to_string()
        }
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

#[test]
fn every_described_route_is_in_the_matrix() {
    let of_companies =
        rows().into_iter().map(|row| (row.method.to_string(), without_query(row.path).to_owned()));
    let listed: BTreeSet<_> = of_companies.chain(organisation_matrix::listed()).collect();

    assert_eq!(described(), listed, "say in `rows` who may call the new route");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_each_caller_as_it_must_and_nothing_of_another_company_comes_back() {
    let theatre = Theatre::open().await;
    for row in rows().into_iter().chain(pages()) {
        for (who, bearer) in &theatre.bearers {
            let at = format!("{} {} called by {who:?}", row.method, row.path);
            let ids = theatre.ids_for(*who);
            let (status, headers, body) = theatre.call(&row, ids, bearer.as_deref()).await;

            assert_eq!(status, expected(&row, *who), "{at}: {}", String::from_utf8_lossy(&body));
            // A guest hears of the one document that was shared, on the routes for guests, and nothing else.
            let is_guest_elsewhere = *who == Who::Link && !row.path.contains("{token}");
            if is_guest_elsewhere || matches!(who, Who::Nobody | Who::Other | Who::OtherApiToken) {
                assert!(
                    !is_tainted(&body) && !is_tainted(headers.as_bytes()),
                    "{at} tells what is not theirs"
                );
            }
        }
    }
    theatre.stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_thing_looks_exactly_like_a_missing_one() {
    let theatre = Theatre::open().await;
    let foreign_callers =
        theatre.bearers.iter().filter(|(who, _)| matches!(who, Who::Other | Who::OtherApiToken));
    for (who, bearer) in foreign_callers {
        for row in rows().into_iter().chain(pages()).filter(|row| row.other == 404) {
            let (status, _, foreign) = theatre.call(&row, &theatre.tainted, bearer.as_deref()).await;
            let (missing_status, _, missing) = theatre.call(&row, &MISSING, bearer.as_deref()).await;

            let at = format!("{} {} called by {who:?}", row.method, row.path);
            assert_eq!((status, missing_status), (404, 404), "{at}");
            assert_eq!(without_instance(&foreign), without_instance(&missing), "{at}");
        }
    }
    theatre.stage.stop().await;
}
