//! A small host that writes down every callback and download and answers as the test says.
//!
//! Guarantees: callbacks are numbered in order of arrival, bodies keep the order of their fields; an answer can be
//! held back, the connection can be closed without one, and the whole host can go down and come back.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// One callback as it came.
#[derive(Clone, Debug)]
pub(crate) struct Callback {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// Names of the body's fields, in order.
    pub(crate) fields: Vec<String>,
}

impl Callback {
    pub(crate) fn status(&self) -> u64 {
        self.body["status"].as_u64().unwrap()
    }

    /// The path of `url`, which names the save.
    pub(crate) fn save_path(&self) -> Option<String> {
        let url = url::Url::parse(self.body.get("url")?.as_str()?).unwrap();
        Some(url.path().to_owned())
    }
}

/// What to answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Ok,
    Error1,
    Http(u16),
    /// 200 with that body and type.
    Raw(&'static str, &'static str),
    /// Status and body.
    Status(u16, &'static str),
    /// Close the connection without a word.
    Close,
    /// Answer only when told to, or never.
    Held,
}

/// What `GET /doc/...` gives.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Bytes(Bytes),
    Status(u16),
}

#[derive(Default)]
struct Book {
    callbacks: Vec<Callback>,
    downloads: Vec<(String, BTreeMap<String, String>)>,
    script: BTreeMap<u64, VecDeque<Reply>>,
    default: BTreeMap<u64, Reply>,
    source: Option<Source>,
    held: Vec<(usize, oneshot::Sender<Reply>)>,
}

/// The host.
pub(crate) struct Host {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
    count: watch::Sender<usize>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

impl Host {
    pub(crate) async fn start(source: Bytes) -> Arc<Host> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let book = Book { source: Some(Source::Bytes(source)), ..Book::default() };
        let host = Arc::new(Host {
            address: listener.local_addr().unwrap(),
            book: Arc::new(Mutex::new(book)),
            count: watch::Sender::new(0),
            serving: Mutex::new(None),
        });
        host.serve(listener);
        host
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next answers to callbacks of a status.
    pub(crate) fn answers(&self, status: u64, replies: impl IntoIterator<Item = Reply>) {
        self.book.lock().unwrap().script.entry(status).or_default().extend(replies);
    }

    /// The answer to all callbacks of a status that have no answer of their own.
    pub(crate) fn always(&self, status: u64, reply: Reply) {
        self.book.lock().unwrap().default.insert(status, reply);
    }

    pub(crate) fn serves(&self, source: Source) {
        self.book.lock().unwrap().source = Some(source);
    }

    pub(crate) fn callbacks(&self) -> Vec<Callback> {
        self.book.lock().unwrap().callbacks.clone()
    }

    pub(crate) fn downloads(&self) -> usize {
        self.book.lock().unwrap().downloads.len()
    }

    pub(crate) fn last_download(&self) -> (String, BTreeMap<String, String>) {
        self.book.lock().unwrap().downloads.last().unwrap().clone()
    }

    /// How many answers are held back.
    pub(crate) fn held(&self) -> usize {
        let mut book = self.book.lock().unwrap();
        book.held.retain(|(_, answer)| !answer.is_closed());
        book.held.len()
    }

    /// Gives the answer to the oldest callback that is held back.
    pub(crate) fn release(&self, reply: Reply) {
        let (_, answer) = self.book.lock().unwrap().held.remove(0);
        answer.send(reply).unwrap();
    }

    /// Waits until that many callbacks have come.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Callback> {
        self.count.subscribe().wait_for(|come| *come >= count).await.unwrap();
        self.callbacks()
    }

    /// Stops listening and cuts all connections.
    pub(crate) async fn go_down(&self) {
        let serving = self.serving.lock().unwrap().take().unwrap();
        serving.abort();
        let _ = serving.await;
    }

    pub(crate) async fn come_back(self: &Arc<Host>) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    fn serve(self: &Arc<Host>, listener: TcpListener) {
        let host = self.clone();
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let host = host.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| host.clone().answer(request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        *self.serving.lock().unwrap() = Some(serving);
    }

    async fn answer(
        self: Arc<Host>,
        request: Request<Incoming>,
    ) -> Result<Response<axum::body::Body>, Closed> {
        let path = request.uri().path_and_query().unwrap().to_string();
        let headers = request.headers().iter();
        let headers: BTreeMap<String, String> =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        if request.method() == "GET" {
            return Ok(self.download(path, headers));
        }
        let body = axum::body::to_bytes(axum::body::Body::new(request.into_body()), 1 << 24).await.unwrap();
        let reply = self.record(path, headers, &body);
        let reply = match reply {
            (number, Reply::Held) => {
                let (answer, given) = oneshot::channel();
                self.book.lock().unwrap().held.push((number, answer));
                given.await.map_err(|_| Closed)?
            }
            (_, reply) => reply,
        };
        respond(reply)
    }

    fn download(&self, path: String, headers: BTreeMap<String, String>) -> Response<axum::body::Body> {
        let mut book = self.book.lock().unwrap();
        book.downloads.push((path, headers));
        match book.source.clone().unwrap() {
            Source::Bytes(bytes) => Response::new(bytes.into()),
            Source::Status(status) => Response::builder().status(status).body(Bytes::new().into()).unwrap(),
        }
    }

    fn record(&self, path: String, headers: BTreeMap<String, String>, body: &[u8]) -> (usize, Reply) {
        let value: Value = serde_json::from_slice(body).unwrap();
        let status = value["status"].as_u64().unwrap();
        let callback = Callback { path, headers, fields: fields_in_order(body), body: value };
        let mut book = self.book.lock().unwrap();
        book.callbacks.push(callback);
        let next = book.script.get_mut(&status).and_then(VecDeque::pop_front);
        let reply = next.or_else(|| book.default.get(&status).cloned()).unwrap_or(Reply::Ok);
        let number = book.callbacks.len();
        drop(book);
        self.count.send_replace(number);
        (number, reply)
    }
}

#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("closed on purpose")
    }
}

impl std::error::Error for Closed {}

impl From<Infallible> for Closed {
    fn from(never: Infallible) -> Closed {
        match never {}
    }
}

fn respond(reply: Reply) -> Result<Response<axum::body::Body>, Closed> {
    let (status, kind, body) = match reply {
        Reply::Ok => (200, "application/json", r#"{"error":0}"#),
        Reply::Error1 => (200, "application/json", r#"{"error":1}"#),
        Reply::Http(status) => (status, "text/plain", "trouble"),
        Reply::Raw(kind, body) => (200, kind, body),
        Reply::Status(status, body) => (status, "application/json", body),
        Reply::Close | Reply::Held => return Err(Closed),
    };
    Ok(Response::builder()
        .status(status)
        .header("content-type", kind)
        .body(Bytes::from(body).into())
        .unwrap())
}

/// The names of an object's fields as they stand in the text.
pub(crate) fn fields_in_order(json: &[u8]) -> Vec<String> {
    struct Names(Vec<String>);
    impl<'de> serde::Deserialize<'de> for Names {
        fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Names, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Names;
                fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    out.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                    let mut names = Vec::new();
                    while let Some((name, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                        names.push(name);
                    }
                    Ok(Names(names))
                }
            }
            input.deserialize_map(Visitor)
        }
    }
    serde_json::from_slice::<Names>(json).unwrap().0
}
