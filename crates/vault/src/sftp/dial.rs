//! From settings to a session that can be used: connect, know the server, log in, ask what it can do.
//!
//! Guarantees: within the timeout there is a session or an error in words; the password leaves only after the host key was right.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use russh::client::{self, AuthResult, Handle};
use russh::keys::{Algorithm, PrivateKey, PrivateKeyWithHashAlg, load_secret_key};
use russh::{Preferred, cipher};
use russh_sftp::client::{Config, RawSftpSession};
use tokio::net::TcpStream;

use super::connection::{Abilities, Connection};
use super::host_key::{Expected, Gatekeeper, Turned};
use super::settings::{Secret, Settings};

/// A peer of which nothing is heard for three times as long is dead.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The library's own limit, far beyond ours: it counts from the sending, and a request may wait in line for long.
const REQUEST_MAX_S: u64 = 3600;
/// What has hardware for it comes first; all of them are safe.
const CIPHERS: &[cipher::Name] =
    &[cipher::AES_256_GCM, cipher::AES_128_GCM, cipher::CHACHA20_POLY1305, cipher::AES_256_CTR];

/// Makes connections to one server.
pub(crate) struct Dialer {
    pub(crate) settings: Settings,
    /// For each kind of host key to ask for.
    attempts: Vec<Arc<client::Config>>,
    /// The attempt that led to the right host key last.
    right: AtomicUsize,
    expected: Expected,
    key: Option<Arc<PrivateKey>>,
}

impl Dialer {
    /// Reads the files the settings name.
    pub(crate) fn prepare(settings: Settings) -> io::Result<Self> {
        let expected = Expected::read(&settings)?;
        let key = settings.key_file.as_ref().map(|_| load_key(&settings)).transpose()?;
        if key.is_none() && settings.password.is_none() {
            return Err(invalid("there is neither a key file nor a password to log in with".to_owned()));
        }
        if settings.connections_max == 0 {
            return Err(invalid("there must be at least one connection".to_owned()));
        }
        let attempts = expected.attempts().into_iter().map(|keys| Arc::new(asking_for(keys))).collect();
        Ok(Self { settings, attempts, right: AtomicUsize::new(0), expected, key })
    }

    /// A new connection.
    pub(crate) async fn dial(&self) -> io::Result<Connection> {
        let limit = self.settings.timeouts.connect;
        match tokio::time::timeout(limit, self.establish()).await {
            Ok(connected) => connected,
            Err(_) => {
                let words = format!("{} did not let us in within {} s", self.server(), limit.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, words))
            }
        }
    }

    fn server(&self) -> String {
        format!("the SFTP server {}:{}", self.settings.host, self.settings.port)
    }

    async fn establish(&self) -> io::Result<Connection> {
        let (mut ssh, line) = self.meet().await?;
        self.log_in(&mut ssh).await?;
        let channel = ssh.channel_open_session().await.map_err(|error| self.turned(error.into()))?;
        channel.request_subsystem(true, "sftp").await.map_err(|error| self.turned(error.into()))?;
        // How long we wait is decided where we wait.
        let config = Config { request_timeout_secs: REQUEST_MAX_S, ..Config::default() };
        let session = RawSftpSession::new_with_config(channel.into_stream(), config);
        let refused = |cause: String| {
            io::Error::other(format!("{} let us in but does not speak SFTP with us: {cause}", self.server()))
        };
        let version = session.init().await.map_err(|error| refused(error.to_string()))?;
        let abilities = Abilities::probe(&session, &version.extensions).await.map_err(refused)?;
        Ok(Connection::new(session, (abilities, self.settings.timeouts.request), (ssh, line)))
    }

    /// Finds the server and knows it, by one of its host keys.
    async fn meet(&self) -> io::Result<(Handle<Gatekeeper>, std::net::TcpStream)> {
        let right = self.right.load(Ordering::Relaxed);
        let mut stranger = None;
        for at in (right..self.attempts.len()).chain(0..right) {
            match self.meet_asking_for(&self.attempts[at]).await? {
                Ok(met) => {
                    self.right.store(at, Ordering::Relaxed);
                    return Ok(met);
                }
                // It may have the right one, too.
                Err(turned @ Turned::Stranger(_)) => {
                    // Tells more than that there is no key of a kind.
                    if !matches!(stranger, Some(Turned::Stranger(_))) {
                        stranger = Some(turned);
                    }
                }
                Err(turned @ Turned::Ssh(russh::Error::NoCommonAlgo { .. })) => {
                    stranger.get_or_insert(turned);
                }
                Err(turned) => return Err(self.turned(turned)),
            }
        }
        Err(stranger
            .map_or_else(|| invalid("there is no host key to expect".to_owned()), |it| self.turned(it)))
    }

    async fn meet_asking_for(
        &self,
        config: &Arc<client::Config>,
    ) -> io::Result<Result<(Handle<Gatekeeper>, std::net::TcpStream), Turned>> {
        let address = (self.settings.host.as_str(), self.settings.port);
        let socket = TcpStream::connect(address).await.map_err(|cause| {
            io::Error::new(cause.kind(), format!("{} cannot be reached: {cause}", self.server()))
        })?;
        socket.set_nodelay(true)?;
        let socket = socket.into_std()?;
        // Its end is ours to decide, whatever still waits to be sent.
        let line = socket.try_clone()?;
        let gatekeeper = Gatekeeper(self.expected.clone());
        let met = client::connect_stream(Arc::clone(config), TcpStream::from_std(socket)?, gatekeeper).await;
        Ok(met.map(|ssh| (ssh, line)))
    }

    async fn log_in(&self, ssh: &mut Handle<Gatekeeper>) -> io::Result<()> {
        let user = &self.settings.user;
        let mut left = String::new();
        if let Some(key) = &self.key {
            let key = PrivateKeyWithHashAlg::new(Arc::clone(key), None);
            let answer = ssh.authenticate_publickey(user, key).await;
            match answer.map_err(|error| self.turned(error.into()))? {
                AuthResult::Success => return Ok(()),
                AuthResult::Failure { remaining_methods, .. } => left = methods(&remaining_methods),
            }
        }
        if let Some(password) = &self.settings.password {
            let answer = ssh.authenticate_password(user, password.reveal()).await;
            match answer.map_err(|error| self.turned(error.into()))? {
                AuthResult::Success => return Ok(()),
                AuthResult::Failure { remaining_methods, .. } => left = methods(&remaining_methods),
            }
        }
        let tried = match (&self.key, &self.settings.password) {
            (Some(_), Some(_)) => "neither the key nor the password",
            (Some(_), None) => "not the key",
            _ => "not the password",
        };
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} takes {tried} of {user}; what it would take: {left}", self.server()),
        ))
    }

    fn turned(&self, turned: Turned) -> io::Error {
        match turned {
            Turned::Stranger(words) => io::Error::new(io::ErrorKind::PermissionDenied, words),
            Turned::Ssh(russh::Error::NoCommonAlgo { kind, theirs, .. }) => io::Error::other(format!(
                "{} and we have no common {kind:?} algorithm; it has {}",
                self.server(),
                theirs.join(", ")
            )),
            Turned::Ssh(error) => io::Error::new(
                io::ErrorKind::ConnectionAborted,
                format!("{} ended the connection before we were in: {error}", self.server()),
            ),
        }
    }
}

fn asking_for(keys: Vec<Algorithm>) -> client::Config {
    let preferred = Preferred { key: Cow::Owned(keys), cipher: Cow::Borrowed(CIPHERS), ..Preferred::DEFAULT };
    client::Config {
        preferred,
        keepalive_interval: Some(KEEPALIVE_INTERVAL),
        nodelay: true,
        ..client::Config::default()
    }
}

fn methods(left: &[russh::MethodKind]) -> String {
    let words: Vec<String> = left.iter().map(<&'static str>::from).map(str::to_owned).collect();
    if words.is_empty() { "nothing more".to_owned() } else { words.join(", ") }
}

fn invalid(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

fn load_key(settings: &Settings) -> io::Result<Arc<PrivateKey>> {
    let file = settings.key_file.clone().unwrap_or_default();
    let password = settings.key_password.as_ref().map(Secret::reveal);
    let words = |cause: String| invalid(format!("the key in {} cannot be used: {cause}", file.display()));
    let key = load_secret_key(&file, password).map_err(|cause| words(cause.to_string()))?;
    if key.algorithm().is_rsa() {
        return Err(words("it is an RSA key. Make another with `ssh-keygen -t ed25519`".to_owned()));
    }
    Ok(Arc::new(key))
}
