//! The configuration: one documented TOML file plus environment variables, read once at the start.
//!
//! `documented.toml` is that document: `saveguard config` prints it, and a test holds it against the code.
//!
//! Guarantees: all mistakes are reported at once; secrets are long enough and never printed; a missing secret is
//! generated and kept in the data folder, so that a service never runs with a known one.
//! Does not do: change while the service runs.

mod engines;
mod generated;
mod reader;
mod retention;
mod secret;
mod sections;
mod stores;
mod webhooks;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use model::Environment;
use model::checking::Policy;
use model::disk::Marks;
use model::retention::Retention;
use url::Url;

use crate::callers::Checks;

pub use engines::{Engine, Postgres, Redis};
pub use secret::{Secret, Secrets};
pub use stores::{StoreKind, Stores};
pub use webhooks::Webhook;

use reader::Reader;
use sections::{
    read_api, read_checking, read_disk, read_document_server, read_log, read_opening, read_saving,
    read_secrets, read_server, read_sessions, read_stopping, read_submitting, read_traces,
};

/// The documented configuration with every default.
pub const DOCUMENTED: &str = include_str!("documented.toml");

const MIB: u64 = 1024 * 1024;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where we are, and for whom.
    pub server: Server,
    /// Where metadata, history and unfinished work are kept.
    pub ledger: Engine,
    /// What instances tell each other through, if there is anything.
    pub signals: Option<Redis>,
    /// Where bytes are kept.
    pub stores: Stores,
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
    /// How sessions are looked after.
    pub sessions: Sessions,
    /// How workbooks are taken.
    pub submitting: Submitting,
    /// What is kept, and for how long.
    pub retention: Retention,
    /// How the service stops.
    pub stopping: Stopping,
    /// How much room is kept back on the disk.
    pub disk: Marks,
    /// Who is told of what.
    pub webhooks: Vec<Webhook>,
    /// Where traces go.
    pub traces: Traces,
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
    /// Origins of host pages that may call us from a browser, as a browser writes them.
    pub allowed_origins: Vec<String>,
    /// Origins of host pages that may show our pages in a frame, as a browser writes them.
    pub embedded_by: Vec<String>,
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
    /// Where people sign in to our pages, if not at the host application.
    pub provider: Option<Provider>,
}

/// An identity provider of OpenID Connect.
#[derive(Debug, Clone)]
pub struct Provider {
    /// Its address, which is its name.
    pub issuer: String,
    /// What it calls us.
    pub client_id: String,
    /// What only it and we know; none for a public client.
    pub client_secret: Option<Secret>,
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

/// How sessions are looked after.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// A session of which nothing was heard for so long is asked about.
    pub look_every: Duration,
    /// Event streams at once.
    pub streams_max: usize,
}

/// How workbooks are taken.
#[derive(Debug, Clone)]
pub struct Submitting {
    /// Workbooks that are read and submitted at once.
    pub parallel_max: usize,
    /// How long nobody else takes up a log of whose worker nothing is heard.
    pub lease: Duration,
    /// A program that looks at a workbook before it is read, with its arguments; empty: none does.
    pub scanner: Vec<String>,
    /// What notices of an outside uploader are signed with; none: there is no such uploader.
    pub notice_secret: Option<Secret>,
}

/// How the service stops.
#[derive(Debug, Clone)]
pub struct Stopping {
    /// How long after readiness went off newcomers are still served, so that balancers notice.
    pub notice: Duration,
    /// How long running and waiting saves may take.
    pub drain: Duration,
}

/// Where traces go.
#[derive(Debug, Clone)]
pub struct Traces {
    /// The collector; none: there are no traces.
    pub endpoint: Option<Url>,
    /// The name of this service in them.
    pub service: String,
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
    pub fn from_sources(
        mut table: toml::Table,
        environment: BTreeMap<String, String>,
    ) -> Result<Self, Mistakes> {
        let mut mistakes = Vec::new();
        let webhooks = webhooks::read(&mut table, &mut mistakes);
        let mut reader = Reader::new(table, environment);
        reader.mistakes = mistakes;
        let partial = Partial { webhooks, ..Partial::read(&mut reader) };
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
    ledger: Engine,
    signals: Option<Redis>,
    stores: Stores,
    document_server: Option<(Url, Url, Vec<Url>, http::HeaderName, Duration)>,
    document_server_secrets: (Option<Secret>, Option<Secret>),
    api_secrets: (Option<Secret>, Option<Secret>),
    api: (Option<JwksSource>, Checks, Option<Provider>),
    opening: Opening,
    saving: Saving,
    checking: Policy,
    recovering: Recovering,
    sessions: Sessions,
    submitting: Submitting,
    retention: Retention,
    stopping: Stopping,
    disk: Marks,
    webhooks: Vec<Webhook>,
    traces: Traces,
    log: Log,
}

impl Partial {
    fn read(reader: &mut Reader) -> Self {
        Self {
            server: read_server(&mut reader.section("server")),
            ledger: engines::read_ledger(&mut reader.section("ledger")),
            signals: engines::read_signals(reader),
            stores: stores::read(reader),
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
            sessions: read_sessions(&mut reader.section("sessions")),
            submitting: read_submitting(&mut reader.section("submitting")),
            retention: retention::read(&mut reader.section("retention")),
            stopping: read_stopping(&mut reader.section("stopping")),
            disk: read_disk(&mut reader.section("disk")),
            webhooks: Vec::new(),
            traces: read_traces(&mut reader.section("traces")),
            log: read_log(&mut reader.section("log")),
        }
    }

    fn complete(self, mistakes: &mut Vec<String>) -> Option<Config> {
        let server = self.server?;
        let (public_url, internal_url, download_origins, jwt_header, command_timeout) =
            self.document_server?;
        let given = [
            ("document_server", self.document_server_secrets.0.is_some()),
            ("api", self.api_secrets.0.is_some()),
        ];
        engines::need_secrets(&self.ledger, given, mistakes);
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
            ledger: self.ledger,
            signals: self.signals,
            stores: self.stores,
            api: Api { secrets: api_secrets, jwks: self.api.0, checks: self.api.1, provider: self.api.2 },
            opening: self.opening.clone(),
            saving: self.saving,
            checking: Arc::new(self.checking),
            recovering: self.recovering,
            sessions: self.sessions,
            submitting: self.submitting,
            // A link may be used for as long as its token counts, and a little longer by somebody else's clock.
            retention: Retention { links: retention::links(&self.opening), ..self.retention },
            stopping: self.stopping,
            disk: self.disk,
            webhooks: self.webhooks,
            traces: self.traces,
            log: self.log,
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
