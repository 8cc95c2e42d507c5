//! A folder on a power-loss disk, and the processes that work in it.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;
use torture::power_loss::{PowerLoss, Survivor, contents};

pub(crate) const CHILD: &str = env!("CARGO_BIN_EXE_power_loss_child");

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) disk: PowerLoss,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// Where there is no real disk to wait for, and fsync has nothing to do. Inode numbers are new there,
    /// and used again on a disk: both are worth a test.
    pub(crate) fn in_memory() -> Self {
        Self::in_folder(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    fn in_folder(folder: TempDir) -> Self {
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let disk = PowerLoss::new(&folder.path().join("root"), &folder.path().join("shadow")).unwrap();
        Self { folder, disk }
    }

    pub(crate) fn without_real_sync(self) -> Self {
        Self { disk: self.disk.without_real_sync(), ..self }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn shadow(&self) -> PathBuf {
        self.folder.path().join("shadow")
    }

    /// Starts `power_loss_child` in the root.
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        self.start_program(CHILD.as_ref(), arguments)
    }

    pub(crate) fn start_program(&self, program: &Path, arguments: &[&str]) -> Process {
        let mut command = Command::new(program);
        command.args(arguments.iter().map(OsStr::new)).current_dir(self.root()).envs(self.disk.command_env());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Process { child, input, output }
    }

    /// Starts a script and takes these steps.
    pub(crate) fn steps(&self, steps: &str) -> Process {
        let mut process = self.start(&["script"]);
        process.steps(steps);
        process
    }

    /// Compiles a C program of these tests, beside the root.
    pub(crate) fn compile(&self, source: &str) -> PathBuf {
        let program = self.folder.path().join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_loss").join(source);
        let flags = ["-Wall", "-Wextra", "-Werror", "-rdynamic", "-o"];
        assert!(Command::new("cc").args(flags).arg(&program).arg(source).status().unwrap().success());
        program
    }

    /// Waits until it reports something or is dead, and kills it.
    pub(crate) fn run_and_kill(&self, program: &Path, scene: &str) -> Option<String> {
        let mut process = self.start_program(program, &[scene]);
        let report = process.line();
        process.kill();
        report
    }

    pub(crate) fn contents(&self) -> BTreeMap<PathBuf, Survivor> {
        contents(&self.root()).unwrap()
    }
}

pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn steps(&mut self, steps: &str) {
        for step in steps.lines().map(str::trim).filter(|step| !step.is_empty()) {
            assert_eq!(self.step(step), "ok");
        }
    }

    pub(crate) fn step(&mut self, step: &str) -> String {
        self.input.write_all(format!("{step}\n").as_bytes()).unwrap();
        self.line().expect("an answer to each step")
    }

    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line).unwrap();
        // A process may be killed within a line; that one was not reported.
        (bytes > 0 && line.ends_with('\n')).then(|| line.trim_end().to_owned())
    }

    /// Kills it, and says what it reported before it was dead.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.line()).collect()
    }

    /// Waits until it ends by itself.
    pub(crate) fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// One line per survivor: `folder/`, `link -> target`, `file = bytes`.
pub(crate) fn render(survivors: &BTreeMap<PathBuf, Survivor>) -> Vec<String> {
    let render = |(path, survivor): (&PathBuf, &Survivor)| match survivor {
        Survivor::Folder => format!("{}/", path.display()),
        Survivor::Link(target) => format!("{} -> {}", path.display(), target.display()),
        Survivor::File(bytes) => format!("{} = {}", path.display(), runs(bytes)),
    };
    survivors.iter().map(render).collect()
}

/// Bytes as text, with long runs of one byte counted: `xxyy`, `x*5000`.
fn runs(bytes: &[u8]) -> String {
    let runs = bytes.chunk_by(|one, other| one == other);
    runs.map(|run| {
        let letter = char::from(run[0]);
        if run.len() < 10 { letter.to_string().repeat(run.len()) } else { format!("{letter}*{} ", run.len()) }
    })
    .collect()
}

/// Takes durable steps, then `steps`; kills the process, cuts the power, and compares what is left.
#[track_caller]
pub(crate) fn check(durable: &str, steps: &str, left: &[&str]) {
    let mut stage = Stage::new().without_real_sync();
    stage.steps(durable).kill();
    stage.disk.settle().unwrap();

    stage.steps(steps).kill();
    let expected = render(&stage.disk.survivors().unwrap());
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), left);
    assert_eq!(expected, left, "survivors() foresees what crash() leaves");
}
