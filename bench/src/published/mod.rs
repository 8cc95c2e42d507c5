//! Published names that are watched on the server's own disk while their documents are saved again and again over SFTP.
//!
//! Each save goes through the running service: a callback, the blob and the published file on a real OpenSSH server. The next save of a document
//! begins once its name shows another file, so every save replaces it; as that happens once a second at most, there are several, and each
//! is watched. Guarantees: a look that finds nothing, a file that is not
//! one of those that were sent, a name that was not replaced by every save, and a watcher that looked too rarely are failures of the bench.

mod watchers;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::task::JoinSet;
use vault::contract::sshd::{SFTP_SERVER, Sshd};

use crate::options;
use crate::report::{Report, Row};
use crate::stage::{Callback, DocumentServer, Stage, Template, Wire};
use watchers::{Seen, Watched};

const SIZE_BYTES: usize = 100_000;
/// Documents that are saved side by side.
const NAMES: u64 = 20;
const STAT_PAUSE: Duration = Duration::from_millis(1);
const READ_PAUSE: Duration = Duration::from_millis(50);
/// Fewer looks than this share of what was meant have not shown what they should: the machine is too busy.
const PACE_MIN: f64 = 0.5;
/// Longer than any publication takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const TOLD_EVERY: u64 = 500;

/// How long to watch.
pub(crate) struct Options {
    saves: u64,
    server: Option<PathBuf>,
}

impl Options {
    /// `None` if there is no such option, or its value is none.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self { saves: 10_000, server: None };
        options::read(arguments, |name, values| {
            match name {
                "--saves" => options.saves = values.next()?.parse().ok().filter(|count| *count > 0)?,
                "--server" => options.server = Some(values.next()?.into()),
                _ => return None,
            }
            Some(())
        })?;
        Some(options)
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(watch(options))
}

async fn watch(options: &Options) -> Result<Report> {
    let parent = std::env::current_exe()?.parent().context("no folder")?.to_owned();
    let sshd = Sshd::start_in(&parent, SFTP_SERVER);
    let stage = Stage::start_with(options.server.as_deref(), &settings(&sshd)).await?;
    let template = Arc::new(Template::new(SIZE_BYTES)?);
    let (began, done) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut shows = JoinSet::new();
    for number in 0..NAMES {
        let saves = options.saves * (number + 1) / NAMES - options.saves * number / NAMES;
        let show = Show::open(&stage, (&sshd, number), &template).await?;
        shows.spawn(show.play(saves, (Arc::clone(&done), options.saves)));
    }
    let (mut looked, mut read) = (Seen::default(), Seen::default());
    while let Some(seen) = shows.join_next().await {
        let (stats, reads) = seen??;
        looked.add(&stats);
        read.add(&reads);
    }
    Ok(report(options.saves, began.elapsed().as_secs_f64(), (&looked, &read)))
}

/// A document that is saved, and its name.
struct Show {
    number: u64,
    key: String,
    template: Arc<Template>,
    documents: DocumentServer,
    wire: Wire,
    watched: Arc<Watched>,
}

impl Show {
    async fn open(stage: &Stage, (sshd, number): (&Sshd, u64), template: &Arc<Template>) -> Result<Self> {
        let id = format!("d{number}");
        let watched = Watched::new(sshd.root().join(format!("published/bench/saves/{id}/bench.docx")));
        watched.expect(&template.copy(u64::MAX));
        let key = stage.open_document(&id, template).await?;
        until(|| watched.path().exists()).await?;
        let wire = Wire::connect(stage.service.address).await?;
        let (template, documents) = (Arc::clone(template), stage.documents.clone());
        Ok(Self { number, key, template, documents, wire, watched })
    }

    /// Saves it so many times; says what those who looked saw.
    async fn play(mut self, saves: u64, (done, all): (Arc<AtomicU64>, u64)) -> Result<(Seen, Seen)> {
        let began = Instant::now();
        let watched = Arc::clone(&self.watched);
        let (looking, reading) = (watched.stat_every(STAT_PAUSE), watched.read_every(READ_PAUSE));
        until(|| watched.file() != 0).await?;
        for save in 1..=saves {
            self.save(self.number * 1_000_000 + save).await.with_context(|| format!("save {save}"))?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(TOLD_EVERY) {
                eprintln!("{done} of {all} saves, {:.0} s", began.elapsed().as_secs_f64());
            }
        }
        watched.end();
        let joined = tokio::task::spawn_blocking(move || (looking.join(), reading.join())).await?;
        let (Ok(looked), Ok(read)) = joined else { anyhow::bail!("a watcher came to harm") };
        Ok((looked, read))
    }

    /// Saves it once more, and waits until that is shown.
    async fn save(&mut self, number: u64) -> Result<()> {
        let (shown, content) = (self.watched.file(), self.template.copy(number));
        self.watched.expect(&content);
        let callback = Callback { key: &self.key, status: 6, number };
        self.documents.offer(&callback.path(), content, Duration::ZERO);
        self.wire.deliver(&callback.body(&self.documents)?).await?;
        until(|| self.watched.file() != shown).await.context("it is not published")
    }
}

fn settings(sshd: &Sshd) -> Vec<(&'static str, String)> {
    let settings = sshd.settings();
    vec![
        ("VAULT_KIND", "sftp".to_owned()),
        ("SFTP_HOST", settings.host),
        ("SFTP_PORT", settings.port.to_string()),
        ("SFTP_USER", settings.user),
        ("SFTP_KEY_FILE", settings.key_file.unwrap_or_default().display().to_string()),
        ("SFTP_FINGERPRINT", sshd.fingerprint()),
        ("SFTP_ROOT", sshd.root().display().to_string()),
    ]
}

async fn until(is_so: impl Fn() -> bool) -> Result<()> {
    let began = Instant::now();
    while !is_so() {
        ensure!(began.elapsed() < PATIENCE, "waited for {} s", PATIENCE.as_secs());
        tokio::time::sleep(STAT_PAUSE).await;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "counts of saves and looks are small")]
fn report(saves: u64, seconds: f64, (looked, read): (&Seen, &Seen)) -> Report {
    // `seconds` is those of all names together.
    let meant = |seen: &Seen, pause: Duration| seen.seconds / pause.as_secs_f64();
    let row = |name: &str, unit, ours: u64, limit| Row::new(name, unit, (ours as f64, limit, None));
    let rows = vec![
        Row::new("saves", "saves/s", (saves as f64 / seconds, None, None)),
        row("the name shows another file", "times", looked.changes, Some(saves as f64)),
        row("stat at 1 kHz", "looks", looked.looks, Some(meant(looked, STAT_PAUSE))),
        row("whole file at 20 Hz", "reads", read.looks, Some(meant(read, READ_PAUSE))),
        row("the name was missing", "times", looked.missing + read.missing, None),
        row("the file was torn", "times", read.torn, None),
    ];
    let mut failures = Vec::new();
    if looked.missing + read.missing > 0 {
        failures.push(format!("the name was missing {} times", looked.missing + read.missing));
    }
    if read.torn > 0 {
        failures.push(format!("the file was torn {} times", read.torn));
    }
    if looked.changes < saves {
        failures.push(format!("{saves} saves, and the name showed another file {} times", looked.changes));
    }
    for (seen, pause, name) in [(looked, STAT_PAUSE, "stat"), (read, READ_PAUSE, "whole file")] {
        if (seen.looks as f64) < meant(seen, pause) * PACE_MIN {
            failures.push(format!("{name}: only {} looks in {:.0} s", seen.looks, seen.seconds));
        }
    }
    let preface = format!(
        "{saves} saves of {NAMES} docx of {SIZE_BYTES} bytes over SFTP, each published before the next of its document begins; {seconds:.0} s.\n\
         Each published name is watched on the server's own disk. limit: what was meant. It must never be missing or torn."
    );
    Report::new("published", rows, preface).failed(failures)
}
