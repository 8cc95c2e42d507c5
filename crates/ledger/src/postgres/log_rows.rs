//! Summary logs as rows: reading them, finding the one a run works on, and writing down what happens to their scope.
//!
//! Guarantees: [`of_run`] locks the scope first, and gives a log only to the run that counts, in a state in which it may work.
//! Everything that changes a log asks it first, inside its own transaction; [`change`] asks once more while it changes.

use jiff::Timestamp;
use model::records::{PreviewStats, Scope};
use model::submissions::{LogState, Policy};
use model::{AccreditationId, DocumentId, OrganisationId, RegistrationId, SummaryLogId};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::audit::{Actor, ScopeAct, append_scope_act};
use super::rows::{asked, get, get_optional, id, label};
use super::step::Step;
use crate::documents::{Author, BlobFacts};
use crate::logs::{LogSource, ProblemTotals, Run, SummaryLog};
use crate::{LedgerError, Result};

pub(super) const LOG_COLUMNS: &str = "
    l.number, l.id, l.upload, l.accreditation, l.template, l.template_version, l.policy, l.state, l.reason, l.file_name, l.file_type,
    l.flags, l.digest, l.document, l.version, l.checkpoint, l.undoes, l.author_id, l.author_name, l.uploaded_ms, l.run, l.attempts,
    l.worked_until_ms, l.rows, l.fatal, l.error, l.warning, l.facts, l.validated_ms, l.basis, l.created, l.updated, l.unchanged,
    l.removed, l.submitter_id, l.submitter_name, l.applied, s.organisation, s.registration, s.head, b.size_bytes, b.removals,
    n.id AS newer, c.sequence, c.committed_ms
    FROM summary_logs l JOIN record_scopes s ON s.number = l.scope LEFT JOIN blobs b ON b.digest = l.digest
    LEFT JOIN summary_logs n ON n.number = l.superseded_by LEFT JOIN record_commits c ON c.log = l.number";

pub(super) fn log(row: &Row) -> Result<SummaryLog> {
    let submitter: Option<String> = get_optional(row, "submitter_id")?;
    let name: Option<String> = get_optional(row, "submitter_name")?;
    Ok(SummaryLog {
        number: get(row, "number")?,
        id: id(row, "id", SummaryLogId::parse)?,
        scope: scope(row)?,
        accreditation: optional_id(row, "accreditation", AccreditationId::parse)?,
        template: get(row, "template")?,
        template_version: get(row, "template_version")?,
        policy: word(row, "policy", Policy::parse)?,
        state: word(row, "state", LogState::parse)?,
        upload: get_optional(row, "upload")?,
        source: source(row)?,
        who: Author::new(get::<String>(row, "author_id")?, get::<String>(row, "author_name")?),
        uploaded_at: get(row, "uploaded_ms")?,
        validated_at: get_optional(row, "validated_ms")?,
        basis: get_optional(row, "basis")?,
        head: get(row, "head")?,
        stats: stats(row)?,
        staged_rows: get(row, "rows")?,
        problems: ProblemTotals {
            fatal: get(row, "fatal")?,
            error: get(row, "error")?,
            warning: get(row, "warning")?,
        },
        facts: get_optional(row, "facts")?,
        submitted_by: submitter.map(|id| Author::new(id, name.unwrap_or_default())),
        commit: get_optional::<u64>(row, "sequence")?.zip(get_optional(row, "committed_ms")?),
        applied: get(row, "applied")?,
        reason: get_optional(row, "reason")?,
        superseded_by: optional_id(row, "newer", SummaryLogId::parse)?,
        run: get(row, "run")?,
        attempts: get(row, "attempts")?,
        worked_until: get_optional(row, "worked_until_ms")?,
    })
}

pub(super) fn scope(row: &Row) -> Result<Scope> {
    Ok(Scope {
        organisation: id(row, "organisation", OrganisationId::parse)?,
        registration: id(row, "registration", RegistrationId::parse)?,
    })
}

pub(super) fn optional_id<T, E: std::fmt::Debug>(
    row: &Row,
    column: &str,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> Result<Option<T>> {
    match get_optional::<String>(row, column)? {
        Some(_) => id(row, column, parse).map(Some),
        None => Ok(None),
    }
}

/// A word of a closed set.
pub(super) fn word<T>(row: &Row, column: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text: String = get(row, column)?;
    parse(&text)
        .ok_or_else(|| LedgerError::damaged(format!("column `{column}`: `{text}` is no word of ours")))
}

fn source(row: &Row) -> Result<LogSource> {
    if let Some(undone) = get_optional(row, "undoes")? {
        return Ok(LogSource::Undo(undone));
    }
    let document: Option<DocumentId> = get_optional(row, "document")?;
    Ok(LogSource::Workbook {
        name: get_optional::<String>(row, "file_name")?.unwrap_or_default(),
        blob: BlobFacts {
            digest: get(row, "digest")?,
            size_bytes: get(row, "size_bytes")?,
            file_type: get_optional::<String>(row, "file_type")?.unwrap_or_default(),
            flags: get_optional::<String>(row, "flags")?.unwrap_or_default(),
            extent: None,
            removals: get(row, "removals")?,
        },
        document: match document {
            Some(document) => Some((document, label(row, "version", "checkpoint")?)),
            None => None,
        },
    })
}

pub(super) fn stats(row: &Row) -> Result<Option<PreviewStats>> {
    let Some(created) = get_optional(row, "created")? else { return Ok(None) };
    Ok(Some(PreviewStats {
        created,
        updated: get(row, "updated")?,
        unchanged: get(row, "unchanged")?,
        removed: get(row, "removed")?,
    }))
}

pub(super) async fn by_id(step: &Step, wanted: &SummaryLogId) -> Result<Option<SummaryLog>> {
    let query = format!("SELECT {LOG_COLUMNS} WHERE l.id = $1");
    step.query_optional(&query, &[&wanted.as_str()]).await?.as_ref().map(log).transpose()
}

/// What a step needs to know of the log it works on.
#[derive(Debug, Clone)]
pub(super) struct Worked {
    pub(super) log: u64,
    pub(super) id: SummaryLogId,
    pub(super) run: u64,
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

/// Locks the scope of a log. `None`: there is no such log.
pub(super) async fn lock_scope_of(step: &Step, log: &SummaryLogId) -> Result<Option<()>> {
    let query = "SELECT s.number FROM record_scopes s
                 WHERE s.number = (SELECT l.scope FROM summary_logs l WHERE l.id = $1) FOR NO KEY UPDATE";
    Ok(step.query_optional(query, &[&log.as_str()]).await?.map(drop))
}

/// The log of a run, if the run counts and the log is in one of these states. Its scope is locked from now on, so that both stay
/// true until the step ends.
pub(super) async fn of_run(step: &Step, run: &Run, states: &[LogState]) -> Result<Worked> {
    if lock_scope_of(step, &run.log).await?.is_none() {
        return Err(LedgerError::overtaken(&run.log));
    }
    seen_by_run(step, run, states).await
}

/// The same for steps that only look: nothing is locked.
pub(super) async fn seen_by_run(step: &Step, run: &Run, states: &[LogState]) -> Result<Worked> {
    let query = "SELECT l.number, l.run, l.scope, l.state, l.basis, l.created, l.updated, l.unchanged, l.removed, l.accreditation,
                   l.applied, l.staged, l.compared, l.submitter_id, l.submitter_name, s.organisation, s.registration, s.head
                 FROM summary_logs l JOIN record_scopes s ON s.number = l.scope WHERE l.id = $1 AND l.run = $2";
    let found = step.query_optional(query, &[&run.log.as_str(), &asked(run.number)]).await?;
    let worked = found.as_ref().map(|row| worked(row, run)).transpose()?;
    match worked {
        Some(worked) if states.contains(&worked.state) => Ok(worked),
        _ => Err(LedgerError::overtaken(&run.log)),
    }
}

fn worked(row: &Row, run: &Run) -> Result<Worked> {
    Ok(Worked {
        log: get(row, "number")?,
        id: run.log.clone(),
        run: get(row, "run")?,
        scope_number: get(row, "scope")?,
        scope: scope(row)?,
        head: get(row, "head")?,
        state: word(row, "state", LogState::parse)?,
        basis: get_optional(row, "basis")?,
        stats: stats(row)?,
        accreditation: optional_id(row, "accreditation", AccreditationId::parse)?,
        applied: get(row, "applied")?,
        staged: get(row, "staged")?,
        compared: get_optional(row, "compared")?,
        submitter: Author::new(
            get_optional::<String>(row, "submitter_id")?.unwrap_or_default(),
            get_optional::<String>(row, "submitter_name")?.unwrap_or_default(),
        ),
    })
}

/// Changes the log of a run: compare and set. `assignments` counts its values from $4.
pub(super) async fn change(
    step: &Step,
    worked: &Worked,
    assignments: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<()> {
    let update =
        format!("UPDATE summary_logs SET {assignments} WHERE number = $1 AND run = $2 AND state = $3");
    let (log, run, state) = (asked(worked.log), asked(worked.run), worked.state.as_str());
    let mut all: Vec<&(dyn ToSql + Sync)> = vec![&log, &run, &state];
    all.extend_from_slice(values);
    match step.execute(&update, &all).await? {
        1 => Ok(()),
        _ => Err(LedgerError::overtaken(&worked.id)),
    }
}

/// Whether a scope is locked when its number is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// From now on nobody else changes anything of it.
    Taken,
    /// Only looked at.
    Left,
}

/// The number of a scope, if something was ever uploaded to it, and its head.
pub(super) async fn scope_number(step: &Step, scope: &Scope, lock: Lock) -> Result<Option<(u64, u64)>> {
    let query = match lock {
        Lock::Taken => {
            "SELECT number, head FROM record_scopes WHERE organisation = $1 AND registration = $2 FOR NO KEY UPDATE"
        }
        Lock::Left => "SELECT number, head FROM record_scopes WHERE organisation = $1 AND registration = $2",
    };
    let values = (scope.organisation.as_str(), scope.registration.as_str());
    let found = step.query_optional(query, &[&values.0, &values.1]).await?;
    found.map(|row| Ok((get(&row, "number")?, get(&row, "head")?))).transpose()
}

/// Something happened to a log. Its id stands in the details.
pub(super) async fn note(
    step: &Step,
    (scope, log): (&Scope, &SummaryLogId),
    (actor, at): (Actor<'_>, Timestamp),
    (action, mut details): (&str, Value),
) -> Result<u64> {
    if let Value::Object(fields) = &mut details {
        fields.insert("log".to_owned(), log.as_str().into());
    }
    append_scope_act(step, &ScopeAct { scope, at, actor, action, details }).await
}
