//! Saves while thousands of sessions are held: the understudy's load driver keeps a person in every document, saves at a
//! steady pace and lets people come and go, beside the same saves on the same server with one session and nothing else.
//!
//! A save lasts from the moment its callback is sent to its answer. Guarantees: an answer that is not 0, a request that
//! failed, a save that is not listed afterwards, a session that is not listed, a pace that was not kept and a 99th
//! percentile beyond [`RATIO_MAX`] times the quiet one are failures of the bench.

mod documents;
mod witness;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use understudy::load::{Held, Hold, Target};
use understudy::{Running, Settings};

use crate::gauge::{cpu_s, resident_bytes};
use crate::options;
use crate::report::{Report, Row};
use crate::stage::{SECRET, Service, Template};
use documents::Documents;
use witness::{Times, Witness};

const SIZE_BYTES: usize = 100_000;
/// Saves of the quiet phase; those before them warm the server up and are not counted.
const QUIET_SAVES: u64 = 400;
const WARMING_SAVES: u64 = 40;
/// The 99th percentile may be so many times the quiet one.
const RATIO_MAX: f64 = 3.0;
/// The journal's times are whole milliseconds.
const RESOLUTION_MS: f64 = 1.0;
/// Less of the pace that was asked for has not shown what it should.
const PACE_MIN: f64 = 0.95;
const OPENINGS_MAX: usize = 16;
/// Of a hundred saves, so many close the document, and so many are a visitor's.
const CLOSES: u8 = 10;
const VISITS: u8 = 10;
/// Long enough for the final save.
const EMPTY_FOR: Duration = Duration::from_secs(1);
/// The real server takes longer; how long it converts is not what is measured.
const CONVERSION_MS: u64 = 20;
/// Built files that the stand-in keeps; links older than these are not asked for.
const RESULTS_BYTES_MAX: u64 = 256 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);
const MIB: f64 = 1024.0 * 1024.0;

/// What to hold.
pub(crate) struct Options {
    sessions: usize,
    seconds: u64,
    saves_per_s: f64,
    server: Option<PathBuf>,
}

impl Options {
    /// `None` if there is no such option, or its value is none.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self { sessions: 2000, seconds: 600, saves_per_s: 20.0, server: None };
        options::read(arguments, |name, values| {
            match name {
                "--sessions" => options.sessions = values.next()?.parse().ok().filter(|count| *count > 0)?,
                "--seconds" => options.seconds = values.next()?.parse().ok().filter(|count| *count > 0)?,
                "--saves-per-s" => {
                    options.saves_per_s = values.next()?.parse().ok().filter(|pace| *pace > 0.0)?
                }
                "--server" => options.server = Some(values.next()?.into()),
                _ => return None,
            }
            Some(())
        })?;
        Some(options)
    }
}

/// What the server used while the sessions were held.
struct Used {
    cores: f64,
    memory_bytes_max: f64,
    memory_bytes_before: f64,
}

/// What is compared.
struct Figures {
    quiet: Times,
    held: Times,
    saves_per_s: f64,
    sessions_listed: usize,
    used: Used,
}

pub(crate) fn run(options: Options) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<Report> {
    let template = Template::new(SIZE_BYTES)?;
    let document_server = Arc::new(start_document_server().await?);
    let service = Arc::new(Service::start(&document_server.url(), options.server.as_deref()).await?);
    let mut witness = Witness::of(document_server.journal());
    let memory_bytes_before = resident_bytes(service.process());

    eprintln!("{QUIET_SAVES} saves of one session, one after another");
    let target = || Target::InProcess(Arc::clone(&document_server));
    let quiet = Documents::bring(&service, "quiet", (1, &template)).await?;
    let alone = Held::sit_down(hold(1), quiet.invitations(), target()).await;
    alone.save_in_turn(WARMING_SAVES).await;
    witness.catch_up();
    witness.take_times();
    alone.save_in_turn(QUIET_SAVES).await;
    witness.catch_up();
    let quiet_times = witness.take_times();
    witness.blame(&alone.report());
    alone.leave().await;

    eprintln!("opening {} documents", options.sessions);
    let documents = Documents::bring(&service, "held", (options.sessions, &template)).await?;
    let held = Held::sit_down(hold(options.sessions), documents.invitations(), target()).await;
    rest(&document_server, &mut witness).await;
    witness.take_times();

    eprintln!("holding them for {} s, {} saves/s", options.seconds, options.saves_per_s);
    let began = Instant::now();
    let used = watch(&held, options, (&service, &mut witness)).await;
    let seconds = began.elapsed().as_secs_f64();
    let used = Used { memory_bytes_before, ..used };
    rest(&document_server, &mut witness).await;
    let held_times = witness.take_times();

    eprintln!("comparing what the server lists with what was sent");
    witness.blame(&held.report());
    witness.close();
    let sessions_listed = documents.sessions_listed().await?;
    for (documents, name) in [(&quiet, "quiet"), (&documents, "held")] {
        documents.compare(&mut witness).await.with_context(|| format!("the {name} documents"))?;
    }
    let counted = u32::try_from(held_times.count()).map_or(0.0, f64::from);
    let figures = Figures {
        quiet: quiet_times,
        held: held_times,
        saves_per_s: counted / seconds,
        sessions_listed,
        used,
    };
    Ok(report(options, &figures, witness))
}

async fn start_document_server() -> Result<Running> {
    let mut settings =
        Settings { results_bytes_max: RESULTS_BYTES_MAX, ..Settings::default().with_secret(SECRET) };
    settings.timings.conversion_ms = CONVERSION_MS;
    Ok(understudy::start(settings).await?)
}

fn hold(documents: usize) -> Hold {
    Hold {
        documents,
        openings_max: OPENINGS_MAX,
        closes: CLOSES,
        visits: VISITS,
        empty_for: EMPTY_FOR,
        seed: 1,
        patience: PATIENCE,
    }
}

/// Until no save is on its way.
async fn rest(document_server: &Running, witness: &mut Witness) {
    if tokio::time::timeout(PATIENCE, document_server.quiet()).await.is_err() {
        witness.fail("the Document Server did not come to rest");
    }
    witness.catch_up();
}

/// Holds the sessions, and looks at the server once a second.
async fn watch(held: &Held, options: &Options, (service, witness): (&Service, &mut Witness)) -> Used {
    let cpu_before_s = cpu_s(service.process());
    let began = Instant::now();
    let mut memory_bytes_max = resident_bytes(service.process());
    let mut looks = tokio::time::interval(Duration::from_secs(1));
    let keep = held.keep(options.saves_per_s, Duration::from_secs(options.seconds));
    let mut keep = std::pin::pin!(keep);
    loop {
        tokio::select! {
            () = &mut keep => break,
            _ = looks.tick() => {
                witness.catch_up();
                memory_bytes_max = memory_bytes_max.max(resident_bytes(service.process()));
            }
        }
    }
    let cores = (cpu_s(service.process()) - cpu_before_s) / began.elapsed().as_secs_f64();
    Used { cores, memory_bytes_max, memory_bytes_before: 0.0 }
}

fn report(options: &Options, figures: &Figures, mut witness: Witness) -> Report {
    let Figures { quiet, held, saves_per_s, sessions_listed, used } = figures;
    if *saves_per_s < options.saves_per_s * PACE_MIN {
        witness.fail(format!("only {saves_per_s:.1} saves/s of {} were made", options.saves_per_s));
    }
    if *sessions_listed != options.sessions {
        witness.fail(format!("{sessions_listed} of {} sessions are listed as edited", options.sessions));
    }
    let (quiet_ms, held_ms) = (quiet.percentile(99).max(RESOLUTION_MS), held.percentile(99));
    if held_ms > quiet_ms * RATIO_MAX {
        witness.fail(format!("the 99th percentile of a save is {held_ms} ms; alone it is {quiet_ms} ms"));
    }
    let beside = |percent| (held.percentile(percent), Some(quiet.percentile(percent)), None);
    let count = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    let (memory_bytes, before_bytes) = (used.memory_bytes_max, used.memory_bytes_before);
    let rows = vec![
        Row::new("save, p50", "ms", beside(50)),
        Row::new("save, p99", "ms", beside(99)).noted(&format!("may be {RATIO_MAX} times the quiet one")),
        Row::new("save, slowest", "ms", beside(100)),
        Row::new("saves", "/s", (*saves_per_s, Some(options.saves_per_s), None)).noted(&witness.summary()),
        Row::new("sessions listed", "", (count(*sessions_listed), Some(count(options.sessions)), None)),
        Row::new("errors", "", (count(witness.errors()), None, None)),
        Row::new("CPU of the server", "cores", (used.cores, None, None)),
        Row::new("memory of the server", "MiB", (memory_bytes / MIB, Some(before_bytes / MIB), None))
            .noted("limit: after its start"),
    ];
    let preface = format!(
        "{} sessions held for {} s, a docx of {SIZE_BYTES} bytes in each; of 100 saves {CLOSES} close the document \
         and {VISITS} are a visitor's.\nlimit: {QUIET_SAVES} saves of one session, one after another. A save lasts \
         from its callback to the answer. The driver shares the machine with us.",
        options.sessions, options.seconds
    );
    Report::new("sessions", rows, preface).failed(witness.failures())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_pairs_and_their_values_make_sense() {
        let options = Options::parse(&["--sessions", "300", "--seconds", "60"]).unwrap();

        assert_eq!((options.sessions, options.seconds, options.saves_per_s), (300, 60, 20.0));
        for wrong in [&["--sessions"][..], &["--sessions", "0"], &["--seconds", "x"], &["--else", "1"]] {
            assert!(Options::parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
