//! The configuration: one documented TOML file plus environment variables, read once at the start.
//!
//! `documented.toml` is that document: `saveguard config` prints it, and a test holds it against the code.
//!
//! Guarantees: all mistakes are reported at once; secrets are long enough and never printed; a missing secret is
//! generated and kept in the data folder, so that a service never runs with a known one.
//! Does not do: change while the service runs.

mod generated;
mod reader;
mod retention;
mod secret;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use model::Environment;
use model::checking::{OnVanished, Policy, Vanished};
use model::retention::Retention;
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::callers::Checks;

pub use secret::{Secret, Secrets};

use reader::{Reader, Section};

/// The documented configuration with every default.
pub const DOCUMENTED: &str = include_str!("documented.toml");

const MIB: u64 = 1024 * 1024;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where we are, and for whom.
    pub server: Server,
    /// The other side.
    pub document_server: DocumentServer,
    /// Who may call us.
    pub api: Api,
    /// How keys and configurations are handed out.
    pub opening: Opening,
    /// How saves are taken.
    pub saving: Saving,
    /// What follows from a check of the bytes.
    pub checking: Arc<Policy>,
    /// How unfinished work is found.
    pub recovering: Recovering,
    /// What is kept, and for how long.
    pub retention: Retention,
    /// How the service stops.
    pub stopping: Stopping,
    /// What is logged.
    pub log: Log,
}

/// Where we are, and for whom.
#[derive(Debug, Clone)]
pub struct Server {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// How browsers reach us.
    pub public_url: Url,
    /// How the Document Server reaches us.
    pub internal_url: Url,
    /// The folder for ledger, vault, spool and published tree.
    pub data: PathBuf,
    /// The installation the keys belong to.
    pub environment: Environment,
    /// The largest upload.
    pub upload_bytes_max: u64,
    /// Connections at once; more wait.
    pub connections_max: usize,
    /// The header in which a proxy tells the client's address; none is believed if there is no such proxy.
    pub client_address_header: Option<http::HeaderName>,
}

/// The other side.
#[derive(Debug, Clone)]
pub struct DocumentServer {
    /// How browsers reach it.
    pub public_url: Url,
    /// How we reach it.
    pub internal_url: Url,
    /// Further origins results may be fetched from as they are (cloud storage links).
    pub download_origins: Vec<Url>,
    /// The header its token comes in.
    pub jwt_header: http::HeaderName,
    /// Signs and verifies in both directions.
    pub secrets: Secrets,
    /// How long a command may take.
    pub command_timeout: Duration,
}

/// Who may call us.
#[derive(Debug, Clone)]
pub struct Api {
    /// Verifies the host application's tokens; our own stream and page tokens are derived from it.
    pub secrets: Secrets,
    /// Where the host application publishes the keys it signs with, if it does.
    pub jwks: Option<JwksSource>,
    /// For whom and by whom its tokens must be made.
    pub(crate) checks: Checks,
}

/// Where published keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksSource {
    /// In a file.
    File(PathBuf),
    /// At an address.
    Url(Url),
}

/// How keys and configurations are handed out.
#[derive(Debug, Clone)]
pub struct Opening {
    /// How long opening waits for a final save in progress.
    pub wait: Duration,
    /// How long a configuration can be used to open (the Document Server adds 60 s).
    pub config_token: Duration,
    /// How long a stream token is valid.
    pub stream_token: Duration,
}

/// How saves are taken.
#[derive(Debug, Clone)]
pub struct Saving {
    /// A callback is answered within this time, else 503 while the work goes on.
    pub answer_within: Duration,
    /// No delivery is answered 0 later than this after its receipt; the connection is closed instead.
    pub answer_zero_within: Duration,
    /// How long a save waits for older ones of its document that still prepare.
    pub pass_after: Duration,
    /// Saves of one document that may wait.
    pub lane_depth_max: usize,
    /// How often a download is tried.
    pub fetch_attempts: u32,
    /// The attempts are spread over at least this time.
    pub fetch_spread: Duration,
    /// All attempts together.
    pub fetch_within: Duration,
    /// The largest result.
    pub fetch_bytes_max: u64,
    /// Downloads and checks at once.
    pub fetch_parallel_max: usize,
    /// How long a download waits for what people are typing.
    pub download_within: Duration,
    /// How long a repeat is recognised by its identity: the life of the server's links.
    pub identity_window: SignedDuration,
}

/// How unfinished work is found.
#[derive(Debug, Clone)]
pub struct Recovering {
    /// Time between two rounds.
    pub interval: Duration,
}

/// How the service stops.
#[derive(Debug, Clone)]
pub struct Stopping {
    /// How long after readiness went off newcomers are still served, so that balancers notice.
    pub notice: Duration,
    /// How long running and waiting saves may take.
    pub drain: Duration,
}

/// What is logged.
#[derive(Debug, Clone)]
pub struct Log {
    /// Text for people or JSON for machines.
    pub format: LogFormat,
    /// Which events, as tracing filters (`info`, `saveguard=debug`).
    pub filter: String,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// Every mistake in a configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration has {} mistake{}:\n{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, .0.iter().map(|each| format!("  - {each}")).collect::<Vec<_>>().join("\n"))]
pub struct Mistakes(pub Vec<String>);

impl Config {
    /// Reads the file (if one is given) and the environment.
    pub fn load(file: Option<&Path>, environment: BTreeMap<String, String>) -> Result<Self, Mistakes> {
        let table = match file {
            None => toml::Table::new(),
            Some(file) => read_table(file).map_err(|mistake| Mistakes(vec![mistake]))?,
        };
        Self::from_sources(table, environment)
    }

    /// Puts the sources together.
    pub fn from_sources(table: toml::Table, environment: BTreeMap<String, String>) -> Result<Self, Mistakes> {
        let mut reader = Reader::new(table, environment);
        let partial = Partial::read(&mut reader);
        reader.report_unknown();
        let config = partial.complete(&mut reader.mistakes);
        match config {
            Some(config) if reader.mistakes.is_empty() => Ok(config),
            _ => Err(Mistakes(reader.mistakes)),
        }
    }
}

fn read_table(file: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|cause| format!("{} cannot be read: {cause}", file.display()))?;
    text.parse().map_err(|cause: toml::de::Error| format!("{}: {}", file.display(), cause.to_string().trim()))
}

/// Settings as read, before secrets are made and URLs derived from each other.
struct Partial {
    server: Option<Server>,
    document_server: Option<(Url, Url, Vec<Url>, http::HeaderName, Duration)>,
    document_server_secrets: (Option<Secret>, Option<Secret>),
    api_secrets: (Option<Secret>, Option<Secret>),
    api: (Option<JwksSource>, Checks),
    opening: Opening,
    saving: Saving,
    checking: Policy,
    recovering: Recovering,
    retention: Retention,
    stopping: Stopping,
    log: Log,
}

impl Partial {
    fn read(reader: &mut Reader) -> Self {
        Self {
            server: read_server(&mut reader.section("server")),
            document_server: read_document_server(&mut reader.section("document_server")),
            document_server_secrets: read_secrets(&mut reader.section("document_server")),
            api_secrets: read_secrets(&mut reader.section("api")),
            api: read_api(&mut reader.section("api")),
            opening: read_opening(&mut reader.section("opening")),
            saving: read_saving(&mut reader.section("saving")),
            checking: read_checking(&mut reader.section("checking")),
            recovering: Recovering {
                interval: reader.section("recovering").duration(
                    "interval_seconds",
                    Duration::from_secs(60),
                    (1, 3600),
                ),
            },
            retention: retention::read(&mut reader.section("retention")),
            stopping: read_stopping(&mut reader.section("stopping")),
            log: read_log(&mut reader.section("log")),
        }
    }

    fn complete(self, mistakes: &mut Vec<String>) -> Option<Config> {
        let server = self.server?;
        let (public_url, internal_url, download_origins, jwt_header, command_timeout) =
            self.document_server?;
        if !mistakes.is_empty() {
            // Nothing is written to the data folder for a configuration that will not be used.
            return None;
        }
        let mut generated = generated::Generated::new(&server.data);
        let document_server_secrets =
            generated.complete("document_server", self.document_server_secrets, mistakes)?;
        let api_secrets = generated.complete("api", self.api_secrets, mistakes)?;
        Some(Config {
            document_server: DocumentServer {
                public_url,
                internal_url,
                download_origins,
                jwt_header,
                secrets: document_server_secrets,
                command_timeout,
            },
            server,
            api: Api { secrets: api_secrets, jwks: self.api.0, checks: self.api.1 },
            opening: self.opening.clone(),
            saving: self.saving,
            checking: Arc::new(self.checking),
            recovering: self.recovering,
            // A link may be used for as long as its token counts, and a little longer by somebody else's clock.
            retention: Retention { links: retention::links(&self.opening), ..self.retention },
            stopping: self.stopping,
            log: self.log,
        })
    }
}

fn read_server(section: &mut Section<'_>) -> Option<Server> {
    let listen = section.parse("listen", SocketAddr::from(([127, 0, 0, 1], 8080)), |text| {
        text.parse().map_err(|_| format!("is `{text}`; it must be an address and a port, like 0.0.0.0:8080"))
    });
    let here = format!("http://localhost:{}", listen.port());
    let environment = section.text("environment", "prod");
    let Some(environment) = Environment::parse(&environment) else {
        section.mistake(
            "environment",
            &format!("is `{environment}`; it must be 1 to 16 letters, digits or `-`"),
        );
        return None;
    };
    Some(Server {
        listen,
        public_url: section.url("public_url", &here)?,
        internal_url: section.url("internal_url", &here)?,
        data: PathBuf::from(section.text("data", "saveguard-data")),
        environment,
        upload_bytes_max: section.whole("upload_mib_max", 100, (1, 10_240)) * MIB,
        connections_max: usize::try_from(section.whole("connections_max", 4096, (16, 1_000_000))).ok()?,
        client_address_header: section.parse("client_address_header", None, |text| match text {
            "" => Ok(None),
            name => name.parse().map(Some).map_err(|_| format!("is `{name}`, which is no header name")),
        }),
    })
}

fn read_document_server(
    section: &mut Section<'_>,
) -> Option<(Url, Url, Vec<Url>, http::HeaderName, Duration)> {
    let public_url = section.url("public_url", "http://localhost:8000");
    let internal_default =
        public_url.as_ref().map_or_else(|| "http://localhost:8000".to_owned(), Url::to_string);
    let internal_url = section.url("internal_url", &internal_default);
    let origins = section.urls("download_origins");
    let header = section.parse("jwt_header", http::header::AUTHORIZATION, |text| {
        text.parse().map_err(|_| format!("is `{text}`, which is no header name"))
    });
    let timeout = section.duration("command_seconds", Duration::from_secs(20), (1, 600));
    Some((public_url?, internal_url?, origins, header, timeout))
}

fn read_secrets(section: &mut Section<'_>) -> (Option<Secret>, Option<Secret>) {
    (section.secret("secret"), section.secret("previous_secret"))
}

fn read_api(section: &mut Section<'_>) -> (Option<JwksSource>, Checks) {
    let jwks = section.parse("jwks", None, |text| match text {
        "" => Ok(None),
        url if url.contains("://") => match Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(JwksSource::Url(url))),
            _ => Err(format!("is `{url}`; it must be an http or https URL, or a path")),
        },
        path => Ok(Some(JwksSource::File(PathBuf::from(path)))),
    });
    let mut optional = |name| Some(section.text(name, "")).filter(|text| !text.is_empty());
    (jwks, Checks { issuer: optional("issuer"), audience: optional("audience") })
}

fn read_opening(section: &mut Section<'_>) -> Opening {
    Opening {
        wait: section.duration("wait_seconds", Duration::from_secs(20), (0, 60)),
        config_token: section.duration("config_token_seconds", Duration::from_secs(300), (30, 86_400)),
        stream_token: section.duration("stream_token_seconds", Duration::from_secs(900), (60, 86_400)),
    }
}

fn read_saving(section: &mut Section<'_>) -> Saving {
    let minutes = |count: u64| Duration::from_secs(count * 60);
    Saving {
        answer_within: section.duration("answer_seconds", Duration::from_secs(50), (1, 200)),
        answer_zero_within: section.duration("answer_zero_seconds", minutes(3), (1, 230)),
        pass_after: section.duration("pass_after_ms", Duration::from_secs(5), (0, 60_000)),
        lane_depth_max: usize::try_from(section.whole("lane_depth_max", 256, (1, 100_000))).unwrap_or(256),
        fetch_attempts: u32::try_from(section.whole("fetch_attempts", 3, (1, 10))).unwrap_or(3),
        fetch_spread: section.duration("fetch_spread_ms", Duration::from_secs(10), (0, 60_000)),
        fetch_within: section.duration("fetch_seconds", Duration::from_secs(120), (1, 800)),
        fetch_bytes_max: section.whole("fetch_mib_max", 1024, (1, 10_240)) * MIB,
        fetch_parallel_max: usize::try_from(section.whole("fetch_parallel_max", 64, (1, 10_000)))
            .unwrap_or(64),
        download_within: section.duration("download_seconds", Duration::from_secs(30), (0, 300)),
        identity_window: SignedDuration::try_from(section.duration(
            "identity_window_seconds",
            minutes(15),
            (1, 86_400),
        ))
        .unwrap_or(SignedDuration::from_mins(15)),
    }
}

fn read_checking(section: &mut Section<'_>) -> Policy {
    let shadow: BTreeSet<String> = section.list("shadow").into_iter().collect();
    let known = office_check::Code::ALL.iter().map(|code| code.as_str());
    let known: BTreeSet<&str> = known.chain(Vanished::ALL.map(Vanished::as_str)).collect();
    for code in shadow.iter().filter(|code| !known.contains(code.as_str())) {
        section
            .mistake("shadow", &format!("has `{code}`, which is no code of a finding; see docs/findings.md"));
    }
    let choices = [("flag", OnVanished::Flag), ("hold", OnVanished::Hold)];
    Policy { shadow, on_vanished: section.choice("vanished", OnVanished::Flag, &choices) }
}

fn read_stopping(section: &mut Section<'_>) -> Stopping {
    Stopping {
        notice: section.duration("notice_ms", Duration::from_millis(200), (0, 600_000)),
        drain: section.duration("drain_seconds", Duration::from_secs(30), (0, 600)),
    }
}

fn read_log(section: &mut Section<'_>) -> Log {
    let filter = section.text("filter", "info");
    if let Err(cause) = EnvFilter::try_new(&filter) {
        section.mistake("filter", &format!("is `{filter}`, which is no filter: {cause}"));
    }
    Log {
        format: section.choice(
            "format",
            LogFormat::Text,
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        ),
        filter,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
