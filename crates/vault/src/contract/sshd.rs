//! A real OpenSSH server for tests: its own keys, its own configuration, a free port of this machine, a folder that goes with it.
//!
//! Needs Debian's `openssh-server` and `openssh-client`, and root, as which the server insists on running.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::sftp::{HostKey, Settings, Timeouts};

/// The extensions of OpenSSH that we use, as its server calls them.
pub const EXTENSIONS: [&str; 4] = ["posix-rename", "fsync", "hardlink", "limits"];
/// OpenSSH's SFTP.
pub const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";
/// How long tests wait for what will come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Another process may take a port between our asking and the server's.
const STARTS_MAX: usize = 10;

/// A running server.
pub struct Sshd {
    folder: tempfile::TempDir,
    subsystem: String,
    port: u16,
    is_port_given: bool,
    process: Option<Child>,
}

impl Sshd {
    /// A server as it comes.
    pub fn start() -> Self {
        Self::start_without(&[])
    }

    /// A server that refuses some requests, by the names `sftp-server -Q requests` lists.
    pub fn start_without(denied: &[&str]) -> Self {
        let denied = if denied.is_empty() { String::new() } else { format!(" -P {}", denied.join(",")) };
        Self::start_running(&format!("{SFTP_SERVER}{denied}"))
    }

    /// A server whose SFTP is this command.
    pub fn start_running(subsystem: &str) -> Self {
        Self::start_in(&std::env::temp_dir(), subsystem)
    }

    /// The same, in a folder of its own below this one.
    pub fn start_in(parent: &Path, subsystem: &str) -> Self {
        Self::start_on(parent, subsystem, None)
    }

    /// A server as it comes, in a folder of its own below this one, always on this port: whoever uses it cannot be told of another.
    pub fn start_at(parent: &Path, port: u16) -> Self {
        Self::start_on(parent, SFTP_SERVER, Some(port))
    }

    fn start_on(parent: &Path, subsystem: &str, port: Option<u16>) -> Self {
        let folder = tempfile::tempdir_in(parent).unwrap();
        for (key, kind) in
            [("host", "ed25519"), ("second", "ecdsa"), ("user", "ed25519"), ("stranger", "ed25519")]
        {
            let path = folder.path().join(key);
            run("ssh-keygen", &["-q", "-t", kind, "-N", "", "-f", &path.display().to_string()]);
        }
        let public = fs::read(folder.path().join("user.pub")).unwrap();
        fs::write(folder.path().join("authorized_keys"), public).unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        // Where it shuts itself in before anybody has logged in; the package's service makes it otherwise.
        fs::create_dir_all("/run/sshd").unwrap();
        let mut sshd = Self {
            folder,
            subsystem: subsystem.to_owned(),
            port: port.unwrap_or(0),
            is_port_given: port.is_some(),
            process: None,
        };
        sshd.restart();
        sshd
    }

    /// Starts it again on the port it had, if that is free.
    pub fn restart(&mut self) {
        self.kill();
        for _ in 0..STARTS_MAX {
            if self.port == 0 {
                self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            }
            self.process = self.spawn();
            if self.process.is_some() {
                return;
            }
            if !self.is_port_given {
                self.port = 0;
            }
        }
        panic!("sshd does not start");
    }

    /// The server once it listens.
    fn spawn(&self) -> Option<Child> {
        let config = self.path("sshd_config");
        fs::write(&config, self.config()).unwrap();
        let mut child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &config.display().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("Debian's openssh-server is installed");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let is_listening = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Server listening"));
        // Somebody has to read the rest, or it stops when the pipe is full.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        if is_listening {
            return Some(child);
        }
        let _ = child.wait();
        None
    }

    /// Its home is its own folder: the shell that starts SFTP would read what the machine's user has it do at a login, and a
    /// session that is killed in the middle of that may leave something behind for which all later ones wait.
    fn config(&self) -> String {
        let folder = self.folder.path().display();
        format!(
            "ListenAddress 127.0.0.1\nPort {}\nHostKey {folder}/host\nHostKey {folder}/second\nPidFile none\nUsePAM no\nStrictModes no\n\
             AuthorizedKeysFile {folder}/authorized_keys\nPermitRootLogin yes\nPasswordAuthentication yes\n\
             MaxStartups 200\nLogLevel INFO\nSetEnv HOME={folder}\nSubsystem sftp {}\n",
            self.port, self.subsystem
        )
    }

    /// Settings to log in with, for a fresh vault and tree.
    pub fn settings(&self) -> Settings {
        let host_key = HostKey::Fingerprint(self.fingerprint());
        let mut settings = Settings::new("127.0.0.1", "root", (&self.root().display().to_string(), host_key));
        settings.port = self.port;
        settings.key_file = Some(self.path("user"));
        // A busy machine is no fault.
        settings.timeouts = Timeouts { connect: PATIENCE, request: PATIENCE, wait: PATIENCE };
        settings
    }

    /// Where the vault and the tree are, as the server's own disk has them.
    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// A file of the server: `host`, `second`, `user` and `stranger` are keys.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The fingerprint of its host key.
    pub fn fingerprint(&self) -> String {
        self.fingerprint_of("host")
    }

    /// The fingerprint of a key: of `second`, which is its ECDSA host key, too.
    pub fn fingerprint_of(&self, key: &str) -> String {
        let public = self.path(&format!("{key}.pub"));
        let output = Command::new("ssh-keygen").arg("-lf").arg(public).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    }

    /// Its folder stays when it goes.
    pub fn keep_folder(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// It and everything it started, sessions included, by their numbers.
    pub fn processes(&self) -> Vec<u32> {
        let mut processes: Vec<u32> = self.process.iter().map(Child::id).collect();
        let mut at = 0;
        while at < processes.len() {
            processes.extend(children_of(processes[at]));
            at += 1;
        }
        processes
    }

    /// Kills it with everything it started, sessions included, as if the machine had lost its power.
    pub fn kill(&mut self) {
        let processes = self.processes();
        let Some(mut process) = self.process.take() else { return };
        let pids = processes.iter().map(u32::to_string);
        let _ = Command::new("kill").arg("-9").args(pids).stderr(Stdio::null()).status();
        let _ = process.wait();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn children_of(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program} failed");
}
