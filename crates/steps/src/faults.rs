//! Calls that fail when a test says so.

use std::sync::{Mutex, PoisonError};

/// When the chosen call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It does nothing and reports a failure.
    Before,
    /// It does everything and reports a failure: the outcome is unknown to the caller.
    After,
}

/// What happens after the chosen call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aftermath {
    /// Later calls work again.
    GoesOn,
    /// The process is gone: every later call fails and does nothing.
    Crashed,
}

/// What a call has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Work.
    None,
    /// Fail without doing anything.
    Before,
    /// Do it, then fail.
    After,
}

/// Decides which calls fail, and remembers which were made.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: Vec<&'static str>,
    plan: Option<(usize, Moment, Aftermath)>,
    is_crashed: bool,
}

impl Faults {
    /// No call fails.
    pub fn none() -> Self {
        Self::default()
    }

    /// The n-th call (counted from 1) fails.
    pub fn at_call(number: usize, moment: Moment, aftermath: Aftermath) -> Self {
        Self { state: Mutex::new(State { plan: Some((number, moment, aftermath)), ..State::default() }) }
    }

    /// Notes a call and says what it has to do.
    pub fn next(&self, call: &'static str) -> Fault {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_crashed {
            return Fault::Before;
        }
        state.calls.push(call);
        match state.plan {
            Some((number, moment, aftermath)) if number == state.calls.len() => {
                state.is_crashed = aftermath == Aftermath::Crashed;
                match moment {
                    Moment::Before => Fault::Before,
                    Moment::After => Fault::After,
                }
            }
            _ => Fault::None,
        }
    }

    /// The calls made so far, until the crash.
    pub fn calls(&self) -> Vec<&'static str> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).calls.clone()
    }

    /// Whether the chosen call has come.
    pub fn has_struck(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.plan.is_some_and(|(number, ..)| state.calls.len() >= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_call_fails_and_later_ones_work_again() {
        let faults = Faults::at_call(2, Moment::After, Aftermath::GoesOn);

        let verdicts: Vec<_> = (0..3).map(|_| faults.next("call")).collect();

        assert_eq!(verdicts, [Fault::None, Fault::After, Fault::None]);
        assert!(faults.has_struck());
    }

    #[test]
    fn after_a_crash_nothing_works() {
        let faults = Faults::at_call(1, Moment::Before, Aftermath::Crashed);

        assert_eq!([faults.next("a"), faults.next("b")], [Fault::Before, Fault::Before]);
        assert_eq!(faults.calls(), ["a"]);
    }
}
