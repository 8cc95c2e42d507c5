//! The load driver: many people who open, write, save and leave, as often and in such mixes as asked.
//!
//! Guarantees: at most [`Plan::sessions`] people at a time and about [`Plan::saves_per_s`] saves in a second; the
//! same seed makes the same choices; every change carries a visible marker ([`crate::office::changes_in`] finds
//! it), and the report counts what was sent, so a harness can tell what must have arrived.
//!
//! [`run`] has people come and go as they like; [`Held`] keeps every document open and saves at a steady pace.
//!
//! Does not judge the host: compare the report and the journal with what the host kept.

mod holding;
mod person;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use holding::{Held, Hold};
pub use report::{Latency, Report};

use crate::config::EditorConfig;
use crate::server::Running;
use crate::tokens::Secret;
use report::Tally;

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// People at the same time.
    pub sessions: usize,
    /// Documents they share: fewer documents than people means overlaps.
    pub documents: usize,
    /// Saves begun per second, over all; the pace of everything else follows.
    pub saves_per_s: f64,
    pub duration: Duration,
    /// Changes each person makes before leaving: at least one, at most this.
    pub changes_max: u32,
    pub mix: Mix,
    pub seed: u64,
    /// How long to wait for any one thing.
    pub patience: Duration,
}

/// What people do, in percent.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// After a change, press Save.
    pub force_saves: u8,
    /// Come, look, and leave without a change.
    pub idlers: u8,
    /// Leave with a word; the others' tabs just vanish.
    pub polite: u8,
    /// Come back within the save delay.
    pub returners: u8,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            sessions: 10,
            documents: 5,
            saves_per_s: 10.0,
            duration: Duration::from_secs(10),
            changes_max: 5,
            mix: Mix { force_saves: 50, idlers: 10, polite: 50, returners: 10 },
            seed: 1,
            patience: Duration::from_secs(30),
        }
    }
}

/// Gives a person the configuration for a document: number of the document, id of the person.
pub type Invite = Arc<dyn Fn(usize, String) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Where the people go.
#[derive(Clone)]
pub enum Target {
    /// Any Document Server, over sockets.
    Socket(String),
    /// A server of this process, by direct calls.
    InProcess(Arc<Running>),
}

/// Configurations of our own making, each document under one key: for hosts that take any key.
pub fn own_invitations(
    document_url: String,
    callback_url: String,
    key_prefix: String,
    secret: Secret,
) -> Invite {
    Arc::new(move |document, user| {
        let key = format!("{key_prefix}{document}");
        let fill = |url: &str| url.replace("{document}", &document.to_string()).replace("{user}", &user);
        let config = EditorConfig::new(&key, &fill(&document_url), &fill(&callback_url), &user);
        let config = config.signed(&secret);
        Box::pin(async move { Ok(config) })
    })
}

/// Configurations asked from the host: `{document}` and `{user}` in the address are filled in.
pub fn hosts_invitations(address: String, bearer: Option<String>) -> Invite {
    let client = reqwest::Client::new();
    Arc::new(move |document, user| {
        let address = address.replace("{document}", &document.to_string()).replace("{user}", &user);
        let mut request = client.get(address);
        if let Some(bearer) = &bearer {
            request = request.bearer_auth(bearer);
        }
        Box::pin(async move {
            let response = request.send().await.and_then(reqwest::Response::error_for_status);
            let response = response.map_err(|trouble| trouble.without_url().to_string())?;
            let config: Value = response.json().await.map_err(|trouble| trouble.without_url().to_string())?;
            // Some hosts wrap it.
            Ok(config.get("config").cloned().unwrap_or(config))
        })
    })
}

/// Carries the plan out.
pub async fn run(plan: Plan, invite: Invite, target: Target) -> Report {
    let started = tokio::time::Instant::now();
    let crew = Arc::new(Crew::new(plan, invite, target));
    let mut seats: JoinSet<()> = JoinSet::new();
    for _ in 0..crew.plan.sessions {
        let crew = crew.clone();
        seats.spawn(async move { crew.keep_coming().await });
    }
    let pace = tokio::spawn({
        let crew = crew.clone();
        async move { crew.hand_out_tickets().await }
    });
    while seats.join_next().await.is_some() {}
    pace.abort();
    crew.tally.report(started.elapsed())
}

/// Everybody who takes part.
struct Crew {
    plan: Plan,
    invite: Invite,
    target: Target,
    /// One per save that may begin.
    tickets: Semaphore,
    ends_at: tokio::time::Instant,
    people: AtomicU64,
    tally: Tally,
}

impl Crew {
    fn new(plan: Plan, invite: Invite, target: Target) -> Crew {
        Crew {
            tickets: Semaphore::new(0),
            ends_at: tokio::time::Instant::now() + plan.duration,
            people: AtomicU64::new(0),
            tally: Tally::default(),
            plan,
            invite,
            target,
        }
    }

    /// Somebody who was not here before.
    fn somebody(&self) -> person::Person<'_> {
        person::Person::new(self, self.people.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// One seat: one person after the other until time is up.
    async fn keep_coming(&self) {
        while tokio::time::Instant::now() < self.ends_at {
            self.somebody().visit().await;
        }
    }

    async fn hand_out_tickets(&self) {
        // Unused tickets do not pile up: a burst after a pause is not what was asked for.
        let pile_max = self.plan.sessions.max(1);
        let step = Duration::from_secs_f64(1.0 / self.plan.saves_per_s.clamp(0.01, 100_000.0));
        let mut pace = tokio::time::interval(step);
        loop {
            pace.tick().await;
            if self.tickets.available_permits() < pile_max {
                self.tickets.add_permits(1);
            }
        }
    }

    /// Waits for the right to begin a save; not beyond the end.
    async fn ticket(&self) -> bool {
        match tokio::time::timeout_at(self.ends_at, self.tickets.acquire()).await {
            Ok(Ok(ticket)) => {
                ticket.forget();
                true
            }
            _ => false,
        }
    }
}
