//! What a summary log holds, over HTTP: what is wrong with its workbook, and what it changes.
//!
//! Guarantees: the worst problems come first and all are counted; a change tells the old and the new value of every cell that
//! differs. Does not do: anything but reading.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ledger::staging::{ChangesPage, ProblemsPage, RowChange};
use model::access::Permission;
use model::records::{Change, RecordKey};
use model::submissions::Severity;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use super::summary_logs::{PAGE, PAGE_MAX, log_of, scope_of, unknown_word};
use crate::app::App;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ProblemsQuery {
    /// Of this severity only: fatal, error or warning.
    #[param(pattern = "^(fatal|error|warning)$")]
    severity: Option<String>,
    /// With this code only.
    code: Option<String>,
    /// On this sheet only.
    sheet: Option<String>,
    /// After this one: `next` of the page before.
    #[param(pattern = "^(fatal|error|warning)-[0-9]{1,18}$")]
    after: Option<String>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// Problems of a workbook, the worst first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemsView {
    /// Those that are kept.
    problems: Vec<WorkbookProblemView>,
    /// How often each code was found, exactly; on the first page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<ProblemCountView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Something wrong in a workbook, and where.
#[derive(Debug, Serialize, ToSchema)]
struct WorkbookProblemView {
    /// What is wrong, for machines.
    code: String,
    /// How bad it is.
    severity: &'static str,
    /// On which level it was found: 0 container, 1 and 2 single values, 3 cells, 4 against the records.
    level: u8,
    /// The sheet.
    sheet: Option<String>,
    /// The cell.
    cell: Option<String>,
    /// The header of its column.
    header: Option<String>,
    /// The row's own id.
    row_id: Option<String>,
    /// What stands there.
    value: Option<String>,
    /// What is wrong and what to do.
    sentence: String,
}

/// How often a problem was found.
#[derive(Debug, Serialize, ToSchema)]
struct ProblemCountView {
    /// Its code.
    code: String,
    /// How bad it is.
    severity: &'static str,
    /// How often.
    count: u64,
}

/// What is wrong with a workbook, the worst first.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/problems", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path), ProblemsQuery),
    responses((status = 200, body = ProblemsView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_problems(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
    QueryOf(query): QueryOf<ProblemsQuery>,
) -> Result<Json<ProblemsView>, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::View)?;
    let log = log_of(&app, &scope, &log).await?;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let severity = query.severity.as_deref().map(|word| Severity::parse(word).ok_or_else(unknown_word));
    let after = query.after.as_deref().map(|place| problem_place(place).ok_or_else(unknown_word));
    let page = ProblemsPage {
        log: log.id.clone(),
        severity: severity.transpose()?,
        code: query.code,
        sheet: query.sheet,
        after: after.transpose()?,
        limit,
    };
    let is_first = page.after.is_none();
    let found = app.ledger.problems(&page).await?;
    let is_full = found.len() == limit as usize;
    let last = found.last().filter(|_| is_full);
    let next = last.map(|(number, problem)| format!("{}-{number}", problem.severity.as_str()));
    let counts = if is_first { app.ledger.problem_counts(&log.id).await? } else { Vec::new() };
    let counts = counts.into_iter().map(|each| ProblemCountView {
        code: each.code,
        severity: each.severity.as_str(),
        count: each.count,
    });
    let problems = found.into_iter().map(|(_, problem)| problem.into()).collect();
    Ok(Json(ProblemsView { problems, counts: counts.collect(), next }))
}

fn problem_place(text: &str) -> Option<(Severity, u64)> {
    let (severity, number) = text.split_once('-')?;
    Some((Severity::parse(severity)?, number.parse().ok()?))
}

impl From<model::submissions::Problem> for WorkbookProblemView {
    fn from(problem: model::submissions::Problem) -> Self {
        let model::submissions::Problem {
            code,
            severity,
            level,
            sheet,
            cell,
            header,
            row_id,
            value,
            sentence,
        } = problem;
        Self { code, severity: severity.as_str(), level, sheet, cell, header, row_id, value, sentence }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// Of this kind of change only: created, updated, unchanged or removed.
    #[param(pattern = "^(created|updated|unchanged|removed)$")]
    change: Option<String>,
    /// Of this kind of record only.
    kind: Option<String>,
    /// Whose key begins so.
    key_prefix: Option<String>,
    /// After this record: the kind of the last one of the page before.
    after_kind: Option<String>,
    /// After this record: the key of the last one of the page before.
    after_key: Option<String>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// What a log changes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangesView {
    /// In order of kind and key.
    changes: Vec<RowChangeView>,
}

/// What happens to one record.
#[derive(Debug, Serialize, ToSchema)]
struct RowChangeView {
    /// The kind of record.
    kind: String,
    /// Its key.
    key: String,
    /// What happens: created, updated, unchanged or removed.
    change: &'static str,
    /// The values that differ.
    cells: Vec<CellChangeView>,
    /// How it counted before.
    outcome_before: Option<String>,
    /// How it counts afterwards.
    outcome_after: Option<String>,
    /// Why it does not count.
    reason: Option<String>,
    /// The sheet it comes from.
    sheet: Option<String>,
    /// Its row there.
    row: Option<u32>,
}

/// A value that is another one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CellChangeView {
    /// The column.
    pub(super) column: String,
    /// What stood there.
    pub(super) old: Option<String>,
    /// What stands there.
    pub(super) new: Option<String>,
}

impl From<RowChange> for RowChangeView {
    fn from(row: RowChange) -> Self {
        let (sheet, number) = row.place.map_or((None, None), |(sheet, row)| (Some(sheet), Some(row)));
        let reason = row.after.as_ref().and_then(|content| content.reason.clone());
        Self {
            kind: row.key.kind,
            key: row.key.key,
            change: row.change.as_str(),
            cells: row
                .cells
                .into_iter()
                .map(|cell| CellChangeView { column: cell.column, old: cell.old, new: cell.new })
                .collect(),
            outcome_before: row.before.map(|content| content.outcome),
            outcome_after: row.after.map(|content| content.outcome),
            reason,
            sheet,
            row: number,
        }
    }
}

/// What a summary log changes, with the old and the new value of every cell that differs.
///
/// Before it is submitted: what would change, compared with the records the preview was made against. Afterwards: what it changed.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/summary-logs/{log}/changes", tag = "submissions",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("log" = String, Path), ChangesQuery),
    responses((status = 200, body = ChangesView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_changes(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, log)): PathOf<(String, String, String)>,
    QueryOf(query): QueryOf<ChangesQuery>,
) -> Result<Json<ChangesView>, Problem> {
    let scope = scope_of(&session, (&organisation, &registration), Permission::View)?;
    let log = log_of(&app, &scope, &log).await?;
    let change = query.change.as_deref().map(|word| Change::parse(word).ok_or_else(unknown_word));
    let after = query.after_kind.zip(query.after_key);
    let page = ChangesPage {
        log: log.id,
        change: change.transpose()?,
        kind: query.kind,
        key_prefix: query.key_prefix,
        after: after.map(|(kind, key)| RecordKey { kind, key }),
        basis: None,
        limit: query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX),
    };
    let changes = app.ledger.log_changes(&page).await?;
    Ok(Json(ChangesView { changes: changes.into_iter().map(RowChangeView::from).collect() }))
}
