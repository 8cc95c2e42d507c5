//! The torture build's hook: ends the process at a chosen hit of a chosen step, or holds it there while the harness does something to
//! the world around it, and lists the steps that were hit; and a clock that the harness steps.
//!
//! Guarantees: the process ends by `abort`, so nothing is flushed, closed or told: as with kill -9. Nobody is held for ever.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A harness that died does not come back.
const HELD_FOR_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What the harness wants.
#[derive(Debug, Default)]
pub struct Plan {
    /// End the process at this hit (counted from 1) of this step.
    pub crash_at: Option<(String, u64)>,
    /// Hold whoever comes to this hit of this step: this file is made, and they go on when it is gone.
    pub hold_at: Option<((String, u64), PathBuf)>,
    /// Append each step to this file when it is first hit, so that the harness learns which there are.
    pub list_in: Option<PathBuf>,
    /// By how many milliseconds the clock is wrong, written in this file; it may change at any time.
    pub clock_in: Option<PathBuf>,
}

static PLAN: OnceLock<Plan> = OnceLock::new();
static HITS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Installs the plan; the first one counts.
pub fn install(plan: Plan) {
    let _ = PLAN.set(plan);
}

pub(crate) fn clock_offset_ms() -> i64 {
    let file = PLAN.get().and_then(|plan| plan.clock_in.as_ref());
    file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).unwrap_or(0)
}

pub(crate) fn reached(step: &'static str) {
    let Some(plan) = PLAN.get() else { return };
    let mut hits = HITS.lock().unwrap_or_else(PoisonError::into_inner);
    let hit = hits.entry(step).or_insert(0);
    *hit += 1;
    if *hit == 1
        && let Some(file) = &plan.list_in
        && let Ok(mut list) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        let _ = writeln!(list, "{step}");
    }
    if plan.crash_at.as_ref().is_some_and(|(name, number)| name == step && number == hit) {
        std::process::abort();
    }
    if let Some(((name, number), file)) = &plan.hold_at
        && name == step
        && number == hit
    {
        hold(file);
    }
}

/// Others who come to a step meanwhile wait as well: the process as a whole is at this one.
#[allow(
    clippy::disallowed_methods,
    reason = "whoever is held must not go on, and there is no event to wait for"
)]
fn hold(file: &Path) {
    let until = Instant::now() + HELD_FOR_MAX;
    if std::fs::write(file, []).is_err() {
        return;
    }
    while file.exists() && Instant::now() < until {
        std::thread::sleep(LOOK_AGAIN);
    }
}
