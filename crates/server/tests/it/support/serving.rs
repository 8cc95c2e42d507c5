//! The program itself, as a user starts it: a process that can be killed.

use std::process::{Child, Command};
use std::time::Duration;

use saveguard::config::Config;

use super::variables::variables;

/// A running `saveguard serve`. Killed when the test is done with it.
pub(crate) struct Serving(Child);

impl Serving {
    /// Starts it with the settings of a configuration with what a test changes, and further arguments.
    pub(crate) fn start(config: &Config, changes: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_saveguard"));
        command.env_clear().args(arguments).arg("serve");
        let own = variables(config);
        command.envs(own.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)));
        command.envs(changes.iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)));
        Self(command.spawn().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks again and again until there is something.
pub(crate) async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(found) = look().await {
            return found;
        }
        // waits on purpose: another process has to get there
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain");
}
