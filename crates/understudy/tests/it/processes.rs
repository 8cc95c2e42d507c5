//! The program itself: started, killed, started again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use understudy::EditorConfig;
use understudy::client::{Client, Options};
use understudy::journal::Journal;
use understudy::office;
use understudy::server::Opening;
use understudy::tokens::Secret;

use crate::host::Host;

/// A running program; killed when dropped.
struct Program {
    child: Child,
    url: String,
}

impl Program {
    fn start(folder: &Path) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_understudy"))
            .args(["serve", "--listen", "127.0.0.1:0", "--time-scale", "100"])
            .arg("--storage")
            .arg(folder.join("state"))
            .arg("--journal")
            .arg(folder.join("journal.jsonl"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        Program { child, url: started["url"].as_str().unwrap().to_owned() }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_killed_program_has_everything_again_when_it_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(office::blank("docx")).await;
    let config = |user: &str| {
        let config =
            EditorConfig::new("killed-1", &host.url("/doc/x"), &host.url(&format!("/cb/x?u={user}")), user);
        config.signed(&Secret::new("secret"))
    };
    let first = Program::start(folder.path());
    let client = Client::open(&first.url, &config("u1"), Options::default()).await.unwrap();
    assert_eq!(client.opened().await.unwrap(), Opening::Ready);
    let id = client.write("before the end").await.unwrap();
    first.kill();

    let second = Program::start(folder.path());
    let client = Client::open(&second.url, &config("u2"), Options::default()).await.unwrap();
    assert_eq!(client.opened().await.unwrap(), Opening::Ready);
    assert!(client.messages().iter().any(|message| message["type"] == "authChanges"));
    client.close().await.unwrap();
    let last = host.wait_for(3).await.pop().unwrap();

    assert_eq!((last.status(), last.path.as_str()), (2, "/cb/x?u=u1"));
    let file = reqwest::get(last.body["url"].as_str().unwrap()).await.unwrap().bytes().await.unwrap();
    assert!(office::changes_in(&file).contains(&id));
    assert_eq!(host.downloads(), 1);
    second.kill();
    let witness = Journal::open(Some(&folder.path().join("journal.jsonl"))).unwrap();
    assert!(!witness.change(&id).unwrap().is_lost());
}

#[test]
fn a_blank_file_comes_out_of_the_program() {
    let made = Command::new(env!("CARGO_BIN_EXE_understudy")).args(["blank", "xlsx"]).output().unwrap();

    assert!(made.status.success());
    assert_eq!(made.stdout, office::blank("xlsx"));
}

#[test]
fn wrong_arguments_are_named_and_nothing_starts() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_understudy")).args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };

    let (worked, said) = run(&["serve", "--listen", "0.0.0.0:1"]);
    assert!(!worked && said.contains("not a loopback address"), "{said}");
    let (worked, said) = run(&["serve", "--timing", "nothing=1"]);
    assert!(!worked && said.contains("save_delay_ms"), "{said}");
}
