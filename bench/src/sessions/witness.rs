//! What the stand-in Document Server sent and was answered, read from its journal as it goes on.
//!
//! Guarantees: the server under test has no say in it. Every callback counts, also those that only say who is in.

use std::collections::{BTreeMap, HashMap};

use understudy::journal::{Entry, Journal, Note};
use understudy::load;
use understudy::machine::{Body, Verdict, status};

/// Different failures shown.
const FAILURES_MAX: usize = 20;

/// Reads along.
pub(super) struct Witness {
    journal: Journal,
    next: u64,
    waiting: HashMap<u64, Sent>,
    /// Hashes of built files, by the folder in their link.
    built: HashMap<String, String>,
    times: Times,
    /// Per document, how often each content was answered 0.
    promised: HashMap<String, BTreeMap<String, usize>>,
    /// How often callbacks of each status were answered 0.
    acknowledged: BTreeMap<u8, usize>,
    failures: BTreeMap<String, usize>,
    /// How often somebody came with a key that was spent meanwhile, and got a new one.
    refreshed: u64,
}

/// A callback on its way.
struct Sent {
    at_ms: u64,
    body: Box<Body>,
}

/// How long saves took, in milliseconds.
#[derive(Default)]
pub(super) struct Times(Vec<u64>);

impl Times {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// A value that occurred.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).and_then(|ms| u32::try_from(*ms).ok()).map_or(0.0, f64::from)
    }
}

impl Witness {
    pub(super) fn of(journal: &Journal) -> Self {
        Self {
            journal: journal.clone(),
            next: 1,
            waiting: HashMap::new(),
            built: HashMap::new(),
            times: Times::default(),
            promised: HashMap::new(),
            acknowledged: BTreeMap::new(),
            failures: BTreeMap::new(),
            refreshed: 0,
        }
    }

    /// Reads what is new. Must be called before the journal forgets.
    pub(super) fn catch_up(&mut self) {
        for entry in self.journal.since(self.next) {
            if entry.number != self.next {
                self.fail("the journal forgot entries before they were read");
            }
            self.next = entry.number + 1;
            self.take(entry);
        }
    }

    fn take(&mut self, Entry { at_ms, note, .. }: Entry) {
        match note {
            Note::ContentProduced { path, sha256: Some(hash), .. } => {
                self.built.insert(path, hash);
            }
            Note::ContentProduced { sha256: None, .. } => self.fail("the stand-in could not build a file"),
            Note::CallbackSent { delivery, body, .. } => {
                self.waiting.insert(delivery, Sent { at_ms, body });
            }
            Note::CallbackAnswered { delivery, answer, verdict, .. } => {
                let Some(sent) = self.waiting.remove(&delivery) else { return };
                if verdict == Verdict::Acknowledged {
                    self.acknowledge(&sent.body, at_ms.saturating_sub(sent.at_ms));
                } else {
                    self.fail(format!("a callback of status {} was answered {answer:?}", sent.body.status));
                }
            }
            Note::ForgottenPut { .. } => self.fail("the Document Server had to put a save aside"),
            _ => {}
        }
    }

    fn acknowledge(&mut self, body: &Body, took_ms: u64) {
        *self.acknowledged.entry(body.status).or_default() += 1;
        match body.status {
            status::MUST_SAVE | status::MUST_FORCE_SAVE => self.times.0.push(took_ms),
            status::CORRUPTED | status::CORRUPTED_FORCE => {
                self.fail("the Document Server called a save failed");
            }
            _ => return,
        }
        let hash = body.url.as_deref().and_then(folder_of).and_then(|folder| self.built.remove(folder));
        match (document_of(&body.key), hash) {
            (Some(document), Some(hash)) => {
                *self.promised.entry(document.to_owned()).or_default().entry(hash).or_default() += 1;
            }
            _ => self.fail("a save was answered whose file or document is not known"),
        }
    }

    /// The times since they were taken last.
    pub(super) fn take_times(&mut self) -> Times {
        std::mem::take(&mut self.times)
    }

    /// Takes over what the load driver counts as failed.
    pub(super) fn blame(&mut self, report: &load::Report) {
        for (why, count) in &report.failures {
            *self.failures.entry(why.clone()).or_default() += usize::try_from(*count).unwrap_or(usize::MAX);
        }
        self.refreshed += report.counts.get("refreshed").copied().unwrap_or_default();
        if let Some(count) = report.counts.get("refused_by_host") {
            self.fail(format!("{count} force saves were refused"));
        }
    }

    /// Nothing may be on its way any more.
    pub(super) fn close(&mut self) {
        let unanswered = self.waiting.len();
        if unanswered > 0 {
            self.fail(format!("{unanswered} callbacks were never answered"));
        }
    }

    pub(super) fn fail(&mut self, why: impl Into<String>) {
        let why = why.into();
        let is_known = self.failures.contains_key(&why);
        let why = if is_known || self.failures.len() < FAILURES_MAX { why } else { "others".to_owned() };
        *self.failures.entry(why).or_default() += 1;
    }

    /// What the server promised to keep of a document: hashes, and how often.
    pub(super) fn promised(&self, document: &str) -> BTreeMap<String, usize> {
        self.promised.get(document).cloned().unwrap_or_default()
    }

    pub(super) fn errors(&self) -> usize {
        self.failures.values().sum()
    }

    pub(super) fn summary(&self) -> String {
        let count = |status: u8| self.acknowledged.get(&status).copied().unwrap_or_default();
        format!(
            "answered 0 over all: {} force saves, {} final saves, {} of who is in, {} that nobody is; \
             {} came with a spent key",
            count(status::MUST_FORCE_SAVE),
            count(status::MUST_SAVE),
            count(status::EDITING),
            count(status::CLOSED),
            self.refreshed
        )
    }

    pub(super) fn failures(self) -> Vec<String> {
        self.failures.into_iter().map(|(why, count)| format!("{why} ({count} times)")).collect()
    }
}

/// `<key>_<number>` out of a link.
fn folder_of(url: &str) -> Option<&str> {
    url.split("/files/data/").nth(1)?.split('/').next()
}

/// The document a key names: its second part.
fn document_of(key: &str) -> Option<&str> {
    key.split('_').nth(1)
}

#[cfg(test)]
pub(super) mod tests {
    use understudy::machine::{Answer, Conversion};

    use super::*;

    #[test]
    fn a_link_names_its_folder_and_a_key_its_document() {
        let link =
            "http://127.0.0.1:1/cache/files/data/prod_held-7_edit_1.abc_42/output.docx/output.docx?md5=x";

        assert_eq!(folder_of(link), Some("prod_held-7_edit_1.abc_42"));
        assert_eq!(document_of("prod_held-7_edit_1.abc"), Some("held-7"));
    }

    /// A force save of the document `d`, built, sent and answered.
    pub(crate) fn witness_of_a_save(answer: &str) -> Witness {
        let journal = Journal::open(None).unwrap();
        let (key, path) = ("prod_d_edit_1.abc".to_owned(), "prod_d_edit_1.abc_42".to_owned());
        let url = format!("http://127.0.0.1:1/cache/files/data/{path}/output.docx/output.docx?md5=x");
        let body = Body { key: key.clone(), status: 6, url: Some(url), ..Body::default() };
        let answer = Answer::Http { status: 200, body: answer.to_owned() };
        let built = Note::ContentProduced {
            key,
            path,
            conversion: Conversion::Done,
            sha256: Some("abc".to_owned()),
            size_bytes: Some(1),
            holds: std::sync::Arc::new([]),
        };
        journal.write(100, built);
        let sent = Note::CallbackSent {
            delivery: 1,
            attempt: 1,
            url: "http://host".to_owned(),
            body: Box::new(body),
        };
        journal.write(200, sent);
        let verdict = understudy::machine::judge(&answer);
        journal.write(212, Note::CallbackAnswered { delivery: 1, answer, verdict, reaction: String::new() });
        let mut witness = Witness::of(&journal);
        witness.catch_up();
        witness
    }

    #[test]
    fn an_answer_of_0_is_a_promise_and_has_a_time() {
        let mut witness = witness_of_a_save(r#"{"error":0}"#);

        assert_eq!(witness.errors(), 0);
        assert_eq!(witness.promised("d"), BTreeMap::from([("abc".to_owned(), 1)]));
        assert_eq!(witness.take_times().percentile(99), 12.0);
    }

    #[test]
    fn any_other_answer_is_a_failure() {
        let mut witness = witness_of_a_save(r#"{"error":1}"#);

        assert_eq!(witness.errors(), 1);
        assert_eq!(witness.take_times().count(), 0);
    }
}
