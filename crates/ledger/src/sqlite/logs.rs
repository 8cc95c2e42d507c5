//! Summary logs on SQLite, up to their preview: uploads, runs, transitions. The writer's one thread is the lock of every scope.

use async_trait::async_trait;
use jiff::Timestamp;
use model::SummaryLogId;
use model::records::Scope;
use model::submissions::{LogState, OnUpload, rule_on_upload};
use rusqlite::{Connection, params};
use serde_json::json;

use super::audit::Actor;
use super::log_rows::{self, LOG_COLUMNS, Worked, note, of_run, scope_number, word};
use super::rows::{asked, id, ms, optional};
use super::{Shared, SqliteLedger, clearing, comparing, contents, submitting};
use crate::documents::Author;
use crate::logs::{
    CHUNK_MAX, CreatedLog, Finished, FinishedValidation, LogSource, LogVerdict, LogsPage, NewLog, Run,
    Submission, SubmissionReceipt, SubmitAnswer, SubmitWish, SummaryLog, TakeUp,
};
use crate::{LedgerError, Logs, Result};

#[async_trait]
impl Logs for SqliteLedger {
    async fn create_log(&self, new: &NewLog) -> Result<CreatedLog> {
        let new = new.clone();
        self.write(move |connection, _| create_log(connection, &new)).await
    }

    async fn log(&self, scope: &Scope, id: &SummaryLogId) -> Result<Option<SummaryLog>> {
        Ok(self.log_by_id(id).await?.filter(|log| log.scope == *scope))
    }

    async fn log_by_id(&self, id: &SummaryLogId) -> Result<Option<SummaryLog>> {
        let id = id.clone();
        self.read(move |connection| log_rows::by_id(connection, &id)).await
    }

    async fn logs(&self, page: &LogsPage) -> Result<Vec<SummaryLog>> {
        let page = page.clone();
        self.read(move |connection| logs(connection, &page)).await
    }

    async fn owed_logs(&self, at: Timestamp, limit: u32) -> Result<Vec<SummaryLog>> {
        self.read(move |connection| {
            let query = format!(
                "SELECT {LOG_COLUMNS} WHERE l.state IN ('preprocessing', 'validating', 'submitting')
                 AND (l.worked_until_ms IS NULL OR l.worked_until_ms <= ?1) ORDER BY l.worked_until_ms, l.number LIMIT ?2"
            );
            let mut query = connection.prepare_cached(&query)?;
            Ok(query.query_map(params![ms(at), limit], log_rows::log)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn take_up(&self, wish: &TakeUp) -> Result<Option<Run>> {
        let wish = wish.clone();
        self.write(move |connection, shared| take_up(connection, shared, &wish)).await
    }

    async fn keep_working(&self, run: &Run, until: Timestamp) -> Result<()> {
        let run = run.clone();
        self.write(move |connection, _| {
            let states =
                [LogState::Preprocessing, LogState::Validating, LogState::Validated, LogState::Submitting];
            let worked = of_run(connection, &run, &states)?;
            connection
                .prepare_cached("UPDATE summary_logs SET worked_until_ms = ?2 WHERE number = ?1")?
                .execute(params![worked.log, ms(until)])?;
            Ok(())
        })
        .await
    }

    async fn begin_validation(&self, run: &Run, at: Timestamp) -> Result<()> {
        let begun = run.clone();
        self.write(move |connection, _| begin_validation(connection, &begun, at)).await?;
        clearing::clear_run(self, run).await
    }

    async fn finish_validation(&self, finish: &FinishedValidation) -> Result<Finished> {
        let LogVerdict::Validated { basis } = finish.verdict else {
            let finish = finish.clone();
            return self.write(move |connection, _| refuse(connection, &finish)).await;
        };
        // The numbers are counted beside the writer. They hold if the head is still the basis: only this run stages.
        let (run, finish) = (finish.run.clone(), finish.clone());
        let Some(stats) = self.read(move |connection| comparing::stats_on(connection, &run, basis)).await?
        else {
            return Ok(Finished::BasisMoved);
        };
        self.write(move |connection, _| {
            let FinishedValidation { run, facts, at, .. } = &finish;
            let preview = Preview { basis, stats, facts: facts.as_deref(), at: *at };
            write_preview(connection, run, &preview)
        })
        .await
    }

    async fn renew_preview(&self, run: &Run, basis: u64, at: Timestamp) -> Result<Finished> {
        let (looked, run) = (run.clone(), run.clone());
        let Some(stats) =
            self.read(move |connection| comparing::stats_on(connection, &looked, basis)).await?
        else {
            return Ok(Finished::BasisMoved);
        };
        self.write(move |connection, _| {
            write_preview(connection, &run, &Preview { basis, stats, facts: None, at })
        })
        .await
    }

    async fn fail_validation(&self, run: &Run, reason: &str, at: Timestamp) -> Result<()> {
        let (run, reason) = (run.clone(), reason.to_owned());
        self.write(move |connection, _| {
            let states = [LogState::Preprocessing, LogState::Validating, LogState::ValidationFailed];
            let worked = of_run(connection, &run, &states)?;
            let end = End { state: LogState::ValidationFailed, reason: Some(&reason), at };
            end_validation(connection, &worked, &end)
        })
        .await
    }

    async fn begin_submission(&self, wish: &SubmitWish) -> Result<SubmitAnswer> {
        let wish = wish.clone();
        self.write(move |connection, shared| submitting::begin(connection, shared, &wish)).await
    }

    async fn commit_submission(&self, run: &Run, at: Timestamp) -> Result<Submission> {
        let run = run.clone();
        self.write(move |connection, shared| submitting::commit(connection, shared, (&run, at))).await
    }

    async fn return_to_validated(&self, run: &Run, reason: &str, at: Timestamp) -> Result<()> {
        submitting::return_to_validated(self, run, (reason, at, None)).await
    }

    async fn release_log(&self, id: &SummaryLogId, who: &Author, at: Timestamp) -> Result<bool> {
        submitting::release(self, id, who, at).await
    }

    async fn retry_log(&self, id: &SummaryLogId, who: &Author, at: Timestamp) -> Result<bool> {
        let (id, who) = (id.clone(), who.clone());
        self.write(move |connection, _| retry(connection, &id, (&who, at))).await
    }

    async fn clear_staging(&self, limit: u32) -> Result<u64> {
        let limit = usize::try_from(limit).unwrap_or(CHUNK_MAX).clamp(1, CHUNK_MAX);
        self.write_bulk(move |connection| clearing::clear_some(connection, limit)).await
    }

    async fn submission_receipt(
        &self,
        scope: &Scope,
        id: &SummaryLogId,
    ) -> Result<Option<SubmissionReceipt>> {
        let (scope, id) = (scope.clone(), id.clone());
        self.read(move |connection| submitting::receipt(connection, &scope, &id)).await
    }
}

fn create_log(connection: &Connection, new: &NewLog) -> Result<CreatedLog> {
    let scope = number_of(connection, &new.scope)?;
    if let Some(known) = known(connection, scope, new)? {
        return Ok(CreatedLog::Known(Box::new(known)));
    }
    let submitting = connection
        .prepare_cached("SELECT id FROM summary_logs WHERE scope = ?1 AND state = 'submitting'")?
        .query_row([scope], |row| id(row, "id", SummaryLogId::parse));
    let submitting = optional(submitting)?;
    let supersede_others = match (rule_on_upload(new.policy, submitting.as_ref()), submitting) {
        (OnUpload::RefuseWhileSubmitting, Some(submitting)) => return Ok(CreatedLog::Busy(submitting)),
        (OnUpload::RefuseWhileSubmitting, None) => {
            return Err(LedgerError::damaged("an upload waits for nobody"));
        }
        (OnUpload::Create { supersede_others }, _) => supersede_others,
    };
    let others = if supersede_others { supersede(connection, scope)? } else { Vec::new() };
    if let LogSource::Workbook { blob, .. } = &new.source {
        contents::name_blob(connection, blob, new.at)?;
    }
    let number = insert(connection, scope, new)?;
    let actor = Actor::person(&new.who);
    let mut superseded = Vec::new();
    for (other, other_id) in others {
        connection
            .prepare_cached("UPDATE summary_logs SET superseded_by = ?2 WHERE number = ?1")?
            .execute(params![other, number])?;
        let details = json!({ "by": new.id.as_str() });
        note(connection, (&new.scope, &other_id), (actor, new.at), ("summary-log-superseded", details))?;
        superseded.push(other_id);
    }
    let details = match &new.source {
        LogSource::Workbook { blob, document, .. } => json!({
            "template": new.template, "templateVersion": new.template_version,
            "digest": blob.digest.to_string(), "sizeBytes": blob.size_bytes, "upload": new.upload,
            "document": document.as_ref().map(|(document, label)| format!("{document} {label}")),
        }),
        LogSource::Undo(undone) => json!({ "template": new.template, "undoes": undone }),
    };
    note(connection, (&new.scope, &new.id), (actor, new.at), ("summary-log-uploaded", details))?;
    let log = log_rows::by_id(connection, &new.id)?
        .ok_or_else(|| LedgerError::damaged("a log that was just created is gone"))?;
    Ok(CreatedLog::Created { log: Box::new(log), superseded })
}

/// The number of a scope; the first upload gives it one.
fn number_of(connection: &Connection, scope: &Scope) -> Result<u64> {
    if let Some((number, _)) = scope_number(connection, scope)? {
        return Ok(number);
    }
    connection
        .prepare_cached("INSERT INTO record_scopes (organisation, registration) VALUES (?1, ?2)")?
        .execute(params![scope.organisation.as_str(), scope.registration.as_str()])?;
    u64::try_from(connection.last_insert_rowid()).map_err(LedgerError::damaged)
}

/// The log this upload made before. Its id may be no log of another scope.
fn known(connection: &Connection, scope: u64, new: &NewLog) -> Result<Option<SummaryLog>> {
    if let Some(log) = log_rows::by_id(connection, &new.id)? {
        let is_ours = log.scope == new.scope;
        return if is_ours {
            Ok(Some(log))
        } else {
            Err(LedgerError::AlreadyExists { what: format!("summary log `{}`", new.id) })
        };
    }
    let query = format!("SELECT {LOG_COLUMNS} WHERE l.scope = ?1 AND l.upload = ?2");
    optional(connection.prepare_cached(&query)?.query_row(params![scope, new.upload], log_rows::log))
}

fn supersede(connection: &Connection, scope: u64) -> Result<Vec<(u64, SummaryLogId)>> {
    let mut update = connection.prepare_cached(
        "UPDATE summary_logs SET state = 'superseded', run = run + 1, worked_until_ms = NULL, reason = NULL
         WHERE scope = ?1 AND state IN ('preprocessing', 'validating', 'validated') RETURNING number, id",
    )?;
    let rows =
        update.query_map([scope], |row| Ok((row.get("number")?, id(row, "id", SummaryLogId::parse)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn insert(connection: &Connection, scope: u64, new: &NewLog) -> Result<u64> {
    let (name, blob, document, undoes) = match &new.source {
        LogSource::Workbook { name, blob, document } => (Some(name), Some(blob), document.as_ref(), None),
        LogSource::Undo(undone) => (None, None, None, Some(asked(*undone))),
    };
    connection
        .prepare_cached(
            "INSERT INTO summary_logs (id, scope, upload, accreditation, template, template_version, policy, state,
             file_name, file_type, flags, digest, document, version, checkpoint, undoes, author_id, author_name, uploaded_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'preprocessing', ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        )?
        .execute(params![
            new.id.as_str(),
            scope,
            new.upload,
            new.accreditation.as_ref().map(model::AccreditationId::as_str),
            new.template,
            new.template_version,
            new.policy.as_str(),
            name,
            blob.map(|blob| &blob.file_type),
            blob.map(|blob| &blob.flags),
            blob.map(|blob| super::rows::Stored(blob.digest)),
            document.map(|(document, _)| document.as_str()),
            document.map(|(_, label)| label.version),
            document.map(|(_, label)| label.checkpoint),
            undoes,
            new.who.id,
            new.who.name,
            ms(new.at),
        ])?;
    u64::try_from(connection.last_insert_rowid()).map_err(LedgerError::damaged)
}

fn logs(connection: &Connection, page: &LogsPage) -> Result<Vec<SummaryLog>> {
    let words = |words: Vec<&str>| serde_json::to_string(&words).unwrap_or_default();
    let organisations =
        page.organisations.as_ref().map(|ids| words(ids.iter().map(model::OrganisationId::as_str).collect()));
    let states = (!page.states.is_empty()).then(|| words(page.states.iter().map(|s| s.as_str()).collect()));
    let scope = match &page.scope {
        Some(scope) => match scope_number(connection, scope)? {
            Some((number, _)) => Some(number),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    // Said only if asked for: then the index of documents is used.
    let of_document = if page.document.is_some() { "l.document = ?6" } else { "?6 IS NULL" };
    let query = format!(
        "SELECT {LOG_COLUMNS} WHERE {of_document} AND (?1 IS NULL OR l.scope = ?1) AND (?2 IS NULL OR l.state IN (SELECT value FROM json_each(?2)))
         AND (?3 IS NULL OR s.organisation IN (SELECT value FROM json_each(?3))) AND (?4 IS NULL OR l.number < ?4)
         ORDER BY l.number DESC LIMIT ?5"
    );
    let mut query = connection.prepare_cached(&query)?;
    let document = page.document.as_ref().map(model::DocumentId::as_str);
    let values = params![scope, states, organisations, page.before.map(asked), page.limit, document];
    Ok(query.query_map(values, log_rows::log)?.collect::<rusqlite::Result<_>>()?)
}

fn take_up(connection: &Connection, shared: &Shared, wish: &TakeUp) -> Result<Option<Run>> {
    if wish.state.is_final() {
        return Ok(None);
    }
    let taken = connection
        .prepare_cached(
            "UPDATE summary_logs SET run = run + ?5, attempts = attempts + 1, worked_until_ms = ?4
             WHERE id = ?1 AND state = ?2 AND (worked_until_ms IS NULL OR worked_until_ms <= ?3) RETURNING run",
        )?
        .query_row(
            params![wish.log.as_str(), wish.state.as_str(), ms(wish.at), ms(wish.until), shared.guards.fencing],
            |row| row.get(0),
        );
    Ok(optional(taken)?.map(|number| Run { log: wish.log.clone(), number }))
}

fn begin_validation(connection: &Connection, run: &Run, at: Timestamp) -> Result<()> {
    let states = [LogState::Preprocessing, LogState::Validating, LogState::Validated];
    let worked = of_run(connection, run, &states)?;
    connection
        .prepare_cached(
            "UPDATE summary_logs SET state = 'validating', reason = NULL, basis = NULL, created = NULL, updated = NULL,
             unchanged = NULL, removed = NULL, validated_ms = NULL WHERE number = ?1",
        )?
        .execute([worked.log])?;
    if worked.state != LogState::Validating {
        connection
            .prepare_cached("UPDATE summary_logs SET attempts = 1 WHERE number = ?1")?
            .execute([worked.log])?;
        let act = ("validation-begun", json!({}));
        note(connection, (&worked.scope, &worked.id), (Actor::SAVEGUARD, at), act)?;
    }
    Ok(())
}

fn refuse(connection: &Connection, finish: &FinishedValidation) -> Result<Finished> {
    let LogVerdict::Invalid { reason } = &finish.verdict else { return Ok(Finished::BasisMoved) };
    let states = [LogState::Preprocessing, LogState::Validating, LogState::Invalid];
    let worked = of_run(connection, &finish.run, &states)?;
    if let Some(facts) = &finish.facts {
        connection
            .prepare_cached("UPDATE summary_logs SET facts = ?2 WHERE number = ?1")?
            .execute(params![worked.log, facts])?;
    }
    let end = End { state: LogState::Invalid, reason: reason.as_deref(), at: finish.at };
    end_validation(connection, &worked, &end)?;
    Ok(Finished::Yes)
}

/// How a validation ends without a preview.
struct End<'a> {
    state: LogState,
    reason: Option<&'a str>,
    at: Timestamp,
}

fn end_validation(connection: &Connection, worked: &Worked, end: &End<'_>) -> Result<()> {
    if worked.state == end.state {
        return Ok(());
    }
    connection
        .prepare_cached(
            "UPDATE summary_logs SET state = ?2, reason = ?3, worked_until_ms = NULL, attempts = 0 WHERE number = ?1",
        )?
        .execute(params![worked.log, end.state.as_str(), end.reason])?;
    let outcome = end.state.as_str();
    let details = json!({ "outcome": outcome, "reason": end.reason });
    let act = ("validation-finished", details);
    note(connection, (&worked.scope, &worked.id), (Actor::SAVEGUARD, end.at), act).map(drop)
}

/// What a submission would do.
struct Preview<'a> {
    basis: u64,
    stats: model::records::PreviewStats,
    facts: Option<&'a str>,
    at: Timestamp,
}

/// The preview stands, if the records are still those it was compared with.
fn write_preview(connection: &Connection, run: &Run, preview: &Preview<'_>) -> Result<Finished> {
    let worked = of_run(connection, run, &[LogState::Validating, LogState::Validated])?;
    if worked.head != preview.basis || !worked.is_compared() {
        return Ok(Finished::BasisMoved);
    }
    if worked.state == LogState::Validated && worked.basis == Some(preview.basis) {
        return Ok(Finished::Yes);
    }
    let Preview { basis, stats, facts, at } = preview;
    connection
        .prepare_cached(
            "UPDATE summary_logs SET state = 'validated', basis = ?2, created = ?3, updated = ?4, unchanged = ?5, removed = ?6,
             facts = coalesce(?7, facts), validated_ms = coalesce(validated_ms, ?8), worked_until_ms = NULL, attempts = 0,
             reason = CASE WHEN state = 'validated' THEN reason END WHERE number = ?1",
        )?
        .execute(params![
            worked.log,
            asked(*basis),
            asked(stats.created),
            asked(stats.updated),
            asked(stats.unchanged),
            asked(stats.removed),
            facts,
            ms(*at)
        ])?;
    let details = json!({
        "outcome": LogState::Validated.as_str(), "basis": basis, "created": stats.created, "updated": stats.updated,
        "unchanged": stats.unchanged, "removed": stats.removed,
    });
    let action = if worked.state == LogState::Validated { "preview-renewed" } else { "validation-finished" };
    note(connection, (&worked.scope, &worked.id), (Actor::SAVEGUARD, *at), (action, details))?;
    Ok(Finished::Yes)
}

fn retry(connection: &Connection, wanted: &SummaryLogId, (who, at): (&Author, Timestamp)) -> Result<bool> {
    let found = connection
        .prepare_cached(
            "UPDATE summary_logs SET worked_until_ms = NULL, attempts = 0
             WHERE id = ?1 AND state IN ('preprocessing', 'validating', 'submitting') RETURNING scope, state",
        )?
        .query_row([wanted.as_str()], |row| {
            Ok((row.get::<_, u64>("scope")?, word(row, "state", LogState::parse)?))
        });
    let Some((number, state)) = optional(found)? else { return Ok(false) };
    let scope = connection
        .prepare_cached("SELECT organisation, registration FROM record_scopes WHERE number = ?1")?
        .query_row([number], log_rows::scope)?;
    let act = ("summary-log-retried", json!({ "state": state.as_str() }));
    note(connection, (&scope, wanted), (Actor::person(who), at), act)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_transitions_is_the_same_in_the_database() {
        let schema = include_str!("../../migrations/sqlite/0012_submissions.sql");
        for (from, from_word) in LogState::ALL {
            for (to, to_word) in LogState::ALL {
                let pair = format!("'{from_word} -> {to_word}'");
                assert_eq!(schema.contains(&pair), from.may_become(to), "{pair}");
            }
        }
    }
}
