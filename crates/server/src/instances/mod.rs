//! Instances: what each of them tells the others of itself, so that whichever is asked can answer for all.
//!
//! Guarantees: how an instance stands is told every two seconds; an examination and a drain at every step of theirs, too. Whoever
//! was silent for [`SILENT_AFTER`] is shown as silent and counts no more. Where nothing can be told or heard, people are
//! answered with what this instance knows by itself. What one of them does for all is in [`undertakings`]. The clock of the ledger
//! is heard at the same time, for all to go by. Does not do: decide. A report is for people; no save waits for one.

mod answers;
mod undertakings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lanes::Lanes;
use ledger::LedgerError;
use model::DocumentId;
use model::disk::Space;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::delivering;
use crate::examining::engines_seen;
use crate::forgotten_files::ForgottenCounts;
use crate::pulse;
use crate::room::space;
use crate::telemetry::report;
pub use answers::Answers;
pub(crate) use answers::is_our_question;
pub(crate) use undertakings::{Own, Undertaking, begin_or_join, newest};

/// An instance of which nothing was heard for so long may be gone.
pub(crate) const SILENT_AFTER: Duration = Duration::from_secs(10);
/// One that was silent for so long is not mentioned any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
const TELL_EVERY: Duration = Duration::from_secs(2);
/// The last hour is larger than the rest, and moves in steps of ten seconds.
const SLOWLY: u32 = 5;
/// Lanes that are told of; their number tells of the others.
const LANES_MAX: usize = 100;

/// What is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// How an instance stands.
    Standing,
    /// Its last hour.
    Pulse,
    /// Its last examination.
    Examination,
    /// Its last drain.
    Drain,
    /// Answers of the Document Server to questions of others.
    Answers,
}

impl Subject {
    fn as_str(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::Pulse => "pulse",
            Self::Examination => "examination",
            Self::Drain => "drain",
            Self::Answers => "answers",
        }
    }
}

/// Which instance this process is.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Of this process alone, also among those that had its name before.
    pub id: String,
    /// For people: the machine and the port.
    pub name: String,
}

impl Instance {
    /// Named after this machine and the port it listens on.
    pub fn here(id: String, port: u16) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { id, name: format!("{host}:{port}") }
    }
}

/// How an instance stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) started_at: Timestamp,
    pub(crate) is_ready: bool,
    /// Documents with saves in progress.
    pub(crate) documents: usize,
    /// Saves in progress.
    pub(crate) jobs: usize,
    pub(crate) is_empty: bool,
    pub(crate) is_drained: bool,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) spool_files: u64,
    pub(crate) spool_bytes: u64,
    pub(crate) depot_blobs: u64,
    pub(crate) depot_bytes: u64,
    pub(crate) disk: Space,
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) forgotten: ForgottenCounts,
}

/// A lane of an instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Lane {
    pub(crate) document: String,
    pub(crate) line: String,
    pub(crate) waiting: usize,
    pub(crate) preparing: usize,
    pub(crate) finishing: usize,
    pub(crate) oldest_ms: u64,
}

/// What an instance told, and when.
#[derive(Debug, Clone)]
pub(crate) struct Heard<T> {
    /// How long ago.
    pub(crate) age: Duration,
    pub(crate) what: T,
}

impl<T> Heard<T> {
    pub(crate) fn is_silent(&self) -> bool {
        self.age > SILENT_AFTER
    }
}

/// Tells the others, and says when by the ledger's clock; that they do not hear it is no failure of whoever tells.
pub(crate) async fn tell(app: &App, subject: Subject, what: &impl Serialize) -> Option<Timestamp> {
    let told = match serde_json::to_string(what) {
        Ok(body) => app.reports.tell(&app.instance.id, subject.as_str(), &body).await,
        Err(unwritable) => Err(LedgerError::damaged(unwritable)),
    };
    told.unwrap_or_else(|cause| {
        tracing::debug!(cause = report(&cause), "other instances could not be told");
        None
    })
}

/// What the others told last. What an instance of another version says in other words is left out.
pub(crate) async fn heard<T: DeserializeOwned>(app: &App, subject: Subject) -> Vec<Heard<T>> {
    let reports = match app.reports.told(&app.instance.id, subject.as_str()).await {
        Ok(reports) => reports,
        Err(cause) => {
            tracing::debug!(cause = report(&cause), "other instances could not be heard");
            return Vec::new();
        }
    };
    let understood = |told: ledger::reports::Report| {
        Some(Heard { age: told.age, what: serde_json::from_str(&told.body).ok()? })
    };
    reports.into_iter().filter_map(understood).collect()
}

/// How this instance stands now, and how the others said they do; the silent ones too.
pub(crate) async fn standings(app: &Arc<App>) -> Vec<Heard<Standing>> {
    let mut all = vec![Heard { age: Duration::ZERO, what: standing(app).await }];
    let others = heard::<Standing>(app, Subject::Standing).await;
    all.extend(others.into_iter().filter(|other| other.age < FORGOTTEN_AFTER));
    all
}

async fn standing(app: &Arc<App>) -> Standing {
    let (depot, seen) = (delivering::fill(app).await, engines_seen(app));
    let lines = [("arrivals", &app.arrivals), ("saves", &app.saves), ("publications", &app.publications)];
    let mut lanes: Vec<Lane> = lines.into_iter().flat_map(|(line, lanes)| lanes_of(line, lanes)).collect();
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.oldest_ms));
    Standing {
        name: app.instance.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: app.started_at,
        is_ready: app.is_ready(),
        documents: app.saves.count(),
        jobs: app.jobs.count(),
        is_empty: lines.iter().all(|(_, lanes)| lanes.is_empty()),
        is_drained: lines.iter().all(|(_, lanes)| lanes.is_drained()),
        lanes,
        spool_files: seen.spool_files,
        spool_bytes: seen.spool_bytes,
        depot_blobs: depot.blobs,
        depot_bytes: depot.bytes,
        disk: space(app),
        disk_free_bytes: app.disk.room().map(|room| room.free_bytes),
        forgotten: app.forgotten.counts(app.now()),
    }
}

fn lanes_of(line: &str, lanes: &Lanes<DocumentId>) -> Vec<Lane> {
    let snapshot = lanes.snapshot().into_iter();
    snapshot
        .map(|lane| Lane {
            document: lane.key.to_string(),
            line: line.to_owned(),
            waiting: lane.waiting,
            preparing: lane.preparing,
            finishing: lane.finishing,
            oldest_ms: lane.oldest_age_ms,
        })
        .collect()
}

/// Forgotten files, as whoever looked last saw them: instances take turns at that.
pub(crate) fn forgotten_of(standings: &[Heard<Standing>]) -> ForgottenCounts {
    let ages = standings.iter().filter_map(|heard| {
        let counts = heard.what.forgotten;
        Some((heard.age.as_secs() + counts.looked_seconds_ago?, counts))
    });
    ages.min_by_key(|(age, _)| *age).map(|(_, counts)| counts).unwrap_or_default()
}

/// Tells the others how this instance stands, until the end.
pub(crate) async fn follow(app: Arc<App>, stop: CancellationToken) {
    for round in 0_u32.. {
        let mut now = standing(&app).await;
        now.lanes.truncate(LANES_MAX);
        let asked = Instant::now();
        if let Some(told_at) = tell(&app, Subject::Standing, &now).await
            && let Some(missed) = app.clock.heard(told_at, asked)
        {
            app.awake.did_not_count(missed);
        }
        if round.is_multiple_of(SLOWLY) {
            tell(&app, Subject::Pulse, &pulse::own()).await;
        }
        tell_again(&app, &app.examinations, round).await;
        tell_again(&app, &app.drains, round).await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(TELL_EVERY) => {}
        }
    }
}

/// Whoever is at work is heard of, however long a step of it takes; and what ended is told again now and then, for the table may have been emptied.
async fn tell_again<U: Undertaking>(app: &App, own: &Own<U>, round: u32) {
    let view = own.view();
    if view.is_running() || (round.is_multiple_of(SLOWLY) && view.begun_at().is_some()) {
        own.tell(app).await;
    }
}

/// The others need not wait until this instance counts as silent. What it did in the last hour goes on being told.
pub(crate) async fn take_leave(app: &App) {
    tell(app, Subject::Pulse, &pulse::own()).await;
    if let Err(cause) = app.reports.take_back(&app.instance.id, Subject::Standing.as_str()).await {
        tracing::debug!(cause = report(&cause), "other instances could not be told of the end");
    }
}
