//! The page around the editor: the frame, and the line that tells what is saved.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use model::access::Permission;

use super::page::{Page, Visitor, render};
use crate::app::App;
use crate::http::Problem;

#[derive(Template)]
#[template(path = "editor.html")]
struct Editor {
    page: Page,
    id: String,
    name: String,
    mode: &'static str,
}

/// To edit.
pub(super) async fn edit(State(app): State<Arc<App>>, visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.answer(editor(&app, &visitor, &id, ("edit", Permission::Edit)).await)
}

/// To read.
pub(super) async fn view(State(app): State<Arc<App>>, visitor: Visitor, Path(id): Path<String>) -> Response {
    visitor.answer(editor(&app, &visitor, &id, ("view", Permission::View)).await)
}

/// To comment.
pub(super) async fn comment(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Response {
    visitor.answer(editor(&app, &visitor, &id, ("comment", Permission::Comment)).await)
}

async fn editor(
    app: &App,
    visitor: &Visitor,
    id: &str,
    (mode, permission): (&'static str, Permission),
) -> Result<Response, Problem> {
    let document = visitor.session.document(app, id, permission).await?;
    let page = visitor.page("documents");
    render(&Editor { page, id: document.id.to_string(), name: document.name.to_string(), mode })
}
