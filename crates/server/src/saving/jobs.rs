//! The saves in progress in this process, so that a repeated delivery joins the work instead of starting it again.
//!
//! Guarantees: at most one job per callback; everybody who waits hears the same outcome; a job knows whether anybody
//! still waits for its answer (and is young enough to be answered 0), which decides whether the key may retire.
//! Does not do: survive the process. The inbox does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::InboxNumber;
use model::callbacks::Answer;
use model::saves::SomeoneWaits;
use tokio::sync::watch;

/// What a job came to; nothing yet if there was trouble that passes.
pub(super) type JobOutcome = Option<Outcome>;

/// An answer, and whose commit made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The job's own, which knew who waited for it.
    Committed(Answer),
    /// Another one's, found on record: nobody there knew of those who wait here.
    Found(Answer),
}

impl Outcome {
    /// What the server is told.
    pub fn answer(self) -> Answer {
        match self {
            Self::Committed(answer) | Self::Found(answer) => answer,
        }
    }
}

/// The running jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    running: Mutex<HashMap<InboxNumber, Arc<Job>>>,
}

/// One save in progress.
#[derive(Debug)]
pub struct Job {
    done: watch::Sender<Option<JobOutcome>>,
    waiting: Mutex<HashMap<u64, Instant>>,
}

/// Somebody who waits for a job's outcome. Dropping it means nobody listens there any more.
#[derive(Debug)]
pub struct Waiter {
    job: Arc<Job>,
    place: u64,
    done: watch::Receiver<Option<JobOutcome>>,
}

/// Whether a job was already running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// It was: its outcome will come.
    Running,
    /// It was not: the caller starts it.
    New,
}

impl Jobs {
    /// Joins the job of a callback, or opens it.
    pub fn join(&self, number: InboxNumber, received: Option<Instant>) -> (Joined, Arc<Job>, Option<Waiter>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (joined, job) = match running.get(&number) {
            Some(job) => (Joined::Running, Arc::clone(job)),
            None => {
                let job = Arc::new(Job { done: watch::Sender::new(None), waiting: Mutex::default() });
                running.insert(number, Arc::clone(&job));
                (Joined::New, job)
            }
        };
        let waiter = received.map(|received| Waiter::new(&job, received));
        (joined, job, waiter)
    }

    /// Ends a job and tells everybody who waits. Ending it twice is harmless, also when it was opened anew meanwhile.
    pub fn end(&self, number: InboxNumber, job: &Arc<Job>, outcome: JobOutcome) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.get(&number).is_some_and(|running| Arc::ptr_eq(running, job)) {
            running.remove(&number);
            job.done.send_replace(Some(outcome));
        }
    }

    /// Whether somebody works on this callback.
    pub fn is_running(&self, number: InboxNumber) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&number)
    }

    /// How many saves are in progress.
    pub fn count(&self) -> usize {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Job {
    /// Whether a delivery waits that is still young enough to be answered 0, and harmless to answer.
    pub fn someone_waits(&self, young: Duration, is_harmless: impl Fn(Instant) -> bool) -> SomeoneWaits {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.values().any(|received| received.elapsed() < young && is_harmless(*received)) {
            SomeoneWaits::Yes
        } else {
            SomeoneWaits::No
        }
    }
}

impl Waiter {
    fn new(job: &Arc<Job>, received: Instant) -> Self {
        let mut waiting = job.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.keys().max().map_or(0, |last| last + 1);
        waiting.insert(place, received);
        drop(waiting);
        Self { job: Arc::clone(job), place, done: job.done.subscribe() }
    }

    /// The outcome, or `None` if it is not there in time.
    pub async fn wait(&mut self, time: Duration) -> Option<JobOutcome> {
        let outcome = tokio::time::timeout(time, self.done.wait_for(Option::is_some)).await;
        match outcome {
            Ok(Ok(outcome)) => *outcome,
            // The job is gone without a word: as good as not yet.
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.job.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YOUNG: Duration = Duration::from_secs(180);

    #[tokio::test]
    async fn repeats_join_and_all_hear_the_outcome() {
        let jobs = Jobs::default();
        let (first, job, waiter) = jobs.join(InboxNumber(1), Some(Instant::now()));
        let (second, _, other) = jobs.join(InboxNumber(1), Some(Instant::now()));

        jobs.end(InboxNumber(1), &job, Some(Outcome::Committed(Answer::Saved)));
        jobs.end(InboxNumber(1), &job, None);

        assert_eq!((first, second), (Joined::New, Joined::Running));
        for mut waiter in [waiter.unwrap(), other.unwrap()] {
            assert_eq!(
                waiter.wait(Duration::from_secs(1)).await,
                Some(Some(Outcome::Committed(Answer::Saved)))
            );
        }
        assert_eq!(jobs.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gave_up_no_longer_counts() {
        let jobs = Jobs::default();
        let (_, job, waiter) = jobs.join(InboxNumber(1), Some(Instant::now()));
        let mut waiter = waiter.unwrap();
        assert_eq!(job.someone_waits(YOUNG, |_| true), SomeoneWaits::Yes);

        assert_eq!(waiter.wait(Duration::from_secs(50)).await, None);
        drop(waiter);

        assert_eq!(job.someone_waits(YOUNG, |_| true), SomeoneWaits::No);
    }

    #[test]
    fn a_delivery_that_waited_too_long_is_not_answered_zero() {
        let jobs = Jobs::default();
        let long_ago = Instant::now().checked_sub(Duration::from_secs(200)).unwrap();
        let (_, job, _waiter) = jobs.join(InboxNumber(1), Some(long_ago));

        assert_eq!(job.someone_waits(YOUNG, |_| true), SomeoneWaits::No);
    }
}
