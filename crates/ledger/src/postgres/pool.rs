//! Connections to PostgreSQL: how many, how long anything may take, and whether they are encrypted.
//!
//! Guarantees: at most [`Options::connections`] are open; nothing waits without a bound, neither here (for a connection, for an
//! answer to the call for one) nor there (`lock_timeout`, `statement_timeout`), but for a commit whose synchronous standby is away: that the
//! server itself waits for. A step of an instance that was stopped or cut off in the middle of it is undone by the server after
//! [`Options::silent_max`], so that nobody waits longer for its locks. `synchronous_commit` is on, whatever the
//! server's default: a step that returned survives a power cut. A server that only reads (a standby) is not used, nor one that was
//! succeeded ([`super::primary`]). Does not
//! do: `PgBouncer` in transaction mode, which would take the settings and the prepared statements away between two steps.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use model::{Environment, Guards};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_postgres::NoTls;
use tokio_postgres::config::{LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::errors::{no_connection, unavailable};
use super::primary::Primary;
use crate::Result;
use crate::turns::SILENT_MAX;

/// What the server knows our connections by.
pub(super) const APPLICATION: &str = "saveguard";
/// A name may stand for several addresses; more than these are not waited for.
const ADDRESSES_PER_HOST: u32 = 3;
/// What comes after connecting: encryption, password, settings.
const LOGIN_MAX: Duration = Duration::from_secs(3);

/// How often a connection is asked for where a former primary takes changes, too.
const PREDECESSOR_ATTEMPTS: usize = 6;
/// The server, too, notices that a machine is gone, and gives the places of its connections to others: by default after two hours.
const SERVER_LOOKS: &str = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=20000";

/// How the engine is reached.
#[derive(Clone)]
pub struct Options {
    /// The installation the keys belong to.
    pub environment: Environment,
    /// `postgresql://user:password@host:5432/database`, with what else libpq knows. Secret.
    pub url: String,
    /// The certificates of those who may sign the server's, as PEM. Without it connections are not encrypted.
    pub ca_file: Option<PathBuf>,
    /// Connections at most.
    pub connections: usize,
    /// How long a step may wait for a connection, and then for each lock, before it is refused as busy. The seed's lock
    /// timeout: 3 s.
    pub wait_max: Duration,
    /// How long one statement may take before it is stopped.
    pub statement_max: Duration,
    /// How long a step may be left alone between two of its statements before the server takes whoever began it for dead.
    pub silent_max: Duration,
    /// How long one address may take to be connected to; of several, each.
    pub connect_max: Duration,
    /// Which guards stand; all of them outside of tests.
    pub guards: Guards,
    /// Called whenever the engine fails a step or a read, to be counted.
    pub on_trouble: fn(),
}

impl Options {
    /// The defaults for an environment and a server.
    pub fn new(environment: Environment, url: impl Into<String>) -> Self {
        Self {
            environment,
            url: url.into(),
            ca_file: None,
            connections: 16,
            wait_max: Duration::from_secs(3),
            statement_max: Duration::from_secs(30),
            silent_max: SILENT_MAX,
            connect_max: Duration::from_secs(2),
            guards: Guards::ALL,
            on_trouble: || {},
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Options")
            .field("environment", &self.environment)
            .field("url", &"***")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

pub(super) fn open(options: &Options) -> Result<Pool> {
    let config = config(options)?;
    let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(1).max(1);
    let each = config.get_connect_timeout().copied().unwrap_or(options.connect_max);
    // Long enough to come to the last host although the others say nothing.
    let all_hosts_max = each.saturating_mul(hosts * ADDRESSES_PER_HOST) + LOGIN_MAX;
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match &options.ca_file {
        Some(file) => Manager::from_config(config, tls(file)?, recycling),
        None => Manager::from_config(config, NoTls, recycling),
    };
    let primary = Arc::new(Primary::default());
    Pool::builder(manager)
        .post_create(primary.on_connecting())
        .pre_recycle(primary.on_reuse())
        .max_size(options.connections.max(1))
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(options.wait_max))
        .create_timeout(Some(all_hosts_max))
        .recycle_timeout(Some(options.connect_max))
        .build()
        .map_err(unavailable)
}

/// A connection. Of several hosts one that was succeeded by another may come first, by chance, a few times.
pub(super) async fn connection(pool: &Pool) -> Result<Object> {
    for _ in 1..PREDECESSOR_ATTEMPTS {
        match pool.get().await {
            Err(PoolError::PostCreateHook(_)) => {}
            got => return got.map_err(no_connection),
        }
    }
    pool.get().await.map_err(no_connection)
}

/// The settings go with the call for the connection, so that there is no connection without them. Statements are short: compiling
/// one (`jit`) takes longer than running it.
fn config(options: &Options) -> Result<tokio_postgres::Config> {
    let mut config = tokio_postgres::Config::from_str(&options.url).map_err(unavailable)?;
    let given = config.get_options().unwrap_or_default().to_owned();
    let ours = format!(
        "{given} -c lock_timeout={} -c statement_timeout={} -c idle_in_transaction_session_timeout={} \
         -c synchronous_commit=on -c jit=off -c default_transaction_isolation=read\\ committed {SERVER_LOOKS}",
        options.wait_max.as_millis(),
        options.statement_max.as_millis(),
        options.silent_max.as_millis(),
    );
    config.options(ours.trim());
    config.application_name(APPLICATION);
    // Of several hosts only the one that takes changes will do. A standby would show what was true some time ago.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_hosts().len() > 1 {
        // One that takes connections and says no more must not be the first each time.
        config.load_balance_hosts(LoadBalanceHosts::Random);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.connect_max);
    }
    // A peer that vanished without a word is noticed in time, also while an answer is waited for.
    config.keepalives_idle(Duration::from_secs(10));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(20));
    Ok(config)
}

fn tls(file: &Path) -> Result<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(unavailable)? {
        roots.add(certificate.map_err(unavailable)?).map_err(unavailable)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unavailable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
