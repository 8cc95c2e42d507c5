//! What the machine wants done outside: callbacks sent, sources fetched, results built.
//!
//! Guarantees: every errand ends, with an event: a callback after the callback timeout at the latest, a download
//! after its own; answers and sources are read up to a limit. Faults strike here.
//!
//! Does not repeat anything: the machine decides about repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderName, USER_AGENT};
use tokio::sync::{Semaphore, oneshot};

use super::busy::Busy;
use super::faults::{FaultKind, Faults, Point};
use crate::clock::Clock;
use crate::machine::{
    Answer, Body, Built, Content, Conversion, Event, Fetched, Post, Recipe, Source, TaskId,
};
use crate::office;
use crate::settings::Settings;
use crate::tokens::Outbox;

/// More than this of an answer is not read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The real server's way of naming itself.
const AGENT: &str = "Node.js/6.13";

/// Redirects followed, like the real server's client.
const REDIRECTS_MAX: usize = 5;

/// Results built at the same time.
const BUILDS_MAX: usize = 2;

/// Runs errands; clones share everything.
#[derive(Clone)]
pub(crate) struct Errands(Arc<Shared>);

struct Shared {
    client: reqwest::Client,
    clock: Clock,
    busy: Busy,
    outbox: Option<Outbox>,
    header: HeaderName,
    faults: Faults,
    callback_timeout_ms: u64,
    fetch_timeout_ms: u64,
    source_bytes_max: u64,
    builds: Semaphore,
    /// Callbacks that wait for the next one of their key.
    held: Mutex<BTreeMap<String, Vec<oneshot::Sender<()>>>>,
}

impl Errands {
    pub(crate) fn new(settings: &Settings, faults: Faults, busy: Busy) -> Result<Errands, reqwest::Error> {
        let client = reqwest::Client::builder()
            .http1_only()
            // The real server opens a connection for each request.
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::limited(REDIRECTS_MAX))
            .no_proxy()
            .build()?;
        let outbox =
            Outbox { secret: settings.secrets.outbox.clone(), life_s: settings.timings.token_life_s };
        let header = settings.jwt.header.parse().unwrap_or(reqwest::header::AUTHORIZATION);
        Ok(Errands(Arc::new(Shared {
            client,
            clock: settings.clock.clone(),
            busy,
            outbox: settings.jwt.outbox.then_some(outbox),
            header,
            faults,
            callback_timeout_ms: settings.timings.callback_timeout_ms,
            fetch_timeout_ms: settings.timings.fetch_timeout_ms,
            source_bytes_max: settings.source_bytes_max,
            builds: Semaphore::new(BUILDS_MAX),
            held: Mutex::default(),
        })))
    }

    /// Sends a callback and waits for its answer.
    pub(crate) async fn post(self, post: Post) -> Event {
        let Post { delivery, url, body, .. } = post;
        let key = body.key.clone();
        let faults = self.0.faults.strike(Point::Callback, &key, Some(body.status));
        for fault in &faults {
            match fault {
                FaultKind::CallbackLate { by_ms } => self.nap(*by_ms).await,
                FaultKind::CallbackAfterNext { at_most_ms } => self.wait_for_next(&key, *at_most_ms).await,
                _ => {}
            }
        }
        if faults.contains(&FaultKind::CallbackLost) {
            return Event::Answered { delivery, answer: Answer::Lost { why: "never arrived".to_owned() } };
        }
        let mut answer = self.send(&url, body.clone()).await;
        if faults.contains(&FaultKind::CallbackTwice) {
            self.send(&url, body).await;
        }
        if faults.contains(&FaultKind::AnswerLost) {
            answer = Answer::Lost { why: "answer lost".to_owned() };
        }
        self.release(&key);
        Event::Answered { delivery, answer }
    }

    async fn send(&self, url: &str, mut body: Body) -> Answer {
        let shared = &self.0;
        let mut request = shared.client.post(url);
        if let Some(outbox) = &shared.outbox {
            let token = outbox.sign_callback(&mut body, shared.clock.now_s());
            request = request.header(&shared.header, format!("Bearer {token}"));
        }
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "application/json, text/plain, */*")
            .header(CONNECTION, "Keep-Alive")
            .body(serde_json::to_vec(&body).unwrap_or_default());
        let answer = async {
            match request.send().await {
                Ok(response) => read_answer(response).await,
                Err(trouble) => lost(&trouble),
            }
        };
        tokio::select! {
            answer = answer => answer,
            _woken = shared.clock.sleep(shared.callback_timeout_ms) => Answer::Lost { why: "timeout".to_owned() },
        }
    }

    async fn wait_for_next(&self, key: &str, at_most_ms: u64) {
        let (bell, rung) = oneshot::channel();
        self.held().entry(key.to_owned()).or_default().push(bell);
        let rest = self.0.busy.rest();
        tokio::select! {
            _ = rung => {}
            _woken = self.0.clock.sleep(at_most_ms) => {}
        }
        drop(rest);
    }

    /// Sleeps without counting as going on.
    async fn nap(&self, wait_ms: u64) {
        let rest = self.0.busy.rest();
        let woken = self.0.clock.sleep(wait_ms).await;
        drop(rest);
        drop(woken);
    }

    /// Lets callbacks go that waited for this one.
    fn release(&self, key: &str) {
        for bell in self.held().remove(key).unwrap_or_default() {
            // It stopped waiting by itself: fine.
            let _ = bell.send(());
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<oneshot::Sender<()>>>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches a source, once.
    pub(crate) async fn fetch(self, task: TaskId, source: Source) -> Event {
        let shared = &self.0;
        let mut request = shared.client.get(&source.url);
        if let Some(outbox) = shared.outbox.as_ref().filter(|_| source.vouched) {
            let token = outbox.sign_url(&source.url, shared.clock.now_s());
            request = request.header(&shared.header, format!("Bearer {token}"));
        }
        let request = request
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, "application/json, text/plain, */*")
            .header(CONNECTION, "Keep-Alive");
        let download = async {
            match request.send().await {
                Ok(response) => read_source(response, shared.source_bytes_max).await,
                Err(_) => Fetched::Failed,
            }
        };
        let outcome = tokio::select! {
            outcome = download => outcome,
            _woken = shared.clock.sleep(shared.fetch_timeout_ms) => Fetched::TimedOut,
        };
        Event::Fetched { task, outcome }
    }

    /// Builds a result from its recipe.
    pub(crate) async fn build(self, task: TaskId, recipe: Recipe) -> Event {
        let faults = self.0.faults.strike(Point::Conversion, &recipe.key, None);
        for fault in &faults {
            if let FaultKind::ConversionSlow { by_ms } = fault {
                self.nap(*by_ms).await;
            }
        }
        // The semaphore is never closed.
        let _turn = self.0.builds.acquire().await;
        let built = tokio::task::spawn_blocking(move || convert(&recipe, &faults)).await;
        let failed = Built { conversion: Conversion::Failed, file: None, changes_zip: None };
        Event::Built { task, outcome: built.unwrap_or(failed) }
    }
}

async fn read_answer(response: reqwest::Response) -> Answer {
    let status = response.status().as_u16();
    let mut body = BytesMut::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => body.extend_from_slice(&piece),
            Err(trouble) => return lost(&trouble),
        }
        if body.len() > ANSWER_BYTES_MAX {
            break;
        }
    }
    Answer::Http { status, body: String::from_utf8_lossy(&body).into_owned() }
}

fn lost(trouble: &reqwest::Error) -> Answer {
    let why = if trouble.is_connect() {
        "refused"
    } else if trouble.is_timeout() {
        "timeout"
    } else if trouble.is_redirect() {
        "too many redirects"
    } else {
        "closed"
    };
    Answer::Lost { why: why.to_owned() }
}

async fn read_source(response: reqwest::Response, bytes_max: u64) -> Fetched {
    if !matches!(response.status().as_u16(), 200 | 206) {
        return Fetched::Failed;
    }
    if response.content_length().is_some_and(|length| length > bytes_max) {
        return Fetched::TooLarge;
    }
    let mut body = BytesMut::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let Ok(piece) = piece else { return Fetched::Failed };
        body.extend_from_slice(&piece);
        if body.len() as u64 > bytes_max {
            return Fetched::TooLarge;
        }
    }
    Fetched::Bytes(body.freeze())
}

/// The converter.
fn convert(recipe: &Recipe, faults: &[FaultKind]) -> Built {
    let failed = Built { conversion: Conversion::Failed, file: None, changes_zip: None };
    if faults.contains(&FaultKind::ConversionFails) {
        return failed;
    }
    let base = &recipe.base.content;
    let Ok(mut bytes) = office::build(&base.bytes, &recipe.ext, &recipe.changes) else { return failed };
    let mut ext = recipe.ext.clone();
    let inside = base.holds.iter().chain(recipe.changes.iter().map(|change| &change.id));
    let mut holds: BTreeSet<_> = inside.cloned().collect();
    for fault in faults {
        match fault {
            FaultKind::ResultType { ext: other } => {
                bytes = office::in_other_type(&bytes, other);
                ext.clone_from(other);
            }
            FaultKind::ResultDamaged => {
                bytes = damaged(&bytes);
                // Nobody can rely on what is inside.
                holds.clear();
            }
            _ => {}
        }
    }
    let corrupts = faults.contains(&FaultKind::ConversionCorrupts);
    let conversion = if corrupts { Conversion::Corrupted } else { Conversion::Done };
    let changes_zip = Content::new(office::changes_zip(&recipe.changes), "zip", Arc::new([]));
    Built {
        conversion,
        file: Some(Content::new(bytes, &ext, holds.into_iter().collect())),
        changes_zip: Some(changes_zip),
    }
}

/// The same bytes with wrong ones in the middle: enough of them to hit something that matters, even in a small file.
pub(crate) fn damaged(bytes: &Bytes) -> Bytes {
    let mut wrong = bytes.to_vec();
    let middle = wrong.len() / 2;
    for byte in wrong.iter_mut().skip(middle.saturating_sub(64)).take(128) {
        // Damaged twice is still damaged.
        *byte = byte.wrapping_add(1);
    }
    wrong.into()
}
