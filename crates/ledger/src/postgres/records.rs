//! Records on PostgreSQL: reading them up to the head, and appending versions above it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use model::records::{Change, RecordKey, Scope};
use model::submissions::LogState;
use model::{AccreditationId, SummaryLogId};
use tokio_postgres::Row;

use super::comparing::content;
use super::log_rows::{self, Lock, change, of_run, optional_id, scope_number, seen_by_run, stats, word};
use super::rows::{all, asked, get, get_optional, id, ms, text};
use super::step::Step;
use super::{PostgresLedger, erasing};
use crate::documents::Author;
use crate::logs::{CHUNK_MAX, Run};
use crate::records::{
    AsOf, Commit, ContentNumber, Ended, Erased, Erasure, RecordVersion, RecordsPage, ScopeStanding,
    StandingsPage, VersionAppend, VersionAppends,
};
use crate::{LedgerError, Records, Result};

#[async_trait]
impl Records for PostgresLedger {
    async fn find_by_registration(&self, page: &RecordsPage) -> Result<Vec<RecordVersion>> {
        let step = self.read().await?;
        let found = find(&step, page).await;
        step.end(found).await
    }

    async fn append_versions(&self, append: &VersionAppends) -> Result<u64> {
        let mut appended = 0;
        let versions: Vec<_> = append.versions.iter().collect();
        for chunk in versions.chunks(CHUNK_MAX) {
            let step = self.write().await?;
            let done = append_chunk(&step, append, chunk).await;
            appended += step.end(done).await?;
        }
        Ok(appended)
    }

    async fn versions_to_append(
        &self,
        run: &Run,
        after: Option<&RecordKey>,
        limit: u32,
    ) -> Result<BTreeMap<RecordKey, VersionAppend>> {
        let step = self.read().await?;
        let found = to_append(&step, run, (after, limit)).await;
        step.end(found).await
    }

    async fn commit_at(&self, scope: &Scope, moment: &AsOf) -> Result<Option<u64>> {
        let step = self.read().await?;
        let found = commit_at(&step, scope, moment).await;
        step.end(found).await
    }

    async fn record_history(
        &self,
        scope: &Scope,
        key: &RecordKey,
        page: (u64, u32),
    ) -> Result<Vec<RecordVersion>> {
        let step = self.read().await?;
        let found = history(&step, scope, (key, page)).await;
        step.end(found).await
    }

    async fn commits(&self, scope: &Scope, before: Option<u64>, limit: u32) -> Result<Vec<Commit>> {
        let step = self.read().await?;
        let found = commits(&step, scope, (before, limit)).await;
        step.end(found).await
    }

    async fn scope_standings(&self, page: &StandingsPage) -> Result<Vec<ScopeStanding>> {
        let step = self.glance().await?;
        let found = standings(&step, page).await;
        step.end(found).await
    }

    async fn erase_values(&self, erasure: &Erasure) -> Result<Erased> {
        erasing::erase(self, erasure).await
    }
}

const VERSION_COLUMNS: &str = "
    v.kind, v.key, v.sequence, v.change, v.sheet, v.sheet_row, l.id, l.accreditation, l.template, l.template_version,
    l.validated_ms, l.submitter_id, l.submitter_name, c.committed_ms, r.hash, r.cells, r.outcome, r.reason, r.measure, r.erased_ms
    FROM record_versions v JOIN summary_logs l ON l.number = v.log
    JOIN record_commits c ON c.scope = v.scope AND c.sequence = v.sequence
    LEFT JOIN row_contents r ON r.number = v.content";

fn version(row: &Row) -> Result<RecordVersion> {
    let content = content(row, "")?;
    let place = match content {
        Some(_) => Some((get(row, "sheet")?, get(row, "sheet_row")?)),
        None => None,
    };
    Ok(RecordVersion {
        key: RecordKey { kind: get(row, "kind")?, key: get(row, "key")? },
        sequence: get(row, "sequence")?,
        change: word(row, "change", Change::parse)?,
        content,
        hash: get_optional(row, "hash")?,
        log: id(row, "id", SummaryLogId::parse)?,
        place,
        accreditation: optional_id(row, "accreditation", AccreditationId::parse)?,
        template: (get(row, "template")?, get(row, "template_version")?),
        validated_at: get_optional(row, "validated_ms")?,
        committed_at: get(row, "committed_ms")?,
        by: submitter(row)?,
    })
}

fn submitter(row: &Row) -> Result<Author> {
    let id: Option<String> = get_optional(row, "submitter_id")?;
    let name: Option<String> = get_optional(row, "submitter_name")?;
    Ok(Author::new(id.unwrap_or_default(), name.unwrap_or_default()))
}

async fn find(step: &Step, page: &RecordsPage) -> Result<Vec<RecordVersion>> {
    let Some((scope, head)) = scope_number(step, &page.scope, Lock::Left).await? else {
        return Ok(Vec::new());
    };
    // Nobody looks above the head, whatever they ask for.
    let as_of = match page.as_of {
        Some(as_of) if as_of < head => as_of,
        _ if step.shared.guards.readers_stop_at_head => head,
        _ => u64::MAX,
    };
    // A zero byte, written as JSON writes it, would make the server refuse the whole query.
    let query = format!(
        r"SELECT {VERSION_COLUMNS} WHERE v.scope = $1 AND (v.kind, v.key) > ($3, $4)
         AND v.sequence = (SELECT max(m.sequence) FROM record_versions m
                           WHERE m.scope = $1 AND m.kind = v.kind AND m.key = v.key AND m.sequence <= $2)
         AND ($5 OR v.content IS NOT NULL) AND ($6::text IS NULL OR v.kind = $6)
         AND ($7::text IS NULL OR starts_with(v.key, $7)) AND ($8::text IS NULL OR r.outcome = $8)
         AND ($9::text IS NULL OR CASE WHEN position('\u0000' IN r.cells) > 0 THEN false ELSE r.cells::json ->> $9 = $10::text END)
         ORDER BY v.kind, v.key LIMIT $11"
    );
    let (kind, key) = page.after.as_ref().map_or(("", ""), |after| (&after.kind, &after.key));
    let (column, value) = page.column.as_ref().map(|(column, value)| (text(column), text(value))).unzip();
    let optional = |wanted: &'_ Option<String>| wanted.as_deref().map(|wanted| text(wanted).into_owned());
    let values: super::step::Values<'_> = &[
        &asked(scope),
        &asked(as_of),
        &text(kind),
        &text(key),
        &(page.ended == Ended::Included),
        &optional(&page.kind),
        &optional(&page.key_prefix),
        &optional(&page.outcome),
        &column,
        &value,
        &i64::from(page.limit),
    ];
    all(&step.query(&query, values).await?, version)
}

async fn history(
    step: &Step,
    scope: &Scope,
    (key, (after, limit)): (&RecordKey, (u64, u32)),
) -> Result<Vec<RecordVersion>> {
    let Some((scope, head)) = scope_number(step, scope, Lock::Left).await? else { return Ok(Vec::new()) };
    let query = format!(
        "SELECT {VERSION_COLUMNS} WHERE v.scope = $1 AND v.kind = $2 AND v.key = $3 AND v.sequence > $4 AND v.sequence <= $5
         ORDER BY v.sequence LIMIT $6"
    );
    let (kind, key) = (text(&key.kind), text(&key.key));
    let values: super::step::Values<'_> =
        &[&asked(scope), &kind, &key, &asked(after), &asked(head), &i64::from(limit)];
    all(&step.query(&query, values).await?, version)
}

async fn to_append(
    step: &Step,
    run: &Run,
    (after, limit): (Option<&RecordKey>, u32),
) -> Result<BTreeMap<RecordKey, VersionAppend>> {
    let worked = seen_by_run(step, run, &[LogState::Submitting]).await?;
    let query = "SELECT kind, key, change, content FROM staged_rows
                 WHERE log = $1 AND (kind, key) > ($2, $3) AND change <> 'unchanged' ORDER BY kind, key LIMIT $4";
    let (kind, key) = after.map_or(("", ""), |after| (&after.kind, &after.key));
    let rows = step.query(query, &[&asked(worked.log), &kind, &key, &i64::from(limit)]).await?;
    let found = all(&rows, |row| {
        let key = RecordKey { kind: get(row, "kind")?, key: get(row, "key")? };
        let content = get_optional::<u64>(row, "content")?.map(ContentNumber);
        Ok((key, VersionAppend { change: word(row, "change", Change::parse)?, content }))
    })?;
    Ok(found.into_iter().collect())
}

/// Only what is staged, and as it was previewed, becomes a version.
async fn append_chunk(
    step: &Step,
    append: &VersionAppends,
    versions: &[(&RecordKey, &VersionAppend)],
) -> Result<u64> {
    let worked = of_run(step, &append.run, &[LogState::Submitting]).await?;
    let scope =
        Scope { organisation: append.organisation.clone(), registration: append.registration.clone() };
    if worked.scope != scope || worked.accreditation != append.accreditation {
        return Err(LedgerError::not_found(format!("summary log `{}` of {scope}", append.run.log)));
    }
    let kinds: Vec<&str> = versions.iter().map(|(key, _)| key.kind.as_str()).collect();
    let keys: Vec<&str> = versions.iter().map(|(key, _)| key.key.as_str()).collect();
    let changes: Vec<&str> = versions.iter().map(|(_, version)| version.change.as_str()).collect();
    let contents: Vec<Option<i64>> =
        versions.iter().map(|(_, version)| version.content.map(|content| asked(content.0))).collect();
    let (number, sequence, log) = (asked(worked.scope_number), asked(worked.head + 1), asked(worked.log));
    let insert =
        "INSERT INTO record_versions (scope, kind, key, sequence, log, content, change, sheet, sheet_row)
         SELECT $1::bigint, s.kind, s.key, $2::bigint, s.log, s.content, s.change, s.sheet, s.sheet_row
         FROM UNNEST($4::text[], $5::text[], $6::text[], $7::bigint[]) AS w (kind, key, change, content)
         JOIN LATERAL (SELECT t.log, t.kind, t.key, t.content, t.change, t.sheet, t.sheet_row FROM staged_rows t
                       WHERE t.log = $3 AND t.kind = w.kind AND t.key = w.key OFFSET 0) s
           ON s.change = w.change AND s.content IS NOT DISTINCT FROM w.content
         ON CONFLICT (scope, kind, key, sequence) DO NOTHING";
    let appended =
        step.execute(insert, &[&number, &sequence, &log, &kinds, &keys, &changes, &contents]).await?;
    if usize::try_from(appended) != Ok(versions.len()) {
        // Appended before, all of the rest?
        let query = "SELECT w.kind, w.key FROM UNNEST($4::text[], $5::text[], $6::bigint[]) AS w (kind, key, content)
             WHERE NOT EXISTS (SELECT 1 FROM record_versions v WHERE v.scope = $1 AND v.kind = w.kind AND v.key = w.key
               AND v.sequence = $2 AND v.log = $3 AND v.content IS NOT DISTINCT FROM w.content) LIMIT 1";
        let missing =
            step.query_optional(query, &[&number, &sequence, &log, &kinds, &keys, &contents]).await?;
        if let Some(row) = missing {
            let (kind, key): (String, String) = (get(&row, "kind")?, get(&row, "key")?);
            let what = format!("{kind} `{key}` as summary log `{}` has it", append.run.log);
            return Err(LedgerError::not_found(what));
        }
    }
    change(step, &worked, "applied = applied + $4", &[&asked(appended)]).await?;
    Ok(appended)
}

async fn commit_at(step: &Step, scope: &Scope, moment: &AsOf) -> Result<Option<u64>> {
    let Some((number, head)) = scope_number(step, scope, Lock::Left).await? else {
        return Ok(matches!(moment, AsOf::Head | AsOf::Time(_) | AsOf::Commit(0)).then_some(0));
    };
    match moment {
        AsOf::Head => Ok(Some(head)),
        AsOf::Commit(sequence) => Ok(Some(*sequence).filter(|sequence| *sequence <= head)),
        AsOf::Time(at) => {
            let query = "SELECT coalesce(max(sequence), 0) AS sequence FROM record_commits
                         WHERE scope = $1 AND committed_ms <= $2";
            let row = step.query_one(query, &[&asked(number), &ms(*at)]).await?;
            Ok(Some(get(&row, "sequence")?))
        }
        AsOf::Log(log) => {
            let log = log_rows::by_id(step, log).await?.filter(|log| log.scope == *scope);
            Ok(log.and_then(|log| log.commit).map(|(sequence, _)| sequence))
        }
    }
}

async fn commits(step: &Step, scope: &Scope, (before, limit): (Option<u64>, u32)) -> Result<Vec<Commit>> {
    let Some((number, _)) = scope_number(step, scope, Lock::Left).await? else { return Ok(Vec::new()) };
    let query = "SELECT c.sequence, c.committed_ms, l.id, l.submitter_id, l.submitter_name, l.undoes, l.created, l.updated,
                   l.unchanged, l.removed FROM record_commits c JOIN summary_logs l ON l.number = c.log
                 WHERE c.scope = $1 AND ($2::bigint IS NULL OR c.sequence < $2) ORDER BY c.sequence DESC LIMIT $3";
    let rows = step.query(query, &[&asked(number), &before.map(asked), &i64::from(limit)]).await?;
    all(&rows, |row| {
        Ok(Commit {
            sequence: get(row, "sequence")?,
            log: id(row, "id", SummaryLogId::parse)?,
            at: get(row, "committed_ms")?,
            by: submitter(row)?,
            stats: stats(row)?.unwrap_or_default(),
            undoes: get_optional(row, "undoes")?,
        })
    })
}

async fn standings(step: &Step, page: &StandingsPage) -> Result<Vec<ScopeStanding>> {
    let organisations: Option<Vec<&str>> =
        page.organisations.as_ref().map(|ids| ids.iter().map(model::OrganisationId::as_str).collect());
    let (organisation, registration) = page
        .after
        .as_ref()
        .map_or(("", ""), |scope| (scope.organisation.as_str(), scope.registration.as_str()));
    let query = "SELECT s.organisation, s.registration, s.head, c.committed_ms,
                   ARRAY(SELECT l.id FROM summary_logs l WHERE l.scope = s.number
                         AND l.state IN ('preprocessing', 'validating', 'validated', 'submitting') ORDER BY l.number) AS active
                 FROM record_scopes s LEFT JOIN record_commits c ON c.scope = s.number AND c.sequence = s.head
                 WHERE (s.organisation, s.registration) > ($1, $2) AND ($3::text[] IS NULL OR s.organisation = ANY($3))
                 ORDER BY s.organisation, s.registration LIMIT $4";
    let values: super::step::Values<'_> =
        &[&organisation, &registration, &organisations, &i64::from(page.limit)];
    all(&step.query(query, values).await?, |row| {
        let active: Vec<String> = row.try_get("active")?;
        Ok(ScopeStanding {
            scope: log_rows::scope(row)?,
            head: get(row, "head")?,
            committed_at: get_optional::<Timestamp>(row, "committed_ms")?,
            active: active.iter().filter_map(|id| SummaryLogId::parse(id).ok()).collect(),
        })
    })
}
