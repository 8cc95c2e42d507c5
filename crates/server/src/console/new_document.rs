//! A blank document, workbook or presentation, made on the spot and brought in like any upload.
//!
//! Guarantees: the same permission, quota and check as an upload of the API; the file is a whole Office file of our own making.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use model::access::Permission;
use model::names::FileName;
use model::{CompanyId, DocumentId, ProjectId};
use serde::Deserialize;
use serde_json::json;

use crate::app::App;
use crate::http::{Problem, Session};
use crate::opening::{Upload, upload};

/// What can be made.
const KINDS: [&str; 3] = ["docx", "xlsx", "pptx"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    company: String,
    project: String,
    name: String,
    kind: String,
}

/// Makes one; only from our own pages, as the session says.
pub(super) async fn create(State(app): State<Arc<App>>, session: Session, body: Bytes) -> Response {
    match made(&app, &session, &body).await {
        Ok(id) => (StatusCode::CREATED, Json(json!({ "id": id }))).into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn made(app: &Arc<App>, session: &Session, body: &[u8]) -> Result<String, Problem> {
    let wish: Wish =
        serde_json::from_slice(body).map_err(|_| Problem::bad_request("The wish cannot be read."))?;
    if !KINDS.contains(&wish.kind.as_str()) {
        return Err(Problem::bad_request("A new document is a docx, an xlsx or a pptx."));
    }
    let company = CompanyId::parse(&wish.company).map_err(|refused| Problem::id(&refused))?;
    session.allow(Permission::Edit, &company)?;
    let ending = format!(".{}", wish.kind);
    let name = wish.name.trim();
    let name = name.strip_suffix(&ending).unwrap_or(name);
    let new = Upload {
        id: DocumentId::parse(&uuid::Uuid::now_v7().simple().to_string())
            .map_err(|refused| Problem::id(&refused))?,
        company,
        project: ProjectId::parse(&wish.project).map_err(|refused| Problem::id(&refused))?,
        name: FileName::parse(&format!("{name}{ending}")).map_err(Problem::name)?,
        author: session.author(),
    };
    let bytes = understudy::office::blank(&wish.kind);
    let body = futures_util::stream::once(async move { Ok::<_, Infallible>(bytes) });
    Ok(upload(app, new, body).await?.id.to_string())
}
