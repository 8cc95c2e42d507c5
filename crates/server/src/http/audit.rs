//! The audit trail over HTTP: pages of entries for people, the whole of it as JSON lines, and receipts of saves.
//!
//! Guarantees: entries tell who did what from where, so only admins and regulators of the company or organisation read them; a receipt tells
//! of one version to whoever may see it. An export that breaks off lacks its last line.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use ledger::trail::{ActPlace, ActsOf, ActsOrder, ActsPage};
use model::access::Permission;
use model::audit::Entry;
use model::{Digest, DocumentId, Label};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::companies::company_id;
use super::extract::{PathOf, QueryOf};
use crate::app::App;
use crate::auditing::{Export, Wanted};

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;
const JSON_LINES: &str = "application/jsonl";

/// An entry of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActView {
    /// Its chain: a document's id, `company:` and a company's, or `organisation:` and an organisation's.
    #[schema(example = "12345")]
    chain: String,
    /// Its number in the chain.
    sequence: u64,
    /// When it was written.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Who: a user's id, `document-server` or `saveguard`.
    actor: String,
    /// From where: an address, `document-server` or `saveguard`; empty if that is not known.
    #[schema(example = "192.0.2.7")]
    from: String,
    /// What.
    #[schema(example = "save-committed")]
    action: String,
    /// What came of it.
    #[schema(example = "version")]
    outcome: String,
    /// The particulars.
    details: Value,
    /// Its hash, which covers all of this and the hash before it.
    hash: String,
}

impl From<(Entry, Digest)> for ActView {
    fn from((entry, hash): (Entry, Digest)) -> Self {
        Self {
            chain: entry.chain,
            sequence: entry.sequence,
            at: entry.at,
            actor: entry.actor,
            from: entry.from,
            action: entry.action,
            outcome: entry.outcome,
            details: serde_json::from_str(&entry.details).unwrap_or(Value::String(entry.details)),
            hash: hash.to_string(),
        }
    }
}

/// A page of entries: the oldest first, unless `newest` is asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActsView {
    /// The entries.
    entries: Vec<ActView>,
    /// For `after` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ActsQuery {
    /// Done by this user's id only.
    user: Option<String>,
    /// Of this kind only: `save-committed`, `key-issued` …
    action: Option<String>,
    /// Not before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Timestamp>,
    /// Before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Timestamp>,
    /// `next` of the page before.
    #[param(pattern = "^-?[0-9]{1,13}~[^~]+~[0-9]{1,18}$")]
    after: Option<String>,
    /// The newest first: `after` then goes back in time.
    #[serde(default)]
    newest: bool,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<u32>,
}

impl ActsQuery {
    fn page(self, of: ActsOf) -> Result<ActsPage, Problem> {
        let after = self.after.as_deref().map(|text| {
            place(text).ok_or_else(|| Problem::bad_request("`after` is not the `next` of a page."))
        });
        Ok(ActsPage {
            of,
            actor: self.user,
            action: self.action,
            since: self.from,
            until: self.to,
            after: after.transpose()?,
            order: if self.newest { ActsOrder::NewestFirst } else { ActsOrder::OldestFirst },
            limit: self.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX),
        })
    }
}

fn cursor(entry: &Entry) -> String {
    format!("{}~{}~{}", entry.at.as_millisecond(), entry.chain, entry.sequence)
}

fn place(cursor: &str) -> Option<ActPlace> {
    let (at, rest) = cursor.split_once('~')?;
    let (chain, sequence) = rest.rsplit_once('~')?;
    let at = Timestamp::from_millisecond(at.parse().ok()?).ok()?;
    Some(ActPlace { at, chain: chain.to_owned(), sequence: sequence.parse().ok()? })
}

/// Who did what with a document. With `Accept: application/jsonl`, its whole chain as an export.
#[utoipa::path(get, path = "/api/v1/documents/{document}/audit", tag = "audit", security(("bearer" = [])),
    params(("document" = String, Path), ActsQuery),
    responses((status = 200, content((ActsView = "application/json"), (String = "application/jsonl"))),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn list_document_acts(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<ActsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // Who deleted it is asked about most.
    let document = session.document_or_deleted(&app, &document, Permission::Audit).await?;
    if wants_lines(&headers) {
        return Ok(export(app, Wanted::Document(document.id)));
    }
    list(&app, query.page(ActsOf::Document(document.id))?).await
}

/// Who did what in a company, by time. With `Accept: application/jsonl`, all its chains as an export.
#[utoipa::path(get, path = "/api/v1/companies/{company}/audit", tag = "audit", security(("bearer" = [])),
    params(("company" = String, Path), ActsQuery),
    responses((status = 200, content((ActsView = "application/json"), (String = "application/jsonl"))),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn list_company_acts(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
    QueryOf(query): QueryOf<ActsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::Audit, &company)?;
    if wants_lines(&headers) {
        return Ok(export(app, Wanted::Company(company)));
    }
    list(&app, query.page(ActsOf::Company(company))?).await
}

/// Who did what about an organisation, in order.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/audit", tag = "audit", security(("bearer" = [])),
    params(("organisation" = String, Path), ActsQuery),
    responses((status = 200, body = ActsView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_organisation_acts(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(organisation): PathOf<String>,
    QueryOf(query): QueryOf<ActsQuery>,
) -> Result<Response, Problem> {
    let organisation = session.organisation(&app, &organisation, Permission::Audit).await?;
    list(&app, query.page(ActsOf::Organisation(organisation.id))?).await
}

async fn list(app: &App, page: ActsPage) -> Result<Response, Problem> {
    let found = app.ledger.find_acts(&page).await?;
    let is_full = found.len() == page.limit as usize;
    let next = found.last().filter(|_| is_full).map(|(entry, _)| cursor(entry));
    Ok(Json(ActsView { entries: found.into_iter().map(Into::into).collect(), next }).into_response())
}

fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|accepted| accepted.split(','))
        .any(|each| each.split(';').next().is_some_and(|kind| kind.trim() == JSON_LINES))
}

fn export(app: Arc<App>, wanted: Wanted) -> Response {
    let lines = try_unfold(Export::new(app, wanted), async |mut export| {
        let lines = export.next().await?;
        Ok::<_, ledger::LedgerError>(lines.map(|lines| (lines, export)))
    });
    let mut response = Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON_LINES));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    let name = HeaderValue::from_static("attachment; filename=\"audit-trail.jsonl\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    response
}

/// What can be shown for a save.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReceiptView {
    /// The document.
    document: String,
    /// The version or checkpoint it became.
    #[schema(example = "14")]
    version: String,
    /// When it was committed.
    #[schema(value_type = String, format = DateTime)]
    committed_at: Timestamp,
    /// The SHA-256 of its bytes.
    sha256: String,
    /// Their number.
    size_bytes: u64,
    /// Where they lie.
    stored: StoredView,
    /// The entry of the audit trail that tells of it.
    audit: Option<ActPointer>,
}

/// Where bytes lie.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoredView {
    /// The kind of vault.
    #[schema(example = "local")]
    vault: &'static str,
    /// Their name in it.
    #[schema(example = "sha256:9f86d081…")]
    locator: String,
    /// When they were last read back whole and compared with their hash; absent if not since they were stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    read_back_at: Option<Timestamp>,
}

/// An entry of the audit trail, for `saveguard audit verify --expect`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActPointer {
    /// Its chain.
    chain: String,
    /// Its number in the chain.
    sequence: u64,
    /// Its hash.
    hash: String,
}

/// The receipt of a version or checkpoint.
#[utoipa::path(get, path = "/api/v1/documents/{document}/versions/{version}/receipt", tag = "audit", security(("bearer" = [])),
    params(("document" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = ReceiptView), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_receipt(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, version)): PathOf<(String, String)>,
) -> Result<Json<ReceiptView>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?.id;
    let label = Label::parse(&version);
    let label = label.ok_or_else(|| Problem::bad_request("A version is a number like 14 or 14.2."))?;
    receipt(&app, &document, label).await
}

async fn receipt(app: &App, document: &DocumentId, label: Label) -> Result<Json<ReceiptView>, Problem> {
    let receipt = app.ledger.receipt(document, label).await?.ok_or_else(Problem::not_found)?;
    let blob = receipt.content.blob;
    Ok(Json(ReceiptView {
        document: document.to_string(),
        version: label.to_string(),
        committed_at: receipt.content.committed_at,
        sha256: blob.digest.to_string(),
        size_bytes: blob.size_bytes,
        stored: StoredView {
            vault: app.vault.kind(),
            locator: format!("sha256:{}", blob.digest),
            read_back_at: receipt.read_back_at,
        },
        audit: receipt.act.map(|(entry, hash)| ActPointer {
            chain: entry.chain,
            sequence: entry.sequence,
            hash: hash.to_string(),
        }),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_what_it_says() {
        let at = Timestamp::from_millisecond(1_794_770_000_123).unwrap();
        let entry = Entry {
            chain: "company:a=b.c-d".to_owned(),
            sequence: 17,
            at,
            actor: String::new(),
            from: String::new(),
            action: String::new(),
            outcome: String::new(),
            details: String::new(),
        };

        let read = place(&cursor(&entry));

        assert_eq!(read, Some(ActPlace { at, chain: "company:a=b.c-d".to_owned(), sequence: 17 }));
        for strange in ["", "~", "1~2", "x~a~1", "1~a~-1", "99999999999999999999~a~1"] {
            assert_eq!(place(strange), None, "{strange}");
        }
    }

    #[test]
    fn lines_are_sent_to_whoever_accepts_them() {
        let wants = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            wants_lines(&headers)
        };

        assert!(wants("application/jsonl") && wants("text/html, application/jsonl;q=0.9"));
        assert!(!wants("application/json") && !wants("*/*") && !wants_lines(&HeaderMap::new()));
    }
}
