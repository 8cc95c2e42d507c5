//! Every page of the console on a full ledger: 100,000 documents, 1,000,000 record versions, and what goes with them.
//!
//! The ledger is filled through its port before the release service starts on it. Then a browser's requests are made, page by page:
//! the document, its styles and scripts, and what the scripts ask for when the page opens. Measured are the time from the request
//! to the last byte over the loopback, and the bytes that come, compressed as a browser asks for it.
//!
//! Promised, and a miss ends with exit code 1: no request takes more than 100 ms in the middle of its rounds, and no page with all it
//! loads for the first time is more than 150 kB. The editor's page is left out: it loads the Document Server's scripts.

mod asking;
mod filling;
mod pages;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::gauge::{median, peak_bytes};
use crate::options;
use crate::report::{Report, Row};
use crate::stage::Service;
use asking::{Asked, Visitor};
use filling::{Filled, Size};
use pages::PageAsked;

/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 7;
/// What is promised.
const REQUEST_MS_MAX: f64 = 100.0;
const PAGE_BYTES_MAX: usize = 150_000;
const MIB: f64 = 1024.0 * 1024.0;
/// Nobody listens there: it is the port of discarded things. Pages are made without a Document Server.
const NO_DOCUMENT_SERVER: &str = "http://127.0.0.1:9";

/// What to measure.
#[derive(Debug)]
pub(crate) struct Options {
    server: Option<PathBuf>,
    size: Size,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options =
            Self { server: None, size: Size { documents: 100_000, record_versions: 1_000_000 } };
        options::read(arguments, |name, values| {
            match name {
                "--server" => options.server = Some(values.next()?.into()),
                "--documents" => options.size.documents = values.next()?.parse().ok()?,
                "--record-versions" => options.size.record_versions = values.next()?.parse().ok()?,
                _ => return None,
            }
            Some(())
        })?;
        Some(options)
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Report> {
    // Beside the build results: `/tmp` may be memory.
    let program = std::env::current_exe()?;
    let folder = tempfile::tempdir_in(program.parent().unwrap_or_else(|| Path::new(".")))?;
    let filled = filling::fill(&folder.path().join("data"), options.size).await?;
    let service = Service::start_on(folder, NO_DOCUMENT_SERVER, options.server.as_deref(), &[]).await?;
    let visitor = Visitor::sign_in(&service).await?;
    let mut findings = Findings::default();
    for page in pages::all(&filled) {
        findings.look(&visitor, &page).await?;
    }
    let preface = preface(&filled, peak_bytes(service.process()) / MIB);
    let worst = findings.rows_of_the_worst();
    findings.rows.extend(worst);
    Ok(Report::new("console", findings.rows, preface).failed(findings.failures))
}

fn preface(filled: &Filled, peak_mib: f64) -> String {
    let Filled { documents, contents, record_versions, .. } = filled;
    format!(
        "{documents} documents with {contents} versions, {record_versions} record versions; {ROUNDS} rounds; \
         peak memory of the service {peak_mib:.0} MiB.\n\
         ours: the slowest request of the page, the middle of its rounds. limit: what is promised.\n\
         The bytes are those of the page, its styles and scripts, and what they ask for at first, compressed."
    )
}

#[derive(Default)]
struct Findings {
    rows: Vec<Row>,
    failures: Vec<String>,
    slowest_ms: f64,
    largest_bytes: usize,
}

impl Findings {
    async fn look(&mut self, visitor: &Visitor, page: &PageAsked) -> Result<()> {
        let asked = asked(visitor, page).await?;
        let bytes: usize = asked.iter().map(|request| request.bytes).sum();
        let worst_ms = asked.iter().flat_map(|request| &request.rounds_ms).copied().fold(0.0, f64::max);
        let slowest = asked.iter().map(|request| (median(request.rounds_ms.clone()), request.path.as_str()));
        let (slowest_ms, path) =
            slowest.fold((0.0, ""), |one, other| if other.0 > one.0 { other } else { one });
        let note = format!("worst {worst_ms:.0} ms; {} requests, {bytes} bytes; slowest {path}", asked.len());
        eprintln!("{:<44} {slowest_ms:>7.1} ms  {note}", page.name);
        self.rows.push(Row::new(page.name, "ms", (slowest_ms, Some(REQUEST_MS_MAX), None)).noted(&note));
        if slowest_ms > REQUEST_MS_MAX {
            self.failures.push(format!("{}: {path} takes {slowest_ms:.0} ms", page.name));
        }
        if bytes > PAGE_BYTES_MAX {
            self.failures.push(format!("{}: {bytes} bytes", page.name));
        }
        self.slowest_ms = self.slowest_ms.max(slowest_ms);
        self.largest_bytes = self.largest_bytes.max(bytes);
        Ok(())
    }

    fn rows_of_the_worst(&self) -> [Row; 2] {
        #[allow(clippy::cast_precision_loss, reason = "figures for people")]
        let kilobytes = |bytes: usize| bytes as f64 / 1000.0;
        [
            Row::new("the slowest request of all", "ms", (self.slowest_ms, Some(REQUEST_MS_MAX), None)),
            Row::new(
                "the largest page of all",
                "kB",
                (kilobytes(self.largest_bytes), Some(kilobytes(PAGE_BYTES_MAX)), None),
            ),
        ]
    }
}

/// Every request of a page, each in all its rounds. The first round warms nothing up: it counts like the others.
async fn asked(visitor: &Visitor, page: &PageAsked) -> Result<Vec<Asked>> {
    let mut asked = Vec::new();
    for path in visitor.paths_of(page).await? {
        asked.push(visitor.ask(&path, ROUNDS).await?);
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_words() {
        let options = Options::parse(&["--documents", "7", "--server", "x"]).unwrap();
        assert_eq!((options.size.documents, options.size.record_versions), (7, 1_000_000));
        assert!(
            Options::parse(&["--documents"]).is_none() && Options::parse(&["--documents", "many"]).is_none()
        );
    }
}
