//! Summary logs as rows: reading them, finding the one a run works on, and writing down what happens to their scope.
//!
//! Guarantees: [`of_run`] gives a log only to the run that counts, in a state in which it may work. Everything that changes a log
//! asks it first, inside its own transaction.

use jiff::Timestamp;
use model::records::{PreviewStats, Scope};
use model::submissions::{LogState, Policy};
use model::{AccreditationId, DocumentId, OrganisationId, RegistrationId, SummaryLogId};
use rusqlite::{Connection, Row, params};
use serde_json::Value;

use super::audit::{Actor, ScopeAct, append_scope_act};
use super::rows::{get, get_optional, id, label, optional};
use crate::documents::{Author, BlobFacts};
use crate::logs::{LogSource, ProblemTotals, Run, SummaryLog};
use crate::{LedgerError, Result};

pub(super) const LOG_COLUMNS: &str = "
    l.*, s.organisation, s.registration, s.head, b.size_bytes, b.removals, n.id AS newer, c.sequence, c.committed_ms
    FROM summary_logs l JOIN record_scopes s ON s.number = l.scope LEFT JOIN blobs b ON b.digest = l.digest
    LEFT JOIN summary_logs n ON n.number = l.superseded_by LEFT JOIN record_commits c ON c.log = l.number";

pub(super) fn log(row: &Row<'_>) -> rusqlite::Result<SummaryLog> {
    let submitter: Option<String> = row.get("submitter_id")?;
    let name: Option<String> = row.get("submitter_name")?;
    Ok(SummaryLog {
        number: row.get("number")?,
        id: id(row, "id", SummaryLogId::parse)?,
        scope: scope(row)?,
        accreditation: optional_id(row, "accreditation", AccreditationId::parse)?,
        template: row.get("template")?,
        template_version: row.get("template_version")?,
        policy: word(row, "policy", Policy::parse)?,
        state: word(row, "state", LogState::parse)?,
        upload: row.get("upload")?,
        source: source(row)?,
        who: Author::new(row.get::<_, String>("author_id")?, row.get::<_, String>("author_name")?),
        uploaded_at: get(row, "uploaded_ms")?,
        validated_at: get_optional(row, "validated_ms")?,
        basis: row.get("basis")?,
        head: row.get("head")?,
        stats: stats(row)?,
        staged_rows: row.get("rows")?,
        problems: ProblemTotals {
            fatal: row.get("fatal")?,
            error: row.get("error")?,
            warning: row.get("warning")?,
        },
        facts: row.get("facts")?,
        submitted_by: submitter.map(|id| Author::new(id, name.unwrap_or_default())),
        commit: row.get::<_, Option<u64>>("sequence")?.zip(get_optional(row, "committed_ms")?),
        applied: row.get("applied")?,
        reason: row.get("reason")?,
        superseded_by: optional_id(row, "newer", SummaryLogId::parse)?,
        run: row.get("run")?,
        attempts: row.get("attempts")?,
        worked_until: get_optional(row, "worked_until_ms")?,
    })
}

pub(super) fn scope(row: &Row<'_>) -> rusqlite::Result<Scope> {
    Ok(Scope {
        organisation: id(row, "organisation", OrganisationId::parse)?,
        registration: id(row, "registration", RegistrationId::parse)?,
    })
}

pub(super) fn optional_id<T, E: std::fmt::Debug>(
    row: &Row<'_>,
    column: &str,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> rusqlite::Result<Option<T>> {
    match row.get::<_, Option<String>>(column)? {
        Some(_) => id(row, column, parse).map(Some),
        None => Ok(None),
    }
}

/// A word of a closed set.
pub(super) fn word<T>(row: &Row<'_>, column: &str, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or(rusqlite::Error::InvalidColumnName(text))
}

fn source(row: &Row<'_>) -> rusqlite::Result<LogSource> {
    if let Some(undone) = row.get("undoes")? {
        return Ok(LogSource::Undo(undone));
    }
    let document: Option<DocumentId> = get_optional(row, "document")?;
    Ok(LogSource::Workbook {
        name: row.get::<_, Option<String>>("file_name")?.unwrap_or_default(),
        blob: BlobFacts {
            digest: get(row, "digest")?,
            size_bytes: row.get("size_bytes")?,
            file_type: row.get::<_, Option<String>>("file_type")?.unwrap_or_default(),
            flags: row.get::<_, Option<String>>("flags")?.unwrap_or_default(),
            extent: None,
            removals: row.get("removals")?,
        },
        document: match document {
            Some(document) => Some((document, label(row, "version", "checkpoint")?)),
            None => None,
        },
    })
}

pub(super) fn stats(row: &Row<'_>) -> rusqlite::Result<Option<PreviewStats>> {
    let Some(created) = row.get("created")? else { return Ok(None) };
    Ok(Some(PreviewStats {
        created,
        updated: row.get("updated")?,
        unchanged: row.get("unchanged")?,
        removed: row.get("removed")?,
    }))
}

pub(super) fn by_id(connection: &Connection, wanted: &SummaryLogId) -> Result<Option<SummaryLog>> {
    let query = format!("SELECT {LOG_COLUMNS} WHERE l.id = ?1");
    optional(connection.prepare_cached(&query)?.query_row([wanted.as_str()], log))
}

/// What a step needs to know of the log it works on.
#[derive(Debug, Clone)]
pub(super) struct Worked {
    pub(super) log: u64,
    pub(super) id: SummaryLogId,
    pub(super) scope_number: u64,
    pub(super) scope: Scope,
    pub(super) head: u64,
    pub(super) state: LogState,
    pub(super) basis: Option<u64>,
    pub(super) stats: Option<PreviewStats>,
    pub(super) accreditation: Option<AccreditationId>,
    pub(super) applied: u64,
    pub(super) staged: u64,
    pub(super) compared: Option<i64>,
    pub(super) submitter: Author,
}

impl Worked {
    /// Whether everything staged is compared with the head as it is.
    pub(super) fn is_compared(&self) -> bool {
        self.compared.is_some_and(|compared| u64::try_from(compared) == Ok(self.head))
    }
}

/// The log of a run, if the run counts and the log is in one of these states.
pub(super) fn of_run(connection: &Connection, run: &Run, states: &[LogState]) -> Result<Worked> {
    let found = connection
        .prepare_cached(
            "SELECT l.*, s.organisation, s.registration, s.head FROM summary_logs l JOIN record_scopes s ON s.number = l.scope
             WHERE l.id = ?1 AND l.run = ?2",
        )?
        .query_row(params![run.log.as_str(), super::rows::asked(run.number)], |row| {
            Ok(Worked {
                log: row.get("number")?,
                id: run.log.clone(),
                scope_number: row.get("scope")?,
                scope: scope(row)?,
                head: row.get("head")?,
                state: word(row, "state", LogState::parse)?,
                basis: row.get("basis")?,
                stats: stats(row)?,
                accreditation: optional_id(row, "accreditation", AccreditationId::parse)?,
                applied: row.get("applied")?,
                staged: row.get("staged")?,
                compared: row.get("compared")?,
                submitter: Author::new(
                    row.get::<_, Option<String>>("submitter_id")?.unwrap_or_default(),
                    row.get::<_, Option<String>>("submitter_name")?.unwrap_or_default(),
                ),
            })
        });
    match optional(found)? {
        Some(worked) if states.contains(&worked.state) => Ok(worked),
        _ => Err(LedgerError::overtaken(&run.log)),
    }
}

/// The number of a scope, if something was ever uploaded to it, and its head.
pub(super) fn scope_number(connection: &Connection, scope: &Scope) -> Result<Option<(u64, u64)>> {
    let found = connection
        .prepare_cached(
            "SELECT number, head FROM record_scopes WHERE organisation = ?1 AND registration = ?2",
        )?
        .query_row(params![scope.organisation.as_str(), scope.registration.as_str()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
    optional(found)
}

/// Something happened to a log. Its id stands in the details.
pub(super) fn note(
    connection: &Connection,
    (scope, log): (&Scope, &SummaryLogId),
    (actor, at): (Actor<'_>, Timestamp),
    (action, mut details): (&str, Value),
) -> Result<u64> {
    if let Value::Object(fields) = &mut details {
        fields.insert("log".to_owned(), log.as_str().into());
    }
    append_scope_act(connection, &ScopeAct { scope, at, actor, action, details })
}
