//! Rows on their way from a workbook into the ledger.
//!
//! Guarantees: reading runs off the async threads and never runs ahead of the ledger by more than a few thousand rows; what cannot be
//! staged stops the reading. Does not do: judge rows (`sheets`), compare them (`ledger`).

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use jiff::tz::TimeZone;
use ledger::documents::BlobFacts;
use ledger::logs::{CHUNK_MAX, Run};
use ledger::staging::{Duplicate, ProblemChunk, ProblemCount, UndoStaged};
use model::submissions::{Problem, Severity, StagedRow};
use serde_json::json;
use sheets::{Assessment, Sink, SinkError};
use tokio::sync::{mpsc, oneshot};

use super::{Grounds, SubmissionError};
use crate::app::App;
use crate::incoming::spool_blob;

/// Chunks between the reader and the ledger.
const CHUNKS_AHEAD: usize = 2;
/// How far reading steps back behind everything else, of 19.
const NICENESS: i32 = 10;
/// Chunks the ledger has at once: one is compared with the records while the other one is written.
const CHUNKS_AT_ONCE: usize = 2;

/// What was read, as far as the ledger has to know.
pub(super) struct Read {
    /// What is wrong.
    pub(super) problems: ProblemChunk,
    /// What is wrong besides, in numbers.
    pub(super) beyond: Vec<ProblemCount>,
    /// Whether it cannot be submitted.
    pub(super) is_fatal: bool,
    /// What is kept with the log: tables, single values, totals.
    pub(super) facts: Option<String>,
}

impl Read {
    /// The rows of an undoing, which come from the records themselves.
    pub(super) fn undoing(sequence: u64, undone: &UndoStaged) -> Self {
        let facts = json!({
            "undoes": sequence, "restored": undone.restored, "removed": undone.removed, "left": undone.left,
            "left_keys": undone.left_keys.iter().map(|key| [&key.kind, &key.key]).collect::<Vec<_>>(),
        });
        let problems = ProblemChunk { found_before: 0, problems: Vec::new(), keep_max: 0 };
        Self { problems, beyond: Vec::new(), is_fatal: false, facts: Some(facts.to_string()) }
    }
}

/// Reads a workbook and stages its rows.
pub(super) async fn read(
    app: &Arc<App>,
    run: &Run,
    grounds: &Grounds,
    blob: &BlobFacts,
) -> Result<Read, SubmissionError> {
    let spooled = match app.arrived.take(&blob.digest) {
        Some(spooled) => spooled,
        None => spool_blob(app, &blob.digest).await?,
    };
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let today = app.now().to_zoned(TimeZone::UTC).date();
    let (template, facts) = (grounds.template.clone(), grounds.facts.clone());
    let reading = in_background(move || {
        let mut workbook = spooled.reader()?;
        let mut chunks = Chunks { sender, rows: Vec::with_capacity(CHUNK_MAX) };
        let assessment = sheets::assess(&template, (&facts, today), &mut workbook, &mut chunks)?;
        chunks.send().map_err(sheets::Unreadable::from)?;
        Ok::<_, SubmissionError>(assessment)
    })?;
    let chunks = stream::unfold(receiver, |mut receiver| async move {
        let rows = receiver.recv().await?;
        Some((rows, receiver))
    });
    let mut staged = pin!(chunks.map(|rows| app.ledger.stage_rows(run, rows)).buffered(CHUNKS_AT_ONCE));
    let mut duplicates = Vec::new();
    while let Some(found) = staged.next().await {
        duplicates.extend(found?);
        steps::reached("log.chunk");
        app.logs_moved.notify_waiters();
    }
    let assessment = reading.await.map_err(|_| SubmissionError::Interrupted)??;
    Ok(told(assessment, &duplicates, grounds.template.limits.problems))
}

/// Has long work done by a thread of its own, for which nobody waits who only saves a document: it gets what is left of the processor.
/// Begins at once.
fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<oneshot::Receiver<T>, SubmissionError> {
    let (sender, done) = oneshot::channel();
    let begun = std::thread::Builder::new().name("workbook".to_owned()).spawn(move || {
        // The thread alone, on Linux. Where it is refused, the work is done all the same.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        // Whoever wanted it may be gone.
        let _ = sender.send(work());
    });
    begun.map_err(|_| SubmissionError::Interrupted)?;
    Ok(done)
}

/// Collects rows into chunks and hands them over.
struct Chunks {
    sender: mpsc::Sender<Vec<StagedRow>>,
    rows: Vec<StagedRow>,
}

impl Chunks {
    fn send(&mut self) -> Result<(), SinkError> {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(CHUNK_MAX));
        self.sender.blocking_send(rows).map_err(|cause| SinkError(cause.into()))
    }
}

impl Sink for Chunks {
    fn row(&mut self, row: StagedRow) -> Result<(), SinkError> {
        self.rows.push(row);
        if self.rows.len() < CHUNK_MAX { Ok(()) } else { self.send() }
    }

    fn is_cancelled(&self) -> bool {
        self.sender.is_closed()
    }
}

fn told(assessment: Assessment, duplicates: &[Duplicate], keep_max: u64) -> Read {
    let facts = facts_of(&assessment);
    let beyond = beyond(&assessment);
    let mut problems = assessment.problems;
    let mut is_fatal = assessment.fatal > 0;
    if !is_fatal {
        // The reader names duplicates itself; if it ever overlooks one, nothing may be counted twice all the same.
        problems.extend(duplicates.iter().map(occurs_twice));
        is_fatal = !duplicates.is_empty();
    }
    Read {
        problems: ProblemChunk { found_before: 0, problems, keep_max },
        beyond,
        is_fatal,
        facts: Some(facts),
    }
}

/// Problems that were counted and not kept.
fn beyond(assessment: &Assessment) -> Vec<ProblemCount> {
    let mut kept: BTreeMap<&str, (Severity, u64)> = BTreeMap::new();
    for problem in &assessment.problems {
        kept.entry(&problem.code).or_insert((problem.severity, 0)).1 += 1;
    }
    assessment
        .by_code
        .iter()
        .filter_map(|(code, count)| {
            let (severity, kept) = kept.get(code.as_str()).copied().unwrap_or((Severity::Error, 0));
            let count = count.saturating_sub(kept);
            (count > 0).then(|| ProblemCount { code: code.clone(), severity, count })
        })
        .collect()
}

fn occurs_twice(duplicate: &Duplicate) -> Problem {
    let (sheet, row) = &duplicate.again;
    Problem {
        code: sheets::code::KEY_TWICE.to_owned(),
        severity: Severity::Fatal,
        level: 3,
        sheet: Some(sheet.clone()),
        cell: None,
        header: None,
        row_id: Some(duplicate.key.key.clone()),
        value: None,
        sentence: format!(
            "Row {row} has the same id as row {} of {}. Give each row an id of its own.",
            duplicate.first.1, duplicate.first.0
        ),
    }
}

fn facts_of(assessment: &Assessment) -> String {
    let tables: Vec<_> = assessment
        .tables
        .iter()
        .map(|table| {
            let totals = &table.totals;
            json!({
                "name": table.name, "kind": table.kind, "sheet": table.sheet, "header_row": table.header_row,
                "columns": table.columns,
                "included": totals.included, "excluded": totals.excluded, "ignored": totals.ignored,
                "rejected": totals.rejected, "skipped": totals.skipped, "unused": totals.unused,
                "measure": totals.measure.as_ref().map(ToString::to_string),
            })
        })
        .collect();
    json!({ "tables": tables, "meta": assessment.meta }).to_string()
}
