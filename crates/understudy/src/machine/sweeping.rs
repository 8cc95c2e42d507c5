//! What happens by the clock alone: timer force saves, expiry, and the graceful shutdown.
//!
//! Guarantees: a row is removed only if it is unused for the cache's life, nobody edits it and no change is in
//! its log; forgotten copies never expire. During a shutdown nobody gets in, everybody is sent away and saved
//! without delay, and a save that is not heard goes straight to the forgotten copies.
//!
//! Does not start anything for keys whose editors vanished with an earlier life of the server: the real memory
//! build does not either; only opening the same key brings those changes back.

use super::event::{Leaving, RequestId, Shutdown};
use super::forcing::Wish;
use super::opening::code;
use super::state::{ConnId, ForceKind, Op};
use super::{CommandReply, Drain, Machine, Timer};

impl Machine {
    pub(super) fn autosave(&mut self) {
        self.in_ms(self.rules.timings.autosave_step_ms, Timer::Autosave);
        let now_ms = self.now_ms;
        let is_due = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| at_ms < now_ms);
        let due: Vec<String> = self
            .live
            .iter()
            .filter(|(_, live)| is_due(live.autosave_at_ms))
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.live_mut(&key).autosave_at_ms = None;
            self.force_save(Wish::about(&key, ForceKind::Timer));
        }
    }

    pub(super) fn sweep(&mut self) {
        self.in_ms(self.rules.timings.sweep_step_ms, Timer::Sweep);
        let oldest_ms = self.now_ms.saturating_sub(self.rules.timings.cache_life_ms);
        let unused: Vec<String> = self
            .durable
            .records
            .iter()
            .filter(|(_, record)| record.row.as_ref().is_some_and(|row| row.last_open_ms <= oldest_ms))
            .filter(|(key, record)| record.changes.is_empty() && !self.has_editors(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in unused {
            self.remove_row(&key, "expired");
            self.draws.remove(&key);
        }
        let old: Vec<String> = self
            .durable
            .saves
            .iter()
            .filter(|(_, saved)| saved.since_ms <= oldest_ms)
            .map(|(path, _)| path.clone())
            .collect();
        for path in old {
            self.durable.change(Op::Saved { path, saved: None });
        }
    }

    /// Begins or ends a shutdown; either way the answer comes after the usual wait.
    pub(super) fn shut_down(&mut self, request: RequestId, what: Shutdown) {
        self.shutdown = what == Shutdown::Begin;
        self.drains.push(Drain { since_ms: self.now_ms, request });
        self.in_ms(self.rules.timings.shutdown_step_ms, Timer::ShutdownCheck);
        if !self.shutdown {
            return;
        }
        let all: Vec<ConnId> = self.conns.keys().copied().collect();
        for conn in all {
            self.turn_away(conn, code::SHUTDOWN, "server shutdown");
            self.leave(conn, Leaving::Lost);
        }
    }

    /// Answers when the wait is over and nothing is left to save, or when it took too long.
    pub(super) fn check_shutdown(&mut self) {
        let busy = !self.durable.tasks.is_empty();
        let (now_ms, timings) = (self.now_ms, self.rules.timings.clone());
        for drain in std::mem::take(&mut self.drains) {
            let waited_ms = now_ms.saturating_sub(drain.since_ms);
            let done = waited_ms >= timings.shutdown_wait_ms && !busy;
            if done || waited_ms >= timings.shutdown_timeout_ms {
                self.reply(drain.request, CommandReply { done, ..CommandReply::default() });
            } else {
                self.drains.push(drain);
            }
        }
        if !self.drains.is_empty() {
            self.in_ms(timings.shutdown_step_ms, Timer::ShutdownCheck);
        }
    }
}
