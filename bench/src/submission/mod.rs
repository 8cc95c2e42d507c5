//! Workbooks that become records, through the running service: uploaded, previewed, confirmed, submitted.
//!
//! The limit is a bare parse of the same file by calamine, cell by cell, in this process. The peer is the same job in Python
//! (`bench/peers/submission.py`). While the large one runs, people save documents; the limit there is how long saves take when
//! nothing else goes on.
//!
//! A bench that misses what we promise says so and ends with exit code 1.

mod beside;
mod peers;
pub(crate) mod scene;
pub(crate) mod workbooks;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::gauge::{median, peak_bytes, resident_bytes};
use crate::options;
use crate::report::{Report, Row};
use crate::stage::{Service, Stage};
use beside::{Savers, percentile};
use peers::{PeerDone, Python, Store, bare_parse_cpu_s};
use scene::{Done, Reports, Scene, Used, add_template, rest};

const SMALL: u32 = 15_000;
const LARGE: u32 = 500_000;
/// Odd, so that the median is a measured figure.
const ROUNDS: u32 = 5;
/// Saves without and with a large submission take turns: a disk is faster and slower from minute to minute.
const BESIDE_ROUNDS: u32 = 3;
const QUIET: Duration = Duration::from_secs(15);
const MIB: f64 = 1024.0 * 1024.0;

/// What we promise.
const PREVIEW_RATIO_MAX: f64 = 4.0;
const SUBMIT_CPU_S_MAX: f64 = 0.4;
const SMALL_MIB_MAX: f64 = 96.0;
const LARGE_MIB_MAX: f64 = 512.0;
const PEER_RATIO_MIN: f64 = 15.0;
const SAVE_RATIO_MAX: f64 = 2.0;
/// Somebody who looks on sees it move.
const REPORTS_MIN: usize = 20;

/// What to measure.
#[derive(Debug, Default)]
pub(crate) struct Options {
    server: Option<PathBuf>,
    is_small_only: bool,
    has_no_peer: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        options::read(arguments, |name, values| {
            match name {
                "--server" => options.server = Some(values.next()?.into()),
                "--small" => options.is_small_only = true,
                "--no-peer" => options.has_no_peer = true,
                _ => return None,
            }
            Some(())
        })?;
        Some(options)
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Beside the build results, as the service's data: `/tmp` may be memory.
    let program = std::env::current_exe()?;
    let folder = tempfile::tempdir_in(program.parent().unwrap_or_else(|| Path::new(".")))?;
    // A PostgreSQL server of root's runs as somebody else, below it.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711))?;
    let python = if options.has_no_peer { None } else { Python::find() };
    let bench = Bench { options, folder: folder.path(), python };
    let mut report = Findings::default();
    runtime.block_on(bench.small(&mut report))?;
    if !options.is_small_only {
        runtime.block_on(bench.large(&mut report))?;
    }
    Ok(Report::new("submission", report.rows, PREFACE).failed(report.failures))
}

const PREFACE: &str = "\
A workbook with a marker and so many rows of 30 cells: 12 shared texts, 3 days, 2 flags, 13 numbers. All records are new.
preview: from the first byte uploaded until the preview is there. submit: from the confirmation until the records are there.
ours: processor time or memory of the service. limit: calamine reads every cell of the file and forgets it.
peer: Python with openpyxl (read only): checked, staged, compared and submitted in SQLite.";

#[derive(Default)]
struct Findings {
    rows: Vec<Row>,
    failures: Vec<String>,
}

impl Findings {
    /// A promise that was not kept, if it was not.
    fn missed(&mut self, what: Option<String>) {
        self.failures.extend(what);
    }
}

struct Bench<'a> {
    options: &'a Options,
    folder: &'a Path,
    python: Option<Python>,
}

/// What the contestants took for one size.
struct Figures {
    rows: u32,
    ours: Done,
    limit_cpu_s: f64,
    peer: Option<PeerDone>,
}

impl Bench<'_> {
    async fn small(&self, findings: &mut Findings) -> Result<()> {
        let stage = Stage::start_program(self.options.server.as_deref()).await?;
        let service = &stage.service;
        let at_start_bytes = resident_bytes(service.process());
        add_template(service).await?;
        let (first, next) = (self.workbook(SMALL, 0)?, self.workbook(SMALL, 1)?);
        let (mut ours, mut limits, mut nexts, mut cleared) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut peers, mut postgres) = (Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            let scene = Scene::begin(service, &format!("o{round}")).await?;
            let done = scene.submit(&first, (SMALL, SMALL)).await?;
            cleared.push(rest(service).await.cpu_s);
            let again = scene.submit(&next, (SMALL, SMALL / 10)).await?;
            cleared.push(rest(service).await.cpu_s);
            limits.push(bare_parse_cpu_s(&first, u64::from(SMALL * workbooks::COLUMNS))?);
            eprintln!("{SMALL} rows: round {round} of {ROUNDS}: {}", told(&done));
            // In every round: the machine is faster and slower from minute to minute, for everybody.
            peers.extend(self.peers(&first, None, Store::Sqlite).0);
            postgres.extend(self.peers(&first, None, Store::Postgres).0);
            ours.push(done);
            nexts.push(again);
        }
        let peak_mib = peak_bytes(service.process()) / MIB;
        drop(stage);
        let (_, peer_next) = self.peers(&first, Some(&next), Store::Sqlite);
        let peer = middle_of_peers(&peers);
        let figures = Figures { rows: SMALL, ours: middle(&ours), limit_cpu_s: median(limits), peer };
        self.tell(&figures, findings);
        let next = middle(&nexts);
        let of_next = peer_next.map(|peer| peer.preview.and(peer.submit));
        findings.rows.push(
            Row::new("15000 x 30 again, a tenth changed", "s", end_to_end(&next, None, of_next))
                .noted(&told(&next)),
        );
        if let Some(postgres) = middle_of_peers(&postgres) {
            let theirs = postgres.preview.and(postgres.submit);
            let name = "15000 x 30 end to end, PostgreSQL";
            findings.rows.push(
                Row::new(name, "s", end_to_end(&figures.ours, None, Some(theirs)))
                    .noted(&format!("the peer loads by COPY; {:.2} s CPU with its server", theirs.cpu_s)),
            );
        }
        findings.rows.push(
            Row::new("15000 x 30 cleared away", "s CPU", (median(cleared), None, None))
                .noted("what is staged is removed some seconds after a submission"),
        );
        let memory = (peak_mib, None, figures.peer.map(|peer| peer.memory_bytes / MIB));
        findings.rows.push(
            Row::new("peak memory 15000 x 30", "MiB", memory)
                .noted(&format!("{:.0} MiB after its start", at_start_bytes / MIB)),
        );
        findings.missed((peak_mib > SMALL_MIB_MAX).then(|| format!("{peak_mib:.0} MiB for {SMALL} rows")));
        self.expect_small(&figures, findings);
        Ok(())
    }

    fn expect_small(&self, figures: &Figures, findings: &mut Findings) {
        let Figures { ours, limit_cpu_s, peer, .. } = figures;
        let ratio = ours.preview.cpu_s / limit_cpu_s;
        findings
            .missed((ratio > PREVIEW_RATIO_MAX).then(|| format!("a preview takes {ratio:.1} bare parses")));
        let submit_s = ours.submit.cpu_s;
        findings
            .missed((submit_s > SUBMIT_CPU_S_MAX).then(|| format!("a submission takes {submit_s:.2} s CPU")));
        if let Some(peer) = peer {
            let ratio = peer.preview.and(peer.submit).seconds / ours.preview.and(ours.submit).seconds;
            findings.missed(
                (ratio < PEER_RATIO_MIN).then(|| format!("Python takes only {ratio:.1} times as long")),
            );
        }
    }

    async fn large(&self, findings: &mut Findings) -> Result<()> {
        let workbook = self.workbook(LARGE, 0)?;
        let limit_cpu_s = bare_parse_cpu_s(&workbook, u64::from(LARGE) * u64::from(workbooks::COLUMNS))?;
        let stage = Arc::new(Stage::start_program(self.options.server.as_deref()).await?);
        add_template(&stage.service).await?;
        let savers = Savers::open(&stage).await?;
        // Alone first, for its own figures; beside saves then, for theirs.
        let ours = self.large_alone(&stage.service, &workbook).await?;
        let peak_mib = peak_bytes(stage.service.process()) / MIB;
        let cleared = rest(&stage.service).await;
        let (mut quiet_ms, mut beside_ms) = (Vec::new(), Vec::new());
        for round in 1..=BESIDE_ROUNDS {
            let alone = async {
                tokio::time::sleep(QUIET).await;
                Ok(())
            };
            quiet_ms.extend(savers.beside(alone).await?.1);
            let scene = Scene::begin(&stage.service, &format!("beside{round}")).await?;
            let (beside, times_ms) = savers.beside(scene.submit(&workbook, (LARGE, LARGE))).await?;
            eprintln!("beside {} saves: {}", times_ms.len(), told(&beside));
            beside_ms.extend(times_ms);
            rest(&stage.service).await;
        }
        drop(savers);
        drop(stage);
        let peer = self.peers(&workbook, None, Store::Sqlite).0;
        let Reports { answers, events } = ours.reports;
        let figures = Figures { rows: LARGE, ours, limit_cpu_s, peer };
        self.tell(&figures, findings);
        findings.rows.push(Row::new("500000 x 30 cleared away", "s CPU", (cleared.cpu_s, None, None)));
        let memory = (peak_mib, None, figures.peer.map(|peer| peer.memory_bytes / MIB));
        findings.rows.push(
            Row::new("peak memory 500000 x 30", "MiB", memory)
                .noted(&format!("progress was told {answers} times to who asked, {events} times by events")),
        );
        findings
            .missed((answers.min(events) < REPORTS_MIN).then(|| "hardly any progress was told".to_owned()));
        findings.missed((peak_mib > LARGE_MIB_MAX).then(|| format!("{peak_mib:.0} MiB for {LARGE} rows")));
        for percent in [50, 99] {
            let (beside, quiet) = (percentile(&beside_ms, percent), percentile(&quiet_ms, percent));
            let name = format!("saves beside a submission of 500000 x 30, p{percent}");
            let note = format!("limit: without it; {} and {} saves", beside_ms.len(), quiet_ms.len());
            findings.rows.push(Row::new(&name, "ms", (beside, Some(quiet), None)).noted(&note));
            let is_late = percent == 99 && beside > quiet * SAVE_RATIO_MAX;
            findings.missed(is_late.then(|| {
                format!("a save beside a submission takes {beside:.0} ms (p99); without it {quiet:.0} ms")
            }));
        }
        Ok(())
    }

    async fn large_alone(&self, service: &Service, workbook: &Path) -> Result<Done> {
        let done = Scene::begin(service, "alone").await?.submit(workbook, (LARGE, LARGE)).await?;
        eprintln!("{LARGE} rows: {}", told(&done));
        Ok(done)
    }

    fn workbook(&self, rows: u32, edition: u32) -> Result<PathBuf> {
        let file = self.folder.join(format!("{rows}-{edition}.xlsx"));
        workbooks::write(&file, rows, edition)?;
        eprintln!("{rows} rows: {} bytes", std::fs::metadata(&file)?.len());
        Ok(file)
    }

    /// What the peer takes for a first workbook, and for the next one.
    fn peers(&self, first: &Path, next: Option<&Path>, store: Store) -> (Option<PeerDone>, Option<PeerDone>) {
        let Some(python) = &self.python else { return (None, None) };
        let Ok(folder) = tempfile::tempdir_in(self.folder) else { return (None, None) };
        let done = python.submit(first, (store, folder.path()));
        let again = done.and(next).and_then(|next| python.submit(next, (store, folder.path())));
        (done, again)
    }

    fn tell(&self, figures: &Figures, findings: &mut Findings) {
        let Figures { rows, ours, limit_cpu_s, peer } = figures;
        let (limit, name) = (Some(*limit_cpu_s), |what: &str| format!("{rows} x 30 {what}"));
        let of_peer = |part: fn(&PeerDone) -> f64| peer.as_ref().map(part);
        let preview = (ours.preview.cpu_s, limit, of_peer(|peer| peer.preview.cpu_s));
        let submit = (ours.submit.cpu_s, None, of_peer(|peer| peer.submit.cpu_s));
        let whole = end_to_end(ours, limit, peer.map(|peer| peer.preview.and(peer.submit)));
        findings.rows.extend([
            Row::new(&name("preview"), "s CPU", preview).noted(&format!("{:.2} s", ours.preview.seconds)),
            Row::new(&name("submit"), "s CPU", submit).noted(&format!("{:.2} s", ours.submit.seconds)),
            Row::new(&name("end to end"), "s", whole)
                .noted(&format!("{:.2} s CPU", ours.preview.and(ours.submit).cpu_s)),
        ]);
    }
}

fn end_to_end(ours: &Done, limit: Option<f64>, peer: Option<Used>) -> (f64, Option<f64>, Option<f64>) {
    (ours.preview.and(ours.submit).seconds, limit, peer.map(|peer| peer.seconds))
}

fn told(done: &Done) -> String {
    let Done { preview, submit, .. } = done;
    format!(
        "preview {:.2} s, {:.2} s CPU; submit {:.2} s, {:.2} s CPU",
        preview.seconds, preview.cpu_s, submit.seconds, submit.cpu_s
    )
}

/// The middle of each figure.
fn middle(all: &[Done]) -> Done {
    let of = |figure: fn(&Done) -> f64| median(all.iter().map(figure).collect());
    Done {
        preview: Used { seconds: of(|done| done.preview.seconds), cpu_s: of(|done| done.preview.cpu_s) },
        submit: Used { seconds: of(|done| done.submit.seconds), cpu_s: of(|done| done.submit.cpu_s) },
        reports: Reports::default(),
    }
}

/// The middle of each figure of the peer, if there is one.
fn middle_of_peers(all: &[PeerDone]) -> Option<PeerDone> {
    let of = |figure: fn(&PeerDone) -> f64| median(all.iter().map(figure).collect());
    (!all.is_empty()).then(|| PeerDone {
        preview: Used { seconds: of(|done| done.preview.seconds), cpu_s: of(|done| done.preview.cpu_s) },
        submit: Used { seconds: of(|done| done.submit.seconds), cpu_s: of(|done| done.submit.cpu_s) },
        memory_bytes: of(|done| done.memory_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_words() {
        let options = Options::parse(&["--small", "--server", "x"]).unwrap();
        assert!(options.is_small_only && !options.has_no_peer && options.server.is_some());
        assert!(Options::parse(&["--server"]).is_none() && Options::parse(&["--else"]).is_none());
    }

    #[test]
    fn the_template_is_right_and_its_workbook_is_read_by_the_bare_parse() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("w.xlsx");
        workbooks::write(&file, 20, 0).unwrap();
        bare_parse_cpu_s(&file, 20 * u64::from(workbooks::COLUMNS)).unwrap();
        assert_eq!(workbooks::template().matches("[[table.column]]").count(), 30);
    }
}
