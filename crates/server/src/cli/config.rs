//! `saveguard config`: the documented configuration, or a check of one.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{default_file, environment, print, tell};
use crate::config::{Config, DOCUMENTED};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Check the configuration instead (file and environment) and say everything that is wrong with it.
    #[arg(long)]
    check: bool,
}

pub(super) fn run(file: Option<PathBuf>, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.check {
        print(DOCUMENTED.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    match Config::load(file.or_else(default_file).as_deref(), environment()) {
        Ok(_) => {
            tell("The configuration is right.");
            Ok(ExitCode::SUCCESS)
        }
        Err(mistakes) => {
            tell(&mistakes.to_string());
            Ok(ExitCode::FAILURE)
        }
    }
}
