//! Watching: what happens to a document, told to open pages as it happens.
//!
//! A watcher compares the document with what it last told. Signals only say when to look; a watcher also looks by itself after
//! a while. So nothing is missed: not when signals are lost, not between two streams (each begins with how things stand,
//! and with the kept copies since the place the page names), and not when a page is slow.
//!
//! Guarantees: a bounded number of watchers, each of which holds one state and one bell; a stream ends when the service
//! stops, when the document is deleted, and after a while, so that a page asks for permission again.
//! Does not do: HTTP, permissions (the edge asks for them before it begins).

mod rooms;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use ledger::LedgerError;
use ledger::documents::{Author, Document, Keeping, KeptCopy, KeptPage, Whose};
use ledger::sessions::{SessionPage, SessionRecord};
use model::{Digest, DocumentId, Label};
use signals::Signal;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::telemetry::report;
pub use rooms::Rooms;
use rooms::Seat;

/// Looked for by itself at least this often, should a signal be lost.
const LOOK_AGAIN: Duration = Duration::from_secs(20);
/// Then the page comes again, with a token that is still good.
const LIFE: Duration = Duration::from_secs(600);
/// Kept copies told at once. Whoever missed more finds them in the list.
const KEPT_MAX: u32 = 50;
/// A document has one live session, and rarely another one with somebody left in it.
const SESSIONS_MAX: u32 = 50;

/// Something that happened, or how things stand when a stream begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The head is this one.
    Version(HeadNews),
    /// A save was kept as a conflict copy.
    Conflict(KeptNews),
    /// A damaged or failed save was kept in quarantine.
    Quarantined(KeptNews),
    /// Who is editing.
    Sessions(Vec<SessionRecord>),
    /// It has another name.
    Renamed(String),
    /// It was deleted; nothing follows.
    Deleted,
}

/// The head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadNews {
    /// Its number.
    pub label: Label,
    /// Its bytes.
    pub digest: Digest,
    /// Their length.
    pub size_bytes: u64,
    /// Who made it.
    pub author: Author,
    /// When it became the head.
    pub moved_at: jiff::Timestamp,
}

/// A kept copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptNews {
    /// Its number.
    pub number: u64,
    /// Why it is not the head.
    pub reason: &'static str,
    /// Who made it.
    pub author: Author,
}

/// How far a page has heard: `14.2-7` is the head 14.2 and the kept copy 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The head it knows.
    pub head: Label,
    /// The newest kept copy it knows; 0 if there is none.
    pub kept: u64,
}

impl Place {
    /// Reads a place back.
    pub fn parse(text: &str) -> Option<Self> {
        let (head, kept) = text.split_once('-')?;
        Some(Self { head: Label::parse(head)?, kept: kept.parse().ok()? })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}-{}", self.head, self.kept)
    }
}

/// How long a watcher watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it has told how things stand.
    Told,
    /// As long as it may.
    Later,
}

/// Rings the bells of watched documents until told to stop.
pub async fn follow(app: Arc<App>, stop: CancellationToken) {
    let mut listener = app.signals.listen();
    loop {
        let signal = tokio::select! {
            () = stop.cancelled() => return,
            signal = listener.next() => signal,
        };
        match signal {
            Some(Signal::Settled(document) | Signal::Presence(document)) => app.rooms.ring(&document),
            Some(_) => {}
            None => app.rooms.ring_all(),
        }
    }
}

/// Watches a document from a place on, or from now on. `None` if too many watch already.
pub fn watch(
    app: &Arc<App>,
    document: DocumentId,
    (since, until): (Option<Place>, Until),
) -> Option<impl Stream<Item = (Place, Event)> + Send + use<>> {
    let seat = app.rooms.enter(&document)?;
    let watcher = Watcher {
        app: Arc::clone(app),
        document,
        seat,
        since,
        known: None,
        untold: VecDeque::new(),
        ends_at: Instant::now() + LIFE,
        until,
    };
    Some(futures_util::stream::unfold(watcher, |mut watcher| async move {
        watcher.next().await.map(|told| (told, watcher))
    }))
}

/// How a document stands, as far as watchers care.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    document: Document,
    sessions: Vec<SessionRecord>,
    /// The newest first.
    kept: Vec<KeptCopy>,
}

impl Standing {
    fn newest_kept(&self) -> u64 {
        self.kept.first().map_or(0, |copy| copy.number)
    }
}

struct Watcher {
    app: Arc<App>,
    document: DocumentId,
    seat: Seat,
    since: Option<Place>,
    /// What was told last; nothing yet.
    known: Option<Standing>,
    untold: VecDeque<(Place, Event)>,
    ends_at: Instant,
    until: Until,
}

impl Watcher {
    async fn next(&mut self) -> Option<(Place, Event)> {
        loop {
            if let Some(event) = self.untold.pop_front() {
                return Some(event);
            }
            if let Some(known) = &self.known {
                let is_told_all = known.document.deleted_at.is_some() || self.until == Until::Told;
                if is_told_all || !self.rung().await {
                    return None;
                }
            }
            // Before looking, so that what happens meanwhile is heard.
            self.seat.bell.mark_unchanged();
            if let Err(cause) = self.look().await {
                // The page comes again and begins with how things stand.
                tracing::warn!(document.id = %self.document, error = %report(&cause), "a watched document could not be looked at");
                return None;
            }
        }
    }

    /// Waits for the bell, or for a while. `false` if the stream ends.
    async fn rung(&mut self) -> bool {
        let look_again = self.ends_at.min(Instant::now() + LOOK_AGAIN);
        tokio::select! {
            () = self.app.stopped_being_ready() => return false,
            rung = self.seat.bell.changed() => return rung.is_ok(),
            () = tokio::time::sleep_until(look_again) => {}
        }
        Instant::now() < self.ends_at
    }

    async fn look(&mut self) -> Result<(), LedgerError> {
        let now = self.standing().await?;
        let newest = now.newest_kept();
        let heard = self.known.as_ref().map(Standing::newest_kept).or(self.since.map(|since| since.kept));
        let mut place = Place { head: now.document.head, kept: heard.unwrap_or(newest).min(newest) };
        if self.knows_another(&now, |standing| (standing.document.head, standing.document.head_digest)) {
            let news = self.head_news(&now.document).await?;
            self.untold.push_back((place, Event::Version(news)));
        }
        for copy in now.kept.iter().rev().filter(|copy| copy.number > heard.unwrap_or(newest)) {
            place.kept = copy.number;
            self.untold.push_back((place, kept_news(copy)));
        }
        if self.knows_another(&now, |standing| who_is_inside(&standing.sessions)) {
            self.untold.push_back((place, Event::Sessions(now.sessions.clone())));
        }
        let was_named = self.known.as_ref().map(|known| &known.document.name);
        if was_named.is_some_and(|name| *name != now.document.name) {
            self.untold.push_back((place, Event::Renamed(now.document.name.to_string())));
        }
        if now.document.deleted_at.is_some() {
            self.untold.push_back((place, Event::Deleted));
        }
        self.known = Some(now);
        Ok(())
    }

    async fn standing(&self) -> Result<Standing, LedgerError> {
        let ledger = &self.app.ledger;
        let document = ledger.document(&self.document).await?;
        let document = document.ok_or_else(|| LedgerError::not_found(&self.document))?;
        let of = Whose::Document(self.document.clone());
        let kept = ledger.kept_copies(&KeptPage { of, before: None, limit: KEPT_MAX }).await?;
        let page = SessionPage { document: Some(self.document.clone()), after: None, limit: SESSIONS_MAX };
        let mut sessions = ledger.sessions(&page).await?;
        sessions.retain(|session| session.state().is_open());
        Ok(Standing { document, sessions, kept })
    }

    /// Whether something is not as it was told; in the beginning nothing was.
    fn knows_another<T: PartialEq>(&self, now: &Standing, part: impl Fn(&Standing) -> T) -> bool {
        self.known.as_ref().is_none_or(|known| part(known) != part(now))
    }

    async fn head_news(&self, document: &Document) -> Result<HeadNews, LedgerError> {
        let content = self.app.ledger.content(&document.id, document.head).await?;
        Ok(HeadNews {
            label: document.head,
            digest: document.head_digest,
            size_bytes: document.head_size_bytes,
            author: content.map_or_else(Author::saveguard, |content| content.author),
            moved_at: document.head_moved_at,
        })
    }
}

fn kept_news(copy: &KeptCopy) -> Event {
    let KeptCopy { number, keeping, author, .. } = copy;
    let news = KeptNews { number: *number, reason: keeping.reason(), author: author.clone() };
    match keeping {
        Keeping::Quarantine(_) => Event::Quarantined(news),
        Keeping::Conflict(_) | Keeping::Orphan => Event::Conflict(news),
    }
}

/// That the same people were seen again is no news.
fn who_is_inside(sessions: &[SessionRecord]) -> Vec<(String, &'static str, Vec<String>)> {
    let ids = |session: &SessionRecord| session.people.iter().map(|person| person.id.clone()).collect();
    let brief = |session: &SessionRecord| (session.key.to_string(), session.state().as_str(), ids(session));
    sessions.iter().map(brief).collect()
}
