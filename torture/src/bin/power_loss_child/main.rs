//! The program that the tests of the power-loss disk start in a folder, and kill.
//!
//! `script` does what it reads from its input, line by line; the other roles work until they are killed
//! and report on their output what they were promised. A line is written only after the call that made
//! the promise returned. Not for use outside of the tests.
mod roles;
mod script;

use std::io::{self, Write};

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["script"] => script::run(),
        ["rows", synchronous] => roles::commit_rows(synchronous),
        ["saves", threads] => roles::save_files(threads.parse()?),
        ["careless-saves"] => roles::save_files_without_sync(),
        ["overwrites", threads] => roles::overwrite_files(threads.parse()?),
        ["tokio"] => roles::write_with_tokio(),
        ["raw"] => roles::rename_past_libc(),
        ["parent"] => roles::write_through_a_child_process(),
        ["pace", saves] => roles::measure_saves(saves.parse()?),
        ["pace-rows", rows] => roles::measure_rows(rows.parse()?),
        other => bail!("no such role: {other:?}"),
    }
}

/// Tells the test, in one write, so that a kill leaves no half line.
fn report(line: &str) -> io::Result<()> {
    io::stdout().lock().write_all(format!("{line}\n").as_bytes())
}
