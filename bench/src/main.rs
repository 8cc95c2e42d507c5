//! What we measure, and against whom: `cargo run --release -p bench -- <name> [--json]`.
//!
//! Each bench is a module with one `run` that returns a [`report::Report`]. Figures depend on the machine; the
//! ratios are what is meant to be compared.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for people: figures go to the terminal"
)]

mod check;
mod cluster;
mod console;
mod gauge;
mod lanes;
mod options;
mod published;
mod report;
mod saves;
mod seed1;
mod sessions;
mod sizes;
mod stage;
mod submission;
mod vaults;

use std::process::ExitCode;

use anyhow::Result;

const USAGE: &str = "\
Usage: bench NAME [--json] [OPTIONS]

  check  the check of Office files, beside bare inflating and what unzip, xmllint and Python do (2 minutes)
  cluster  saves and submissions with 1, 2 and 4 instances on one PostgreSQL, beside pgbench and the embedded engine
         (5 minutes; needs PostgreSQL, redis-server, and root)
  console  every page on a ledger with 100,000 documents and 1,000,000 record versions (5 minutes)
  lanes  tasks in order per key, beside plain tokio and a thread per key in Java (5 minutes)
  published  published names that are watched while 10,000 saves over SFTP replace them (10 minutes; needs sshd, and root)
  saves  durable saves through the service, beside a reference that only flushes, hashes and inflates (10 minutes)
  seed1  the three scenarios of seed 1 through the running service (seconds)
  sessions  saves while thousands of sessions are held, beside the same saves with one (12 minutes)
  sizes  a simulation of companies on 1 to 16 PostgreSQL clusters, from measured times (seconds)
  submission  workbooks become records, beside a bare parse and the same job in Python (10 minutes)
  vaults [s3|sftp]  blobs into an SFTP server, beside OpenSSH's own sftp, and into an S3 server, beside the bare client
                    library (5 minutes; needs sshd, and root)

  --json  print one line of JSON at the end; the table goes to stderr

  of console:
  --documents N        documents (100000)
  --record-versions N  record versions (1000000)
  --server PATH        the server to measure, instead of a release build

  of published:
  --saves N        saves, each of which replaces the published file (10000)
  --server PATH    the server to watch, instead of a release build

  of cluster:
  --ledger-only    the commit of a save alone, without instances
  --server PATH    the server to measure, instead of a release build

  of sessions:
  --sessions N     sessions held, each of a document of its own (2000)
  --seconds S      for how long (600)
  --saves-per-s R  saves begun per second meanwhile (20)
  --server PATH    the server to measure, instead of a release build

  of sizes:
  --save-ms MS     processor time of PostgreSQL for one save, as `cluster` measures it
  --cores N        cores of each PostgreSQL (8)

  of submission:
  --small          15,000 rows only
  --no-peer        without Python
  --server PATH    the server to measure, instead of a release build

sessions ends with exit code 1 if anything failed or the 99th percentile of a save is more than 3 times the quiet one;
cluster, console, published, submission and vaults, if they miss what is promised for them.

Measure when nothing else runs.";

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).filter(|it| *it != "--json").collect();
    if matches!(arguments.as_slice(), ["--help" | "-h" | "help"]) {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let report = match arguments.as_slice() {
        ["check"] => check::run()?,
        ["cluster", options @ ..] if let Some(options) = cluster::Options::parse(options) => {
            cluster::run(&options)?
        }
        ["console", options @ ..] if let Some(options) = console::Options::parse(options) => {
            console::run(&options)?
        }
        ["lanes"] => lanes::run()?,
        ["published", options @ ..] if let Some(options) = published::Options::parse(options) => {
            published::run(&options)?
        }
        ["saves"] => saves::run()?,
        ["seed1"] => seed1::run()?,
        ["sessions", options @ ..] if let Some(options) = sessions::Options::parse(options) => {
            sessions::run(options)?
        }
        ["sizes", options @ ..] if let Some(options) = sizes::Options::parse(options) => sizes::run(options),
        ["submission", options @ ..] if let Some(options) = submission::Options::parse(options) => {
            submission::run(&options)?
        }
        ["vaults"] => vaults::run(vaults::Only::All)?,
        ["vaults", "s3"] => vaults::run(vaults::Only::S3)?,
        ["vaults", "sftp"] => vaults::run(vaults::Only::Sftp)?,
        _ => {
            eprintln!("{USAGE}");
            return Ok(ExitCode::from(2));
        }
    };
    if is_json {
        eprintln!("{report}");
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report}");
    }
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
