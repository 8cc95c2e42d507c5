//! What we measure, and against whom: `cargo run --release -p bench -- <name> [--json]`.
//!
//! Each bench is a module with one `run` that returns a [`report::Report`]. Figures depend on the machine; the
//! ratios are what is meant to be compared.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for people: figures go to the terminal"
)]

mod gauge;
mod lanes;
mod report;
mod saves;
mod seed1;
mod stage;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| **flag != "--json") {
        bail!("unknown option {unknown}; there is --json");
    }
    let report = match names.as_slice() {
        [name] if *name == "lanes" => lanes::run()?,
        [name] if *name == "saves" => saves::run()?,
        [name] if *name == "seed1" => seed1::run()?,
        _ => bail!("which bench? usage: bench lanes|saves|seed1 [--json]"),
    };

    if flags.is_empty() {
        println!("{report}");
    } else {
        eprintln!("{report}");
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}
