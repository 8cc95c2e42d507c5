//! Pages of those who look after the installation, and the search in the audit trail. Frames and what waits for somebody; what moves
//! comes from the API.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use ledger::documents::{KeptPage, Whose};
use model::access::{Permission, may};
use serde::Deserialize;

use super::page::{Page, Visitor, render, size, time};
use crate::app::App;
use crate::http::Problem;

/// Kept copies of a page that wait for somebody.
const KEPT_SHOWN: u32 = 50;

#[derive(Debug, Deserialize)]
pub(super) struct Older {
    before: Option<u64>,
}

#[derive(Template)]
#[template(path = "operations.html")]
struct Operations {
    page: Page,
    kept: Vec<KeptRow>,
    /// The address of those kept before.
    older: Option<String>,
    is_first: bool,
}

/// Something kept aside, of whichever document.
struct KeptRow {
    document: Option<String>,
    number: u64,
    kind: &'static str,
    reason: &'static str,
    author: String,
    kept_at: String,
    kept: String,
    size: String,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    page: Page,
    companies: Vec<(String, String)>,
    has_organisations: bool,
    /// Names of acts with their words, to choose from.
    acts: Vec<(&'static str, &'static str)>,
}

/// How things stand.
pub(super) async fn overview(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Query(older): Query<Older>,
) -> Response {
    visitor.answer(overview_page(&app, &visitor, older.before).await)
}

async fn overview_page(app: &App, visitor: &Visitor, before: Option<u64>) -> Result<Response, Problem> {
    visitor.session.allow_operating()?;
    let page = KeptPage { of: Whose::Waiting, before, limit: KEPT_SHOWN };
    let kept = app.ledger.kept_copies(&page).await?;
    let last = kept.last().filter(|_| kept.len() == KEPT_SHOWN as usize);
    let older = last.map(|last| format!("/operations?before={}#kept", last.number));
    let rows = kept.into_iter().map(|copy| KeptRow {
        document: copy.document.map(|id| id.to_string()),
        number: copy.number,
        kind: copy.keeping.kind(),
        reason: copy.keeping.reason(),
        author: copy.author.name,
        kept_at: copy.kept_at.to_string(),
        kept: time(copy.kept_at),
        size: size(copy.blob.size_bytes),
    });
    let page = visitor.page("operations");
    render(&Operations { page, kept: rows.collect(), older, is_first: before.is_none() })
}

/// Who did what.
pub(super) async fn audit(State(app): State<Arc<App>>, visitor: Visitor) -> Response {
    visitor.answer(audit_page(&app, &visitor).await)
}

async fn audit_page(app: &App, visitor: &Visitor) -> Result<Response, Problem> {
    let companies = app.ledger.companies().await?.into_iter();
    let companies = companies.filter(|company| may(&visitor.session.0, Permission::Audit, &company.id));
    let companies: Vec<_> = companies.map(|company| (company.id.to_string(), company.name)).collect();
    let page = visitor.page("audit");
    if companies.is_empty() && !page.sees_submissions {
        return Err(Problem::forbidden());
    }
    let acts = page.group("act");
    render(&Audit { has_organisations: page.sees_submissions, page, companies, acts })
}
