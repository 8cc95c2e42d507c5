//! Which engines stand behind the ports: `[ledger]` and `[signals]`.
//!
//! Guarantees: what the chosen engine needs is there, or its absence is a mistake; addresses hold passwords and never show.
//! Does not do: talk to an engine.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::reader::{Reader, Section};

/// Where metadata, history and unfinished work are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// In the data folder, for one instance.
    Sqlite,
    /// On a server that many instances share.
    Postgres(Postgres),
}

/// A PostgreSQL server.
#[derive(Clone, PartialEq, Eq)]
pub struct Postgres {
    /// `postgresql://user:password@host:5432/database`. Secret.
    pub url: String,
    /// Who may sign the server's certificate, as PEM; none: connections are not encrypted.
    pub ca_file: Option<PathBuf>,
    /// Connections of this instance at most.
    pub connections_max: usize,
    /// How long a step waits for a connection or a lock.
    pub wait_max: Duration,
}

/// The Redis that instances tell each other through. Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Redis {
    /// `redis://…`, `redis-sentinel://…` or `redis-cluster://…`.
    pub address: String,
    /// What all names in it begin with.
    pub prefix: String,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Postgres")
            .field("url", &"***")
            .field("ca_file", &self.ca_file)
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Redis").field("address", &"***").field("prefix", &self.prefix).finish()
    }
}

impl Engine {
    /// Where it is, in words and without its password.
    pub fn place(&self) -> String {
        match self {
            Self::Sqlite => "the data folder".to_owned(),
            Self::Postgres(postgres) => match Url::parse(&postgres.url) {
                Ok(url) => format!(
                    "the database {} of the PostgreSQL server {}:{}",
                    url.path().trim_start_matches('/'),
                    url.host_str().unwrap_or("localhost"),
                    url.port().unwrap_or(5432)
                ),
                Err(_) => "a PostgreSQL server".to_owned(),
            },
        }
    }

    /// Whether other instances may work on the same data.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

pub(super) fn read_ledger(section: &mut Section<'_>) -> Engine {
    #[derive(Clone, Copy)]
    enum Kind {
        Sqlite,
        Postgres,
    }
    let kinds = [("sqlite", Kind::Sqlite), ("postgres", Kind::Postgres)];
    let kind = section.choice("engine", Kind::Sqlite, &kinds);
    let url = section.hidden("url");
    let postgres = Postgres {
        url: url.clone().unwrap_or_default(),
        ca_file: Some(section.text("ca_file", "")).filter(|file| !file.is_empty()).map(PathBuf::from),
        connections_max: usize::try_from(section.whole("connections_max", 16, (2, 1000))).unwrap_or(16),
        wait_max: section.duration("wait_ms", Duration::from_secs(3), (100, 60_000)),
    };
    if let Some(url) = &url
        && !(url.starts_with("postgresql://") || url.starts_with("postgres://"))
    {
        // Its text is not repeated: it may hold a password.
        section.mistake("url", "must be like postgresql://user:password@host:5432/database");
    }
    match kind {
        Kind::Sqlite => Engine::Sqlite,
        Kind::Postgres => {
            if url.is_none() {
                section.mistake("url", "is not set; the ledger is to be on a PostgreSQL server");
            }
            Engine::Postgres(postgres)
        }
    }
}

pub(super) fn read_signals(reader: &mut Reader) -> Option<Redis> {
    let mut section = reader.section("signals");
    let address = section.hidden("redis");
    let prefix = section.text("prefix", "");
    address.filter(|address| !address.is_empty()).map(|address| Redis { address, prefix })
}

/// Instances that share a ledger share their secrets too; each would make its own.
pub(super) fn need_secrets(engine: &Engine, given: [(&str, bool); 2], mistakes: &mut Vec<String>) {
    for (section, is_given) in given {
        if engine.is_shared() && !is_given {
            mistakes.push(format!(
                "`{section}.secret` is not set; with `ledger.engine = \"postgres\"` every instance needs the same one"
            ));
        }
    }
}
