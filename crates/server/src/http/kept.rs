//! Conflict copies, quarantine and orphans: what could not become the head, visible and readable.
//!
//! Guarantees: copies of a document are shown to whoever may see the document; orphans belong to nobody, so only those who
//! look after the installation see them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use ledger::documents::{Document, Keeping, KeptCopy, KeptPage, Whose};
use model::access::Permission;
use model::problems::Code;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::bytes::send;
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use crate::app::App;

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct KeptQuery {
    /// Older than this number: the last one of the page before.
    before: Option<u64>,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<u32>,
}

/// A kept copy.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeptView {
    /// Its number.
    number: u64,
    /// `conflict`, `quarantine` or `orphan`.
    kind: &'static str,
    /// The code of its kind: `DOC_008` for a conflict copy, `DOC_002` for quarantine, `DOC_005` for an orphan.
    #[schema(example = "DOC_008")]
    code: &'static str,
    /// Why it is kept.
    #[schema(example = "base-moved")]
    reason: &'static str,
    /// Its SHA-256.
    sha256: String,
    /// Its length.
    size_bytes: u64,
    /// What its bytes are.
    file_type: String,
    /// The editor key it came under.
    key: Option<String>,
    /// The id of who made the last change.
    author_id: String,
    /// Their name.
    author_name: String,
    /// When it was kept.
    #[schema(value_type = String, format = DateTime)]
    kept_at: Timestamp,
    /// What a person decided about it: `used` or `dismissed`; absent while nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_as: Option<String>,
}

impl From<KeptCopy> for KeptView {
    fn from(copy: KeptCopy) -> Self {
        Self {
            number: copy.number,
            kind: copy.keeping.kind(),
            code: code_of(copy.keeping).as_str(),
            reason: copy.keeping.reason(),
            sha256: copy.blob.digest.to_string(),
            size_bytes: copy.blob.size_bytes,
            file_type: copy.blob.file_type,
            key: copy.key.map(|key| key.to_string()),
            author_id: copy.author.id,
            author_name: copy.author.name,
            kept_at: copy.kept_at,
            settled_as: copy.settled.map(|(_, what)| what),
        }
    }
}

/// The page of this code tells what such a copy means.
fn code_of(keeping: Keeping) -> Code {
    match keeping {
        Keeping::Conflict(_) => Code::SessionConflict,
        Keeping::Quarantine(_) => Code::SaveValidationFailed,
        Keeping::Orphan => Code::KeyParseFailed,
    }
}

/// What could not become the head of a document, newest first, page by page. Also of a deleted one, for those who may take that
/// back.
#[utoipa::path(get, path = "/api/v1/documents/{document}/kept", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), KeptQuery),
    responses((status = 200, body = [KeptView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_kept(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<KeptQuery>,
) -> Result<Json<Vec<KeptView>>, Problem> {
    let document = owner(&app, &session, &document).await?;
    list(&app, Whose::Document(document.id), &query).await
}

/// The document of kept copies. A deleted one is there only for those who may take that back.
async fn owner(app: &App, session: &Session, document: &str) -> Result<Document, Problem> {
    let document = session.document_or_deleted(app, document, Permission::View).await?;
    let may_see =
        document.deleted_at.is_none() || session.allow(Permission::Restore, &document.company).is_ok();
    if may_see { Ok(document) } else { Err(Problem::not_found()) }
}

/// The bytes of a kept copy.
#[utoipa::path(get, path = "/api/v1/documents/{document}/kept/{number}/content", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), ("number" = u64, Path)),
    responses((status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn read_kept(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, number)): PathOf<(String, u64)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = owner(&app, &session, &document).await?;
    let copy =
        app.ledger.kept_copy(number).await?.filter(|copy| copy.document.as_ref() == Some(&document.id));
    let copy = copy.filter(|copy| copy.pruned_at.is_none()).ok_or_else(Problem::not_found)?;
    send(&app, &headers, &copy.blob, document.name.as_str()).await
}

/// Files whose document nobody here knows, newest first, page by page.
#[utoipa::path(get, path = "/api/v1/operations/orphans", tag = "operations", security(("bearer" = [])), params(KeptQuery),
    responses((status = 200, body = [KeptView]), (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_orphans(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<KeptQuery>,
) -> Result<Json<Vec<KeptView>>, Problem> {
    session.allow_operating()?;
    list(&app, Whose::Nobody, &query).await
}

async fn list(app: &App, of: Whose, query: &KeptQuery) -> Result<Json<Vec<KeptView>>, Problem> {
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let page = KeptPage { of, before: query.before, limit };
    Ok(Json(app.ledger.kept_copies(&page).await?.into_iter().map(Into::into).collect()))
}

/// Says that an orphan is not needed. Its bytes stay until the retention policy lets them go.
#[utoipa::path(post, path = "/api/v1/operations/orphans/{number}/dismiss", tag = "operations", security(("bearer" = [])),
    params(("number" = u64, Path)),
    responses((status = 204), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn dismiss_orphan(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(number): PathOf<u64>,
) -> Result<StatusCode, Problem> {
    session.allow_operating()?;
    let copy = app.ledger.kept_copy(number).await?.filter(|copy| copy.document.is_none());
    copy.ok_or_else(Problem::not_found)?;
    app.ledger.dismiss_kept(number, &session.author(), app.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The bytes of an orphan.
#[utoipa::path(get, path = "/api/v1/operations/orphans/{number}/content", tag = "operations", security(("bearer" = [])),
    params(("number" = u64, Path)),
    responses((status = 200, description = "The bytes", content_type = "application/octet-stream"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn read_orphan(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(number): PathOf<u64>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    session.allow_operating()?;
    let copy = app
        .ledger
        .kept_copy(number)
        .await?
        .filter(|copy| copy.document.is_none() && copy.pruned_at.is_none());
    let copy = copy.ok_or_else(Problem::not_found)?;
    let name = format!("orphan-{number}.{}", copy.blob.file_type);
    send(&app, &headers, &copy.blob, &name).await
}
