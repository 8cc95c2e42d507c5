//! A Document Server of a few lines: serves made documents, at once or trickled, and knows no key.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A trickled body comes in so many pieces.
const PIECES: u32 = 10;

/// What the paths of files begin with.
pub(super) const FILES: &str = "/cache/files/";

/// Files to be fetched, by path.
#[derive(Clone)]
pub(crate) struct DocumentServer {
    address: SocketAddr,
    files: Arc<Mutex<HashMap<String, (Bytes, Duration)>>>,
    /// Asked for and not there any more.
    fetched_again: Arc<AtomicU64>,
}

impl DocumentServer {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server =
            Self { address: listener.local_addr()?, files: Arc::default(), fetched_again: Arc::default() };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move {
                    // A client that goes away is its own affair.
                    let _ = serving.serve(stream).await;
                });
            }
        });
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Offers a file once, its body spread over a time.
    pub(crate) fn offer(&self, path: &str, body: Bytes, over: Duration) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), (body, over));
    }

    /// How often a file was asked for that somebody had fetched already.
    pub(crate) fn fetched_again(&self) -> u64 {
        self.fetched_again.load(Ordering::Relaxed)
    }

    async fn serve(&self, stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        loop {
            let Some((path, length)) = read_head(&mut stream).await? else { return Ok(()) };
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await?;
            let path = path.split('?').next().unwrap_or_default();
            let file = self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
            match file {
                Some((body, over)) => send(&mut stream, &body, over).await?,
                None => {
                    self.fetched_again.fetch_add(u64::from(path.starts_with(FILES)), Ordering::Relaxed);
                    send(&mut stream, b"{\"error\":1}", Duration::ZERO).await?;
                }
            }
        }
    }
}

async fn read_head(stream: &mut BufReader<TcpStream>) -> Result<Option<(String, usize)>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let header = line.trim();
        if header.is_empty() {
            return Ok(Some((path, length)));
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
}

async fn send(stream: &mut BufReader<TcpStream>, body: &[u8], over: Duration) -> Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    if over.is_zero() {
        let whole = [head.as_bytes(), body].concat();
        return Ok(stream.write_all(&whole).await?);
    }
    stream.write_all(head.as_bytes()).await?;
    for piece in body.chunks(body.len().div_ceil(PIECES as usize).max(1)) {
        tokio::time::sleep(over / PIECES).await;
        stream.write_all(piece).await?;
    }
    Ok(())
}
