//! Is it the server it claims to be?
//!
//! Guarantees: a key that the operator did not give is refused before any password or signature leaves, in words that say what
//! was expected and what came. Nothing is ever learnt. A file of known hosts that cannot be read is an error and not an
//! empty one. Names in it count when they are exact or hashed; patterns do not.

use std::fs;
use std::io;
use std::path::Path;

use russh::client::Handler;
use russh::keys::known_hosts::known_host_keys_path;
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey, PublicKeyBase64 as _, PublicKeyOrCertificate};

use super::settings::{HostKey, Settings};

/// What we can verify, best first. The library for RSA is not built in.
const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::Ed25519,
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
    Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
];

/// The keys a server may show.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    server: String,
    keys: Keys,
}

#[derive(Debug, Clone)]
enum Keys {
    Fingerprint(String),
    /// With the lines they stand in, and the keys that are marked as revoked.
    Known {
        file: String,
        keys: Vec<(usize, PublicKey)>,
        revoked: Vec<String>,
    },
}

impl Expected {
    /// Reads what the operator gave.
    pub(crate) fn read(settings: &Settings) -> io::Result<Self> {
        let server = format!("{}:{}", settings.host, settings.port);
        let keys = match &settings.host_key {
            HostKey::Fingerprint(fingerprint) => fingerprint_of(fingerprint)?,
            HostKey::KnownHosts(file) => known(settings, file)?,
        };
        Ok(Self { server, keys })
    }

    /// The kinds of keys to ask for, one attempt after the other. A server with several keys shows the one that is asked for first: of
    /// known keys the kinds are known, and a fingerprint may be that of a key it would not have shown.
    pub(crate) fn attempts(&self) -> Vec<Vec<Algorithm>> {
        match &self.keys {
            Keys::Fingerprint(_) => (0..ALGORITHMS.len()).map(|first| ALGORITHMS[first..].to_vec()).collect(),
            Keys::Known { keys, .. } => {
                let is_known =
                    |algorithm: &Algorithm| keys.iter().any(|(_, key)| key.algorithm() == *algorithm);
                vec![ALGORITHMS.into_iter().filter(is_known).collect()]
            }
        }
    }

    /// Whether this is the server; if not, why, for a person.
    pub(crate) fn check(&self, key: &PublicKey) -> Result<(), String> {
        let shown = key.fingerprint(HashAlg::Sha256).to_string();
        match &self.keys {
            Keys::Fingerprint(pinned) if *pinned == shown => Ok(()),
            Keys::Fingerprint(pinned) => {
                Err(self.mismatch(&shown, &format!("the configuration pins {pinned}")))
            }
            Keys::Known { revoked, file, .. } if revoked.contains(&key.public_key_base64()) => {
                Err(format!("the host key of {} ({shown}) is marked as revoked in {file}", self.server))
            }
            Keys::Known { keys, .. } if keys.iter().any(|(_, known)| same(known, key)) => Ok(()),
            Keys::Known { keys, file, .. } => {
                let lines: Vec<String> = keys
                    .iter()
                    .map(|(line, known)| format!("line {line} has {}", known.fingerprint(HashAlg::Sha256)))
                    .collect();
                Err(self.mismatch(&shown, &format!("{file} says otherwise ({})", lines.join(", "))))
            }
        }
    }

    fn mismatch(&self, shown: &str, expected: &str) -> String {
        format!(
            "the server at {} shows the host key {shown}, but {expected}. Nothing was sent to it. Either it has new keys, or \
             somebody stands in between: run `ssh-keygen -lf` on its public host key, compare, and only then change what is expected",
            self.server
        )
    }
}

fn same(one: &PublicKey, other: &PublicKey) -> bool {
    one.key_data() == other.key_data()
}

fn fingerprint_of(text: &str) -> io::Result<Keys> {
    let text = text.trim().trim_end_matches('=');
    // 32 bytes are 43 characters of base64.
    let is_one = text.strip_prefix("SHA256:").is_some_and(|hash| hash.len() == 43);
    if !is_one {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a fingerprint of a host key looks like SHA256:… with 43 characters, as `ssh-keygen -lf` prints it",
        ));
    }
    Ok(Keys::Fingerprint(text.to_owned()))
}

fn known(settings: &Settings, path: &Path) -> io::Result<Keys> {
    let file = path.display().to_string();
    let invalid = |words: String| io::Error::new(io::ErrorKind::InvalidInput, words);
    let text =
        fs::read_to_string(path).map_err(|cause| invalid(format!("{file} cannot be read: {cause}")))?;
    let keys = known_host_keys_path(&settings.host, settings.port, path)
        .map_err(|cause| invalid(format!("{file} cannot be understood: {cause}")))?;
    if keys.is_empty() {
        let name = match settings.port {
            22 => settings.host.clone(),
            port => format!("[{}]:{port}", settings.host),
        };
        return Err(invalid(format!(
            "{file} has no key for {name}. Run `ssh-keyscan -p {} {}`, compare the fingerprint with the server's own, and add the line",
            settings.port, settings.host
        )));
    }
    if !keys.iter().any(|(_, key)| ALGORITHMS.contains(&key.algorithm())) {
        return Err(invalid(format!(
            "{file} has only keys of a kind we do not use: add the Ed25519 or ECDSA key"
        )));
    }
    let revoked = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("@revoked"))
        .filter_map(|rest| rest.split_whitespace().nth(2).map(str::to_owned))
        .collect();
    Ok(Keys::Known { file, keys, revoked })
}

/// Stands at the door of one connection.
pub(crate) struct Gatekeeper(pub(crate) Expected);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Turned {
    #[error("{0}")]
    Stranger(String),
    #[error(transparent)]
    Ssh(#[from] russh::Error),
}

impl Handler for Gatekeeper {
    type Error = Turned;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Turned> {
        match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => {
                self.0.check(key).map_err(Turned::Stranger).map(|()| true)
            }
            // We ask for none: a certificate is worth what its authority is, and nobody told us of one.
            PublicKeyOrCertificate::Certificate(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const OTHER: &str = "AAAAC3NzaC1lZDI1NTE5AAAAILIG2T/B0l0gaqj3puu510tu9N1OkQ4znY3LYuEm5zCF";

    fn key(base64: &str) -> PublicKey {
        russh::keys::parse_public_key_base64(base64).unwrap()
    }

    fn expected(host: &str, port: u16, known_hosts: &str) -> io::Result<Expected> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        fs::write(&file, known_hosts).unwrap();
        let mut settings = Settings::new(host, "u", ("/", HostKey::KnownHosts(file)));
        settings.port = port;
        Expected::read(&settings)
    }

    #[test]
    fn only_the_recorded_key_is_let_in() {
        let expected =
            expected("files.example", 2222, &format!("[files.example]:2222 ssh-ed25519 {KEY}\n")).unwrap();

        assert_eq!(expected.check(&key(KEY)), Ok(()));
        let words = expected.check(&key(OTHER)).unwrap_err();
        assert!(words.contains("line 1 has SHA256:") && words.contains("ssh-keygen -lf"), "{words}");
    }

    #[test]
    fn a_host_without_a_key_is_refused_before_anything_is_connected() {
        let refused = expected("files.example", 22, &format!("[files.example]:2222 ssh-ed25519 {KEY}\n"));

        assert!(refused.unwrap_err().to_string().contains("has no key for files.example"));
    }

    #[test]
    fn names_may_be_hashed() {
        let hashed = "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak=";
        let line = format!("{hashed} ssh-ed25519 {OTHER}\n");

        assert_eq!(expected("example.com", 22, &line).unwrap().check(&key(OTHER)), Ok(()));
        assert!(expected("example.org", 22, &line).is_err());
    }

    #[test]
    fn a_revoked_key_is_refused_even_if_it_is_recorded() {
        let lines = format!("files.example ssh-ed25519 {KEY}\n@revoked * ssh-ed25519 {KEY}\n");

        let words = expected("files.example", 22, &lines).unwrap().check(&key(KEY)).unwrap_err();

        assert!(words.contains("revoked"), "{words}");
    }

    #[test]
    fn a_missing_file_of_known_hosts_is_no_empty_one() {
        let settings = Settings::new("h", "u", ("/", HostKey::KnownHosts("/nowhere/known_hosts".into())));

        assert!(Expected::read(&settings).unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn a_pinned_fingerprint_is_compared() {
        let fingerprint = key(KEY).fingerprint(HashAlg::Sha256).to_string();
        let settings = Settings::new("h", "u", ("/", HostKey::Fingerprint(fingerprint)));
        let expected = Expected::read(&settings).unwrap();

        assert_eq!(expected.check(&key(KEY)), Ok(()));
        assert!(expected.check(&key(OTHER)).unwrap_err().contains("pins SHA256:"));
        let nonsense = Settings::new("h", "u", ("/", HostKey::Fingerprint("MD5:aa:bb".to_owned())));
        assert!(Expected::read(&nonsense).is_err());
    }
}
