//! The scanner: a program of the operator that looks at a workbook before anybody reads it.
//!
//! It gets the bytes on its standard input. Exit 0 means clean, 1 means that something was found (its first line of output says what), anything else
//! means that it could not tell: that is tried again. This is how `clamdscan -` behaves.
//! Guarantees: it runs within a time limit and is stopped after it. Does not do: run if none is configured.

use std::process::Stdio;
use std::time::Duration;

use ledger::logs::{LogSource, SummaryLog};
use model::submissions::{Problem, Severity};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::SubmissionError;
use crate::app::App;

/// Longest a scanner may take.
const TIME_MAX: Duration = Duration::from_secs(120);
/// As much of what it says is read.
const SAID_BYTES_MAX: u64 = 4096;

/// Scans a workbook; tells what was found, if something was.
pub(super) async fn scan(app: &App, log: &SummaryLog) -> Result<Option<Problem>, SubmissionError> {
    let LogSource::Workbook { blob, .. } = &log.source else { return Ok(None) };
    let Some((program, arguments)) = app.config.submitting.scanner.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let blob = app.vault.open(&blob.digest, None).await?;
    let scanning = run(command, blob.reader);
    let (code, said) = match tokio::time::timeout(TIME_MAX, scanning).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(cause)) => return Err(SubmissionError::Scanner { what: cause.to_string() }),
        Err(_) => return Err(SubmissionError::Scanner { what: "it took too long".to_owned() }),
    };
    match code {
        Some(0) => Ok(None),
        Some(1) => Ok(Some(found(&said))),
        code => Err(SubmissionError::Scanner { what: format!("it ended with {code:?}") }),
    }
}

async fn run(
    mut command: Command,
    mut workbook: impl tokio::io::AsyncRead + Unpin,
) -> std::io::Result<(Option<i32>, String)> {
    let mut child = command.spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // A scanner that has seen enough hangs up; its exit code tells what it thinks.
            let _ = tokio::io::copy(&mut workbook, &mut stdin).await;
            let _ = stdin.shutdown().await;
        }
    };
    let listening = async {
        let mut said = Vec::new();
        if let Some(stdout) = stdout {
            let mut first = stdout.take(SAID_BYTES_MAX);
            let _ = first.read_to_end(&mut said).await;
            // The rest is read and forgotten, so that the scanner can end.
            let _ = tokio::io::copy(&mut first.into_inner(), &mut tokio::io::sink()).await;
        }
        String::from_utf8_lossy(&said).into_owned()
    };
    let ((), said) = tokio::join!(feeding, listening);
    Ok((child.wait().await?.code(), said))
}

fn found(said: &str) -> Problem {
    let first = said.lines().next().unwrap_or_default();
    let shown: String = first.chars().filter(|each| !each.is_control()).take(200).collect();
    Problem {
        code: "FILE_REFUSED_BY_SCANNER".to_owned(),
        severity: Severity::Fatal,
        level: 0,
        sheet: None,
        cell: None,
        header: None,
        row_id: None,
        value: None,
        sentence: format!("The scanner refused the file: {shown}. Clean it, or bring another one."),
    }
}
