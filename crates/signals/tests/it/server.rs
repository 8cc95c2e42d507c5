//! A real Redis for one test: on a free port of this machine, in a folder of its own, gone with the test.

use std::time::Duration;

use model::DocumentId;
use redis::aio::MultiplexedConnection;
use signals::redis::{RedisSignals, Settings};
use signals::{Lease, Listener, Signal, Signals};
use tempfile::TempDir;
use test_stores::free_port;
use tokio::process::{Child, Command};

/// Nothing here takes this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running server, and how to start it again.
pub(crate) struct Server {
    pub(crate) port: u16,
    arguments: Vec<String>,
    folder: TempDir,
    child: Child,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts it with further arguments, on another port if somebody else was quicker.
    pub(crate) async fn start_with(arguments: &[&str]) -> Self {
        loop {
            let folder = tempfile::tempdir().unwrap();
            let arguments: Vec<String> = arguments.iter().map(|each| (*each).to_owned()).collect();
            let port = free_port();
            let mut child = spawn(port, &folder, &arguments);
            if is_up(port, &mut child).await {
                return Self { port, arguments, folder, child };
            }
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again, empty, on the same port.
    pub(crate) async fn restart(&mut self) {
        loop {
            self.child = spawn(self.port, &self.folder, &self.arguments);
            if is_up(self.port, &mut self.child).await {
                return;
            }
        }
    }

    /// Lets it stand still, or go on.
    pub(crate) async fn send(&self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        let status = Command::new("kill").args([signal, &id]).status().await.unwrap();
        assert!(status.success());
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.address()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    pub(crate) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.connect().await).await.unwrap()
    }
}

fn spawn(port: u16, folder: &TempDir, arguments: &[String]) -> Child {
    let mut command = Command::from(test_stores::redis::command(port, folder.path()));
    command.args(arguments).kill_on_drop(true).spawn().unwrap()
}

async fn is_up(port: u16, child: &mut Child) -> bool {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
    while child.try_wait().unwrap().is_none() {
        if let Ok(mut connection) = client.get_multiplexed_async_connection().await
            && redis::cmd("PING").query_async::<String>(&mut connection).await.is_ok()
        {
            return true;
        }
        // waits on purpose: a program that starts says nothing when it is ready
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

/// An instance, without waiting for Redis.
pub(crate) fn open(address: &str, instance: &str) -> RedisSignals {
    let settings = Settings {
        address: address.to_owned(),
        prefix: String::new(),
        instance: instance.to_owned(),
        on_change: |_| {},
    };
    RedisSignals::open(settings).unwrap()
}

/// An instance that hears others and can ask.
pub(crate) async fn instance(address: &str, name: &str) -> (RedisSignals, Box<dyn Listener>) {
    let signals = open(address, name);
    let mut listener = signals.listen();
    until_missed(listener.as_mut()).await;
    until_asked(&signals).await;
    (signals, listener)
}

pub(crate) fn settled(document: &str) -> Signal {
    Signal::Settled(DocumentId::parse(document).unwrap())
}

/// Waits until the listener is told to look for itself.
pub(crate) async fn until_missed(listener: &mut dyn Listener) {
    tokio::time::timeout(PATIENCE, async { while listener.next().await.is_some() {} }).await.unwrap();
}

/// Waits until this is heard.
pub(crate) async fn until_heard(listener: &mut dyn Listener, signal: &Signal) {
    tokio::time::timeout(PATIENCE, async { while listener.next().await.as_ref() != Some(signal) {} })
        .await
        .unwrap();
}

/// Waits until questions are answered.
pub(crate) async fn until_asked(signals: &RedisSignals) {
    let nobody = DocumentId::parse("nobody").unwrap();
    let asked = async {
        while signals.renew_lease(&nobody, "nobody").await == Lease::Unknown {
            // waits on purpose: that questions are answered again is not announced
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
}
