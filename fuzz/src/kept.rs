//! Inputs that broke a promise, kept in files, with the command that asks again.

use std::path::PathBuf;

use crate::targets::Target;

/// Where they are kept, and what they came from.
#[derive(Debug, Clone)]
pub(crate) struct Findings {
    pub(crate) folder: PathBuf,
    pub(crate) seed: u64,
}

impl Findings {
    /// Keeps an input, and a text beside it. Says what to tell people.
    pub(crate) fn keep(&self, target: Target, input: &[u8], what: &str) -> String {
        let name = format!("{}-seed-{}-{:08x}", target.as_str(), self.seed, crc32fast::hash(input));
        let path = self.folder.join(format!("{name}.bin"));
        let command = format!("cargo xtask fuzz {} --replay {}", target.as_str(), path.display());
        let text = format!(
            "{} broke a promise with {} bytes (seed {}): {what}\n  asked again by: {command}",
            target.as_str(),
            input.len(),
            self.seed
        );
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| std::fs::write(&path, input))
            .and_then(|()| std::fs::write(self.folder.join(format!("{name}.txt")), &text));
        match written {
            Ok(()) => text,
            Err(cause) => format!("{text}\n  and could not be kept: {cause}"),
        }
    }
}
