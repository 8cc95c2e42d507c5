//! Answers of the Document Server that reach another instance than the one that asked: its callback goes to the balancer.
//!
//! Signals carry them at once, if there is Redis. Without it, or while it is away, whoever hears an answer to somebody else's question writes it
//! where instances tell each other of themselves, and whoever waits looks there.
//!
//! Guarantees: bounded memory and a bounded report. Does not do: give up; whoever asks has a time limit of its own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ledger::Reports;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::Subject;
use crate::telemetry::report;

/// What the nonces of all our questions begin with.
const PREFIX: &str = "saveguard-info-";
/// Answers that are told; nobody waits for one longer than half a second.
const TOLD_MAX: usize = 64;
const LOOK_AGAIN: Duration = Duration::from_millis(60);

/// Answers on their way to whoever asked.
pub struct Answers {
    reports: Arc<dyn Reports>,
    instance: String,
    told: Mutex<VecDeque<Answer>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    nonce: String,
    status: u8,
}

impl Answers {
    /// For this instance.
    pub fn new(reports: Arc<dyn Reports>, instance: &str) -> Self {
        Self { reports, instance: instance.to_owned(), told: Mutex::default() }
    }

    /// A word that goes with a question and comes back with its answer. It says who asked.
    pub(crate) fn nonce(&self, bits: u64) -> String {
        format!("{}{bits:016x}", self.own_prefix())
    }

    fn own_prefix(&self) -> String {
        format!("{PREFIX}{}-", self.instance)
    }

    /// An answer came here. If another instance asked, it is told.
    pub(crate) async fn came(&self, nonce: &str, status: u8) {
        if nonce.starts_with(&self.own_prefix()) {
            return;
        }
        // One is told after the other, so that the last word has all of them.
        let mut told = self.told.lock().await;
        if told.len() == TOLD_MAX {
            told.pop_front();
        }
        told.push_back(Answer { nonce: nonce.to_owned(), status });
        let Ok(body) = serde_json::to_string(&*told) else { return };
        if let Err(cause) = self.reports.tell(&self.instance, Subject::Answers.as_str(), &body).await {
            tracing::debug!(cause = report(&cause), "another instance could not be told an answer");
        }
    }

    /// Waits until an answer came to another instance.
    pub(crate) async fn heard_elsewhere(&self, nonce: &str) -> u8 {
        loop {
            // waits on purpose: nobody says when another instance has written something
            tokio::time::sleep(LOOK_AGAIN).await;
            let reports =
                self.reports.told(&self.instance, Subject::Answers.as_str()).await.unwrap_or_default();
            let answers =
                reports.iter().filter_map(|told| serde_json::from_str::<Vec<Answer>>(&told.body).ok());
            if let Some(answer) = answers.flatten().find(|answer| answer.nonce == nonce) {
                return answer.status;
            }
        }
    }
}

/// Whether a callback's user data is a nonce of ours.
pub(crate) fn is_our_question(user_data: &str) -> bool {
    user_data.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use async_trait::async_trait;
    use jiff::Timestamp;
    use ledger::reports::Report;

    use super::*;

    /// A table.
    #[derive(Default)]
    struct Table(Mutex<BTreeMap<String, String>>);

    #[async_trait]
    impl Reports for Table {
        async fn tell(&self, instance: &str, _: &str, body: &str) -> ledger::Result<Option<Timestamp>> {
            self.0.lock().unwrap().insert(instance.to_owned(), body.to_owned());
            Ok(None)
        }
        async fn take_back(&self, _: &str, _: &str) -> ledger::Result<()> {
            Ok(())
        }
        async fn told(&self, instance: &str, _: &str) -> ledger::Result<Vec<Report>> {
            let all = self.0.lock().unwrap().clone();
            let report = |(instance, body)| Report { instance, body, age: Duration::ZERO };
            Ok(all.into_iter().filter(|(name, _)| name != instance).map(report).collect())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_elsewhere_is_heard_and_ones_own_are_not_told() {
        let table = Arc::new(Table::default());
        let (a, b) = (Answers::new(table.clone(), "a"), Answers::new(table.clone(), "b"));
        let (asked, own) = (a.nonce(1), b.nonce(1));

        b.came(&own, 4).await;
        assert!(table.0.lock().unwrap().is_empty(), "heard here, through the signals of this process");
        b.came(&asked, 4).await;
        for number in 2..40 {
            b.came(&a.nonce(number), 1).await;
        }

        assert!(is_our_question(&asked) && !is_our_question("somebody's own"));
        assert_eq!(a.heard_elsewhere(&asked).await, 4);
        for number in 40..1000 {
            b.came(&a.nonce(number), 1).await;
        }
        assert!(table.0.lock().unwrap()["b"].len() < 10_000, "bounded");
    }
}
