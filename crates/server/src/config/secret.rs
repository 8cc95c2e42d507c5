//! A secret that cannot be printed by accident.
//!
//! Guarantees: `Debug` shows `***`; a secret is at least 32 bytes, which no well-known default is.

use std::fmt;

/// Fewer bytes can be guessed; HS256 itself asks for as many as its hash has.
const SECRET_BYTES_MIN: usize = 32;

/// A shared secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret that is long enough.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() < SECRET_BYTES_MIN {
            return Err(format!(
                "is {} bytes long; a secret needs at least {SECRET_BYTES_MIN} (make one with: openssl rand -hex 32)",
                text.len()
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The bytes, for signing.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text, for the one file that keeps generated secrets.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// A secret, and the one before it while both are in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    /// Signs; verifies first.
    pub current: Secret,
    /// Still verifies, during a rotation.
    pub previous: Option<Secret>,
}

impl Secrets {
    /// Both, newest first.
    pub fn all(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_secrets_and_known_defaults_are_refused() {
        for text in ["", "secret", "verysecretstring", &"x".repeat(31)] {
            assert!(Secret::parse(text).is_err(), "{text}");
        }
        assert!(Secret::parse(&"x".repeat(32)).is_ok());
    }

    #[test]
    fn a_secret_never_shows() {
        let secret = Secret::parse(&"canary".repeat(8)).unwrap();

        assert_eq!(format!("{secret:?}"), "***");
    }
}
