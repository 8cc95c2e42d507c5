//! Faults a harness can arm: in conversion, on the way of a callback, and in the serving of a result.
//!
//! Guarantees: a fault strikes only where its key and status match, as often as it says, and with the chance it
//! says; chances come from the seed. Every strike is in the journal.
//!
//! Does not break the machine's rules: whatever a fault does, the server reacts as the real one would.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::chance;
use crate::clock::Clock;
use crate::journal::{Journal, Note};

/// One armed fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// Only for this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Only for callbacks of this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// How often at most; without it, until cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// How likely, each time.
    #[serde(default = "always")]
    pub percent: u8,
}

fn always() -> u8 {
    100
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum FaultKind {
    /// Conversion leaves no file: status 3 or 7 without `url`.
    ConversionFails,
    /// Conversion fails but leaves a file: status 3 or 7 with `url`.
    ConversionCorrupts,
    /// Conversion takes that much longer.
    ConversionSlow { by_ms: u64 },
    /// The result is of another type than the source.
    ResultType { ext: String },
    /// The result has a wrong byte in its middle.
    ResultDamaged,

    /// The callback leaves later.
    CallbackLate { by_ms: u64 },
    /// The callback waits until the next one of the same key was answered, at most that long.
    CallbackAfterNext { at_most_ms: u64 },
    /// The callback is delivered a second time; the second answer is not looked at.
    CallbackTwice,
    /// The host's answer is lost on the way.
    AnswerLost,
    /// The callback never arrives.
    CallbackLost,

    /// The body comes in pieces, spread over that time.
    BodySlow { over_ms: u64 },
    /// The body stops half way and never goes on.
    BodyStuck,
    /// The connection ends after that share of the body, as if it were complete (no length given).
    BodyCut { percent: u8 },
    /// `Content-Length` is larger than the body by that much.
    LengthTooLong { by_bytes: u64 },
    /// `Content-Length` is half of the body.
    LengthTooShort,
    /// 200 with nothing in it.
    BodyEmpty,
    /// 200 with an error page in HTML.
    BodyHtml,
    /// 302 to another address.
    BodyElsewhere { to: String },
    /// Another HTTP status.
    BodyStatus { status: u16 },
    /// A wrong byte in the middle, only on the wire.
    BodyDamaged,
}

/// Where a fault can strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Conversion,
    Callback,
    Download,
}

impl FaultKind {
    fn point(&self) -> Point {
        use FaultKind as K;
        match self {
            K::ConversionFails
            | K::ConversionCorrupts
            | K::ConversionSlow { .. }
            | K::ResultType { .. }
            | K::ResultDamaged => Point::Conversion,
            K::CallbackLate { .. }
            | K::CallbackAfterNext { .. }
            | K::CallbackTwice
            | K::AnswerLost
            | K::CallbackLost => Point::Callback,
            _ => Point::Download,
        }
    }

    /// Always, for every key.
    pub fn always(self) -> Fault {
        Fault { kind: self, key: None, status: None, times: None, percent: 100 }
    }

    /// The next so many times.
    pub fn times(self, times: u32) -> Fault {
        Fault { times: Some(times), ..self.always() }
    }
}

impl Fault {
    #[must_use]
    pub fn for_key(self, key: &str) -> Fault {
        Fault { key: Some(key.to_owned()), ..self }
    }

    #[must_use]
    pub fn for_status(self, status: u8) -> Fault {
        Fault { status: Some(status), ..self }
    }

    #[must_use]
    pub fn with_chance(self, percent: u8) -> Fault {
        Fault { percent, ..self }
    }
}

/// The armed faults; clones share them.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Mutex<Board>>);

#[derive(Debug)]
struct Board {
    armed: Vec<Fault>,
    draws: u64,
    seed: u64,
    journal: Journal,
    clock: Clock,
}

impl Faults {
    pub(crate) fn new(seed: u64, journal: Journal, clock: Clock) -> Faults {
        Faults(Arc::new(Mutex::new(Board { armed: Vec::new(), draws: 0, seed, journal, clock })))
    }

    pub fn arm(&self, fault: Fault) {
        self.board().armed.push(fault);
    }

    pub fn clear(&self) {
        self.board().armed.clear();
    }

    pub fn armed(&self) -> Vec<Fault> {
        self.board().armed.clone()
    }

    /// All faults that strike here and now.
    pub(crate) fn strike(&self, point: Point, key: &str, status: Option<u8>) -> Vec<FaultKind> {
        let mut board = self.board();
        let mut struck = Vec::new();
        for place in 0..board.armed.len() {
            let fault = board.armed[place].clone();
            let meant = fault.kind.point() == point
                && fault.key.as_deref().is_none_or(|wanted| wanted == key)
                && fault.status.is_none_or(|wanted| status == Some(wanted))
                && fault.times != Some(0);
            if !meant {
                continue;
            }
            board.draws += 1;
            if !chance::happens(fault.percent, chance::draw(board.seed, key, board.draws)) {
                continue;
            }
            if let Some(times) = &mut board.armed[place].times {
                *times -= 1;
            }
            let note = Note::FaultUsed { key: key.to_owned(), fault: format!("{:?}", fault.kind) };
            board.journal.write(board.clock.now_ms(), note);
            struck.push(fault.kind);
        }
        board.armed.retain(|fault| fault.times != Some(0));
        struck
    }

    fn board(&self) -> std::sync::MutexGuard<'_, Board> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults() -> Faults {
        Faults::new(1, Journal::open(None).unwrap(), Clock::manual_at(0))
    }

    #[test]
    fn a_fault_strikes_where_it_is_meant_to_and_as_often() {
        let faults = faults();
        faults.arm(FaultKind::AnswerLost.times(1).for_key("k").for_status(2));

        assert!(faults.strike(Point::Callback, "other", Some(2)).is_empty());
        assert!(faults.strike(Point::Callback, "k", Some(6)).is_empty());
        assert!(faults.strike(Point::Download, "k", Some(2)).is_empty());
        assert_eq!(faults.strike(Point::Callback, "k", Some(2)), [FaultKind::AnswerLost]);
        assert!(faults.strike(Point::Callback, "k", Some(2)).is_empty());
        assert!(faults.armed().is_empty());
    }

    #[test]
    fn chances_repeat_with_the_seed() {
        let run = || {
            let faults = faults();
            faults.arm(FaultKind::BodyEmpty.always().with_chance(50));
            (0..64).map(|_| faults.strike(Point::Download, "k", None).len()).collect::<Vec<_>>()
        };

        let struck: usize = run().iter().sum();

        assert_eq!(run(), run());
        assert!((16..48).contains(&struck), "{struck}");
    }

    #[test]
    fn a_fault_reads_from_json() {
        let fault: Fault = serde_json::from_str(r#"{"fault":"body_slow","over_ms":50,"times":2}"#).unwrap();

        assert_eq!(fault, FaultKind::BodySlow { over_ms: 50 }.times(2));
    }
}
