//! Problems of workbooks on SQLite: all are counted, so many of each severity are kept.

use model::SummaryLogId;
use model::submissions::{Problem, Severity};
use rusqlite::{Connection, Row, params};

use super::rows::asked;
use super::staging::rank;
use crate::Result;
use crate::staging::{ProblemChunk, ProblemCount, ProblemsPage};

/// Counts problems that were not counted before, and keeps those for which there is room.
pub(super) fn count(connection: &Connection, log: u64, chunk: &ProblemChunk) -> Result<()> {
    let mut totals: [u64; 3] = connection
        .prepare_cached("SELECT fatal, error, warning FROM summary_logs WHERE number = ?1")?
        .query_row([asked(log)], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?;
    let counted: u64 = totals.iter().sum();
    let known = usize::try_from(counted.saturating_sub(chunk.found_before)).unwrap_or(usize::MAX);
    for problem in chunk.problems.iter().skip(known) {
        let rank = rank(problem.severity);
        let total = &mut totals[usize::from(rank)];
        if *total < chunk.keep_max {
            keep(connection, (log, rank, *total), problem)?;
        }
        *total += 1;
        connection
            .prepare_cached(
                "INSERT INTO problem_counts (log, severity, code, count) VALUES (?1, ?2, ?3, 1)
                 ON CONFLICT DO UPDATE SET count = count + 1",
            )?
            .execute(params![asked(log), rank, problem.code])?;
    }
    let [fatal, error, warning] = totals.map(asked);
    connection
        .prepare_cached("UPDATE summary_logs SET fatal = ?2, error = ?3, warning = ?4 WHERE number = ?1")?
        .execute(params![asked(log), fatal, error, warning])?;
    Ok(())
}

/// Counts problems that nobody keeps.
pub(super) fn count_more(connection: &Connection, log: u64, more: &[ProblemCount]) -> Result<()> {
    for ProblemCount { code, severity, count } in more {
        let column = severity.as_str();
        connection.execute(
            &format!("UPDATE summary_logs SET {column} = {column} + ?2 WHERE number = ?1"),
            params![asked(log), asked(*count)],
        )?;
        connection
            .prepare_cached(
                "INSERT INTO problem_counts (log, severity, code, count) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET count = count + ?4",
            )?
            .execute(params![asked(log), rank(*severity), code, asked(*count)])?;
    }
    Ok(())
}

fn keep(connection: &Connection, (log, rank, number): (u64, u8, u64), problem: &Problem) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO problems (log, severity, number, code, level, sheet, cell, header, row_id, value, sentence)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            asked(log),
            rank,
            asked(number),
            problem.code,
            problem.level,
            problem.sheet,
            problem.cell,
            problem.header,
            problem.row_id,
            problem.value,
            problem.sentence,
        ])?;
    Ok(())
}

pub(super) fn list(connection: &Connection, page: &ProblemsPage) -> Result<Vec<(u64, Problem)>> {
    let mut query = connection.prepare_cached(
        "SELECT p.* FROM problems p JOIN summary_logs l ON l.number = p.log WHERE l.id = ?1
         AND (?2 IS NULL OR p.severity = ?2) AND (?3 IS NULL OR p.code = ?3) AND (?4 IS NULL OR p.sheet = ?4)
         AND (p.severity, p.number) > (?5, ?6) ORDER BY p.severity, p.number LIMIT ?7",
    )?;
    let (severity, number) =
        page.after.map_or((-1, -1), |(severity, number)| (i64::from(rank(severity)), asked(number)));
    let wanted = page.severity.map(rank);
    let values = params![page.log.as_str(), wanted, page.code, page.sheet, severity, number, page.limit];
    let found = query.query_map(values, |row| Ok((row.get("number")?, problem(row)?)))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn severity(row: &Row<'_>) -> rusqlite::Result<Severity> {
    let stored: u8 = row.get("severity")?;
    let found = Severity::ALL.iter().map(|(severity, _)| *severity).find(|each| rank(*each) == stored);
    found.ok_or_else(|| rusqlite::Error::InvalidColumnName("severity".to_owned()))
}

fn problem(row: &Row<'_>) -> rusqlite::Result<Problem> {
    Ok(Problem {
        code: row.get("code")?,
        severity: severity(row)?,
        level: row.get("level")?,
        sheet: row.get("sheet")?,
        cell: row.get("cell")?,
        header: row.get("header")?,
        row_id: row.get("row_id")?,
        value: row.get("value")?,
        sentence: row.get("sentence")?,
    })
}

pub(super) fn counts(connection: &Connection, log: &SummaryLogId) -> Result<Vec<ProblemCount>> {
    let mut query = connection.prepare_cached(
        "SELECT c.* FROM problem_counts c JOIN summary_logs l ON l.number = c.log WHERE l.id = ?1
         ORDER BY c.severity, c.count DESC, c.code",
    )?;
    let found = query.query_map([log.as_str()], |row| {
        Ok(ProblemCount { code: row.get("code")?, severity: severity(row)?, count: row.get("count")? })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
