//! The page of a document: its versions, what was kept aside, who is in it. What changes something is asked of the API by its script.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use ledger::documents::{Content, Document, KeptCopy, KeptPage, Whose};
use ledger::history::ContentsPage;
use model::Label;
use model::access::{Permission, may};
use serde::Deserialize;

use super::documents::{Row, row};
use super::page::{Page, Visitor, render, size, time};
use crate::app::App;
use crate::http::Problem;

/// Versions and checkpoints of a page.
const SHOWN: u32 = 100;
const KEPT_SHOWN: u32 = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Older {
    before: Option<String>,
}

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentPage {
    page: Page,
    document: Row,
    company: String,
    is_deleted: bool,
    may_audit: bool,
    versions: Vec<VersionRow>,
    older: Option<String>,
    kept: Vec<KeptRow>,
}

struct VersionRow {
    label: String,
    is_checkpoint: bool,
    is_head: bool,
    is_filed_beside: bool,
    is_pruned: bool,
    origin: &'static str,
    author: String,
    committed_at: String,
    committed: String,
    size: String,
    digest: String,
    flags: Vec<String>,
}

struct KeptRow {
    number: u64,
    kind: &'static str,
    reason: &'static str,
    author: String,
    kept_at: String,
    kept: String,
    size: String,
    settled: Option<String>,
}

/// The page.
pub(super) async fn show(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(older): Query<Older>,
) -> Response {
    visitor.answer(page(&app, &visitor, &id, older.before.as_deref()).await)
}

async fn page(app: &App, visitor: &Visitor, id: &str, before: Option<&str>) -> Result<Response, Problem> {
    let document = visitor.session.document_or_deleted(app, id, Permission::View).await?;
    let before = before.and_then(Label::parse);
    let asked = ContentsPage { document: document.id.clone(), versions_only: false, before, limit: SHOWN };
    let contents = app.ledger.contents_page(&asked).await?;
    let last = contents.last().filter(|_| contents.len() == SHOWN as usize);
    let older = last.map(|last| format!("/document/{}?before={}", document.id, last.label));
    let asked = KeptPage { of: Whose::Document(document.id.clone()), before: None, limit: KEPT_SHOWN };
    let kept = app.ledger.kept_copies(&asked).await?;
    render(&DocumentPage {
        page: visitor.page("documents"),
        company: document.company.to_string(),
        is_deleted: document.deleted_at.is_some(),
        may_audit: may(&visitor.session.0, Permission::Audit, &document.company),
        versions: contents.into_iter().map(|content| version_row(content, &document)).collect(),
        older,
        kept: kept.into_iter().map(kept_row).collect(),
        document: row(app, visitor, document).await?,
    })
}

fn version_row(content: Content, document: &Document) -> VersionRow {
    let flags = content.blob.flags.split(',').filter(|flag| !flag.is_empty()).map(str::to_owned);
    VersionRow {
        label: content.label.to_string(),
        is_checkpoint: !content.label.is_version(),
        is_head: content.label == document.head,
        is_filed_beside: content.is_filed_beside,
        is_pruned: content.pruned_at.is_some(),
        origin: content.origin.as_str(),
        author: content.author.name,
        committed_at: content.committed_at.to_string(),
        committed: time(content.committed_at),
        size: size(content.blob.size_bytes),
        digest: content.blob.digest.short(12),
        flags: flags.collect(),
    }
}

fn kept_row(copy: KeptCopy) -> KeptRow {
    KeptRow {
        number: copy.number,
        kind: copy.keeping.kind(),
        reason: copy.keeping.reason(),
        author: copy.author.name,
        kept_at: copy.kept_at.to_string(),
        kept: time(copy.kept_at),
        size: size(copy.blob.size_bytes),
        settled: copy.settled.map(|(_, how)| how),
    }
}
