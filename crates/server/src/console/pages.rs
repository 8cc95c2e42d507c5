//! The pages: documents, one document with its history, the editor.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use ledger::documents::{Content, Document, DocumentPage, KeptCopy, KeptPage, Whose};
use model::access::{Permission, may};
use model::keys::Mode;

use super::{guest, sign_in};
use crate::app::App;
use crate::http::{Problem, Session};

const DOCUMENTS_SHOWN: u32 = 500;
const KEPT_SHOWN: u32 = 100;

/// Routes of the pages.
pub(crate) fn pages() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(home))
        .route("/document/{document}", get(document))
        .route("/edit/{document}", get(edit))
        .route("/view/{document}", get(view))
        .route("/s/{token}", get(guest::page))
        .route("/sign-in", get(sign_in::sign_in))
        .route("/assets/{name}", get(asset))
        .route("/client/{name}", get(client_module))
}

/// Adds what every page is sent with.
pub(crate) fn with_policy(router: Router<Arc<App>>, app: &Arc<App>) -> Router<Arc<App>> {
    router.layer(from_fn_with_state(Arc::clone(app), policy))
}

async fn policy(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let editor = app.config.document_server.public_url.origin().ascii_serialization();
    let policy = format!(
        "default-src 'none'; script-src 'self' {editor}; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         frame-src {editor}; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    );
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.entry(name).or_insert(value);
        }
    }
    response
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    user: String,
    documents: Vec<DocumentRow>,
}

struct DocumentRow {
    id: String,
    name: String,
    place: String,
    head: String,
    size: String,
    changed_at: String,
    may_edit: bool,
}

async fn home(State(app): State<Arc<App>>, session: Option<Signed>) -> Result<Response, Problem> {
    let Some(Signed(session)) = session else { return Ok(sign_in::please()) };
    let mut documents = Vec::new();
    for company in app.ledger.companies().await? {
        if !may(&session.0, Permission::View, &company.id) {
            continue;
        }
        let may_edit = may(&session.0, Permission::Edit, &company.id);
        let page = DocumentPage {
            company: company.id,
            project: None,
            deleted: false,
            after: None,
            limit: DOCUMENTS_SHOWN,
        };
        let found = app.ledger.documents(&page).await?;
        documents.extend(found.into_iter().map(|document| row(document, may_edit)));
    }
    render(&Home { user: session.0.name, documents })
}

#[allow(clippy::fn_params_excessive_bools, reason = "a field of a row, passed through")]
fn row(document: Document, may_edit: bool) -> DocumentRow {
    DocumentRow {
        place: format!("{} / {}", document.company, document.project),
        size: size(document.head_size_bytes),
        changed_at: document.head_moved_at.to_string(),
        head: document.head.to_string(),
        id: document.id.to_string(),
        name: document.name.to_string(),
        may_edit,
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{}.{} MiB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentPageView {
    user: String,
    document: DocumentRow,
    versions: Vec<VersionRow>,
    kept: Vec<KeptRow>,
}

struct VersionRow {
    label: String,
    is_checkpoint: bool,
    is_head: bool,
    origin: &'static str,
    author: String,
    committed_at: String,
    size: String,
    digest: String,
}

struct KeptRow {
    number: u64,
    kind: &'static str,
    reason: &'static str,
    author: String,
    kept_at: String,
    size: String,
}

async fn document(
    State(app): State<Arc<App>>,
    session: Option<Signed>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let Some(Signed(session)) = session else { return Ok(sign_in::please()) };
    let document = session.document(&app, &id, Permission::View).await?;
    let contents = app.ledger.contents(&document.id).await?;
    let page = KeptPage { of: Whose::Document(document.id.clone()), before: None, limit: KEPT_SHOWN };
    let kept = app.ledger.kept_copies(&page).await?;
    let may_edit = may(&session.0, Permission::Edit, &document.company);
    render(&DocumentPageView {
        user: session.0.name,
        versions: contents
            .into_iter()
            .filter(|content| content.pruned_at.is_none())
            .map(|content| version_row(content, &document))
            .collect(),
        kept: kept.into_iter().map(kept_row).collect(),
        document: row(document, may_edit),
    })
}

fn version_row(content: Content, document: &Document) -> VersionRow {
    VersionRow {
        label: content.label.to_string(),
        is_checkpoint: !content.label.is_version(),
        is_head: content.label == document.head,
        origin: content.origin.as_str(),
        author: content.author.name,
        committed_at: content.committed_at.to_string(),
        size: size(content.blob.size_bytes),
        digest: content.blob.digest.short(12),
    }
}

fn kept_row(copy: KeptCopy) -> KeptRow {
    KeptRow {
        number: copy.number,
        kind: copy.keeping.kind(),
        reason: copy.keeping.reason(),
        author: copy.author.name,
        kept_at: copy.kept_at.to_string(),
        size: size(copy.blob.size_bytes),
    }
}

#[derive(Template)]
#[template(path = "editor.html")]
struct Editor {
    id: String,
    name: String,
    mode: &'static str,
}

async fn edit(
    state: State<Arc<App>>,
    session: Option<Signed>,
    id: Path<String>,
) -> Result<Response, Problem> {
    editor(state, session, id, Mode::Edit).await
}

async fn view(
    state: State<Arc<App>>,
    session: Option<Signed>,
    id: Path<String>,
) -> Result<Response, Problem> {
    editor(state, session, id, Mode::View).await
}

async fn editor(
    State(app): State<Arc<App>>,
    session: Option<Signed>,
    Path(id): Path<String>,
    mode: Mode,
) -> Result<Response, Problem> {
    let Some(Signed(session)) = session else { return Ok(sign_in::please()) };
    let permission = match mode {
        Mode::Edit => Permission::Edit,
        Mode::View => Permission::View,
    };
    let document = session.document(&app, &id, permission).await?;
    render(&Editor { id: document.id.to_string(), name: document.name.to_string(), mode: mode.as_str() })
}

pub(super) fn render(template: &impl Template) -> Result<Response, Problem> {
    match template.render() {
        Ok(page) => Ok(Html(page).into_response()),
        Err(cause) => Err(Problem::store(&cause)),
    }
}

/// A session, if there is a valid one; a page without one asks to sign in.
struct Signed(Session);

impl axum::extract::OptionalFromRequestParts<Arc<App>> for Signed {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        app: &Arc<App>,
    ) -> Result<Option<Self>, Problem> {
        let session =
            <Session as axum::extract::FromRequestParts<Arc<App>>>::from_request_parts(parts, app).await;
        Ok(session.ok().map(Self))
    }
}

async fn asset(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "console.css" => ("text/css; charset=utf-8", include_str!("../../assets/console.css")),
        "live.js" => ("text/javascript; charset=utf-8", include_str!("../../assets/live.js")),
        "guest.js" => ("text/javascript; charset=utf-8", include_str!("../../assets/guest.js")),
        "editor.js" => ("text/javascript; charset=utf-8", include_str!("../../assets/editor.js")),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}

/// What host pages load. It says nothing about anybody's documents, so it needs no token.
async fn client_module(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "saveguard.js" => {
            ("text/javascript; charset=utf-8", include_str!("../../assets/client/saveguard.js"))
        }
        "saveguard.d.ts" => ("text/plain; charset=utf-8", include_str!("../../assets/client/saveguard.d.ts")),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text).into_response()
}
