//! One person of a load run: comes, writes, saves, leaves.
//!
//! Guarantees: every choice is drawn from the seed and the person's number; every visit ends.
//!
//! Does not retry a failed visit; the next person comes.

use std::time::Duration;

use serde_json::Value;

use super::{Crew, Target};
use crate::chance;
use crate::client::{Client, Options};
use crate::machine::Leaving;
use crate::server::{Opening, Session};

/// New configurations asked for when a key turns out to be spent.
const REFRESHES_MAX: u32 = 5;

pub(super) struct Person<'a> {
    crew: &'a Crew,
    name: String,
    draws: u64,
}

/// A place in a document.
pub(super) enum Seat {
    Socket(Box<Client>),
    Local(Box<Session>),
}

/// What a person may do with a chance.
#[derive(Clone, Copy)]
enum Habit {
    Idle,
    Polite,
    Return,
    ForceSave,
}

impl<'a> Person<'a> {
    pub(super) fn new(crew: &'a Crew, number: u64) -> Person<'a> {
        Person { crew, name: format!("p{number}"), draws: 0 }
    }

    pub(super) async fn visit(mut self) {
        let documents = self.crew.plan.documents.max(1) as u64;
        let document = usize::try_from(self.draw() % documents).unwrap_or(0);
        let Some((seat, config)) = self.sit_down(document).await else { return };
        if !self.does(Habit::Idle) {
            self.write(&seat).await;
        }
        let returns = self.does(Habit::Return);
        self.leave(seat).await;
        if returns && let Some(seat) = self.open(&config).await {
            self.crew.tally.count("returned");
            self.write(&seat).await;
            self.leave(seat).await;
        }
    }

    /// Asks for a configuration until one opens.
    pub(super) async fn sit_down(&self, document: usize) -> Option<(Seat, Value)> {
        for attempt in 0..=REFRESHES_MAX {
            let config = match (self.crew.invite)(document, self.name.clone()).await {
                Ok(config) => config,
                Err(why) => {
                    self.crew.tally.failed(format!("no configuration: {why}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    return None;
                }
            };
            if let Some(seat) = self.open(&config).await {
                return Some((seat, config));
            }
            if tokio::time::Instant::now() >= self.crew.ends_at {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
        }
        self.crew.tally.failed("the key was spent every time");
        None
    }

    async fn open(&self, config: &Value) -> Option<Seat> {
        let started = tokio::time::Instant::now();
        let tally = &self.crew.tally;
        let patience = self.crew.plan.patience;
        let (seat, opening) = match &self.crew.target {
            Target::Socket(url) => {
                let options = Options { patience, ..Options::default() };
                let client = Client::open(url, config, options).await;
                let client = client.map_err(|trouble| tally.failed(trouble.to_string())).ok()?;
                let opening =
                    client.opened().await.map_err(|trouble| tally.failed(trouble.to_string())).ok()?;
                (Seat::Socket(Box::new(client)), opening)
            }
            Target::InProcess(server) => {
                let session = server.open(config).await;
                let session = session.map_err(|trouble| tally.failed(trouble.to_string())).ok()?;
                let opened = tokio::time::timeout(patience, session.opened()).await;
                let opening = opened.map_err(|_| tally.failed("opening took too long")).ok()?;
                (Seat::Local(Box::new(session)), opening)
            }
        };
        match opening {
            Opening::Ready => {
                tally.count("opened");
                tally.took("open", started.elapsed());
                Some(seat)
            }
            Opening::Refresh => {
                tally.count("refreshed");
                None
            }
            other => {
                tally.failed(format!("{other:?}"));
                None
            }
        }
    }

    async fn write(&mut self, seat: &Seat) {
        let changes = self.draw() % u64::from(self.crew.plan.changes_max.max(1)) + 1;
        for number in 1..=changes {
            if !self.write_line(seat, number).await {
                return;
            }
            if self.does(Habit::ForceSave) && self.crew.ticket().await {
                self.force_save(seat).await;
            }
        }
    }

    /// Whether the server took it.
    pub(super) async fn write_line(&self, seat: &Seat, number: u64) -> bool {
        let is_taken = seat.write(&format!("{} wrote line {number}", self.name)).await;
        if is_taken {
            self.crew.tally.count("changes");
        } else {
            self.crew.tally.failed("a change was not taken");
        }
        is_taken
    }

    /// Presses Save and waits for the host's word.
    pub(super) async fn force_save(&self, seat: &Seat) {
        let started = tokio::time::Instant::now();
        match seat.force_save().await {
            Some(0) => self.crew.tally.count("force_saves"),
            Some(4) => return self.crew.tally.count("nothing_new"),
            _ => return self.crew.tally.failed("a force save was not accepted"),
        }
        let answered = tokio::time::timeout(self.crew.plan.patience, seat.force_saved()).await;
        match answered {
            Ok(Some(true)) => {
                self.crew.tally.count("taken_by_host");
                self.crew.tally.took("force_save", started.elapsed());
            }
            Ok(Some(false)) => self.crew.tally.count("refused_by_host"),
            Ok(None) | Err(_) => self.crew.tally.failed("no word about a force save"),
        }
    }

    async fn leave(&mut self, seat: Seat) {
        // The final save that may follow is paced like any other.
        self.crew.ticket().await;
        let how = if self.does(Habit::Polite) { Leaving::Explicit } else { Leaving::Lost };
        self.go(seat, how).await;
    }

    /// Leaves at once.
    pub(super) async fn go(&self, seat: Seat, how: Leaving) {
        self.crew.tally.count(if how == Leaving::Explicit { "closed" } else { "vanished" });
        seat.leave(how).await;
    }

    fn does(&mut self, habit: Habit) -> bool {
        let mix = &self.crew.plan.mix;
        let percent = match habit {
            Habit::Idle => mix.idlers,
            Habit::Polite => mix.polite,
            Habit::Return => mix.returners,
            Habit::ForceSave => mix.force_saves,
        };
        chance::happens(percent, self.draw())
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        chance::draw(self.crew.plan.seed, &self.name, self.draws)
    }
}

impl Seat {
    async fn write(&self, words: &str) -> bool {
        match self {
            Seat::Socket(client) => client.write(words).await.is_ok(),
            Seat::Local(session) => session.write(words).await.is_ok(),
        }
    }

    async fn force_save(&self) -> Option<u64> {
        match self {
            Seat::Socket(client) => client.force_save().await.ok().map(|answer| answer.code),
            Seat::Local(session) => session.press_save().await.ok().map(|answer| answer.code),
        }
    }

    /// Whether the host took the last force save; `None` if nobody says.
    async fn force_saved(&self) -> Option<bool> {
        match self {
            Seat::Socket(client) => client.force_saved().await.ok(),
            Seat::Local(session) => session.force_saved().await,
        }
    }

    /// The server may be gone by now; then there is nothing left to leave.
    async fn leave(self, how: Leaving) {
        match self {
            Seat::Socket(client) if how == Leaving::Explicit => drop(client.close().await),
            Seat::Socket(client) => client.hang_up().await,
            Seat::Local(session) => {
                if how == Leaving::Explicit {
                    let _ = session.close().await;
                }
                let _ = session.hang_up().await;
            }
        }
    }
}
