//! Every route about organisations and templates x who calls it: the second wall, beside that of companies. The data belong to the
//! organisation `tainted`, and that word is in all of them: it must never come back to anybody who does not act for it.
//!
//! `matrix.rs` fails if a route is in neither of the two matrices.

use std::collections::BTreeSet;

use model::access::{Caller, Companies, Organisations, Role};
use model::{CompanyId, OrganisationId};
use reqwest::Method;
use serde_json::{Value, json};

use crate::submission_matrix;
use crate::support::submissions::KIND;
use crate::support::{Stage, admin};

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    /// Acts for another organisation, with a token of the host application.
    Other,
    /// A program that acts for another organisation.
    OtherApiToken,
    /// An admin of a company, who acts for no organisation.
    CompanyAdmin,
    /// Somebody who calls themselves regulator in a company, and acts for no organisation.
    CompanyRegulator,
    /// Acts for the organisation whose data they are.
    Submitter,
    /// A program that acts for it.
    SubmitterApiToken,
    /// Reads across organisations.
    Regulator,
    /// Looks after the installation.
    Operator,
}

/// What is sent.
pub(crate) enum Sent {
    Nothing,
    Json(Value),
    Text(String),
}

/// What a route must answer.
pub(crate) struct Row {
    method: Method,
    path: &'static str,
    sent: Sent,
    operator: u16,
    regulator: u16,
    submitter: u16,
    /// Who acts for another organisation.
    other: u16,
    /// Who acts for none.
    company: u16,
}

pub(crate) fn row(method: Method, path: &'static str, sent: Sent, statuses: [u16; 5]) -> Row {
    let [operator, regulator, submitter, other, company] = statuses;
    Row { method, path, sent, operator, regulator, submitter, other, company }
}

/// All of them.
fn rows() -> Vec<Row> {
    const SEEN: [u16; 5] = [200, 200, 200, 404, 404];
    const CHANGED: [u16; 5] = [200, 403, 403, 404, 404];
    let get = |path, statuses| row(Method::GET, path, Sent::Nothing, statuses);
    let put = |path, body| row(Method::PUT, path, Sent::Json(body), CHANGED);
    let named = json!({ "name": "tainted too", "number": "tainted" });
    let registered = json!({ "number": "tainted", "title": "tainted", "from": "2026-01-01" });
    vec![
        get("/api/v1/organisations", [200; 5]),
        get("/api/v1/organisations/{organisation}", SEEN),
        put("/api/v1/organisations/{organisation}", named),
        get("/api/v1/organisations/{organisation}/audit", [200, 200, 403, 404, 404]),
        get("/api/v1/organisations/{organisation}/registrations", SEEN),
        get("/api/v1/organisations/{organisation}/registrations/{registration}", SEEN),
        put("/api/v1/organisations/{organisation}/registrations/{registration}", registered),
        get("/api/v1/organisations/{organisation}/registrations/{registration}/accreditations", SEEN),
        put(
            "/api/v1/organisations/{organisation}/registrations/{registration}/accreditations/{accreditation}",
            json!({ "number": "tainted" }),
        ),
        get("/api/v1/organisations/{organisation}/registrations/{registration}/deadlines", SEEN),
        put(
            "/api/v1/organisations/{organisation}/registrations/{registration}/deadlines/{period}",
            json!({ "due": "2026-04-28" }),
        ),
        row(
            Method::DELETE,
            "/api/v1/organisations/{organisation}/registrations/{registration}/deadlines/{period}",
            Sent::Nothing,
            [204, 403, 403, 404, 404],
        ),
        get("/api/v1/templates", [200, 200, 200, 200, 403]),
        row(Method::POST, "/api/v1/templates", Sent::Text(template("9.0")), [201, 403, 403, 403, 403]),
        get("/api/v1/templates/{template}/versions/{template_version}", [200, 200, 200, 200, 403]),
        row(
            Method::POST,
            "/api/v1/templates/{template}/versions/{template_version}/retire",
            Sent::Nothing,
            [204, 403, 403, 403, 403],
        ),
    ]
    .into_iter()
    .chain(submission_matrix::rows())
    .collect()
}

/// A version of the template that is shipped. It belongs to nobody.
pub(crate) fn template(version: &str) -> String {
    let text = sheets::WASTE_RECORDS.replace("version = \"2.1\"", &format!("version = \"{version}\""));
    text.replace("accepts = [\"2.0\", \"2.1\"]", &format!("accepts = [\"{version}\"]"))
}

/// Every route that is in this matrix.
pub(crate) fn listed() -> BTreeSet<(String, String)> {
    let without_query = |path: &str| path.split('?').next().unwrap_or_default().to_owned();
    rows().iter().map(|row| (row.method.to_string(), without_query(row.path))).collect()
}

/// The ids a path is called with.
struct Ids {
    organisation: &'static str,
    registration: &'static str,
    accreditation: &'static str,
    period: &'static str,
}

const TAINTED: Ids = Ids {
    organisation: "tainted",
    registration: "tainted",
    accreditation: "tainted",
    period: "tainted%20Q1",
};
const MISSING: Ids =
    Ids { organisation: "missing", registration: "missing", accreditation: "missing", period: "missing" };

impl Ids {
    fn fill(&self, path: &str) -> String {
        path.replace("{organisation}", self.organisation)
            .replace("{registration}", self.registration)
            .replace("{accreditation}", self.accreditation)
            .replace("{period}", self.period)
            .replace("{template}", "waste-records")
            .replace("{template_version}", "2.1")
            .replace("{log}", submission_matrix::LOG)
            .replace("{number}", "1")
            .replace("{kind}", KIND)
            .replace("{key}", "tainted")
    }
}

pub(crate) fn acting_for(organisations: &[&str], role: Role) -> Caller {
    let ids = organisations.iter().map(|id| OrganisationId::parse(id).unwrap()).collect();
    let companies = Companies::Only(Vec::new());
    Caller { role, companies, organisations: Organisations::Only(ids), ..admin() }
}

struct Theatre {
    stage: Stage,
    bearers: Vec<(Who, Option<String>)>,
}

impl Theatre {
    async fn open() -> Self {
        let stage = Stage::start().await;
        taint(&stage).await;
        let api_token = async |organisation: &str| {
            let wish = json!({ "name": "a program", "role": "submitter", "organisations": [organisation] });
            stage.post("/api/v1/tokens", &wish).await["token"].as_str().unwrap().to_owned()
        };
        let of_company = |role| {
            let companies = Companies::Only(vec![CompanyId::parse("acme").unwrap()]);
            stage.token(&Caller { companies, ..acting_for(&[], role) })
        };
        let regulator = Caller { organisations: Organisations::All, ..acting_for(&[], Role::Regulator) };
        let bearers = vec![
            (Who::Nobody, None),
            (Who::Other, Some(stage.token(&acting_for(&["other"], Role::Submitter)))),
            (Who::OtherApiToken, Some(api_token("other").await)),
            (Who::CompanyAdmin, Some(of_company(Role::Admin))),
            (Who::CompanyRegulator, Some(of_company(Role::Regulator))),
            (Who::Submitter, Some(stage.token(&acting_for(&["tainted"], Role::Submitter)))),
            (Who::SubmitterApiToken, Some(api_token("tainted").await)),
            (Who::Regulator, Some(stage.token(&regulator))),
            (Who::Operator, Some(stage.token(&admin()))),
        ];
        Self { stage, bearers }
    }

    /// Status and everything else of a call.
    async fn call(&self, row: &Row, ids: &Ids, bearer: Option<&str>) -> (u16, String, String) {
        let url = format!("{}{}", self.stage.base, ids.fill(row.path));
        let mut request = self.stage.http.request(row.method.clone(), url);
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        request = match &row.sent {
            Sent::Nothing => request,
            Sent::Json(body) => request.json(body),
            Sent::Text(text) => request.body(text.clone()),
        };
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), format!("{:?}", response.headers()));
        (status, headers, response.text().await.unwrap())
    }
}

/// One of everything, each with the word in it.
async fn taint(stage: &Stage) {
    let put = async |path: &str, body: Value| {
        let response = stage.request(Method::PUT, path).json(&body).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}: {}", response.text().await.unwrap());
    };
    let organisation = "/api/v1/organisations/tainted";
    let registration = format!("{organisation}/registrations/tainted");
    put(organisation, json!({ "name": "tainted" })).await;
    put("/api/v1/organisations/other", json!({})).await;
    put(&registration, json!({ "title": "tainted" })).await;
    put(&format!("{registration}/accreditations/tainted"), json!({})).await;
    put(&format!("{registration}/deadlines/tainted%20Q1"), json!({ "due": "2026-04-28" })).await;
    let added = stage.request(Method::POST, "/api/v1/templates").body(template("2.1")).send().await.unwrap();
    assert_eq!(added.status().as_u16(), 201);
    submission_matrix::taint(stage).await;
}

fn expected(row: &Row, who: Who) -> u16 {
    match who {
        Who::Nobody => 401,
        Who::Other | Who::OtherApiToken => row.other,
        Who::CompanyAdmin | Who::CompanyRegulator => row.company,
        Who::Submitter | Who::SubmitterApiToken => row.submitter,
        Who::Regulator => row.regulator,
        Who::Operator => row.operator,
    }
}

fn is_foreign(who: Who) -> bool {
    !matches!(who, Who::Submitter | Who::SubmitterApiToken | Who::Regulator | Who::Operator)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_about_organisations_answers_each_caller_as_it_must() {
    let theatre = Theatre::open().await;
    for row in rows() {
        for (who, bearer) in &theatre.bearers {
            let at = format!("{} {} called by {who:?}", row.method, row.path);
            let (status, headers, body) = theatre.call(&row, &TAINTED, bearer.as_deref()).await;

            assert_eq!(status, expected(&row, *who), "{at}: {body}");
            let is_told = body.contains("tainted") || headers.contains("tainted");
            assert!(!is_foreign(*who) || !is_told, "{at} tells what is not theirs: {body}");
        }
    }
    theatre.stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_organisation_looks_exactly_like_a_missing_one() {
    let theatre = Theatre::open().await;
    let without_instance = |body: &str| {
        let mut problem: Value = serde_json::from_str(body).unwrap();
        problem.as_object_mut().map(|problem| problem.remove("instance"));
        problem
    };
    let foreign = theatre.bearers.iter().filter(|(who, _)| is_foreign(*who) && *who != Who::Nobody);
    for (who, bearer) in foreign {
        for row in rows().into_iter().filter(|row| row.other == 404) {
            let (status, _, foreign) = theatre.call(&row, &TAINTED, bearer.as_deref()).await;
            let (missing_status, _, missing) = theatre.call(&row, &MISSING, bearer.as_deref()).await;

            let at = format!("{} {} called by {who:?}", row.method, row.path);
            assert_eq!((status, missing_status), (404, 404), "{at}");
            assert_eq!(without_instance(&foreign), without_instance(&missing), "{at}");
        }
    }
    theatre.stage.stop().await;
}
