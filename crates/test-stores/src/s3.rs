//! An S3 server: moto, which keeps objects in memory and knows every condition, or s3s-fs, which keeps them as files and may be killed.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::free_port;
use crate::installing::{self, Build};

/// A bucket that is there.
pub const BUCKET: &str = "saveguard";
pub const ACCESS_KEY_ID: &str = "tester";
pub const SECRET_ACCESS_KEY: &str = "tester-secret";

const START_WITHIN: Duration = Duration::from_secs(60);

/// Ends when its standard input does, which is when whoever started it ends.
const MOTO_PROGRAM: &str = r#"
import logging, os, sys, threading
from werkzeug.serving import make_server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
logging.getLogger("werkzeug").setLevel(logging.ERROR)
s3_backends["123456789012"]["aws"].create_bucket(sys.argv[1], "us-east-1")
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
"#;

/// Kills the program when the standard input ends.
const LEASH: &str = r#""$@" & child=$!; read -r _; kill -9 "$child""#;

/// A running S3 server.
#[derive(Debug)]
pub struct S3Server {
    child: Option<Child>,
    port: u16,
    folder: Option<PathBuf>,
    /// Goes with it.
    _temporary: Option<tempfile::TempDir>,
    build: Build,
}

impl S3Server {
    /// Starts moto: what it has is gone with it.
    pub fn in_memory() -> Self {
        let python = installing::moto();
        let mut child = Command::new(python)
            .args(["-c", MOTO_PROGRAM, BUCKET])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("moto says its port");
        Self { child: Some(child), port, folder: None, _temporary: None, build: Build::Debug }
    }

    /// Starts s3s-fs in a new folder.
    pub fn on_disk() -> Self {
        Self::start_below(&std::env::temp_dir(), Build::Debug)
    }

    /// The same as fast as it can be, in a new folder below this one: for whoever measures.
    pub fn fast_in(parent: &Path) -> Self {
        Self::start_below(parent, Build::Release)
    }

    /// Starts s3s-fs in a folder that stays, on a given port.
    pub fn on_disk_in(folder: &Path, port: u16) -> Self {
        Self::start_in(folder, (port, Build::Debug))
    }

    fn start_below(parent: &Path, build: Build) -> Self {
        let temporary = tempfile::tempdir_in(parent).unwrap();
        let mut server = Self::start_in(temporary.path(), (free_port(), build));
        server._temporary = Some(temporary);
        server
    }

    fn start_in(folder: &Path, (port, build): (u16, Build)) -> Self {
        std::fs::create_dir_all(folder.join(BUCKET)).unwrap();
        let mut server = Self { child: None, port, folder: Some(folder.to_owned()), _temporary: None, build };
        server.start_again();
        server
    }

    /// Where the objects of a server on disk lie.
    pub fn folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(BUCKET))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The processes of a server on disk, by their numbers; without the shell that has it on its leash.
    pub fn processes(&self) -> Vec<u32> {
        let Some(leash) = self.child.as_ref().map(Child::id) else { return Vec::new() };
        let children = format!("/proc/{leash}/task/{leash}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    }

    /// Kills it in the middle of whatever it does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }

    /// Starts a server on disk again, on its folder and its port.
    pub fn start_again(&mut self) {
        let folder = self.folder.as_ref().expect("only what is on disk outlives a kill");
        self.child = Some(start_on_disk(folder, self.port, self.build));
        await_port(self.port);
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start_on_disk(folder: &Path, port: u16, build: Build) -> Child {
    let port = port.to_string();
    Command::new("sh")
        .args(["-c", LEASH, "sh"])
        .arg(installing::s3s_fs(build))
        .args(["--host", "127.0.0.1", "--port", &port, "--access-key", ACCESS_KEY_ID])
        .args(["--secret-key", SECRET_ACCESS_KEY])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[allow(clippy::disallowed_methods, reason = "there is no event for a port that another program opens")]
fn await_port(port: u16) {
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < START_WITHIN, "the server does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
