//! How a real Redis is started for a test: on the loopback, keeping nothing.
//!
//! Does not do: start it, wait for it, or end it. Some do so from async code, some not.

use std::path::Path;
use std::process::{Command, Stdio};

/// A Redis on a port, in a folder of its own.
pub fn command(port: u16, folder: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--appendonly", "no"]).arg("--dir").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}
