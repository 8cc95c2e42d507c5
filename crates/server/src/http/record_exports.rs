//! Records taken away: of a registration, or across organisations; as CSV, as a workbook or as JSON lines.
//!
//! Guarantees: what is sent is of one moment of each registration; it is sent while it is read, in bounded memory; an export that fails
//! breaks off, and does not end as if it were whole; the number of exports at once is bounded.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::try_unfold;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderValue, header};
use ledger::LedgerError;
use ledger::records::AsOf;
use model::Scope;
use model::access::Permission;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use super::records::{RecordView, commit_of, filter, registered};
use super::standings::{across, whose};
use crate::app::App;
use crate::recording::{Filter, Sheet, Walk, csv_line, sheet_of, standings, workbook};

/// Registrations looked at at once.
const PAGE: u32 = 500;

/// What an export is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    Csv,
    Xlsx,
    Jsonl,
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Jsonl => "application/jsonl",
        }
    }

    fn disposition(self) -> &'static str {
        match self {
            Self::Csv => "attachment; filename=\"records.csv\"",
            Self::Xlsx => "attachment; filename=\"records.xlsx\"",
            Self::Jsonl => "attachment; filename=\"records.jsonl\"",
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// What it is written as: csv, xlsx or jsonl.
    #[param(inline)]
    format: Format,
    /// Of this kind only.
    kind: Option<String>,
    /// Whose key begins so.
    key_prefix: Option<String>,
    /// That count so only: included, excluded or ignored.
    outcome: Option<String>,
    /// Whose column of this name says `value`.
    column: Option<String>,
    /// What `column` says.
    value: Option<String>,
    /// As they were: after a submission (its number), at a time, or after a summary log (its id). Across organisations only a time.
    as_of: Option<String>,
}

impl ExportQuery {
    fn filter(self) -> Result<Filter, Problem> {
        filter(self.kind, self.key_prefix, self.outcome, (self.column, self.value))
    }
}

/// All records of a registration as a file.
///
/// The columns of the template come first, in its order, then others that workbooks had. In CSV, a value that a spreadsheet program
/// would take for a formula begins with an apostrophe.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/records/export", tag = "records",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ExportQuery),
    responses((status = 200, description = "The records", content((String = "text/csv"), (String = "application/jsonl"),
            (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn export_records(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    QueryOf(query): QueryOf<ExportQuery>,
) -> Result<Response, Problem> {
    let scope = registered(&app, &session, (&organisation, &registration), Permission::Download).await?;
    let as_of = commit_of(&app, &scope, query.as_of.as_deref()).await?;
    let format = query.format;
    export(&app, format, (vec![(scope, as_of)], query.filter()?)).await
}

/// All records of all organisations the caller looks after, as a file.
#[utoipa::path(get, path = "/api/v1/records/export", tag = "records", security(("bearer" = [])), params(ExportQuery),
    responses((status = 200, description = "The records", content((String = "text/csv"), (String = "application/jsonl"),
            (Vec<u8> = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn export_across(
    State(app): State<Arc<App>>,
    session: Session,
    QueryOf(query): QueryOf<ExportQuery>,
) -> Result<Response, Problem> {
    across(&session)?;
    let time = query.as_of.as_deref().map(|text| {
        text.parse().map_err(|_| Problem::bad_request("Across organisations, `as_of` is a time."))
    });
    let moment = time.transpose()?.map_or(AsOf::Head, AsOf::Time);
    let mut scopes: Vec<(Scope, u64)> = Vec::new();
    let mut after: Option<Scope> = None;
    loop {
        let page = standings(&app, &whose(&session), (after.as_ref(), PAGE)).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.registration.scope.clone());
        for standing in page.into_iter().filter(|standing| standing.head > 0) {
            let scope = standing.registration.scope;
            let commit = app.ledger.commit_at(&scope, &moment).await?.unwrap_or(0);
            scopes.push((scope, commit));
        }
    }
    let format = query.format;
    export(&app, format, (scopes, query.filter()?)).await
}

async fn export(
    app: &Arc<App>,
    format: Format,
    (scopes, filter): (Vec<(Scope, u64)>, Filter),
) -> Result<Response, Problem> {
    let seat = Arc::clone(&app.exports).try_acquire_owned();
    let seat = seat.map_err(|_| Problem::unavailable("Too many exports are being written right now."))?;
    let walk = || Walk::new(Arc::clone(app), scopes.clone(), filter.clone());
    let body = match format {
        Format::Jsonl => Body::from_stream(seated(lines(walk()), seat)),
        Format::Csv => {
            let sheet = sheet_of(app, walk()).await?;
            Body::from_stream(seated(table(walk(), sheet), seat))
        }
        Format::Xlsx => {
            let sheet = sheet_of(app, walk()).await?;
            Body::from_stream(seated(workbook(walk(), sheet), seat))
        }
    };
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(format.disposition()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// A stream that holds its seat until it ends.
fn seated<T>(
    stream: impl Stream<Item = T> + Send,
    seat: impl Send + Sync + 'static,
) -> impl Stream<Item = T> + Send {
    stream.map(move |item| {
        let _ = &seat;
        item
    })
}

fn lines(walk: Walk) -> impl Stream<Item = io::Result<Bytes>> + Send {
    chunks(walk, |scope, page| {
        let lines = page
            .into_iter()
            .map(|version| serde_json::to_string(&RecordView::new(scope, version)).map(|line| line + "\n"));
        lines.collect::<Result<String, _>>().map_err(io::Error::other)
    })
}

fn table(walk: Walk, sheet: Sheet) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let head = csv_line(sheet.columns.iter().map(|column| column.header.as_str()));
    let rows = chunks(walk, move |scope, page| {
        Ok(page
            .iter()
            .map(|version| csv_line(sheet.row(scope, version).iter().map(String::as_str)))
            .collect())
    });
    futures_util::stream::iter([Ok(Bytes::from(head))]).chain(rows)
}

/// Each page of a walk, as a text.
fn chunks(
    walk: Walk,
    write: impl Fn(&Scope, Vec<ledger::records::RecordVersion>) -> io::Result<String> + Send,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    try_unfold((walk, write), async |(mut walk, write)| {
        let failed = |cause: LedgerError| io::Error::other(cause);
        let Some((scope, page)) = walk.next().await.map_err(failed)? else { return Ok(None) };
        let text = write(&scope, page)?;
        Ok(Some((Bytes::from(text), (walk, write))))
    })
}
