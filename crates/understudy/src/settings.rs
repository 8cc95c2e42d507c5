//! What a server is started with.
//!
//! Guarantees: the defaults are the real server's, except that tokens are on (as in every packaged installation)
//! and the address is a free port of the loopback interface; [`Settings::check`] names everything that is wrong.
//!
//! Does not read files or the environment: the binary does.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::clock::Clock;
use crate::timings::Timings;
use crate::tokens::Secret;

/// Settings of one server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one. Loopback only.
    pub listen: SocketAddr,
    pub secrets: Secrets,
    pub jwt: Jwt,
    pub timings: Timings,
    pub clock: Clock,
    pub link_base: LinkBase,
    pub storage: Storage,
    /// Where to write the journal as JSON lines; without it, in memory only.
    pub journal: Option<PathBuf>,
    /// The same seed makes the same random choices.
    pub seed: u64,
    /// Timer force saves (`autoAssembly`).
    pub autosave: bool,
    /// What the server calls itself.
    pub version: String,
    /// Bytes of built results kept at most.
    pub results_bytes_max: u64,
    /// Bytes of a source taken at most.
    pub source_bytes_max: u64,
    /// How long after a start no file is served yet: a restarted server delivers before it can serve.
    pub serve_files_after_ms: u64,
}

/// Shared secrets, by direction.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The host signs configurations and commands with it.
    pub inbox: Secret,
    /// This server signs callbacks and downloads with it.
    pub outbox: Secret,
    /// This server signs its own sessions with it.
    pub session: Secret,
    /// This server signs links with it.
    pub link: Secret,
}

/// Where tokens are asked for and sent.
#[derive(Clone, Debug)]
pub struct Jwt {
    /// From browsers.
    pub browser: bool,
    /// From the host.
    pub inbox: bool,
    /// To the host.
    pub outbox: bool,
    /// Header for tokens in both directions.
    pub header: String,
}

/// What links to results begin with.
#[derive(Clone, Debug)]
pub enum LinkBase {
    /// The address under which the last opener reached this server (`Host`, `X-Forwarded-*`), like the real one.
    FromOpener,
    /// Always this one (`storage.externalHost`).
    Fixed(String),
}

/// Where the durable half lives.
#[derive(Clone, Debug)]
pub enum Storage {
    Memory,
    /// Rows, change logs, cached results and forgotten copies survive in this folder.
    Folder(PathBuf),
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            secrets: Secrets::same("secret"),
            jwt: Jwt::on(),
            timings: Timings::default(),
            clock: Clock::system(),
            link_base: LinkBase::FromOpener,
            storage: Storage::Memory,
            journal: None,
            seed: 1,
            autosave: false,
            version: "9.3.0".to_owned(),
            results_bytes_max: 1 << 30,
            source_bytes_max: 100 * 1024 * 1024,
            serve_files_after_ms: 0,
        }
    }
}

impl Settings {
    /// Divides all delays of the real server by `time_scale`.
    #[must_use]
    pub fn with_time_scale(mut self, time_scale: f64) -> Settings {
        self.timings = Timings::scaled(time_scale);
        self
    }

    /// One secret for both directions, as most installations have it.
    #[must_use]
    pub fn with_secret(mut self, secret: &str) -> Settings {
        self.secrets = Secrets::same(secret);
        self
    }

    /// Everything that is wrong, or nothing.
    pub fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.listen.ip().is_loopback() {
            wrong.push(format!("`{}` is not a loopback address", self.listen));
        }
        if self.timings.minute_ms == 0 {
            wrong.push("a minute of 0 ms cannot be counted".to_owned());
        }
        if let LinkBase::Fixed(base) = &self.link_base
            && url::Url::parse(base).is_err()
        {
            wrong.push("the fixed base of links is not an address".to_owned());
        }
        if self.jwt.header.parse::<axum::http::HeaderName>().is_err() {
            wrong.push(format!("`{}` is not a header name", self.jwt.header));
        }
        wrong
    }
}

impl Secrets {
    /// The same secret in both directions; sessions and links get their own.
    pub fn same(secret: &str) -> Secrets {
        Secrets {
            inbox: Secret::new(secret),
            outbox: Secret::new(secret),
            session: Secret::new(format!("session of {secret}")),
            link: Secret::new(format!("link of {secret}")),
        }
    }
}

impl Jwt {
    pub fn on() -> Jwt {
        Jwt { browser: true, inbox: true, outbox: true, header: "Authorization".to_owned() }
    }

    pub fn off() -> Jwt {
        Jwt { browser: false, inbox: false, outbox: false, ..Jwt::on() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_good_and_every_fault_is_named() {
        assert_eq!(Settings::default().check(), Vec::<String>::new());

        let mut settings = Settings { listen: SocketAddr::from(([0, 0, 0, 0], 1)), ..Settings::default() };
        settings.jwt.header = "no header".into();

        assert_eq!(settings.check().len(), 2);
    }
}
