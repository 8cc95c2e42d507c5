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
    /// After so many pieces from the server, in all, the next one is kept back and its client told that the server failed, once.
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
    mode: Mutex<Mode>,
    open: Mutex<Vec<TcpStream>>,
    request_bytes: AtomicU64,
    replies: AtomicU64,
    is_over: std::sync::atomic::AtomicBool,
}

impl Proxy {
    /// Stands before a server.
    pub fn before(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            server_port,
            mode: Mutex::new(Mode::Pass),
            open: Mutex::default(),
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
        *self.shared.mode() = mode;
        self.shared.request_bytes.store(0, Ordering::SeqCst);
        self.shared.replies.store(0, Ordering::SeqCst);
        self.shared.cut_all();
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
        self.shared.cut_all();
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn mode(&self) -> std::sync::MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut_all(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn take(self: &Arc<Self>, client: TcpStream) {
        let mode = *self.mode();
        if mode == Mode::Refuse {
            return;
        }
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(client.try_clone().unwrap());
        if mode == Mode::Silent {
            return;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.server_port)) else { return };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(server.try_clone().unwrap());
        let streams = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let requests = Arc::clone(self);
        std::thread::spawn(move || requests.pass(streams, Self::may_send));
        let replies = Arc::clone(self);
        std::thread::spawn(move || replies.pass((server, client), Self::may_answer));
    }

    fn pass(&self, (mut from, mut to): (TcpStream, TcpStream), allowed: fn(&Self, usize) -> Passing) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let passing = allowed(self, count);
            let bytes = match passing {
                Passing::All => &buffer[..count],
                Passing::Only(count) => &buffer[..count],
                Passing::Instead(bytes) => bytes,
            };
            let is_over = to.write_all(bytes).is_err() || !matches!(passing, Passing::All);
            if matches!(passing, Passing::Only(_)) {
                self.cut_all();
            }
            if is_over {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }

    /// What may pass of so many bytes of a request.
    #[allow(clippy::disallowed_methods, reason = "a slow line takes time")]
    fn may_send(&self, count: usize) -> Passing {
        let before = self.request_bytes.fetch_add(count as u64, Ordering::SeqCst);
        let mode = *self.mode();
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

    /// What may pass of so many bytes of an answer.
    fn may_answer(&self, _count: usize) -> Passing {
        let before = self.replies.fetch_add(1, Ordering::SeqCst);
        match *self.mode() {
            Mode::CutRepliesAfter(limit) if before >= limit => Passing::Only(0),
            Mode::DenyReplyAfter(limit) if before == limit => Passing::Instead(FAILED),
            _ => Passing::All,
        }
    }
}
