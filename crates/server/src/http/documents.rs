//! Documents: bring in, list, look at, read, open in an editor.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use ledger::documents::{Content, Document, DocumentPage};
use ledger::history::ContentsPage;
use model::access::Permission;
use model::checking::Extent;
use model::names::FileName;
use model::operations::{Audience, Operation, Switches, rights_for};
use model::{DocumentId, Label, ProjectId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::bytes::send;
use super::caller::Session;
use super::companies::company_id;
use super::extract::{JsonBody, PathOf, QueryOf};
use crate::app::App;
use crate::config::Config;
use crate::opening::{Configured, Upload, configure, upload, version};

const PAGE_DEFAULT: u32 = 100;
const PAGE_MAX: u32 = 1000;

/// A document.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DocumentView {
    /// Its id.
    #[schema(example = "12345")]
    id: String,
    /// Its company.
    company: String,
    /// Its project.
    project: String,
    /// Its file name.
    #[schema(example = "report.docx")]
    name: String,
    /// When it was brought in.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The newest version or checkpoint.
    #[schema(example = "14.2")]
    head: String,
    /// Its SHA-256.
    sha256: String,
    /// Its length.
    size_bytes: u64,
    /// What its bytes are.
    #[schema(example = "docx")]
    file_type: String,
    /// When the head last moved.
    #[schema(value_type = String, format = DateTime)]
    changed_at: Timestamp,
    /// Who is editing, as the Document Server last said.
    editors: Vec<String>,
    /// When it was deleted; absent if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    deleted_at: Option<Timestamp>,
}

impl From<Document> for DocumentView {
    fn from(document: Document) -> Self {
        Self {
            id: document.id.to_string(),
            company: document.company.to_string(),
            project: document.project.to_string(),
            name: document.name.to_string(),
            created_at: document.created_at,
            head: document.head.to_string(),
            sha256: document.head_digest.to_string(),
            size_bytes: document.head_size_bytes,
            file_type: document.head_file_type,
            changed_at: document.head_moved_at,
            editors: document.editors,
            deleted_at: document.deleted_at,
        }
    }
}

/// A version or checkpoint.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VersionView {
    /// Its number: `14` for a version, `14.2` for a checkpoint on top of it.
    #[schema(example = "14")]
    version: String,
    /// Whether it is a checkpoint (a force save).
    is_checkpoint: bool,
    /// How it came: upload, save, force-save, recovered, restore, external.
    origin: &'static str,
    /// Its SHA-256.
    sha256: String,
    /// Its length.
    size_bytes: u64,
    /// What its bytes are.
    file_type: String,
    /// What the check found worth telling.
    flags: Vec<String>,
    /// How much it holds; absent if that was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<HoldsView>,
    /// The id of who made the last change.
    author_id: String,
    /// Their name.
    author_name: String,
    /// When it was committed.
    #[schema(value_type = String, format = DateTime)]
    committed_at: Timestamp,
    /// When its last change was made, by the Document Server's clock.
    #[schema(value_type = Option<String>, format = DateTime)]
    saved_at: Option<Timestamp>,
    /// Whether it arrived late and was filed beside a newer one.
    is_filed_beside: bool,
    /// The key of the session that saved it; absent if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Whether the Document Server's record of its changes is kept.
    has_changes: bool,
    /// When its bytes were let go by the retention policy; absent if they are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pruned_at: Option<Timestamp>,
}

/// How much a content holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HoldsView {
    /// Bytes of text.
    text_bytes: u64,
    /// Cells with a value.
    cells: u64,
    /// Cells with a formula.
    formulas: u64,
    /// Sheets of a workbook.
    sheets: u64,
    /// Slides of a presentation.
    slides: u64,
    /// Pictures and charts.
    pictures: u64,
}

impl From<Extent> for HoldsView {
    fn from(extent: Extent) -> Self {
        let Extent { text_bytes, cells, formulas, sheets, slides, pictures } = extent;
        Self { text_bytes, cells, formulas, sheets, slides, pictures }
    }
}

impl From<Content> for VersionView {
    fn from(content: Content) -> Self {
        Self {
            version: content.label.to_string(),
            is_checkpoint: !content.label.is_version(),
            origin: content.origin.as_str(),
            sha256: content.blob.digest.to_string(),
            size_bytes: content.blob.size_bytes,
            file_type: content.blob.file_type,
            flags: content.blob.flags.split(',').filter(|flag| !flag.is_empty()).map(str::to_owned).collect(),
            holds: content.blob.extent.map(HoldsView::from),
            author_id: content.author.id,
            author_name: content.author.name,
            committed_at: content.committed_at,
            saved_at: content.saved_at,
            is_filed_beside: content.is_filed_beside,
            key: content.key.map(|key| key.to_string()),
            has_changes: content.changes.is_some() && content.pruned_at.is_none(),
            pruned_at: content.pruned_at,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UploadQuery {
    /// The file name: no separators, no control characters.
    #[param(min_length = 1, max_length = 1024, example = "report.docx")]
    name: String,
    /// The id, if your application gives it: 1 to 64 of `0-9a-zA-Z._=-`. Otherwise one is made.
    id: Option<String>,
}

/// Brings a document in: its bytes are the body.
#[utoipa::path(post, path = "/api/v1/companies/{company}/projects/{project}/documents", tag = "documents", security(("bearer" = [])),
    params(("company" = String, Path), ("project" = String, Path), UploadQuery),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 201, body = DocumentView),
        (status = 400, description = "DOC_007: the name or id is not allowed", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_006: the id is taken", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "DOC_002: the file is not whole", body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn create_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((company, project)): PathOf<(String, String)>,
    QueryOf(query): QueryOf<UploadQuery>,
    body: Body,
) -> Result<(StatusCode, Json<DocumentView>), Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::Edit, &company)?;
    let id = query.id.unwrap_or_else(|| uuid::Uuid::now_v7().simple().to_string());
    let new = Upload {
        id: DocumentId::parse(&id).map_err(|refused| Problem::id(&refused))?,
        company,
        project: ProjectId::parse(&project).map_err(|refused| Problem::id(&refused))?,
        name: FileName::parse(&query.name).map_err(Problem::name)?,
        author: session.author(),
    };
    // Cut off in the middle, an upload leaves at most a blob that no row names; recovery adopts it.
    let document = upload(&app, new, body.into_data_stream()).await?;
    Ok((StatusCode::CREATED, Json(document.into())))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Of this project only.
    project: Option<String>,
    /// The deleted ones instead of those that are there.
    #[serde(default)]
    deleted: bool,
    /// After this id: the last one of the page before.
    #[param(pattern = "^[0-9a-zA-Z][0-9a-zA-Z._=-]{0,63}$")]
    after: Option<String>,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<u32>,
}

/// The documents of a company, page by page.
#[utoipa::path(get, path = "/api/v1/companies/{company}/documents", tag = "documents", security(("bearer" = [])),
    params(("company" = String, Path), ListQuery),
    responses((status = 200, body = [DocumentView]), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_documents(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(company): PathOf<String>,
    QueryOf(query): QueryOf<ListQuery>,
) -> Result<Json<Vec<DocumentView>>, Problem> {
    let company = company_id(&company)?;
    session.allow(Permission::View, &company)?;
    let project =
        query.project.map(|id| ProjectId::parse(&id)).transpose().map_err(|refused| Problem::id(&refused))?;
    let after =
        query.after.map(|id| DocumentId::parse(&id)).transpose().map_err(|refused| Problem::id(&refused))?;
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let documents = app
        .ledger
        .documents(&DocumentPage { company, project, deleted: query.deleted, after, limit })
        .await?;
    Ok(Json(documents.into_iter().map(Into::into).collect()))
}

/// One document.
#[utoipa::path(get, path = "/api/v1/documents/{document}", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)),
    responses((status = 200, body = DocumentView), (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn find_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
) -> Result<Json<DocumentView>, Problem> {
    Ok(Json(session.document(&app, &document, Permission::View).await?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct VersionsQuery {
    /// Older than this one: the last one of the page before.
    #[param(pattern = r"^[1-9][0-9]{0,8}(\.[1-9][0-9]{0,8})?$")]
    before: Option<String>,
    /// At most so many: 1 to 1000, else 100.
    limit: Option<u32>,
}

/// The versions and checkpoints of a document, newest first, page by page.
#[utoipa::path(get, path = "/api/v1/documents/{document}/versions", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), VersionsQuery),
    responses((status = 200, body = [VersionView]), (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_versions(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<VersionsQuery>,
) -> Result<Json<Vec<VersionView>>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let before = query.before.as_deref().map(label_of).transpose()?;
    let limit = query.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let page = ContentsPage { document: document.id, versions_only: false, before, limit };
    Ok(Json(app.ledger.contents_page(&page).await?.into_iter().map(Into::into).collect()))
}

fn label_of(text: &str) -> Result<Label, Problem> {
    Label::parse(text).ok_or_else(|| Problem::bad_request("A version is a number like 14 or 14.2."))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ContentQuery {
    /// Which version (`14`) or checkpoint (`14.2`); the head if none is named.
    version: Option<String>,
}

/// The bytes of a version.
#[utoipa::path(get, path = "/api/v1/documents/{document}/content", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), ContentQuery),
    responses((status = 200, description = "The bytes; ETag is the SHA-256", content_type = "application/octet-stream"),
        (status = 206, description = "The part that was asked for"), (status = 304, description = "Known already"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn read_content(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<ContentQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let label = query.version.as_deref().map(label_of).transpose()?;
    let content = version(&app, &document, label).await?;
    let mut response = send(&app, &headers, &content.blob, document.name.as_str()).await?;
    if let Ok(label) = http::HeaderValue::from_str(&content.label.to_string()) {
        response.headers_mut().insert("saveguard-version", label);
    }
    Ok(response)
}

/// How a document shall be opened.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenWish {
    /// What for. `comment`, `review` and `fill` join the session of those who edit.
    mode: WishedMode,
    /// Whether the editor lets this person download. Without it, the source is served to the Document Server only.
    #[serde(default = "on")]
    download: bool,
    /// Whether it lets them print.
    #[serde(default = "on")]
    print: bool,
    /// Whether it lets them use the clipboard.
    #[serde(default = "on")]
    copy: bool,
}

fn on() -> bool {
    true
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum WishedMode {
    Edit,
    View,
    Comment,
    Review,
    Fill,
}

impl From<WishedMode> for Operation {
    fn from(mode: WishedMode) -> Self {
        match mode {
            WishedMode::Edit => Self::Edit,
            WishedMode::View => Self::View,
            WishedMode::Comment => Self::Comment,
            WishedMode::Review => Self::Review,
            WishedMode::Fill => Self::Fill,
        }
    }
}

/// What a page needs to open an editor.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EditorView {
    /// The address of the Document Server's `api.js`.
    api_url: String,
    /// The key the session runs under.
    key: String,
    /// The content the editor starts from.
    base: String,
    /// For `new DocsAPI.DocEditor(placeholder, config)`; signed.
    config: serde_json::Value,
}

/// A signed configuration for the editor.
#[utoipa::path(post, path = "/api/v1/documents/{document}/editor-config", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)), request_body = OpenWish,
    responses((status = 200, body = EditorView), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_001: being saved, try again", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn configure_editor(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    JsonBody(wish): JsonBody<OpenWish>,
) -> Result<Json<EditorView>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let operation = Operation::from(wish.mode);
    let switches = Switches { may_download: wish.download, may_print: wish.print, may_copy: wish.copy };
    // Alone or with others makes no difference to an opening: everybody joins the same session.
    let rights = rights_for(session.0.role, operation, Audience::OneUser, switches)
        .map_err(|refused| Problem::operation(refused, operation))?;
    let configured = configure(&app, &document, &session.author(), rights).await?;
    Ok(Json(shown_editor(&app, configured)))
}

pub(super) fn shown_editor(app: &App, configured: Configured) -> EditorView {
    EditorView {
        api_url: api_url_of(&app.config),
        key: configured.key.to_string(),
        base: configured.base.to_string(),
        config: configured.configuration.0,
    }
}

pub(crate) fn api_url_of(config: &Config) -> String {
    let base = config.document_server.public_url.as_str().trim_end_matches('/');
    format!("{base}/web-apps/apps/api/documents/api.js")
}
