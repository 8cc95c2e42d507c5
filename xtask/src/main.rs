//! Commands for people who work on Saveguard: `cargo xtask test`, `bench`, `torture`, `fuzz`, `schema`.
//!
//! Guarantees: `test` is all that CI runs; it installs what is missing, or says the one line that does. The heavy
//! commands are programs of their own (`bench`, `torture`, `fuzz`), started from here in the right build.
#![allow(clippy::print_stderr, reason = "a command for people")]

mod packages;
mod schema;
mod shell;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands for people who work on Saveguard.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what the tests need, then run every check and test. This is what CI runs.
    Test(test::Arguments),
    /// Measure, peers beside us: `cargo xtask bench check|cluster|console|lanes|published|saves|seed1|sessions|sizes|submission|vaults [--json]`.
    #[command(disable_help_flag = true)]
    Bench {
        /// Given on to the bench program; `--help` shows its own help.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Kill the real service at every step under load and check every promise from outside.
    #[command(disable_help_flag = true)]
    Torture {
        /// Given on to the torture program; `--help` shows its own help.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Throw mutated files at every layer of the check: `cargo xtask fuzz [TARGET…] [--seconds N] [--json]`.
    #[command(disable_help_flag = true)]
    Fuzz {
        /// Given on to the fuzz program; `--help` shows its own help.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Call every operation of the API description with right and wrong data: no 5xx, nothing that is not described.
    Schema(schema::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Bench { rest } => {
            if rest.first().is_some_and(|name| name == "check") {
                packages::ensure_peers();
            }
            shell::run_package("bench", "release", &rest)
        }
        Command::Torture { rest } => shell::run_package("torture", "release", &rest),
        // Optimised, with the checks of a debug build: a sum that wraps around is a fault to find.
        Command::Fuzz { rest } => shell::run_package("fuzz", "fuzz", &rest),
        Command::Schema(arguments) => schema::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
