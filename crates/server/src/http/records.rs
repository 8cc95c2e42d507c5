//! The records of a registration over HTTP: as they are or were, the history of one, and the submissions they came with.
//!
//! Guarantees: records are found only through their own organisation and registration; a list tells which submission it is of, so that a walk
//! over its pages sees one moment. Does not do: exports (`record_exports`), erasing (`erasures`).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use ledger::records::{AsOf, Commit, Ended, RecordVersion, RecordsPage};
use model::access::Permission;
use model::records::{RecordKey, values_of};
use model::{Scope, SummaryLogId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use super::log_contents::CellChangeView;
use super::summary_logs::{PreviewStatsView, scope_of};
use crate::app::App;
use crate::recording::{Filter, PastVersion, history, search};

/// Most entries of a page.
const PAGE_MAX: u32 = 500;
/// Entries of a page if nobody says.
const PAGE: u32 = 100;

/// The scope of a path, if it is there and this caller may do this for it.
pub(super) async fn registered(
    app: &App,
    session: &Session,
    ids: (&str, &str),
    permission: Permission,
) -> Result<Scope, Problem> {
    let scope = scope_of(session, ids, permission)?;
    app.ledger.registration(&scope).await?.ok_or_else(Problem::not_found)?;
    Ok(scope)
}

/// A record as it is or was.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordView {
    /// Whose.
    organisation: String,
    /// For what.
    registration: String,
    /// Under which licence.
    accreditation: Option<String>,
    /// The kind of record.
    kind: String,
    /// Its key.
    key: String,
    /// What its submission did to it: created, updated or removed.
    change: &'static str,
    /// Its values by column; none if it ended.
    values: BTreeMap<String, String>,
    /// How it counts: included, excluded or ignored.
    outcome: Option<String>,
    /// Why it does not count.
    reason: Option<String>,
    /// What it adds to the template's measure.
    measure: Option<String>,
    /// When personal values of it were erased.
    #[schema(value_type = Option<String>, format = DateTime)]
    erased_at: Option<Timestamp>,
    /// The hash of what was submitted, also if values were erased since.
    hash: Option<String>,
    /// The submission it came with.
    submission: u64,
    /// The summary log it came with.
    log: String,
    /// The sheet of that log's workbook.
    sheet: Option<String>,
    /// The row there.
    row: Option<u32>,
    /// The template it was read by.
    template: String,
    /// The template's version.
    template_version: String,
    /// When its log was validated.
    #[serde(rename = "validatedAt")]
    #[schema(value_type = Option<String>, format = DateTime)]
    validated_at: Option<Timestamp>,
    /// When it was submitted.
    #[schema(value_type = String, format = DateTime)]
    submitted_at: Timestamp,
    /// Who submitted it.
    submitted_by: String,
}

impl RecordView {
    pub(super) fn new(scope: &Scope, version: RecordVersion) -> Self {
        let (sheet, row) = version.place.map_or((None, None), |(sheet, row)| (Some(sheet), Some(row)));
        let content = version.content;
        Self {
            organisation: scope.organisation.to_string(),
            registration: scope.registration.to_string(),
            accreditation: version.accreditation.map(|id| id.to_string()),
            kind: version.key.kind,
            key: version.key.key,
            change: version.change.as_str(),
            values: values_of(content.as_ref().map(|content| content.values.as_str())),
            erased_at: content.as_ref().and_then(|content| content.erased_at),
            outcome: content.as_ref().map(|content| content.outcome.clone()),
            reason: content.as_ref().and_then(|content| content.reason.clone()),
            measure: content.and_then(|content| content.measure),
            hash: version.hash.map(|hash| hash.to_string()),
            submission: version.sequence,
            log: version.log.to_string(),
            sheet,
            row,
            template: version.template.0,
            template_version: version.template.1,
            validated_at: version.validated_at,
            submitted_at: version.committed_at,
            submitted_by: version.by.name,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RecordsQuery {
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
    /// As they were: after a submission (its number), at a time (`2026-04-30T12:00:00Z`), or after a summary log (its id, or `log:` and its id
    /// if it looks like a number).
    as_of: Option<String>,
    /// Also those that ended.
    #[serde(default)]
    ended: bool,
    /// After this record: the kind in `next` of the page before.
    after_kind: Option<String>,
    /// After this record: the key in `next` of the page before.
    after_key: Option<String>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// Records in order of kind and key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordsView {
    /// The submission after which they were so. Name it in `as_of` to see the next page of the same moment.
    as_of: u64,
    /// Them.
    records: Vec<RecordView>,
    /// For `after_kind` and `after_key` of the next page; absent on the last. A search by `outcome` or `column` looks at some thousand
    /// records for each page, so that a page may be short, or empty, and still have this.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<RecordKeyView>,
}

/// What a record is known by in its registration.
#[derive(Debug, Serialize, ToSchema)]
struct RecordKeyView {
    /// The kind of record.
    kind: String,
    /// Its key.
    key: String,
}

/// Which records are meant.
pub(super) fn filter(
    kind: Option<String>,
    key_prefix: Option<String>,
    outcome: Option<String>,
    column: (Option<String>, Option<String>),
) -> Result<Filter, Problem> {
    let column = match column {
        (Some(column), Some(value)) => Some((column, value)),
        (None, None) => None,
        _ => return Err(Problem::bad_request("`column` and `value` go together.")),
    };
    Ok(Filter { kind, key_prefix, outcome, column })
}

/// The commit that a moment means.
pub(super) async fn commit_of(app: &App, scope: &Scope, as_of: Option<&str>) -> Result<u64, Problem> {
    let moment = as_of.map(moment).transpose()?.unwrap_or_default();
    app.ledger.commit_at(scope, &moment).await?.ok_or_else(Problem::not_found)
}

/// A number, a time, or the id of a log.
fn moment(text: &str) -> Result<AsOf, Problem> {
    let log = |id| SummaryLogId::parse(id).map(AsOf::Log).map_err(|refused| Problem::id(&refused));
    if let Some(id) = text.strip_prefix("log:") {
        return log(id);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number no submission has is not there.
        return Ok(AsOf::Commit(text.parse().unwrap_or(u64::MAX)));
    }
    text.parse().map(AsOf::Time).or_else(|_| log(text))
}

/// The records of a registration as they are, or as they were.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/records", tag = "records",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), RecordsQuery),
    responses((status = 200, body = RecordsView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_records(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    QueryOf(query): QueryOf<RecordsQuery>,
) -> Result<Json<RecordsView>, Problem> {
    let scope = registered(&app, &session, (&organisation, &registration), Permission::View).await?;
    let as_of = commit_of(&app, &scope, query.as_of.as_deref()).await?;
    let filter = filter(query.kind, query.key_prefix, query.outcome, (query.column, query.value))?;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let after = query.after_kind.zip(query.after_key).map(|(kind, key)| RecordKey { kind, key });
    let ended = if query.ended { Ended::Included } else { Ended::LeftOut };
    let page = RecordsPage { after, ended, ..filter.page((&scope, as_of), limit) };
    let found = search(&app, &page).await?;
    let next = found.next.map(|RecordKey { kind, key }| RecordKeyView { kind, key });
    let records = found.records.into_iter().map(|version| RecordView::new(&scope, version)).collect();
    Ok(Json(RecordsView { as_of, records, next }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// After this submission: `next` of the page before.
    after: Option<u64>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// The versions of a record, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordHistoryView {
    /// Them.
    versions: Vec<RecordVersionView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// A version of a record, and where it came from.
#[derive(Debug, Serialize, ToSchema)]
struct RecordVersionView {
    /// The record as it was since then.
    #[serde(flatten)]
    record: RecordView,
    /// The values that differ from the version before.
    changes: Vec<CellChangeView>,
    /// The cell of the sheet that each value stands in, by column.
    cells: BTreeMap<String, String>,
}

impl RecordVersionView {
    fn new(scope: &Scope, past: PastVersion) -> Self {
        let changes = past.changes.into_iter().map(|cell| CellChangeView {
            column: cell.column,
            old: cell.old,
            new: cell.new,
        });
        Self { changes: changes.collect(), cells: past.cells, record: RecordView::new(scope, past.version) }
    }
}

/// The history of a record: what each submission did to it, and the cell each value came from.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/records/{kind}/{key}", tag = "records",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), ("kind" = String, Path),
        ("key" = String, Path), HistoryQuery),
    responses((status = 200, body = RecordHistoryView),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn show_record(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration, kind, key)): PathOf<(String, String, String, String)>,
    QueryOf(query): QueryOf<HistoryQuery>,
) -> Result<Json<RecordHistoryView>, Problem> {
    let scope = registered(&app, &session, (&organisation, &registration), Permission::View).await?;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let after = query.after.unwrap_or(0);
    let past = history(&app, &scope, &RecordKey { kind, key }, (after, limit)).await?;
    if past.is_empty() && after == 0 {
        return Err(Problem::not_found());
    }
    let is_full = past.len() == limit as usize;
    let next = past.last().filter(|_| is_full).map(|last| last.version.sequence);
    let versions = past.into_iter().map(|past| RecordVersionView::new(&scope, past)).collect();
    Ok(Json(RecordHistoryView { versions, next }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SubmissionsQuery {
    /// Older than this submission: `next` of the page before.
    before: Option<u64>,
    /// How many at most; never more than 500.
    limit: Option<u32>,
}

/// Submissions, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubmissionsView {
    /// Them.
    submissions: Vec<SubmissionView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// A submission of a registration.
#[derive(Debug, Serialize, ToSchema)]
struct SubmissionView {
    /// Its number.
    submission: u64,
    /// The summary log it is of.
    log: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    submitted_at: Timestamp,
    /// Who confirmed it.
    submitted_by: String,
    /// What it did.
    stats: PreviewStatsView,
    /// The submission it undid.
    undoes: Option<u64>,
}

impl From<Commit> for SubmissionView {
    fn from(commit: Commit) -> Self {
        Self {
            submission: commit.sequence,
            log: commit.log.to_string(),
            submitted_at: commit.at,
            submitted_by: commit.by.name,
            stats: commit.stats.into(),
            undoes: commit.undoes,
        }
    }
}

/// The submissions of a registration, the newest first.
#[utoipa::path(get, path = "/api/v1/organisations/{organisation}/registrations/{registration}/submissions", tag = "records",
    security(("bearer" = [])), params(("organisation" = String, Path), ("registration" = String, Path), SubmissionsQuery),
    responses((status = 200, body = SubmissionsView),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn list_submissions(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf((organisation, registration)): PathOf<(String, String)>,
    QueryOf(query): QueryOf<SubmissionsQuery>,
) -> Result<Json<SubmissionsView>, Problem> {
    let scope = registered(&app, &session, (&organisation, &registration), Permission::View).await?;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    let found = app.ledger.commits(&scope, query.before, limit).await?;
    let is_full = found.len() == limit as usize;
    let next = found.last().filter(|_| is_full).map(|last| last.sequence);
    Ok(Json(SubmissionsView { submissions: found.into_iter().map(SubmissionView::from).collect(), next }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_number_a_time_or_a_log() {
        let log = |id| AsOf::Log(SummaryLogId::parse(id).unwrap());
        for (text, expected) in [
            ("7", AsOf::Commit(7)),
            ("99999999999999999999999", AsOf::Commit(u64::MAX)),
            ("log:7", log("7")),
            ("019a8c3e5d0b7f6c9a413f0f7c1d2e4c", log("019a8c3e5d0b7f6c9a413f0f7c1d2e4c")),
            ("1970-01-01T00:00:05Z", AsOf::Time(Timestamp::from_second(5).unwrap())),
            ("1970-01-01T02:00:05+02:00", AsOf::Time(Timestamp::from_second(5).unwrap())),
        ] {
            assert_eq!(moment(text).unwrap(), expected, "{text}");
        }
        for strange in ["", "log:", "last tuesday", "../x"] {
            assert!(moment(strange).is_err(), "{strange}");
        }
    }
}
