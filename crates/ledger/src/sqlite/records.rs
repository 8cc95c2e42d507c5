//! Records on SQLite: reading them up to the head, and appending versions above it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use model::records::{Change, RecordKey, Scope};
use model::submissions::LogState;
use model::{AccreditationId, SummaryLogId};
use rusqlite::{Connection, Row, params};

use super::comparing::content;
use super::facts::exists;
use super::log_rows::{self, of_run, optional_id, scope_number, stats, word};
use super::rows::{asked, get, get_optional, id, ms};
use super::{Shared, SqliteLedger, erasing};
use crate::adapting::beyond;
use crate::documents::Author;
use crate::logs::{APPENDED_MAX, Run};
use crate::records::{
    AsOf, Commit, ContentNumber, Ended, Erased, Erasure, RecordVersion, RecordsPage, ScopeStanding,
    StandingsPage, VersionAppend, VersionAppends,
};
use crate::{LedgerError, Records, Result};

#[async_trait]
impl Records for SqliteLedger {
    async fn find_by_registration(&self, page: &RecordsPage) -> Result<Vec<RecordVersion>> {
        let (shared, page) = (Arc::clone(&self.shared), page.clone());
        self.read(move |connection| find(connection, &shared, &page)).await
    }

    async fn append_versions(&self, append: &VersionAppends) -> Result<u64> {
        let mut appended = 0;
        let versions: Vec<_> = append.versions.iter().map(|(key, version)| (key.clone(), *version)).collect();
        for chunk in versions.chunks(APPENDED_MAX) {
            let chunk = chunk.to_vec();
            let append = VersionAppends { versions: BTreeMap::new(), ..append.clone() };
            appended += self.write_bulk(move |connection| append_chunk(connection, &append, &chunk)).await?;
        }
        Ok(appended)
    }

    async fn versions_to_append(
        &self,
        run: &Run,
        after: Option<&RecordKey>,
        limit: u32,
    ) -> Result<BTreeMap<RecordKey, VersionAppend>> {
        let (run, after) = (run.clone(), after.cloned().unwrap_or_else(|| RecordKey::new("", "")));
        self.read(move |connection| to_append(connection, &run, (&after, limit))).await
    }

    async fn commit_at(&self, scope: &Scope, moment: &AsOf) -> Result<Option<u64>> {
        let (scope, moment) = (scope.clone(), moment.clone());
        self.read(move |connection| commit_at(connection, &scope, &moment)).await
    }

    async fn record_history(
        &self,
        scope: &Scope,
        key: &RecordKey,
        page: (u64, u32),
    ) -> Result<Vec<RecordVersion>> {
        let (scope, key) = (scope.clone(), key.clone());
        self.read(move |connection| history(connection, &scope, (&key, page))).await
    }

    async fn commits(&self, scope: &Scope, before: Option<u64>, limit: u32) -> Result<Vec<Commit>> {
        let scope = scope.clone();
        self.read(move |connection| commits(connection, &scope, (before, limit))).await
    }

    async fn scope_standings(&self, page: &StandingsPage) -> Result<Vec<ScopeStanding>> {
        let page = page.clone();
        self.read(move |connection| standings(connection, &page)).await
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

fn version(row: &Row<'_>) -> rusqlite::Result<RecordVersion> {
    let content = content(row, "")?;
    let place = match content {
        Some(_) => Some((row.get("sheet")?, row.get("sheet_row")?)),
        None => None,
    };
    Ok(RecordVersion {
        key: RecordKey { kind: row.get("kind")?, key: row.get("key")? },
        sequence: row.get("sequence")?,
        change: word(row, "change", Change::parse)?,
        content,
        hash: get_optional(row, "hash")?,
        log: id(row, "id", SummaryLogId::parse)?,
        place,
        accreditation: optional_id(row, "accreditation", AccreditationId::parse)?,
        template: (row.get("template")?, row.get("template_version")?),
        validated_at: get_optional(row, "validated_ms")?,
        committed_at: get(row, "committed_ms")?,
        by: submitter(row)?,
    })
}

fn submitter(row: &Row<'_>) -> rusqlite::Result<Author> {
    let id: Option<String> = row.get("submitter_id")?;
    let name: Option<String> = row.get("submitter_name")?;
    Ok(Author::new(id.unwrap_or_default(), name.unwrap_or_default()))
}

/// Kinds are walked one after another: below a kind, keys are a range of the index.
fn find(connection: &Connection, shared: &Shared, page: &RecordsPage) -> Result<Vec<RecordVersion>> {
    let Some((scope, head)) = scope_number(connection, &page.scope)? else { return Ok(Vec::new()) };
    // Nobody looks above the head, whatever they ask for.
    let as_of = match page.as_of {
        Some(as_of) if as_of < head => as_of,
        _ if shared.guards.readers_stop_at_head => head,
        _ => u64::MAX,
    };
    let after = page.after.clone().unwrap_or_else(|| RecordKey::new("", ""));
    let mut found = Vec::new();
    for kind in kinds(connection, scope, (&after, page.kind.as_deref()))? {
        let after = if kind == after.kind { after.key.as_str() } else { "" };
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX) - found.len();
        found.extend(find_kind(connection, (scope, as_of), (page, &kind, after, limit))?);
        if found.len() >= usize::try_from(page.limit).unwrap_or(usize::MAX) {
            break;
        }
    }
    Ok(found)
}

/// The kinds there are from the one of a record on; only one of them, if it is asked for.
fn kinds(
    connection: &Connection,
    scope: u64,
    (after, only): (&RecordKey, Option<&str>),
) -> Result<Vec<String>> {
    if let Some(only) = only {
        return Ok(if only < after.kind.as_str() { Vec::new() } else { vec![only.to_owned()] });
    }
    let mut query = connection.prepare_cached(
        "WITH RECURSIVE hop (kind) AS (
             SELECT min(kind) FROM record_versions WHERE scope = ?1 AND kind >= ?2
             UNION ALL SELECT (SELECT min(v.kind) FROM record_versions v WHERE v.scope = ?1 AND v.kind > hop.kind)
             FROM hop WHERE hop.kind IS NOT NULL)
         SELECT kind FROM hop WHERE kind IS NOT NULL",
    )?;
    let found = query.query_map(params![asked(scope), after.kind], |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn find_kind(
    connection: &Connection,
    (scope, as_of): (u64, u64),
    (page, kind, after, limit): (&RecordsPage, &str, &str, usize),
) -> Result<Vec<RecordVersion>> {
    let prefix = page.key_prefix.as_deref().unwrap_or_default();
    let end = beyond(prefix);
    // One bound at each end, so that the index is entered where the page begins.
    let (begins, start) = if after.is_empty() || after < prefix { (">=", prefix) } else { (">", after) };
    let ends = if end.is_some() { "v.key < ?10" } else { "?10 IS NULL" };
    let mut query = connection.prepare_cached(&format!(
        "SELECT {VERSION_COLUMNS} WHERE v.scope = ?1 AND v.kind = ?3 AND v.key {begins} ?4 AND {ends}
         AND v.sequence = (SELECT max(m.sequence) FROM record_versions m
                           WHERE m.scope = ?1 AND m.kind = v.kind AND m.key = v.key AND m.sequence <= ?2)
         AND (?5 OR v.content IS NOT NULL) AND (?6 IS NULL OR r.outcome = ?6)
         AND (?7 IS NULL OR EXISTS (SELECT 1 FROM json_each(r.cells) j WHERE j.key = ?7 AND j.value = ?8))
         ORDER BY v.key LIMIT ?9"
    ))?;
    let (column, value) = page.column.clone().unzip();
    let values = params![
        asked(scope),
        asked(as_of),
        kind,
        start,
        page.ended == Ended::Included,
        page.outcome,
        column,
        value,
        limit,
        end
    ];
    Ok(query.query_map(values, version)?.collect::<rusqlite::Result<_>>()?)
}

fn history(
    connection: &Connection,
    scope: &Scope,
    (key, (after, limit)): (&RecordKey, (u64, u32)),
) -> Result<Vec<RecordVersion>> {
    let Some((scope, head)) = scope_number(connection, scope)? else { return Ok(Vec::new()) };
    let mut query = connection.prepare_cached(&format!(
        "SELECT {VERSION_COLUMNS} WHERE v.scope = ?1 AND v.kind = ?2 AND v.key = ?3 AND v.sequence > ?4 AND v.sequence <= ?5
         ORDER BY v.sequence LIMIT ?6"
    ))?;
    let values = params![asked(scope), key.kind, key.key, asked(after), asked(head), limit];
    Ok(query.query_map(values, version)?.collect::<rusqlite::Result<_>>()?)
}

fn to_append(
    connection: &Connection,
    run: &Run,
    (after, limit): (&RecordKey, u32),
) -> Result<BTreeMap<RecordKey, VersionAppend>> {
    let worked = of_run(connection, run, &[LogState::Submitting])?;
    let mut query = connection.prepare_cached(
        "SELECT kind, key, change, content FROM staged_rows WHERE log = ?1 AND (kind, key) > (?2, ?3) AND change <> 'unchanged'
         ORDER BY kind, key LIMIT ?4",
    )?;
    let found = query.query_map(params![asked(worked.log), after.kind, after.key, limit], |row| {
        let key = RecordKey { kind: row.get("kind")?, key: row.get("key")? };
        let content = row.get::<_, Option<u64>>("content")?.map(ContentNumber);
        Ok((key, VersionAppend { change: word(row, "change", Change::parse)?, content }))
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Only what is staged, and as it was previewed, becomes a version.
fn append_chunk(
    connection: &Connection,
    append: &VersionAppends,
    versions: &[(RecordKey, VersionAppend)],
) -> Result<u64> {
    let worked = of_run(connection, &append.run, &[LogState::Submitting])?;
    let scope =
        Scope { organisation: append.organisation.clone(), registration: append.registration.clone() };
    if worked.scope != scope || worked.accreditation != append.accreditation {
        return Err(LedgerError::not_found(format!("summary log `{}` of {scope}", append.run.log)));
    }
    let place = AppendPlace {
        scope: asked(worked.scope_number),
        sequence: asked(worked.head + 1),
        log: asked(worked.log),
        name: &append.run.log,
    };
    // Whole pages of what is staged are copied by one statement; anything else is looked at row by row.
    let mut appended = append_page(connection, &place, versions)?;
    if appended < versions.len() {
        appended += append_each(connection, &place, versions)?;
    }
    let appended = u64::try_from(appended).unwrap_or(u64::MAX);
    connection
        .prepare_cached("UPDATE summary_logs SET applied = applied + ?2 WHERE number = ?1")?
        .execute(params![place.log, asked(appended)])?;
    Ok(appended)
}

/// Where versions go, as the database counts.
struct AppendPlace<'a> {
    scope: i64,
    sequence: i64,
    log: i64,
    name: &'a SummaryLogId,
}

/// Copies a page, if between its first and its last key there is staged what it says and nothing else. How many are new.
fn append_page(
    connection: &Connection,
    place: &AppendPlace<'_>,
    versions: &[(RecordKey, VersionAppend)],
) -> Result<usize> {
    let (Some((first, _)), Some((last, _))) = (versions.first(), versions.last()) else { return Ok(0) };
    if first.kind != last.kind || !is_staged_so(connection, place.log, versions)? {
        return Ok(0);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO record_versions (scope, kind, key, sequence, log, content, change, sheet, sheet_row)
         SELECT ?1, kind, key, ?2, log, content, change, sheet, sheet_row FROM staged_rows
         WHERE log = ?3 AND kind = ?4 AND key BETWEEN ?5 AND ?6 AND change <> 'unchanged' ON CONFLICT DO NOTHING",
    )?;
    let values = params![place.scope, place.sequence, place.log, first.kind, first.key, last.key];
    Ok(insert.execute(values)?)
}

/// Whether these versions are all that is staged of their kind from the first key to the last.
fn is_staged_so(connection: &Connection, log: i64, versions: &[(RecordKey, VersionAppend)]) -> Result<bool> {
    let (Some((first, _)), Some((last, _))) = (versions.first(), versions.last()) else { return Ok(true) };
    let mut query = connection.prepare_cached(
        "SELECT key, change, content FROM staged_rows
         WHERE log = ?1 AND kind = ?2 AND key BETWEEN ?3 AND ?4 AND change <> 'unchanged' ORDER BY key",
    )?;
    let mut rows = query.query(params![log, first.kind, first.key, last.key])?;
    for (key, version) in versions {
        let Some(row) = rows.next()? else { return Ok(false) };
        let content: Option<i64> = row.get(2)?;
        let is_so = row.get_ref(0)?.as_str().is_ok_and(|found| found == key.key)
            && row.get_ref(1)?.as_str().is_ok_and(|found| found == version.change.as_str())
            && content == version.content.map(|content| asked(content.0));
        if !is_so {
            return Ok(false);
        }
    }
    Ok(rows.next()?.is_none())
}

/// Copies row by row. One that is there already must be what it would be. How many are new.
fn append_each(
    connection: &Connection,
    place: &AppendPlace<'_>,
    versions: &[(RecordKey, VersionAppend)],
) -> Result<usize> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO record_versions (scope, kind, key, sequence, log, content, change, sheet, sheet_row)
         SELECT ?1, kind, key, ?2, log, content, change, sheet, sheet_row FROM staged_rows
         WHERE log = ?3 AND kind = ?4 AND key = ?5 AND change = ?6 AND content IS ?7 ON CONFLICT DO NOTHING",
    )?;
    let mut appended = 0;
    for (key, version) in versions {
        let content = version.content.map(|content| asked(content.0));
        let (kind, key, change) = (&key.kind, &key.key, version.change.as_str());
        let values = params![place.scope, place.sequence, place.log, kind, key, change, content];
        if insert.execute(values)? > 0 {
            appended += 1;
            continue;
        }
        let is_there = exists(
            connection,
            "SELECT 1 FROM record_versions WHERE scope = ?1 AND kind = ?2 AND key = ?3 AND sequence = ?4 AND log = ?5
             AND content IS ?6",
            params![place.scope, kind, key, place.sequence, place.log, content],
        )?;
        if !is_there {
            let what = format!("{kind} `{key}` as summary log `{}` has it", place.name);
            return Err(LedgerError::not_found(what));
        }
    }
    Ok(appended)
}

fn commit_at(connection: &Connection, scope: &Scope, moment: &AsOf) -> Result<Option<u64>> {
    let Some((number, head)) = scope_number(connection, scope)? else {
        return Ok(matches!(moment, AsOf::Head | AsOf::Time(_) | AsOf::Commit(0)).then_some(0));
    };
    match moment {
        AsOf::Head => Ok(Some(head)),
        AsOf::Commit(sequence) => Ok(Some(*sequence).filter(|sequence| *sequence <= head)),
        AsOf::Time(at) => {
            let query = "SELECT coalesce(max(sequence), 0) FROM record_commits WHERE scope = ?1 AND committed_ms <= ?2";
            let mut query = connection.prepare_cached(query)?;
            Ok(Some(query.query_row(params![asked(number), ms(*at)], |row| row.get(0))?))
        }
        AsOf::Log(log) => {
            let log = log_rows::by_id(connection, log)?.filter(|log| log.scope == *scope);
            Ok(log.and_then(|log| log.commit).map(|(sequence, _)| sequence))
        }
    }
}

fn commits(
    connection: &Connection,
    scope: &Scope,
    (before, limit): (Option<u64>, u32),
) -> Result<Vec<Commit>> {
    let Some((number, _)) = scope_number(connection, scope)? else { return Ok(Vec::new()) };
    let mut query = connection.prepare_cached(
        "SELECT c.sequence, c.committed_ms, l.id, l.submitter_id, l.submitter_name, l.undoes, l.created, l.updated,
           l.unchanged, l.removed FROM record_commits c JOIN summary_logs l ON l.number = c.log
         WHERE c.scope = ?1 AND (?2 IS NULL OR c.sequence < ?2) ORDER BY c.sequence DESC LIMIT ?3",
    )?;
    let found = query.query_map(params![asked(number), before.map(asked), limit], |row| {
        Ok(Commit {
            sequence: row.get("sequence")?,
            log: id(row, "id", SummaryLogId::parse)?,
            at: get(row, "committed_ms")?,
            by: submitter(row)?,
            stats: stats(row)?.unwrap_or_default(),
            undoes: row.get("undoes")?,
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn standings(connection: &Connection, page: &StandingsPage) -> Result<Vec<ScopeStanding>> {
    let organisations = page.organisations.as_ref().map(|ids| {
        serde_json::to_string(&ids.iter().map(model::OrganisationId::as_str).collect::<Vec<_>>())
            .unwrap_or_default()
    });
    let (organisation, registration) = page
        .after
        .as_ref()
        .map_or(("", ""), |scope| (scope.organisation.as_str(), scope.registration.as_str()));
    let mut query = connection.prepare_cached(
        "SELECT s.*, c.committed_ms, (SELECT json_group_array(l.id) FROM summary_logs l WHERE l.scope = s.number
           AND l.state IN ('preprocessing', 'validating', 'validated', 'submitting')) AS active
         FROM record_scopes s LEFT JOIN record_commits c ON c.scope = s.number AND c.sequence = s.head
         WHERE (s.organisation, s.registration) > (?1, ?2)
         AND (?3 IS NULL OR s.organisation IN (SELECT value FROM json_each(?3)))
         ORDER BY s.organisation, s.registration LIMIT ?4",
    )?;
    let found = query.query_map(params![organisation, registration, organisations, page.limit], |row| {
        let active: String = row.get("active")?;
        let active = super::rows::names(&active);
        Ok(ScopeStanding {
            scope: log_rows::scope(row)?,
            head: row.get("head")?,
            committed_at: get_optional::<Timestamp>(row, "committed_ms")?,
            active: active.iter().filter_map(|id| SummaryLogId::parse(id).ok()).collect(),
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
