//! Whether a layer kept its promises with one input: no panic, soon, not too much to say, and the same each time.
//!
//! Guarantees: an input that is slow once is asked again before it counts, for the machine may have been busy.
//! Does not do: notice that a layer never comes back; [`crate::watch`] does.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use office_check::fuzzing::Outcome;

use crate::dice::Dice;
use crate::pieces::Reading;

/// No input is larger than 200 KiB, so this is a hundred times what most take.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(1);
/// A package tells of at most a hundred things, and the file as a whole of one or two.
const FINDINGS_MAX: usize = 102;
/// Each finding may name a part, whose name has at most 4096 bytes and is written twice, with escapes.
const SAID_BYTES_MAX: usize = FINDINGS_MAX * 12 * 4096;
const TRIES_WHEN_SLOW: usize = 3;

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    Panicked(String),
    Slow(Duration),
    SaysTooMuch(String),
    Differs { how: String, first: String, then: String },
}

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(out, "it panicked: {message}"),
            Self::Slow(took) => write!(out, "it took {} ms", took.as_millis()),
            Self::SaysTooMuch(what) => write!(out, "it says too much: {what}"),
            Self::Differs { how, first, then } => {
                write!(out, "it says something else {how}:\n  first: {first}\n  then:  {then}")
            }
        }
    }
}

/// What was seen of an input whose promises were kept.
pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// Asks a layer about one input, in several ways.
pub(crate) fn judge(layer: impl Fn(Reading) -> Outcome, dice: &mut Dice) -> Result<Judged, Broken> {
    let mut took = Duration::MAX;
    let mut first = None;
    for _ in 0..TRIES_WHEN_SLOW {
        let began = Instant::now();
        first = Some(ask(&layer, Reading::Whole)?);
        took = began.elapsed();
        if took < TIME_MAX {
            break;
        }
    }
    let Some(outcome) = first.filter(|_| took < TIME_MAX) else { return Err(Broken::Slow(took)) };
    if outcome.findings > FINDINGS_MAX || outcome.said.len() > SAID_BYTES_MAX {
        let what = format!("{} findings, {} bytes", outcome.findings, outcome.said.len());
        return Err(Broken::SaysTooMuch(what));
    }
    let piece_bytes = *dice.one_of(&[1, 2, 3, 5, 7, 16, 63, 64, 65, 511, 512, 4_096, 65_535]);
    for reading in [Reading::Whole, Reading::Pieces(piece_bytes)] {
        let again = ask(&layer, reading)?;
        if again != outcome {
            let how = match reading {
                Reading::Whole => "the second time".to_owned(),
                Reading::Pieces(bytes) => format!("in pieces of {bytes}"),
            };
            return Err(Broken::Differs { how, first: outcome.said, then: again.said });
        }
    }
    Ok(Judged { outcome, took })
}

thread_local! {
    /// Whether this thread asks a layer just now.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
    /// What the last panic of a layer said, with its place.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// From now on panics of layers are kept for the judge and not printed. All others are.
pub(crate) fn keep_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match IS_ASKING.get() {
        true => LAST_PANIC.with(|last| *last.borrow_mut() = panic.to_string()),
        false => print(panic),
    }));
}

fn ask(layer: impl Fn(Reading) -> Outcome, reading: Reading) -> Result<Outcome, Broken> {
    IS_ASKING.set(true);
    // Nothing of the layer outlives the call, so nothing half done can be seen.
    let answer = std::panic::catch_unwind(AssertUnwindSafe(|| layer(reading)));
    IS_ASKING.set(false);
    answer.map_err(|_| Broken::Panicked(LAST_PANIC.with(|last| last.borrow().clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(said: &str, findings: usize) -> Outcome {
        Outcome { combination: String::new(), sentences: Default::default(), said: said.to_owned(), findings }
    }

    fn broken(layer: impl Fn(Reading) -> Outcome) -> Broken {
        judge(layer, &mut Dice::of(1)).err().unwrap()
    }

    #[test]
    fn every_broken_promise_is_noticed() {
        keep_panics();
        let panics = |_| panic!("nobody expected it");
        let differs = |reading| outcome(if reading == Reading::Whole { "one" } else { "other" }, 0);
        let asked = Cell::new(0);
        let forgets = |_| {
            asked.set(asked.get() + 1);
            outcome(&asked.get().to_string(), 0)
        };

        let said = broken(panics).to_string();
        assert!(said.contains("nobody expected it") && said.contains("judge.rs"), "{said}");
        assert!(matches!(broken(differs), Broken::Differs { how, .. } if how.starts_with("in pieces")));
        assert!(matches!(broken(forgets), Broken::Differs { how, .. } if how == "the second time"));
        assert!(matches!(broken(|_| outcome("", 1_000)), Broken::SaysTooMuch(_)));
        assert!(judge(|_| outcome("the same", 1), &mut Dice::of(1)).is_ok());
    }
}
