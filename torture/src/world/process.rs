//! The service as a real process of its own: started, watched until it answers, and killed.
//!
//! Guarantees: a process that is dropped is killed; what it printed is in the log of the round; a start that takes too
//! long is reported. An orderly end is what a rolling restart asks for, and nothing else here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// How often a starting service is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// How the service is started in a round.
#[derive(Debug, Clone)]
pub(crate) struct Launcher {
    pub(crate) executable: PathBuf,
    pub(crate) port: u16,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) log: PathBuf,
    /// Where the service lists the steps it takes.
    pub(crate) steps: PathBuf,
}

/// Where the service is to die by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrashAt {
    pub(crate) step: String,
    pub(crate) hit: u64,
}

/// A running service.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    port: u16,
    pub(crate) started: Instant,
}

/// How a start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It answers.
    Ready,
    /// It died before it answered.
    Died,
    /// It did neither in time.
    TooSlow,
}

impl Launcher {
    /// Starts the service; with `crash_at` it dies there.
    pub(crate) fn start(&self, crash_at: Option<&CrashAt>) -> Result<Process> {
        let mut command = self.command(&["serve"])?;
        command.env("SAVEGUARD_TORTURE_LIST_STEPS", &self.steps);
        if let Some(CrashAt { step, hit }) = crash_at {
            command.env("SAVEGUARD_TORTURE_CRASH_AT", format!("{step}:{hit}"));
        }
        let child = command.spawn().context("the service cannot be started")?;
        Ok(Process { child, port: self.port, started: Instant::now() })
    }

    /// Starts the service; whoever comes to that step is held while the file is there, which says that they have come.
    pub(crate) fn start_held(&self, at: &CrashAt, file: &Path) -> Result<Process> {
        let mut command = self.command(&["serve"])?;
        command.env("SAVEGUARD_TORTURE_LIST_STEPS", &self.steps);
        command.env("SAVEGUARD_TORTURE_HOLD_AT", format!("{}:{}", at.step, at.hit));
        command.env("SAVEGUARD_TORTURE_HOLD_FILE", file);
        let child = command.spawn().context("the service cannot be started")?;
        Ok(Process { child, port: self.port, started: Instant::now() })
    }

    /// Runs another command of the program on the same data and returns what it printed and its exit code.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<(String, Option<i32>)> {
        let mut command = self.command(arguments)?;
        let output = command.stdout(Stdio::piped()).output().await?;
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code()))
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.executable);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(self.log.parent().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .kill_on_drop(true);
        Ok(command)
    }
}

impl Process {
    /// Waits until it answers, dies or takes too long.
    pub(crate) async fn ready(&mut self, patience: Duration) -> Start {
        let deadline = self.started + patience;
        while Instant::now() < deadline {
            if self.is_dead() {
                return Start::Died;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return Start::Ready;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Start::TooSlow
    }

    /// Whether it has died.
    pub(crate) fn is_dead(&mut self) -> bool {
        self.exit().is_some()
    }

    /// How it died, if it did.
    pub(crate) fn exit(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for its death, at most that long. Returns whether it died.
    pub(crate) async fn died_within(&mut self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.child.wait()).await.is_ok()
    }

    /// Kills it like a power switch would, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("the service cannot be killed")
    }

    /// Asks it to end, and waits until it has. Returns whether it ended well, in time.
    pub(crate) async fn end(mut self, patience: Duration) -> Result<bool> {
        let Some(id) = self.child.id() else { return Ok(false) };
        signal(id, "-TERM").await?;
        let ended = tokio::time::timeout(patience, self.child.wait()).await;
        Ok(ended.is_ok_and(|exit| exit.is_ok_and(|exit| exit.success())))
    }

    /// Stops it from running, and lets it go on: a machine that was busy with something else.
    pub(crate) async fn freeze_for(&self, time: Duration) -> Result<()> {
        let Some(id) = self.child.id() else { return Ok(()) };
        signal(id, "-STOP").await?;
        tokio::time::sleep(time).await;
        signal(id, "-CONT").await
    }
}

async fn signal(process: u32, name: &str) -> Result<()> {
    let status = Command::new("kill").args([name, &process.to_string()]).status().await;
    status.map(drop).context("no signal could be sent")
}

/// A port that is free now and that the system gives to nobody by itself, so that it stays free while the service is
/// down.
pub(crate) fn free_port(seed: u64) -> Result<u16> {
    const FIRST: u64 = 12_000;
    const COUNT: u64 = 20_000;
    let free = (0..COUNT).find_map(|attempt| {
        let port = u16::try_from(FIRST + (seed.wrapping_add(attempt.wrapping_mul(7919))) % COUNT).ok()?;
        std::net::TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(port)
    });
    free.context("no port is free")
}
