//! Redis behind a Sentinel, and as a Cluster.

use std::time::Duration;

use model::DocumentId;
use signals::{Lease, Signals};
use test_stores::free_port;
use tokio::process::Command;

use crate::server::{Server, instance, settled, until_heard};

#[tokio::test]
async fn a_sentinel_is_asked_where_redis_is() {
    let server = Server::start().await;
    let sentinel = Sentinel::start(server.port).await;
    let address = format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/main/0", sentinel.port);

    let (a, _) = instance(&address, "a").await;
    let (_b, mut at_b) = instance(&address, "b").await;
    a.announce(settled("one")).await;

    until_heard(at_b.as_mut(), &settled("one")).await;
    assert_eq!(server.ask::<u64>(&["EXISTS", "save_done:one"]).await, 1);
}

#[tokio::test]
async fn the_nodes_of_a_cluster_share_signals_and_hints() {
    let [first, second] = cluster().await;
    let [at_first, at_second] =
        [&first, &second].map(|node| format!("redis-cluster://127.0.0.1:{}", node.port));

    let (a, _) = instance(&at_first, "a").await;
    let (b, mut at_b) = instance(&at_second, "b").await;

    // Enough documents that some belong to either node.
    for number in 0..8 {
        let document = DocumentId::parse(&format!("report-{number}")).unwrap();
        assert_eq!(a.take_lease(&document, "a").await, Lease::Ours);
        assert_eq!(b.take_lease(&document, "b").await, Lease::Elsewhere);
        let signal = settled(&format!("report-{number}"));
        a.announce(signal.clone()).await;
        until_heard(at_b.as_mut(), &signal).await;
    }
    for node in [&first, &second] {
        assert!(node.ask::<u64>(&["DBSIZE"]).await > 0);
    }
}

struct Sentinel {
    port: u16,
    _child: tokio::process::Child,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    async fn start(server: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sentinel.conf");
        let port = free_port();
        let text = format!("port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {server} 1\n");
        std::fs::write(&file, text).unwrap();
        let child = Command::new("redis-server")
            .arg(&file)
            .arg("--sentinel")
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { port, _child: child, _folder: folder }
    }
}

/// Two nodes with half of the slots each.
async fn cluster() -> [Server; 2] {
    let bus = [free_port().to_string(), free_port().to_string()];
    let arguments = |bus: &str| ["--cluster-enabled", "yes", "--cluster-port", bus].map(str::to_owned);
    let (of_first, of_second) = (arguments(&bus[0]), arguments(&bus[1]));
    let first = Server::start_with(&of_first.each_ref().map(String::as_str)).await;
    let second = Server::start_with(&of_second.each_ref().map(String::as_str)).await;
    first.ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]).await;
    second.ask::<String>(&["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]).await;
    let port = second.port.to_string();
    first.ask::<String>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus[1]]).await;
    for node in [&first, &second] {
        while !node.ask::<String>(&["CLUSTER", "INFO"]).await.contains("cluster_state:ok") {
            // waits on purpose: nodes get to know each other in their own time
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    [first, second]
}
