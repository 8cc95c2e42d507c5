//! A published name that is watched on the server's own disk while one document is saved again and again over SFTP.
//!
//! Each save goes through the running service: a callback, the blob and the published file on a real OpenSSH server. The next save
//! begins once the name shows another file, so every save replaces it. Guarantees: a look that finds nothing, a file that is not
//! one of those that were sent, a name that was not replaced by every save, and a watcher that looked too rarely are failures of the bench.

mod watchers;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use vault::contract::sshd::{SFTP_SERVER, Sshd};

use crate::report::{Report, Row};
use crate::stage::{Callback, Stage, Template, Wire};
use watchers::{Seen, Watched};

const SIZE_BYTES: usize = 100_000;
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
        for pair in arguments.chunks(2) {
            let [name, value] = *pair else { return None };
            match name {
                "--saves" => options.saves = value.parse().ok().filter(|count| *count > 0)?,
                "--server" => options.server = Some(value.into()),
                _ => return None,
            }
        }
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
    let template = Template::new(SIZE_BYTES)?;
    let watched = Watched::new(sshd.root().join("published/bench/saves/d/bench.docx"));
    watched.expect(&template.copy(u64::MAX));
    let key = stage.open_document("d", &template).await?;
    until(|| watched.path().exists()).await?;
    let (looking, reading) = (watched.stat_every(STAT_PAUSE), watched.read_every(READ_PAUSE));
    until(|| watched.file() != 0).await?;

    let began = Instant::now();
    let mut wire = Wire::connect(stage.service.address).await?;
    for number in 1..=options.saves {
        let (shown, content) = (watched.file(), template.copy(number));
        watched.expect(&content);
        let callback = Callback { key: &key, status: 6, number };
        stage.documents.offer(&callback.path(), content, Duration::ZERO);
        wire.deliver(&callback.body(&stage.documents)?).await?;
        until(|| watched.file() != shown).await.with_context(|| format!("save {number} is not published"))?;
        if number % TOLD_EVERY == 0 {
            eprintln!("{number} of {} saves, {:.0} s", options.saves, began.elapsed().as_secs_f64());
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    watched.end();
    let joined = tokio::task::spawn_blocking(move || (looking.join(), reading.join())).await?;
    let (Ok(looked), Ok(read)) = joined else { anyhow::bail!("a watcher came to harm") };
    Ok(report(options.saves, seconds, (&looked, &read)))
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
        "{saves} saves of a docx of {SIZE_BYTES} bytes over SFTP, each published before the next begins; {seconds:.0} s.\n\
         The published name is watched on the server's own disk. limit: what was meant. It must never be missing or torn."
    );
    Report::new("published", rows, preface).failed(failures)
}
