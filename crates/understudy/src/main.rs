//! The stand-in Document Server as a program of its own, and the load driver.
//!
//! Guarantees: data (the address, the load report, a blank file) goes to stdout, everything else to stderr; the
//! exit code is 0 only if it worked.
//!
//! Does not log tokens or signed links.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match cli::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            cli::complain(&trouble);
            ExitCode::FAILURE
        }
    }
}
