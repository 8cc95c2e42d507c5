//! A proxy between a client and a server that fails as told.
//!
//! Guarantees: a change of mode cuts every connection there is, so that the next request meets the new mode. Every thread ends
//! when the proxy is dropped. Does not do: know protocols; it counts bytes and replies. Only what it says instead of a server is HTTP.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything passes.
    Pass,
    /// It is closed at once.
    Refuse,
    /// It is taken and nothing ever comes.
    Silent,
    /// After so many bytes from clients, in all, everything is cut, and nothing passes any more.
    CutRequestsAfter(u64),
    /// After so many pieces from the server, in all, the next one is cut off, and nothing passes any more.
    CutRepliesAfter(u64),
    /// After so many replies of the server, in all, the next one is kept back and its client told that the server failed, once.
    DenyReplyAfter(u64),
    /// So many bytes a second pass from a client.
    SlowRequests(u64),
}

/// What a server says that did it, or did not.
const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What passes of a piece.
enum Passing {
    All,
    /// So much of it, and nothing any more.
    Only(usize),
    /// Something else, and nothing any more on this connection.
    Instead(&'static [u8]),
}

/// A proxy on a free port of the loopback.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server_port: u16,
    state: Mutex<State>,
    request_bytes: AtomicU64,
    replies: AtomicU64,
    is_over: std::sync::atomic::AtomicBool,
}

/// Under one lock: a connection is either cut by a change of mode or made under the new one.
#[derive(Debug)]
struct State {
    mode: Mode,
    /// How often the mode was set.
    changes: u64,
    open: Vec<TcpStream>,
}

impl State {
    fn cut_all(&mut self) {
        for stream in self.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Proxy {
    /// Stands before a server.
    pub fn before(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            server_port,
            state: Mutex::new(State { mode: Mode::Pass, changes: 0, open: Vec::new() }),
            request_bytes: AtomicU64::new(0),
            replies: AtomicU64::new(0),
            is_over: false.into(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.is_over.load(Ordering::SeqCst) {
                    return;
                }
                accepting.take(client);
            }
        });
        Self { port, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on; connections there are, are cut.
    pub fn set(&self, mode: Mode) {
        let mut state = self.shared.state();
        (state.mode, state.changes) = (mode, state.changes + 1);
        self.shared.request_bytes.store(0, Ordering::SeqCst);
        self.shared.replies.store(0, Ordering::SeqCst);
        state.cut_all();
    }

    /// How many bytes clients have sent since the mode was set.
    pub fn request_bytes(&self) -> u64 {
        self.shared.request_bytes.load(Ordering::SeqCst)
    }

    /// How many pieces the server has sent since the mode was set.
    pub fn replies(&self) -> u64 {
        self.shared.replies.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.state().cut_all();
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mode(&self) -> Mode {
        self.state().mode
    }

    fn take(self: &Arc<Self>, client: TcpStream) {
        let (mode, changes) = {
            let state = self.state();
            (state.mode, state.changes)
        };
        if mode == Mode::Refuse {
            return;
        }
        // Not under the lock: a server that is stopped lets clients wait.
        let server = match mode {
            Mode::Silent => None,
            _ => match TcpStream::connect(("127.0.0.1", self.server_port)) {
                Ok(server) => Some(server),
                Err(_) => return,
            },
        };
        {
            let mut state = self.state();
            if state.changes != changes {
                // The mode it was made under is over, and so is the connection.
                return;
            }
            state.open.extend([Some(&client), server.as_ref()].into_iter().flatten().map(twin));
        }
        let Some(server) = server else { return };
        let streams = (twin(&client), twin(&server));
        let requests = Arc::clone(self);
        std::thread::spawn(move || requests.pass(streams, Self::may_send));
        let replies = Arc::clone(self);
        std::thread::spawn(move || replies.pass((server, client), Self::may_answer));
    }

    fn pass(&self, (mut from, mut to): (TcpStream, TcpStream), allowed: fn(&Self, &[u8]) -> Passing) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let passing = allowed(self, &buffer[..count]);
            let bytes = match passing {
                Passing::All => &buffer[..count],
                Passing::Only(count) => &buffer[..count],
                Passing::Instead(bytes) => bytes,
            };
            let is_over = to.write_all(bytes).is_err() || !matches!(passing, Passing::All);
            if matches!(passing, Passing::Only(_)) {
                self.state().cut_all();
            }
            if is_over {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }

    /// What may pass of a piece of a request.
    #[allow(clippy::disallowed_methods, reason = "a slow line takes time")]
    fn may_send(&self, piece: &[u8]) -> Passing {
        let count = piece.len();
        let before = self.request_bytes.fetch_add(count as u64, Ordering::SeqCst);
        let mode = self.mode();
        match mode {
            Mode::CutRequestsAfter(limit) if before + count as u64 > limit => {
                Passing::Only(usize::try_from(limit.saturating_sub(before)).unwrap_or(count).min(count))
            }
            Mode::SlowRequests(bytes_per_s) => {
                std::thread::sleep(Duration::from_millis(count as u64 * 1000 / bytes_per_s));
                Passing::All
            }
            _ => Passing::All,
        }
    }

    /// What may pass of a piece of an answer.
    fn may_answer(&self, piece: &[u8]) -> Passing {
        let mode = self.mode();
        // Told instead of a body, it would be taken for the body.
        if matches!(mode, Mode::DenyReplyAfter(_)) && !piece.starts_with(b"HTTP/") {
            return Passing::All;
        }
        let before = self.replies.fetch_add(1, Ordering::SeqCst);
        match mode {
            Mode::CutRepliesAfter(limit) if before >= limit => Passing::Only(0),
            Mode::DenyReplyAfter(limit) if before == limit => Passing::Instead(FAILED),
            _ => Passing::All,
        }
    }
}

fn twin(stream: &TcpStream) -> TcpStream {
    stream.try_clone().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_a_server_that_is_not_there_is_not_left_waiting() {
        let proxy = Proxy::before(crate::free_port());
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();

        assert!(matches!(client.read(&mut [0]), Ok(0)), "the end, and no silence");
    }
}
