//! Where a test's instances live: a folder, the engines and the balancer that go with it, and the configuration of each instance.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use saveguard::config::{Config, StoreKind};
use tokio::net::TcpListener;

use super::balancer::Balancer;
use super::engines::{Choice, Engines};
use super::{config, free_port};

pub(crate) struct Site {
    choice: Choice,
    pub(crate) engines: Option<Engines>,
    balancer: Option<Balancer>,
    // Last: the others have files in it.
    folder: tempfile::TempDir,
}

impl Site {
    /// On what this run stands on.
    pub(crate) async fn new() -> Self {
        Self::on(Choice::of_this_run()).await
    }

    pub(crate) async fn on(choice: Choice) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { choice, engines: Engines::of(choice).await, balancer: None, folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// One instance, reached directly.
    pub(crate) fn config(&self, document_server: &str, changes: &[(&str, &str)]) -> Config {
        let settings = self.engines.as_ref().map(Engines::settings).unwrap_or_default();
        let settings = settings.iter().map(|(name, value)| (*name, value.as_str()));
        let changes: Vec<(&str, &str)> = settings.chain(changes.iter().copied()).collect();
        config(self.path(), document_server, &changes)
    }

    /// All instances; if they are several, a balancer stands before them from now on.
    pub(crate) async fn configs(&mut self, document_server: &str, changes: &[(&str, &str)]) -> Vec<Config> {
        if self.choice.instances() == 1 {
            return vec![self.config(document_server, changes)];
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = format!("http://{}", listener.local_addr().unwrap());
        let mut all = vec![("SERVER_PUBLIC_URL", front.as_str()), ("SERVER_INTERNAL_URL", front.as_str())];
        all.extend(changes);
        let instance = |number| of_its_own(self.config(document_server, &all), number);
        let configs: Vec<Config> = (0..self.choice.instances()).map(instance).collect();
        let addresses: Vec<SocketAddr> = configs.iter().map(|config| config.server.listen).collect();
        self.balancer = Some(Balancer::start(listener, addresses));
        configs
    }
}

/// What no two instances share: the data folder, and the address. The first one has those that a single instance would have.
fn of_its_own(mut config: Config, number: usize) -> Config {
    if number > 0 {
        config.server.listen.set_port(free_port());
        let name = config.server.data.file_name().unwrap().to_str().unwrap();
        config.server.data = config.server.data.with_file_name(format!("{name}-{number}"));
    }
    config
}

/// Where the published tree of a configuration is on this machine: also the SFTP server of a test keeps its files here.
pub(crate) fn published(config: &Config) -> PathBuf {
    match (config.stores.tree, &config.stores.sftp) {
        (StoreKind::Sftp, Some(sftp)) => PathBuf::from(&sftp.tree_folder),
        _ => config.stores.folder.as_deref().unwrap_or(&config.server.data).join("published"),
    }
}

/// Where a blob of a configuration is on this machine.
pub(crate) fn blob(config: &Config, digest: &str) -> PathBuf {
    let vault = match (config.stores.vault, &config.stores.sftp) {
        (StoreKind::Sftp, Some(sftp)) => PathBuf::from(&sftp.vault_folder),
        _ => config.stores.folder.as_deref().unwrap_or(&config.server.data).join("vault"),
    };
    vault.join("blobs").join(&digest[..2]).join(digest)
}
