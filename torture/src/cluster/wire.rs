//! The network between one instance and one engine: a proxy that can be cut, and frozen.
//!
//! A network namespace would do the same to whole machines; here every process is on one, and a proxy per instance and engine is
//! simpler and enough: what the instance sees is a connection that breaks, or that says nothing.
//!
//! Guarantees: while it is cut, connections there are break and new ones are closed at once; while it is frozen nothing passes and
//! nothing breaks, and what was sent meanwhile arrives late, when it thaws. Everything ends when it is dropped.

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to everything that wants to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    Cut,
    Frozen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    way: Way,
    /// How often it was cut: a connection of before does not live on.
    cuts: u64,
}

/// A connection to an engine.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) port: u16,
    state: watch::Sender<State>,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// A way to a port of the loopback.
    pub(crate) async fn to(engine: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let state = watch::Sender::new(State { way: Way::Open, cuts: 0 });
        let accepting = tokio::spawn(accept(listener, engine, state.subscribe()));
        Ok(Self { port, state, accepting })
    }

    pub(crate) fn set(&self, way: Way) {
        self.state.send_modify(|state| {
            state.way = way;
            state.cuts += u64::from(way == Way::Cut);
        });
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, engine: u16, state: watch::Receiver<State>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.borrow().way != Way::Cut {
            tokio::spawn(connect(client, engine, state.clone()));
        }
    }
}

async fn connect(client: TcpStream, engine: u16, mut state: watch::Receiver<State>) {
    let cuts = state.borrow().cuts;
    if !may_pass(&mut state, cuts).await {
        return;
    }
    let Ok(engine) = TcpStream::connect(("127.0.0.1", engine)).await else { return };
    let _ = (client.set_nodelay(true), engine.set_nodelay(true));
    let ((from_client, to_client), (from_engine, to_engine)) = (client.into_split(), engine.into_split());
    tokio::select! {
        () = pass((from_client, to_engine), (state.clone(), cuts)) => {}
        () = pass((from_engine, to_client), (state, cuts)) => {}
    }
}

async fn pass(
    (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
    (mut state, cuts): (watch::Receiver<State>, u64),
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut watching = state.clone();
    loop {
        let count = tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(count @ 1..) => count,
                _ => return,
            },
            _ = watching.wait_for(|state| state.cuts != cuts) => return,
        };
        if !may_pass(&mut state, cuts).await || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits while it is frozen. Returns whether it was not cut meanwhile.
async fn may_pass(state: &mut watch::Receiver<State>, cuts: u64) -> bool {
    let open = state.wait_for(|state| state.way == Way::Open || state.cuts != cuts).await;
    open.is_ok_and(|state| state.cuts == cuts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine that says everything back.
    async fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = client.into_split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        port
    }

    async fn ask(connection: &mut TcpStream) -> std::io::Result<()> {
        connection.write_all(b"x").await?;
        connection.read_exact(&mut [0]).await.map(drop)
    }

    #[tokio::test]
    async fn a_cut_breaks_what_there_is_and_refuses_what_comes() {
        let wire = Wire::to(echo().await).await.unwrap();
        let mut connection = TcpStream::connect(("127.0.0.1", wire.port)).await.unwrap();
        ask(&mut connection).await.unwrap();

        wire.set(Way::Cut);

        assert!(connection.read_exact(&mut [0]).await.is_err());
        let mut next = TcpStream::connect(("127.0.0.1", wire.port)).await.unwrap();
        assert!(ask(&mut next).await.is_err());
        wire.set(Way::Open);
        let mut last = TcpStream::connect(("127.0.0.1", wire.port)).await.unwrap();
        ask(&mut last).await.unwrap();
    }

    #[tokio::test]
    async fn frozen_it_says_nothing_and_what_was_sent_arrives_when_it_thaws() {
        let wire = Wire::to(echo().await).await.unwrap();
        let mut connection = TcpStream::connect(("127.0.0.1", wire.port)).await.unwrap();
        ask(&mut connection).await.unwrap();

        wire.set(Way::Frozen);
        connection.write_all(b"y").await.unwrap();
        let mut answer = [0];
        // waits on purpose: nothing may come, however long one waits
        let early =
            tokio::time::timeout(std::time::Duration::from_millis(50), connection.read_exact(&mut answer))
                .await;
        assert!(early.is_err(), "nothing passes");
        wire.set(Way::Open);

        connection.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"y");
    }
}
