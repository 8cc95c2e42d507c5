//! Problems of workbooks on PostgreSQL: all are counted, so many of each severity are kept.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::SummaryLogId;
use model::submissions::{Problem, Severity};
use tokio_postgres::Row;

use super::log_rows::{Worked, change};
use super::rows::{all, asked, get, get_optional, text};
use super::step::Step;
use crate::staging::{ProblemChunk, ProblemCount, ProblemsPage};
use crate::{LedgerError, Result};

/// Where problems of a severity stand: the worst first.
fn rank(severity: Severity) -> u8 {
    match severity {
        Severity::Fatal => 0,
        Severity::Error => 1,
        Severity::Warning => 2,
    }
}

/// How often what was found, by rank and code.
type Counts<'a> = BTreeMap<(u8, &'a str), u64>;

/// Counts problems that were not counted before, and keeps those for which there is room.
pub(super) async fn count(step: &Step, worked: &Worked, chunk: &ProblemChunk) -> Result<()> {
    let query = "SELECT fatal, error, warning FROM summary_logs WHERE number = $1";
    let row = step.query_one(query, &[&asked(worked.log)]).await?;
    let mut totals: [u64; 3] = [get(&row, "fatal")?, get(&row, "error")?, get(&row, "warning")?];
    let counted: u64 = totals.iter().sum();
    let known = usize::try_from(counted.saturating_sub(chunk.found_before)).unwrap_or(usize::MAX);
    let (mut kept, mut counts) = (Vec::new(), Counts::new());
    for problem in chunk.problems.iter().skip(known) {
        let rank = rank(problem.severity);
        let total = &mut totals[usize::from(rank)];
        if *total < chunk.keep_max {
            kept.push((rank, *total, problem));
        }
        *total += 1;
        *counts.entry((rank, problem.code.as_str())).or_default() += 1;
    }
    keep(step, worked.log, &kept).await?;
    add_counts(step, worked.log, &counts).await?;
    let [fatal, error, warning] = totals.map(asked);
    change(step, worked, "fatal = $4, error = $5, warning = $6", &[&fatal, &error, &warning]).await
}

/// Counts problems that nobody keeps.
pub(super) async fn count_more(step: &Step, worked: &Worked, more: &[ProblemCount]) -> Result<()> {
    let (mut totals, mut counts) = ([0_u64; 3], Counts::new());
    for ProblemCount { code, severity, count } in more {
        let rank = rank(*severity);
        totals[usize::from(rank)] += count;
        *counts.entry((rank, code.as_str())).or_default() += count;
    }
    add_counts(step, worked.log, &counts).await?;
    let [fatal, error, warning] = totals.map(asked);
    let assignments = "fatal = fatal + $4, error = error + $5, warning = warning + $6";
    change(step, worked, assignments, &[&fatal, &error, &warning]).await
}

async fn add_counts(step: &Step, log: u64, counts: &Counts<'_>) -> Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    let ranks: Vec<i64> = counts.keys().map(|(rank, _)| i64::from(*rank)).collect();
    let codes: Vec<Cow<'_, str>> = counts.keys().map(|(_, code)| text(code)).collect();
    let numbers: Vec<i64> = counts.values().map(|count| asked(*count)).collect();
    step.execute(
        "INSERT INTO problem_counts (log, severity, code, count)
         SELECT $1::bigint, n.severity, n.code, n.count FROM UNNEST($2::bigint[], $3::text[], $4::bigint[]) AS n (severity, code, count)
         ON CONFLICT (log, severity, code) DO UPDATE SET count = problem_counts.count + excluded.count",
        &[&asked(log), &ranks, &codes, &numbers],
    )
    .await?;
    Ok(())
}

async fn keep(step: &Step, log: u64, kept: &[(u8, u64, &Problem)]) -> Result<()> {
    if kept.is_empty() {
        return Ok(());
    }
    let ranks: Vec<i64> = kept.iter().map(|(rank, ..)| i64::from(*rank)).collect();
    let numbers: Vec<i64> = kept.iter().map(|(_, number, _)| asked(*number)).collect();
    let levels: Vec<i64> = kept.iter().map(|(.., problem)| i64::from(problem.level)).collect();
    let texts = |of: fn(&Problem) -> Option<&String>| -> Vec<Option<Cow<'_, str>>> {
        kept.iter().map(|(.., problem)| of(problem).map(|found| text(found))).collect()
    };
    step.execute(
        "INSERT INTO problems (log, severity, number, code, level, sheet, cell, header, row_id, value, sentence)
         SELECT $1::bigint, n.* FROM UNNEST($2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[],
           $9::text[], $10::text[], $11::text[]) AS n",
        &[
            &asked(log),
            &ranks,
            &numbers,
            &texts(|problem| Some(&problem.code)),
            &levels,
            &texts(|problem| problem.sheet.as_ref()),
            &texts(|problem| problem.cell.as_ref()),
            &texts(|problem| problem.header.as_ref()),
            &texts(|problem| problem.row_id.as_ref()),
            &texts(|problem| problem.value.as_ref()),
            &texts(|problem| Some(&problem.sentence)),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn list(step: &Step, page: &ProblemsPage) -> Result<Vec<(u64, Problem)>> {
    let query = "SELECT p.severity, p.number, p.code, p.level, p.sheet, p.cell, p.header, p.row_id, p.value, p.sentence
                 FROM problems p WHERE p.log = (SELECT l.number FROM summary_logs l WHERE l.id = $1)
                 AND ($2::bigint IS NULL OR p.severity = $2) AND ($3::text IS NULL OR p.code = $3)
                 AND ($4::text IS NULL OR p.sheet = $4) AND (p.severity, p.number) > ($5, $6)
                 ORDER BY p.severity, p.number LIMIT $7";
    let (severity, number) =
        page.after.map_or((-1, -1), |(severity, number)| (i64::from(rank(severity)), asked(number)));
    let wanted = page.severity.map(|severity| i64::from(rank(severity)));
    let (code, sheet) = (page.code.as_deref().map(text), page.sheet.as_deref().map(text));
    let values: super::step::Values<'_> =
        &[&page.log.as_str(), &wanted, &code, &sheet, &severity, &number, &i64::from(page.limit)];
    all(&step.query(query, values).await?, |row| Ok((get(row, "number")?, problem(row)?)))
}

fn severity(row: &Row) -> Result<Severity> {
    let stored: u32 = get(row, "severity")?;
    let found = Severity::ALL.iter().map(|(severity, _)| *severity);
    let found = found.into_iter().find(|each| u32::from(rank(*each)) == stored);
    found.ok_or_else(|| LedgerError::damaged(format!("the severity {stored} of a problem")))
}

fn problem(row: &Row) -> Result<Problem> {
    Ok(Problem {
        code: get(row, "code")?,
        severity: severity(row)?,
        level: u8::try_from(get::<u32>(row, "level")?).map_err(LedgerError::damaged)?,
        sheet: get_optional(row, "sheet")?,
        cell: get_optional(row, "cell")?,
        header: get_optional(row, "header")?,
        row_id: get_optional(row, "row_id")?,
        value: get_optional(row, "value")?,
        sentence: get(row, "sentence")?,
    })
}

pub(super) async fn counts(step: &Step, log: &SummaryLogId) -> Result<Vec<ProblemCount>> {
    let query = "SELECT c.severity, c.code, c.count FROM problem_counts c
                 WHERE c.log = (SELECT l.number FROM summary_logs l WHERE l.id = $1)
                 ORDER BY c.severity, c.count DESC, c.code";
    all(&step.query(query, &[&log.as_str()]).await?, |row| {
        Ok(ProblemCount { code: get(row, "code")?, severity: severity(row)?, count: get(row, "count")? })
    })
}
