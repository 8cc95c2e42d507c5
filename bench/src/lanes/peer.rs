//! The peer: seed 1's design in Java, compiled on the spot and run beside us as one warm virtual machine.
//!
//! Guarantees that a machine without a JDK only skips it, that every load has a time limit, and that the process
//! ends with us.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::gauge;
use crate::lanes::load::{Load, Sample, Shape};

/// Long enough for 10,000 threads to come and work, short enough for whoever waits for the bench.
const LIMIT_MS: u64 = 45_000;

/// Idle for this long is at rest.
const SETTLING_LOOK: Duration = Duration::from_millis(200);
const SETTLING_MAX: Duration = Duration::from_secs(5);

const SOURCES: [(&str, &str); 2] = [
    ("CallbackQueue.java", include_str!("../../java/CallbackQueue.java")),
    ("Peer.java", include_str!("../../java/Peer.java")),
];

pub(crate) struct Peer {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Java loads its classes from here when it first needs them.
    _folder: TempDir,
}

impl Peer {
    /// Compiles and starts it; `None` when there is no JDK.
    pub(crate) fn start() -> Result<Option<Self>> {
        let is_there =
            |program| Command::new(program).arg("-version").output().is_ok_and(|it| it.status.success());
        if !is_there("javac") || !is_there("java") {
            return Ok(None);
        }
        let folder = tempfile::tempdir().context("no folder to compile the peer in")?;
        compile(folder.path())?;

        let mut process = Command::new("java")
            .arg("-cp")
            .arg(folder.path())
            .arg("Peer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("could not start java")?;
        let commands = process.stdin.take().context("stdin is piped")?;
        let answers = BufReader::new(process.stdout.take().context("stdout is piped")?);
        let mut peer = Self { process, commands, answers, _folder: folder };
        ensure!(peer.answer()? == "ready", "the peer did not start");
        Ok(Some(peer))
    }

    /// Carries a load, or as much of it as the time allows.
    pub(crate) fn measure(&mut self, load: Load) -> Result<Sample> {
        let (shape, parallel) = match load.shape {
            Shape::Callers(count) => ("callers", count as u64),
            Shape::Burst(per_key) => ("burst", per_key),
        };
        let cpu_s = gauge::cpu_s(self.process.id());
        self.command(shape, parallel, load)?;
        let sample = self.sample(cpu_s)?;
        self.await_over()?;
        Ok(sample)
    }

    /// Uses every key once and says by how much the process has grown per key.
    pub(crate) fn bytes_per_idle_key(&mut self, load: Load) -> Result<f64> {
        let before = gauge::resident_bytes(self.process.id());
        self.command("idle", 16, load)?;
        let sample = self.sample(0.0)?;
        let after = gauge::resident_bytes(self.process.id());
        writeln!(self.commands, "go on")?;
        self.await_over()?;
        #[expect(clippy::cast_precision_loss, reason = "there are not that many keys")]
        Ok((after - before).max(0.0) / sample.tasks as f64)
    }

    fn command(&mut self, shape: &str, parallel: u64, load: Load) -> Result<()> {
        let Load { keys, tasks, mixing, .. } = load;
        writeln!(self.commands, "{shape} {keys} {tasks} {parallel} {mixing} {LIMIT_MS}")?;
        Ok(self.commands.flush()?)
    }

    fn sample(&mut self, cpu_s_before: f64) -> Result<Sample> {
        let answer = self.answer()?;
        let cpu_s = gauge::cpu_s(self.process.id()) - cpu_s_before;
        let numbers: Vec<u64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
        let &[tasks, elapsed_ns, p99_ns] = numbers.as_slice() else {
            anyhow::bail!("the peer answered {answer:?}");
        };
        Ok(Sample::new(tasks, Duration::from_nanos(elapsed_ns), cpu_s, Duration::from_nanos(p99_ns)))
    }

    /// Its threads have ended when it says so; tidying up after them takes the machine for a while longer.
    #[expect(clippy::disallowed_methods, reason = "a process tells nobody when it has tidied up")]
    fn await_over(&mut self) -> Result<()> {
        ensure!(self.answer()? == "over", "the peer did not end its threads");
        let began = Instant::now();
        let mut cpu_s = -1.0;
        while began.elapsed() < SETTLING_MAX && gauge::cpu_s(self.process.id()) > cpu_s {
            cpu_s = gauge::cpu_s(self.process.id());
            std::thread::sleep(SETTLING_LOOK);
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.answers.read_line(&mut line)? > 0, "the peer has ended");
        Ok(line.trim().to_owned())
    }
}

fn compile(folder: &Path) -> Result<()> {
    for (name, text) in SOURCES {
        std::fs::write(folder.join(name), text)?;
    }
    let compiled = Command::new("javac").args(SOURCES.map(|(name, _)| name)).current_dir(folder).output()?;
    ensure!(compiled.status.success(), "javac: {}", String::from_utf8_lossy(&compiled.stderr));
    Ok(())
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be in the middle of a load; there is nothing in it that is worth waiting for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
