//! The program `torture`.

use std::process::ExitCode;

fn main() -> ExitCode {
    torture::run_command()
}
