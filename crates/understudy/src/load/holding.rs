//! Documents held open: one person stays in each, saves come at a steady pace, and others come and go.
//!
//! Guarantees: from [`Held::sit_down`] to [`Held::leave`] every document has its person, except while one hands over
//! to the next. A save begins when it is due, whether or not earlier ones have been answered, and never two of one
//! document at once. When [`Held::keep`] returns, everything it began has ended.
//!
//! Does not find out whether the host kept what it took; the journal has the hashes to compare.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use tokio::task::JoinSet;

use super::person::Seat;
use super::{Crew, Invite, Plan, Report, Target};
use crate::chance;
use crate::machine::Leaving;

/// A document that is busy is passed over; so many in a row means that the host is far behind.
const DRAWS_MAX: u32 = 50;
/// Longer than any run.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What to hold, and what happens meanwhile.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Each gets one person who stays.
    pub documents: usize,
    /// People who open at the same time, at most.
    pub openings_max: usize,
    /// Of a hundred saves, so many are final ones: the person closes the document, and somebody else opens it again.
    pub closes: u8,
    /// And so many are made by a visitor who comes, writes, presses Save and goes.
    pub visits: u8,
    /// How long a closed document is empty: with less than its final save takes, the next person continues the session.
    pub empty_for: Duration,
    /// The same seed makes the same choices.
    pub seed: u64,
    /// How long to wait for any one thing.
    pub patience: Duration,
}

/// The people in their documents.
pub struct Held {
    crew: Arc<Crew>,
    hold: Hold,
    seats: Vec<Place>,
    draws: AtomicU64,
    since: tokio::time::Instant,
}

/// Who sits in a document; locked while something happens there.
type Place = Arc<Mutex<Option<Seat>>>;

/// What a save is made by.
#[derive(Clone, Copy)]
enum Turn {
    Save,
    HandOver,
    Visit,
}

impl Held {
    /// Opens every document.
    pub async fn sit_down(hold: Hold, invite: Invite, target: Target) -> Held {
        let plan = Plan {
            sessions: hold.documents,
            documents: hold.documents,
            duration: FOREVER,
            seed: hold.seed,
            patience: hold.patience,
            ..Plan::default()
        };
        let crew = Arc::new(Crew::new(plan, invite, target));
        let doors = Arc::new(Semaphore::new(hold.openings_max.max(1)));
        let seats: Vec<Place> = (0..hold.documents).map(|_| Place::default()).collect();
        let mut comers = JoinSet::new();
        for (document, place) in seats.iter().enumerate() {
            let (crew, doors, place) = (crew.clone(), doors.clone(), place.clone());
            comers.spawn(async move {
                // The semaphore is never closed.
                let _turn = doors.acquire().await;
                take_place(&crew, document, &mut *place.lock().await).await;
            });
        }
        while comers.join_next().await.is_some() {}
        Held { crew, hold, seats, draws: AtomicU64::new(0), since: tokio::time::Instant::now() }
    }

    /// Saves the first document again and again, each time when the host has answered.
    pub async fn save_in_turn(&self, saves: u64) {
        let Some(place) = self.seats.first() else { return };
        let seat = place.lock().await;
        for number in 1..=saves {
            save(&self.crew, seat.as_ref(), number).await;
        }
    }

    /// Begins so many saves a second for that long, each in a document drawn by chance.
    pub async fn keep(&self, saves_per_s: f64, duration: Duration) {
        let ends_at = tokio::time::Instant::now() + duration;
        let mut pace = tokio::time::interval(Duration::from_secs_f64(1.0 / saves_per_s.clamp(0.01, 1000.0)));
        let mut turns = JoinSet::new();
        while pace.tick().await < ends_at {
            while turns.try_join_next().is_some() {}
            let Some((document, place)) = self.free_place() else {
                self.crew.tally.failed("no document was free for a save that was due");
                continue;
            };
            let (crew, turn, number) = (self.crew.clone(), self.turn(), self.draws.load(Ordering::Relaxed));
            let empty_for = self.hold.empty_for;
            turns.spawn(async move {
                match turn {
                    Turn::Save => save(&crew, place.as_ref(), number).await,
                    Turn::HandOver => hand_over(&crew, (document, empty_for), place).await,
                    Turn::Visit => visit(&crew, document).await,
                }
            });
        }
        while turns.join_next().await.is_some() {}
    }

    /// People who sit in a document now.
    pub async fn people(&self) -> usize {
        let mut count = 0;
        for place in &self.seats {
            count += usize::from(place.lock().await.is_some());
        }
        count
    }

    /// What came of it so far.
    pub fn report(&self) -> Report {
        self.crew.tally.report(self.since.elapsed())
    }

    /// Everybody says goodbye.
    pub async fn leave(self) {
        for place in &self.seats {
            if let Some(seat) = place.lock().await.take() {
                self.crew.somebody().go(seat, Leaving::Explicit).await;
            }
        }
    }

    fn free_place(&self) -> Option<(usize, OwnedMutexGuard<Option<Seat>>)> {
        (0..DRAWS_MAX).find_map(|_| {
            let document = usize::try_from(self.draw() % self.seats.len().max(1) as u64).ok()?;
            let place = self.seats.get(document)?.clone().try_lock_owned().ok()?;
            Some((document, place))
        })
    }

    fn turn(&self) -> Turn {
        match self.draw() % 100 {
            drawn if drawn < u64::from(self.hold.closes) => Turn::HandOver,
            drawn if drawn < u64::from(self.hold.closes) + u64::from(self.hold.visits) => Turn::Visit,
            _ => Turn::Save,
        }
    }

    fn draw(&self) -> u64 {
        chance::draw(self.hold.seed, "hold", self.draws.fetch_add(1, Ordering::Relaxed))
    }
}

/// The person who sits there writes and presses Save.
async fn save(crew: &Crew, seat: Option<&Seat>, number: u64) {
    let Some(seat) = seat else { return crew.tally.failed("nobody sat in the document") };
    let writer = crew.somebody();
    if writer.write_line(seat, number).await {
        writer.force_save(seat).await;
    }
}

/// The person who sits there writes and closes the document; the next one opens it.
async fn hand_over(
    crew: &Crew,
    (document, empty_for): (usize, Duration),
    mut place: OwnedMutexGuard<Option<Seat>>,
) {
    match place.take() {
        Some(seat) => {
            let writer = crew.somebody();
            writer.write_line(&seat, 1).await;
            writer.go(seat, Leaving::Explicit).await;
        }
        None => crew.tally.failed("nobody sat in the document"),
    }
    tokio::time::sleep(empty_for).await;
    take_place(crew, document, &mut place).await;
}

/// Somebody joins, writes, presses Save and goes.
async fn visit(crew: &Crew, document: usize) {
    let visitor = crew.somebody();
    let Some((seat, _)) = visitor.sit_down(document).await else { return };
    if visitor.write_line(&seat, 1).await {
        visitor.force_save(&seat).await;
    }
    visitor.go(seat, Leaving::Explicit).await;
}

async fn take_place(crew: &Crew, document: usize, place: &mut Option<Seat>) {
    *place = crew.somebody().sit_down(document).await.map(|(seat, _)| seat);
}
