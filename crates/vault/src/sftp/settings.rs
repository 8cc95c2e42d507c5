//! What one has to know of an SFTP server. Values only: who reads them from where is the configuration's business.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// As many as an OpenSSH server takes without being told to; it drops some of more than ten that log in at once.
const CONNECTIONS_MAX: usize = 8;

/// An SFTP server and how to log in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name or address, as it stands in known_hosts.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub user: String,
    /// A private key in a file: Ed25519 or ECDSA.
    pub key_file: Option<PathBuf>,
    /// What the key file is locked with.
    pub key_password: Option<Secret>,
    /// The user's password, tried after the key.
    pub password: Option<Secret>,
    /// How the server proves that it is the one.
    pub host_key: HostKey,
    /// The folder of the blobs: absolute, or below the user's home.
    pub vault_folder: String,
    /// The folder of the published tree.
    pub tree_folder: String,
    /// At most so many connections at a time.
    pub connections_max: usize,
    /// How long things may take.
    pub timeouts: Timeouts,
}

impl Settings {
    /// Settings with the usual port, limits, and folders below one.
    pub fn new(host: &str, user: &str, (root, host_key): (&str, HostKey)) -> Self {
        let root = root.trim_end_matches('/');
        Self {
            host: host.to_owned(),
            port: 22,
            user: user.to_owned(),
            key_file: None,
            key_password: None,
            password: None,
            host_key,
            vault_folder: format!("{root}/vault"),
            tree_folder: format!("{root}/published"),
            connections_max: CONNECTIONS_MAX,
            timeouts: Timeouts::default(),
        }
    }
}

/// How the server proves that it is the one.
#[derive(Debug, Clone)]
pub enum HostKey {
    /// One of its keys stands in this file, under its exact name or hashed, as `ssh` writes it.
    KnownHosts(PathBuf),
    /// Its key has this fingerprint: `SHA256:…`, as `ssh-keygen -l` prints it.
    Fingerprint(String),
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the first packet to a session that can be used.
    pub connect: Duration,
    /// Hearing nothing at all while something is asked.
    pub request: Duration,
    /// Waiting for a connection to come free.
    pub wait: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(20),
            wait: Duration::from_secs(10),
        }
    }
}

/// A password. It cannot be printed by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}
