//! Notices an input that a layer does not come back from, keeps it, and ends the program.
//!
//! Guarantees: looks every second. Does not do: stop a thread, which nobody can; so the run ends there.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::kept::Findings;
use crate::targets::Target;

/// Far more than the judge allows, three tries and a busy machine included.
const HANGS_AFTER: Duration = Duration::from_secs(30);
const LOOKS_EVERY: Duration = Duration::from_secs(1);

type Current = Arc<Mutex<Option<(Instant, Target, Arc<[u8]>)>>>;

/// Looks after a run, until it is dropped.
pub(crate) struct Watch {
    current: Current,
    _until_dropped: Sender<()>,
}

impl Watch {
    pub(crate) fn begin(findings: Findings) -> Self {
        let (sender, receiver) = channel();
        let current = Current::default();
        let watched = Arc::clone(&current);
        thread::spawn(move || look(&watched, &receiver, &findings));
        Self { current, _until_dropped: sender }
    }

    /// This input is being asked about from now on.
    pub(crate) fn asks(&self, target: Target, input: &Arc<[u8]>) {
        let now = Some((Instant::now(), target, Arc::clone(input)));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Nothing is being asked about.
    pub(crate) fn rests(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn look(current: &Current, until_dropped: &Receiver<()>, findings: &Findings) {
    while until_dropped.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout) {
        let seen = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((since, target, input)) = seen.filter(|(since, ..)| since.elapsed() > HANGS_AFTER) {
            let what = format!("it did not come back for {} s", since.elapsed().as_secs());
            crate::report::tell(&findings.keep(target, &input, &what));
            std::process::exit(1);
        }
    }
}
