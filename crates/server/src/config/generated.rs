//! Secrets nobody set: made once, kept in the data folder, readable by the owner only.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{Secret, Secrets};

/// The secrets of the data folder.
pub(super) struct Generated {
    folder: PathBuf,
}

impl Generated {
    pub(super) fn new(data: &Path) -> Self {
        Self { folder: data.join("secrets") }
    }

    /// The given secrets, or a generated one.
    pub(super) fn complete(
        &mut self,
        section: &str,
        (current, previous): (Option<Secret>, Option<Secret>),
        mistakes: &mut Vec<String>,
    ) -> Option<Secrets> {
        if let Some(current) = current {
            return Some(Secrets { current, previous });
        }
        match self.read_or_make(section) {
            Ok(current) => Some(Secrets { current, previous }),
            Err(cause) => {
                let folder = self.folder.display();
                mistakes
                    .push(format!("`{section}.secret` is not set and none can be kept in {folder}: {cause}"));
                None
            }
        }
    }

    fn read_or_make(&self, section: &str) -> std::io::Result<Secret> {
        let file = self.folder.join(section);
        match std::fs::read_to_string(&file) {
            Ok(text) => Secret::parse(&text).map_err(std::io::Error::other),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                let secret = make().map_err(std::io::Error::other)?;
                std::fs::create_dir_all(&self.folder)?;
                let mut options = std::fs::OpenOptions::new();
                let mut written = options.write(true).create_new(true).mode(0o600).open(&file)?;
                written.write_all(secret.reveal().as_bytes())?;
                written.sync_all()?;
                std::fs::File::open(&self.folder)?.sync_all()?;
                Ok(secret)
            }
            Err(cause) => Err(cause),
        }
    }
}

fn make() -> Result<Secret, String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|cause| cause.to_string())?;
    Secret::parse(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}
