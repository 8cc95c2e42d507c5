//! Changes past the editors over HTTP: replace, restore, rename, save as, use or dismiss a kept copy, delete, take that back; and
//! downloads.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ledger::changes::EditorsInside;
use ledger::documents::{Author, Document};
use model::access::Permission;
use model::names::FileName;
use model::{Digest, DocumentId, Label};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{Problem, ProblemDocument};
use super::bytes::send;
use super::caller::Session;
use super::documents::DocumentView;
use super::extract::{JsonBody, PathOf};
use crate::app::App;
use crate::changing::{Changer, delete, download, rename, replace, restore, undelete, use_kept};
use crate::opening::{SaveAs, save_as};

/// The head, after what people are typing was saved.
///
/// With people inside, the Document Server is asked to save first; the answer waits for that save, 30 seconds at most. The header
/// `saveguard-freshness` says what became of it: `newest` (nobody edits), `saved`, `unchanged`, `not-saved-in-time` or
/// `server-away` (the last two: the head may lack what people just typed).
#[utoipa::path(get, path = "/api/v1/documents/{document}/download", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)),
    responses((status = 200, description = "The bytes; ETag is the SHA-256", content_type = "application/octet-stream"),
        (status = 206, description = "The part that was asked for"), (status = 304, description = "Known already"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn download_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let document = session.document(&app, &document, Permission::Download).await?;
    send_download(&app, &document, &session.author(), &headers).await
}

/// Sends the head, and says how fresh it is.
pub(super) async fn send_download(
    app: &Arc<App>,
    document: &Document,
    who: &Author,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let downloaded = download(app, document, who).await?;
    let mut response = send(app, headers, &downloaded.content.blob, document.name.as_str()).await?;
    let headers = response.headers_mut();
    headers.insert("saveguard-freshness", HeaderValue::from_static(downloaded.freshness.as_str()));
    if let Ok(label) = HeaderValue::from_str(&downloaded.content.label.to_string()) {
        headers.insert("saveguard-version", label);
    }
    Ok(response)
}

/// Replaces the content of a document: its bytes are the body, and become the next version.
#[utoipa::path(put, path = "/api/v1/documents/{document}/content", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), ("If-Match" = String, Header, description = "The ETag of the head you saw")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = DocumentView),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_001: being edited or saved", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 412, description = "API_009: the head is another one", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "DOC_002: the file is not whole", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 428, description = "API_009: If-Match is missing", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
#[allow(clippy::too_many_arguments, reason = "each is an extractor")]
pub(super) async fn replace_content(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<DocumentView>, Problem> {
    let document = session.document(&app, &document, Permission::Edit).await?;
    let changer = Changer {
        who: session.author(),
        expected_head: Some(seen_head(&headers)?),
        editors: EditorsInside::Refuse,
    };
    replace(&app, &document, changer, body.into_data_stream()).await?;
    shown(&app, &document.id).await
}

/// The head the caller saw: the digest in an `If-Match`.
fn seen_head(headers: &HeaderMap) -> Result<Digest, Problem> {
    let text = headers.get(header::IF_MATCH).ok_or_else(Problem::precondition_required)?;
    let text = text.to_str().unwrap_or_default().trim().trim_start_matches("W/").trim_matches('"');
    Digest::parse_hex(text)
        .ok_or_else(|| Problem::bad_request("If-Match must be the ETag of the head you saw."))
}

async fn shown(app: &App, document: &DocumentId) -> Result<Json<DocumentView>, Problem> {
    let document = app.ledger.document(document).await?.ok_or_else(Problem::not_found)?;
    Ok(Json(document.into()))
}

/// How an earlier content is brought back.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreWish {
    /// Whether one of those who are editing wants it. Their work is saved first and they are asked to leave; otherwise the
    /// request is refused while somebody edits.
    #[serde(default)]
    while_editing: bool,
}

/// Makes an earlier version or checkpoint the head again, as a new version.
#[utoipa::path(post, path = "/api/v1/documents/{document}/versions/{version}/restore", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), ("version" = String, Path)), request_body = RestoreWish,
    responses((status = 200, body = DocumentView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_001: being edited or saved", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn restore_version(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, version)): PathOf<(String, String)>,
    JsonBody(wish): JsonBody<RestoreWish>,
) -> Result<Json<DocumentView>, Problem> {
    let document = session.document(&app, &document, Permission::Restore).await?;
    let label = Label::parse(&version)
        .ok_or_else(|| Problem::bad_request("A version is a number like 14 or 14.2."))?;
    let editors = if wish.while_editing { EditorsInside::RetireTheirKey } else { EditorsInside::Refuse };
    let changer = Changer { who: session.author(), expected_head: None, editors };
    restore(&app, &document.id, label, changer).await?;
    shown(&app, &document.id).await
}

/// Makes a conflict copy the head, as a new version: "use mine".
#[utoipa::path(post, path = "/api/v1/documents/{document}/kept/{number}/use", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), ("number" = u64, Path)),
    responses((status = 200, body = DocumentView),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_001: being edited or saved", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "DOC_002: it is in quarantine", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn use_kept_copy(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, number)): PathOf<(String, u64)>,
) -> Result<Json<DocumentView>, Problem> {
    let document = session.document(&app, &document, Permission::Restore).await?;
    let changer = Changer { who: session.author(), expected_head: None, editors: EditorsInside::Refuse };
    use_kept(&app, &document.id, number, changer).await?;
    shown(&app, &document.id).await
}

/// Says that a kept copy is not needed. Its bytes stay until the retention policy lets them go.
#[utoipa::path(post, path = "/api/v1/documents/{document}/kept/{number}/dismiss", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), ("number" = u64, Path)),
    responses((status = 204), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn dismiss_kept_copy(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((document, number)): PathOf<(String, u64)>,
) -> Result<StatusCode, Problem> {
    // Also of a deleted document: it is not purged while a copy waits for a person's word.
    let document = session.document_or_deleted(&app, &document, Permission::Restore).await?;
    let copy = app.ledger.kept_copy(number).await?;
    copy.filter(|copy| copy.document.as_ref() == Some(&document.id)).ok_or_else(Problem::not_found)?;
    app.ledger.dismiss_kept(number, &session.author(), app.now()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A new name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenameWish {
    /// The file name. Its extension stays what it was, whatever is given.
    #[schema(example = "letter.docx", min_length = 1)]
    name: String,
}

/// Gives a document another name. Whoever is editing sees it at once; the published file follows.
#[utoipa::path(post, path = "/api/v1/documents/{document}/rename", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)), request_body = RenameWish,
    responses((status = 200, body = DocumentView),
        (status = 400, description = "DOC_007: the name is not allowed", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn rename_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    JsonBody(wish): JsonBody<RenameWish>,
) -> Result<Json<DocumentView>, Problem> {
    let document = session.document(&app, &document, Permission::Edit).await?;
    Ok(Json(rename(&app, &document, &wish.name, session.author()).await?.into()))
}

/// What the editor made of a document (`onRequestSaveAs`).
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveAsWish {
    /// Where the Document Server put the file.
    url: String,
    /// The name of the new document.
    #[schema(example = "report.pdf")]
    title: String,
    /// Its type: the extension of its name.
    #[schema(example = "pdf")]
    file_type: String,
}

/// Makes a new document, in the same project, of what the editor saved under another name or type.
#[utoipa::path(post, path = "/api/v1/documents/{document}/save-as", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)), request_body = SaveAsWish,
    responses((status = 201, body = DocumentView),
        (status = 400, description = "DOC_007: the name is not allowed; API_004: the link is not one of the Document Server", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "API_010: beyond the quota", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "DOC_002: the file is not whole", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn save_document_as(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    JsonBody(wish): JsonBody<SaveAsWish>,
) -> Result<(StatusCode, Json<DocumentView>), Problem> {
    let document = session.document(&app, &document, Permission::Edit).await?;
    let is_type = (1..=8).contains(&wish.file_type.len())
        && wish.file_type.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_type {
        return Err(Problem::bad_request("A type is an extension like docx or pdf."));
    }
    let id = uuid::Uuid::now_v7().simple().to_string();
    let wish = SaveAs {
        name: FileName::parse_as(&wish.title, &wish.file_type).map_err(Problem::name)?,
        id: DocumentId::parse(&id).map_err(|refused| Problem::id(&refused))?,
        url: wish.url,
        author: session.author(),
    };
    let made = save_as(&app, &document, wish).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// Deletes a document. Nothing of it goes away: it can be taken back, and late saves are still taken.
#[utoipa::path(delete, path = "/api/v1/documents/{document}", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)),
    responses((status = 204), (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "DOC_001: being edited or saved", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn delete_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
) -> Result<StatusCode, Problem> {
    let document = session.document(&app, &document, Permission::Delete).await?;
    delete(&app, &document.id, &session.author()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a deletion back.
#[utoipa::path(post, path = "/api/v1/documents/{document}/undelete", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path)),
    responses((status = 200, body = DocumentView),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn undelete_document(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
) -> Result<Json<DocumentView>, Problem> {
    let document = session.document_or_deleted(&app, &document, Permission::Restore).await?;
    undelete(&app, &document.id, &session.author()).await?;
    shown(&app, &document.id).await
}
