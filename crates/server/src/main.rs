//! The binary `saveguard`.

use std::process::ExitCode;

fn main() -> ExitCode {
    saveguard::cli::run()
}
