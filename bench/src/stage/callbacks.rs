//! Callbacks on the wire: one keep-alive connection, requests made by hand.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::document_server::FILES;
use super::{DocumentServer, SECRET};

/// A save as the Document Server announces it.
pub(crate) struct Callback<'a> {
    pub(crate) key: &'a str,
    /// 2 or 6.
    pub(crate) status: u8,
    /// Unique per save; becomes part of the link's path and orders saves in time.
    pub(crate) number: u64,
}

impl Callback<'_> {
    /// The path under which its file must be offered.
    pub(crate) fn path(&self) -> String {
        format!("{FILES}data/{}_{}/output.docx/output.docx", self.key, self.number)
    }

    /// The request's body, signed.
    pub(crate) fn body(&self, documents: &DocumentServer) -> Result<String> {
        let now = jiff::Zoned::now().timestamp();
        let last_save = jiff::Timestamp::from_second(1_700_000_000 + i64::try_from(self.number)?)?;
        let claims = json!({
            "key": self.key,
            "status": self.status,
            "url": format!("{}{}?md5=x&expires=1", documents.url(), self.path()),
            "filetype": "docx",
            "users": ["u1"],
            "lastsave": last_save.to_string(),
            "notmodified": false,
            "history": { "serverVersion": "9.3.0", "changes": [
                { "created": "2023-11-14 22:13:20", "user": { "id": "u1", "name": "User One" } },
            ]},
            "iat": now.as_second(),
            "exp": now.as_second() + 300,
        });
        let key = EncodingKey::from_secret(SECRET.as_bytes());
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key)?;
        Ok(json!({ "token": token }).to_string())
    }
}

/// A connection to the server's callback route.
pub(crate) struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Delivers a callback; anything but `{"error":0}` is a failure of the bench.
    pub(crate) async fn deliver(&mut self, body: &str) -> Result<()> {
        let head = format!(
            "POST /callback/bench HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes()).await?;
        let (status, answer) = self.answer().await?;
        let error = serde_json::from_str::<Value>(&answer).ok().and_then(|answer| answer["error"].as_i64());
        if !(status.contains(" 200 ") && error == Some(0)) {
            bail!("a save was answered {} {answer}", status.trim());
        }
        Ok(())
    }

    async fn answer(&mut self) -> Result<(String, String)> {
        let mut status = String::new();
        self.stream.read_line(&mut status).await?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).await?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().context("a length")?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((status, String::from_utf8(body)?))
    }
}
