//! A Document Server that only has files: one for every path, the same one each time. It knows no sessions.
//!
//! Guarantees: answers everything at once. Does not do: more than one request per connection.

use std::io;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use understudy::office::sample_docx;

const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A server of files.
pub(super) struct Files {
    pub(super) url: String,
    accepting: JoinHandle<()>,
}

impl Files {
    pub(super) async fn serve() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(answer(client));
            }
        });
        Ok(Self { url, accepting })
    }

    /// Where a file is.
    pub(super) fn link(&self, name: &str) -> String {
        format!("{}/cache/{name}/output.docx", self.url)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn answer(mut client: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if client.read_buf(&mut request).await? == 0 || request.len() > HEAD_BYTES_MAX {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (kind, body) = if path.starts_with("/cache/") {
        let name = path.split('/').nth(2).unwrap_or_default();
        ("application/octet-stream", sample_docx("Report", &[name]).to_vec())
    } else {
        ("application/json", br#"{"error":0,"keys":[]}"#.to_vec())
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(&body).await?;
    client.shutdown().await
}

/// Head and body are there.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    request.len() >= end + 4 + length.unwrap_or(0_usize)
}
