//! Pages of those who look after the installation, and the search in the audit trail. Frames; what is in them comes from the API.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use ledger::documents::{KeptPage, Whose};
use model::access::{Permission, may};

use super::page::{Page, Visitor, render, size, time};
use crate::app::App;
use crate::http::Problem;

/// Kept copies that wait for somebody, at most so many.
const KEPT_SHOWN: u32 = 100;

#[derive(Template)]
#[template(path = "operations.html")]
struct Operations {
    page: Page,
    kept: Vec<KeptRow>,
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
}

/// How things stand.
pub(super) async fn overview(State(app): State<Arc<App>>, visitor: Visitor) -> Response {
    visitor.answer(overview_page(&app, &visitor).await)
}

async fn overview_page(app: &App, visitor: &Visitor) -> Result<Response, Problem> {
    visitor.session.allow_operating()?;
    let page = KeptPage { of: Whose::All, before: None, limit: KEPT_SHOWN };
    let kept = app.ledger.kept_copies(&page).await?.into_iter();
    let waiting = kept.filter(|copy| copy.settled.is_none());
    let rows = waiting.map(|copy| KeptRow {
        document: copy.document.map(|id| id.to_string()),
        number: copy.number,
        kind: copy.keeping.kind(),
        reason: copy.keeping.reason(),
        author: copy.author.name,
        kept_at: copy.kept_at.to_string(),
        kept: time(copy.kept_at),
        size: size(copy.blob.size_bytes),
    });
    render(&Operations { page: visitor.page("operations"), kept: rows.collect() })
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
    render(&Audit { has_organisations: page.sees_submissions, page, companies })
}
