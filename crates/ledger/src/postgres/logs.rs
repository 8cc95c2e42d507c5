//! Summary logs on PostgreSQL, up to their preview: uploads, runs, transitions. Every step locks the row of the scope first.

use async_trait::async_trait;
use jiff::Timestamp;
use model::SummaryLogId;
use model::records::Scope;
use model::submissions::{LogState, OnUpload, rule_on_upload};
use serde_json::json;

use super::audit::Actor;
use super::log_rows::{
    self, LOG_COLUMNS, Lock, Worked, change, lock_scope_of, note, of_run, scope_number, word,
};
use super::rows::{Stored, all, asked, get, id, ms, text};
use super::step::Step;
use super::{PostgresLedger, clearing, comparing, contents, submitting};
use crate::documents::Author;
use crate::logs::{
    CHUNK_MAX, CreatedLog, Finished, FinishedValidation, LogSource, LogVerdict, LogsPage, NewLog, Run,
    Submission, SubmissionReceipt, SubmitAnswer, SubmitWish, SummaryLog, TakeUp,
};
use crate::{LedgerError, Logs, Result};

#[async_trait]
impl Logs for PostgresLedger {
    async fn create_log(&self, new: &NewLog) -> Result<CreatedLog> {
        let step = self.write().await?;
        let done = create_log(&step, new).await;
        step.end(done).await
    }

    async fn log(&self, scope: &Scope, id: &SummaryLogId) -> Result<Option<SummaryLog>> {
        Ok(self.log_by_id(id).await?.filter(|log| log.scope == *scope))
    }

    async fn log_by_id(&self, id: &SummaryLogId) -> Result<Option<SummaryLog>> {
        let step = self.glance().await?;
        let found = log_rows::by_id(&step, id).await;
        step.end(found).await
    }

    async fn logs(&self, page: &LogsPage) -> Result<Vec<SummaryLog>> {
        let step = self.glance().await?;
        let found = logs(&step, page).await;
        step.end(found).await
    }

    async fn owed_logs(&self, at: Timestamp, limit: u32) -> Result<Vec<SummaryLog>> {
        let step = self.glance().await?;
        let query = format!(
            "SELECT {LOG_COLUMNS} WHERE l.state IN ('preprocessing', 'validating', 'submitting')
             AND (l.worked_until_ms IS NULL OR l.worked_until_ms <= $1)
             ORDER BY l.worked_until_ms NULLS FIRST, l.number LIMIT $2"
        );
        let found = step.query(&query, &[&ms(at), &i64::from(limit)]).await;
        let found = found.and_then(|rows| all(&rows, log_rows::log));
        step.end(found).await
    }

    async fn take_up(&self, wish: &TakeUp) -> Result<Option<Run>> {
        if wish.state.is_final() {
            return Ok(None);
        }
        let step = self.write().await?;
        let done = take_up(&step, wish).await;
        step.end(done).await
    }

    async fn keep_working(&self, run: &Run, until: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            let states =
                [LogState::Preprocessing, LogState::Validating, LogState::Validated, LogState::Submitting];
            let worked = of_run(&step, run, &states).await?;
            change(&step, &worked, "worked_until_ms = $4", &[&ms(until)]).await
        };
        let done = done.await;
        step.end(done).await
    }

    async fn begin_validation(&self, run: &Run, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = begin_validation(&step, run, at).await;
        step.end(done).await?;
        clearing::clear_run(self, run).await
    }

    async fn finish_validation(&self, finish: &FinishedValidation) -> Result<Finished> {
        let FinishedValidation { run, verdict, facts, at } = finish;
        match verdict {
            LogVerdict::Validated { basis } => preview(self, run, (*basis, facts.as_deref(), *at)).await,
            LogVerdict::Invalid { reason } => {
                let step = self.write().await?;
                let end = End { state: LogState::Invalid, reason: reason.as_deref(), at: *at };
                let done = refuse(&step, (run, facts.as_deref()), &end).await;
                step.end(done).await
            }
        }
    }

    async fn renew_preview(&self, run: &Run, basis: u64, at: Timestamp) -> Result<Finished> {
        preview(self, run, (basis, None, at)).await
    }

    async fn fail_validation(&self, run: &Run, reason: &str, at: Timestamp) -> Result<()> {
        let step = self.write().await?;
        let done = async {
            let states = [LogState::Preprocessing, LogState::Validating, LogState::ValidationFailed];
            let worked = of_run(&step, run, &states).await?;
            let end = End { state: LogState::ValidationFailed, reason: Some(reason), at };
            end_validation(&step, &worked, &end).await
        };
        let done = done.await;
        step.end(done).await
    }

    async fn begin_submission(&self, wish: &SubmitWish) -> Result<SubmitAnswer> {
        let step = self.write().await?;
        let done = submitting::begin(&step, wish).await;
        step.end(done).await
    }

    async fn commit_submission(&self, run: &Run, at: Timestamp) -> Result<Submission> {
        let step = self.write().await?;
        let done = submitting::commit(&step, run, at).await;
        step.end(done).await
    }

    async fn return_to_validated(&self, run: &Run, reason: &str, at: Timestamp) -> Result<()> {
        submitting::return_to_validated(self, run, (reason, at, None)).await
    }

    async fn release_log(&self, id: &SummaryLogId, who: &Author, at: Timestamp) -> Result<bool> {
        submitting::release(self, id, (who, at)).await
    }

    async fn retry_log(&self, id: &SummaryLogId, who: &Author, at: Timestamp) -> Result<bool> {
        let step = self.write().await?;
        let done = retry(&step, id, (who, at)).await;
        step.end(done).await
    }

    async fn clear_staging(&self, limit: u32) -> Result<u64> {
        let limit = usize::try_from(limit).unwrap_or(CHUNK_MAX).clamp(1, CHUNK_MAX);
        let step = self.write().await?;
        let done = clearing::clear_some(&step, limit).await;
        step.end(done).await
    }

    async fn submission_receipt(
        &self,
        scope: &Scope,
        id: &SummaryLogId,
    ) -> Result<Option<SubmissionReceipt>> {
        let step = self.read().await?;
        let found = submitting::receipt(&step, scope, id).await;
        step.end(found).await
    }
}

async fn create_log(step: &Step, new: &NewLog) -> Result<CreatedLog> {
    let scope = number_of(step, &new.scope).await?;
    if let Some(known) = known(step, scope, new).await? {
        return Ok(CreatedLog::Known(Box::new(known)));
    }
    let query = "SELECT id FROM summary_logs WHERE scope = $1 AND state = 'submitting'";
    let submitting = step.query_optional(query, &[&asked(scope)]).await?;
    let submitting = submitting.map(|row| id(&row, "id", SummaryLogId::parse)).transpose()?;
    let supersede_others = match (rule_on_upload(new.policy, submitting.as_ref()), submitting) {
        (OnUpload::RefuseWhileSubmitting, Some(submitting)) => return Ok(CreatedLog::Busy(submitting)),
        (OnUpload::RefuseWhileSubmitting, None) => {
            return Err(LedgerError::damaged("an upload waits for nobody"));
        }
        (OnUpload::Create { supersede_others }, _) => supersede_others,
    };
    let others = if supersede_others { supersede(step, scope).await? } else { Vec::new() };
    if let LogSource::Workbook { blob, .. } = &new.source {
        contents::name_blob(step, blob, new.at).await?;
    }
    let number = insert(step, scope, new).await?;
    let (numbers, superseded): (Vec<i64>, Vec<SummaryLogId>) = others.into_iter().unzip();
    if !numbers.is_empty() {
        let update = "UPDATE summary_logs SET superseded_by = $2 WHERE number = ANY($1)";
        step.execute(update, &[&numbers, &asked(number)]).await?;
    }
    let actor = Actor::person(&new.who);
    for other in &superseded {
        let act = ("summary-log-superseded", json!({ "by": new.id.as_str() }));
        note(step, (&new.scope, other), (actor, new.at), act).await?;
    }
    let details = match &new.source {
        LogSource::Workbook { blob, document, .. } => json!({
            "template": new.template, "templateVersion": new.template_version,
            "digest": blob.digest.to_string(), "sizeBytes": blob.size_bytes, "upload": new.upload,
            "document": document.as_ref().map(|(document, label)| format!("{document} {label}")),
        }),
        LogSource::Undo(undone) => json!({ "template": new.template, "undoes": undone }),
    };
    note(step, (&new.scope, &new.id), (actor, new.at), ("summary-log-uploaded", details)).await?;
    let log = log_rows::by_id(step, &new.id)
        .await?
        .ok_or_else(|| LedgerError::damaged("a log that was just created is gone"))?;
    Ok(CreatedLog::Created { log: Box::new(log), superseded })
}

/// The number of a scope, which is locked from now on; the first upload gives it one.
async fn number_of(step: &Step, scope: &Scope) -> Result<u64> {
    if let Some((number, _)) = scope_number(step, scope, Lock::Taken).await? {
        return Ok(number);
    }
    // Another upload may do the same at this moment: then it is waited for.
    let insert =
        "INSERT INTO record_scopes (organisation, registration) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    step.execute(insert, &[&scope.organisation.as_str(), &scope.registration.as_str()]).await?;
    let found = scope_number(step, scope, Lock::Taken).await?;
    found.map(|(number, _)| number).ok_or_else(|| LedgerError::damaged(format!("scope {scope} has no row")))
}

/// The log this upload made before. Its id may be no log of another scope.
async fn known(step: &Step, scope: u64, new: &NewLog) -> Result<Option<SummaryLog>> {
    if let Some(log) = log_rows::by_id(step, &new.id).await? {
        return if log.scope == new.scope { Ok(Some(log)) } else { Err(taken(new)) };
    }
    let query = format!("SELECT {LOG_COLUMNS} WHERE l.scope = $1 AND l.upload = $2");
    let upload = new.upload.as_deref().map(text);
    let found = step.query_optional(&query, &[&asked(scope), &upload]).await?;
    found.as_ref().map(log_rows::log).transpose()
}

fn taken(new: &NewLog) -> LedgerError {
    LedgerError::AlreadyExists { what: format!("summary log `{}`", new.id) }
}

async fn supersede(step: &Step, scope: u64) -> Result<Vec<(i64, SummaryLogId)>> {
    let update = "UPDATE summary_logs SET state = 'superseded', run = run + 1, worked_until_ms = NULL, reason = NULL
                  WHERE scope = $1 AND state IN ('preprocessing', 'validating', 'validated') RETURNING number, id";
    let rows = step.query(update, &[&asked(scope)]).await?;
    let mut others = all(&rows, |row| Ok((get(row, "number")?, id(row, "id", SummaryLogId::parse)?)))?;
    others.sort_by_key(|(number, _)| *number);
    Ok(others)
}

async fn insert(step: &Step, scope: u64, new: &NewLog) -> Result<u64> {
    let (name, blob, document, undoes) = match &new.source {
        LogSource::Workbook { name, blob, document } => (Some(name), Some(blob), document.as_ref(), None),
        LogSource::Undo(undone) => (None, None, None, Some(asked(*undone))),
    };
    let inserted = step
        .query_optional(
            "INSERT INTO summary_logs (id, scope, upload, accreditation, template, template_version, policy, state,
             file_name, file_type, flags, digest, document, version, checkpoint, undoes, author_id, author_name, uploaded_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'preprocessing', $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
             ON CONFLICT (id) DO NOTHING RETURNING number",
            &[
                &new.id.as_str(),
                &asked(scope),
                &new.upload.as_deref().map(text),
                &new.accreditation.as_ref().map(model::AccreditationId::as_str),
                &text(&new.template),
                &text(&new.template_version),
                &new.policy.as_str(),
                &name.map(|name| text(name)),
                &blob.map(|blob| text(&blob.file_type)),
                &blob.map(|blob| text(&blob.flags)),
                &blob.map(|blob| Stored(blob.digest)),
                &document.map(|(document, _)| document.as_str()),
                &document.map(|(_, label)| i64::from(label.version)),
                &document.map(|(_, label)| i64::from(label.checkpoint)),
                &undoes,
                &text(&new.who.id),
                &text(&new.who.name),
                &ms(new.at),
            ],
        )
        .await?;
    // Somebody gave the same id to a log of another scope at this very moment.
    let inserted = inserted.ok_or_else(|| taken(new))?;
    get(&inserted, "number")
}

async fn logs(step: &Step, page: &LogsPage) -> Result<Vec<SummaryLog>> {
    let organisations: Option<Vec<&str>> =
        page.organisations.as_ref().map(|ids| ids.iter().map(model::OrganisationId::as_str).collect());
    let states: Option<Vec<&str>> =
        (!page.states.is_empty()).then(|| page.states.iter().map(|state| state.as_str()).collect());
    let scope = page.scope.as_ref().map(|scope| (scope.organisation.as_str(), scope.registration.as_str()));
    // Said only if asked for: then the indexes are used.
    let of_document = if page.document.is_some() { "l.document = $7" } else { "$7::text IS NULL" };
    let of_scope = match scope {
        Some(_) => {
            "l.scope = (SELECT number FROM record_scopes WHERE organisation = $1 AND registration = $2)"
        }
        None => "$1::text IS NULL AND $2::text IS NULL",
    };
    let query = format!(
        "SELECT {LOG_COLUMNS} WHERE {of_document} AND {of_scope} AND ($3::text[] IS NULL OR l.state = ANY($3))
         AND ($4::text[] IS NULL OR s.organisation = ANY($4)) AND ($5::bigint IS NULL OR l.number < $5)
         ORDER BY l.number DESC LIMIT $6"
    );
    let (organisation, registration) = scope.unzip();
    let document = page.document.as_ref().map(model::DocumentId::as_str);
    let values: super::step::Values<'_> = &[
        &organisation,
        &registration,
        &states,
        &organisations,
        &page.before.map(asked),
        &i64::from(page.limit),
        &document,
    ];
    all(&step.query(&query, values).await?, log_rows::log)
}

async fn take_up(step: &Step, wish: &TakeUp) -> Result<Option<Run>> {
    if lock_scope_of(step, &wish.log).await?.is_none() {
        return Ok(None);
    }
    let update = "UPDATE summary_logs SET run = run + $5, attempts = attempts + 1, worked_until_ms = $4
                  WHERE id = $1 AND state = $2 AND (worked_until_ms IS NULL OR worked_until_ms <= $3) RETURNING run";
    let by = i64::from(step.shared.guards.fencing);
    let (log, state) = (wish.log.as_str(), wish.state.as_str());
    let taken = step.query_optional(update, &[&log, &state, &ms(wish.at), &ms(wish.until), &by]).await?;
    taken.map(|row| Ok(Run { log: wish.log.clone(), number: get(&row, "run")? })).transpose()
}

async fn begin_validation(step: &Step, run: &Run, at: Timestamp) -> Result<()> {
    let states = [LogState::Preprocessing, LogState::Validating, LogState::Validated];
    let worked = of_run(step, run, &states).await?;
    let is_again = worked.state == LogState::Validating;
    let assignments =
        "state = 'validating', reason = NULL, basis = NULL, created = NULL, updated = NULL, unchanged = NULL,
                       removed = NULL, validated_ms = NULL, attempts = CASE WHEN $4 THEN attempts ELSE 1 END";
    change(step, &worked, assignments, &[&is_again]).await?;
    if !is_again {
        let act = ("validation-begun", json!({}));
        note(step, (&worked.scope, &worked.id), (Actor::SAVEGUARD, at), act).await?;
    }
    Ok(())
}

async fn refuse(step: &Step, (run, facts): (&Run, Option<&str>), end: &End<'_>) -> Result<Finished> {
    let states = [LogState::Preprocessing, LogState::Validating, LogState::Invalid];
    let worked = of_run(step, run, &states).await?;
    if let Some(facts) = facts {
        change(step, &worked, "facts = $4", &[&text(facts)]).await?;
    }
    end_validation(step, &worked, end).await?;
    Ok(Finished::Yes)
}

/// How a validation ends without a preview.
struct End<'a> {
    state: LogState,
    reason: Option<&'a str>,
    at: Timestamp,
}

async fn end_validation(step: &Step, worked: &Worked, end: &End<'_>) -> Result<()> {
    if worked.state == end.state {
        return Ok(());
    }
    let assignments = "state = $4, reason = $5, worked_until_ms = NULL, attempts = 0";
    change(step, worked, assignments, &[&end.state.as_str(), &end.reason.map(text)]).await?;
    let details = json!({ "outcome": end.state.as_str(), "reason": end.reason });
    let act = ("validation-finished", details);
    note(step, (&worked.scope, &worked.id), (Actor::SAVEGUARD, end.at), act).await.map(drop)
}

/// What a submission would do.
struct Preview<'a> {
    basis: u64,
    stats: model::records::PreviewStats,
    facts: Option<&'a str>,
    at: Timestamp,
}

/// The numbers are counted before the scope is locked. They hold if the head is still the basis: only this run stages.
async fn preview(
    ledger: &PostgresLedger,
    run: &Run,
    (basis, facts, at): (u64, Option<&str>, Timestamp),
) -> Result<Finished> {
    let step = ledger.read().await?;
    let stats = comparing::stats_on(&step, run, basis).await;
    let Some(stats) = step.end(stats).await? else { return Ok(Finished::BasisMoved) };
    let step = ledger.write().await?;
    let done = write_preview(&step, run, &Preview { basis, stats, facts, at }).await;
    step.end(done).await
}

/// The preview stands, if the records are still those it was compared with.
async fn write_preview(step: &Step, run: &Run, preview: &Preview<'_>) -> Result<Finished> {
    let worked = of_run(step, run, &[LogState::Validating, LogState::Validated]).await?;
    if worked.head != preview.basis || !worked.is_compared() {
        return Ok(Finished::BasisMoved);
    }
    if worked.state == LogState::Validated && worked.basis == Some(preview.basis) {
        return Ok(Finished::Yes);
    }
    let Preview { basis, stats, facts, at } = preview;
    let assignments = "state = 'validated', basis = $4, created = $5, updated = $6, unchanged = $7, removed = $8,
        facts = coalesce($9, facts), validated_ms = coalesce(validated_ms, $10), worked_until_ms = NULL, attempts = 0,
        reason = CASE WHEN state = 'validated' THEN reason END";
    let values: super::step::Values<'_> = &[
        &asked(*basis),
        &asked(stats.created),
        &asked(stats.updated),
        &asked(stats.unchanged),
        &asked(stats.removed),
        &facts.map(text),
        &ms(*at),
    ];
    change(step, &worked, assignments, values).await?;
    let details = json!({
        "outcome": LogState::Validated.as_str(), "basis": basis, "created": stats.created, "updated": stats.updated,
        "unchanged": stats.unchanged, "removed": stats.removed,
    });
    let action = if worked.state == LogState::Validated { "preview-renewed" } else { "validation-finished" };
    note(step, (&worked.scope, &worked.id), (Actor::SAVEGUARD, *at), (action, details)).await?;
    Ok(Finished::Yes)
}

async fn retry(step: &Step, wanted: &SummaryLogId, (who, at): (&Author, Timestamp)) -> Result<bool> {
    if lock_scope_of(step, wanted).await?.is_none() {
        return Ok(false);
    }
    let update = "UPDATE summary_logs l SET worked_until_ms = NULL, attempts = 0 FROM record_scopes s
                  WHERE s.number = l.scope AND l.id = $1 AND l.state IN ('preprocessing', 'validating', 'submitting')
                  RETURNING s.organisation, s.registration, l.state";
    let Some(row) = step.query_optional(update, &[&wanted.as_str()]).await? else { return Ok(false) };
    let (scope, state) = (log_rows::scope(&row)?, word(&row, "state", LogState::parse)?);
    let act = ("summary-log-retried", json!({ "state": state.as_str() }));
    note(step, (&scope, wanted), (Actor::person(who), at), act).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_transitions_is_the_same_in_the_database() {
        let schema = include_str!("../../migrations/postgres/0012_submissions.sql");
        for (from, from_word) in LogState::ALL {
            for (to, to_word) in LogState::ALL {
                let pair = format!("'{from_word} -> {to_word}'");
                assert_eq!(schema.contains(&pair), from.may_become(to), "{pair}");
            }
        }
    }
}
