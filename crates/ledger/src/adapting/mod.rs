//! What every engine does around the rules: words for states, what is asked of the model, what a ruling is reported as.
//!
//! Guarantees: no SQL, no waiting. Engines read facts and write rows; what lies between and is not a rule stands here once.

pub(crate) mod acting;
pub(crate) mod adding;
pub(crate) mod telling;
pub(crate) mod tokens;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use model::callbacks::{Answer, Callback};
use model::changing::{ChangeRuling, rule_on_change};
use model::checking::{Policy, Vanished, rule_on_vanished, what_vanished};
use model::opening::{LeftKeyFacts, LiveKeyFacts, OpenFacts, Quiet, ServerKnowledge};
use model::saves::{HeadFacts, KeyStanding, Ruling, SaveMark};
use model::{DocumentId, InboxNumber, Label};

use crate::changes::ChangeOutcome;
use crate::documents::{Author, BlobFacts};
use crate::keys::{KeyGrant, KeyRecord, Knowledge, OpenGrant};
use crate::saves::Committed;
use crate::{LedgerError, Result, callback_text};

/// A content that was compared with the head it is to replace.
pub(crate) struct Compared {
    pub(crate) ruling: Ruling,
    /// Marked with what vanished.
    pub(crate) blob: BlobFacts,
    vanished: Vec<Vanished>,
}

impl Compared {
    pub(crate) fn told(&self, committed: Committed) -> Committed {
        Committed { vanished: self.vanished.clone(), ..committed }
    }
}

pub(crate) fn compare(policy: &Policy, (head, ruling): (&HeadFacts, Ruling), blob: &BlobFacts) -> Compared {
    let moves_head = matches!(ruling, Ruling::NewVersion | Ruling::NewCheckpoint);
    let extents = head.extent.zip(blob.extent).filter(|_| moves_head);
    let vanished = extents.map(|(head, now)| what_vanished(&head, &now)).unwrap_or_default();
    let flags = vanished.iter().map(|vanished| vanished.as_str()).filter(|code| policy.is_live(code));
    let flags: Vec<&str> = blob.flags.split(',').filter(|flag| !flag.is_empty()).chain(flags).collect();
    let ruling = rule_on_vanished(policy, ruling, &vanished);
    Compared { ruling, blob: BlobFacts { flags: flags.join(","), ..blob.clone() }, vanished }
}

pub(crate) fn mark_of(row: &InboxRow, blob: &BlobFacts) -> SaveMark {
    SaveMark {
        inbox: row.number,
        last_save: row.callback.last_save,
        digest: blob.digest,
        session_start: row.callback.session_start,
        runs: callback_text::runs_in(&row.callback),
    }
}

pub(crate) fn outcome_of(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::NothingNew => "nothing-new",
        Ruling::NewVersion => "version",
        Ruling::NewCheckpoint => "checkpoint",
        Ruling::FileBeside => "filed",
        Ruling::KeepAside(_) => "conflict",
    }
}

pub(crate) fn author_of(callback: &Callback) -> Author {
    let id = callback.users.first().cloned().unwrap_or_default();
    Author::new(id.clone(), callback.author_name.clone().unwrap_or(id))
}

/// A save came while the file was fetched. It may hold more than the file, and whoever sent it may still be inside.
pub(crate) fn not_now(document: &DocumentId) -> Committed {
    Committed { ruling: None, answer: Answer::TryAgain, ..nothing_new(document) }
}

pub(crate) fn nothing_new(document: &DocumentId) -> Committed {
    let ruling = Some(Ruling::NothingNew);
    Committed {
        document: Some(document.clone()),
        ruling,
        label: None,
        kept: None,
        answer: Answer::Saved,
        vanished: Vec::new(),
        over_quota: None,
        is_new: false,
    }
}

/// A save whose file cannot be fetched stays open until its link is dead; for so long nobody waits.
const STORING_TAKES_AT_MOST: SignedDuration = SignedDuration::from_secs(150);

/// A save that is still open and older than this is not waited for.
pub(crate) fn storing_since(at: Timestamp) -> Timestamp {
    at.checked_sub(STORING_TAKES_AT_MOST).unwrap_or(Timestamp::MIN)
}

/// What the server said, and when it counts.
pub(crate) struct Asked<'a> {
    pub(crate) knowledge: Option<&'a Knowledge>,
    pub(crate) quiet_after: SignedDuration,
    /// For whoever wants to go on with a key: a save that we did not hear stands in their way, not what was heard of it.
    pub(crate) listening_since: Option<Timestamp>,
}

/// The head of a document and the sessions that may still work on it.
pub(crate) struct Sessions {
    pub(crate) head: Label,
    pub(crate) facts: OpenFacts,
    pub(crate) live: Option<KeyRecord>,
    /// Only looked at without a live key.
    pub(crate) left: Option<KeyRecord>,
}

pub(crate) fn left_facts(left: &KeyRecord, asked: &Asked<'_>) -> LeftKeyFacts {
    let known = knowledge_of(left, asked);
    LeftKeyFacts { server: known.map(|known| known.server), quiet: quiet(left, asked) }
}

/// Whether nothing had been heard of a key for a while when the server was asked about it.
fn quiet(record: &KeyRecord, asked: &Asked<'_>) -> Quiet {
    let heard_of = match asked.listening_since {
        // Nobody waits for our answer; a save can only have come when we did not listen.
        Some(since) if record.saves_received == 0 && record.retired_at.is_none() && !record.is_spent => since,
        _ => record.last_seen_at.max(record.retired_at).unwrap_or(record.issued_at),
    };
    let known = knowledge_of(record, asked);
    let was_quiet = known.is_some_and(|known| known.asked_at.duration_since(heard_of) >= asked.quiet_after);
    if was_quiet { Quiet::Yes } else { Quiet::No }
}

/// What the server said of a key, unless a save of it came since.
fn knowledge_of<'a>(record: &KeyRecord, asked: &Asked<'a>) -> Option<&'a Knowledge> {
    let is_about_it =
        |known: &&Knowledge| known.key == record.key && known.saves_received == record.saves_received;
    asked.knowledge.filter(is_about_it)
}

pub(crate) fn live_facts(live: &KeyRecord, asked: &Asked<'_>) -> Result<LiveKeyFacts> {
    let (_, base) = live.base.ok_or_else(|| LedgerError::damaged("a live key without a base"))?;
    let server = knowledge_of(live, asked).map(|known| known.server);
    let has_received_saves = live.saves_received > 0 || live.is_spent;
    Ok(LiveKeyFacts { base, has_received_saves, server, quiet: quiet(live, asked) })
}

pub(crate) fn reuse(live: KeyRecord) -> Result<OpenGrant> {
    let (base, base_digest) = live.base.ok_or_else(|| LedgerError::damaged("a live key without a base"))?;
    Ok(OpenGrant::Granted(KeyGrant {
        key: live.key,
        base,
        base_digest,
        is_new: false,
        brings_back_stranded: false,
    }))
}

/// What the server says of a session, as it is stored.
const WORDS: [(ServerKnowledge, &str); 3] = [
    (ServerKnowledge::Unknown, "unknown"),
    (ServerKnowledge::ChangesHeld, "changes-held"),
    (ServerKnowledge::NothingHeld, "nothing-held"),
];

pub(crate) fn knowledge(word: &str) -> Option<ServerKnowledge> {
    WORDS.iter().find(|(_, known)| *known == word).map(|(knowledge, _)| *knowledge)
}

pub(crate) fn word(knowledge: ServerKnowledge) -> Option<&'static str> {
    WORDS.iter().find(|(known, _)| *known == knowledge).map(|(_, word)| *word)
}

/// Somebody with two tabs is named twice and is one person.
pub(crate) fn without_repeats(users: &[String]) -> Vec<&String> {
    let mut seen = BTreeSet::new();
    users.iter().filter(|user| seen.insert(*user)).collect()
}

/// A callback that a step works on.
pub(crate) struct InboxRow {
    pub(crate) number: InboxNumber,
    pub(crate) document: Option<DocumentId>,
    pub(crate) callback: Callback,
    /// How it ended, if it did.
    pub(crate) end: Option<Committed>,
}

/// The end of a callback.
pub(crate) struct End<'a> {
    pub(crate) committed: &'a Committed,
    pub(crate) at: Timestamp,
    pub(crate) answered_at: Option<Timestamp>,
}

pub(crate) fn standing(state: &str) -> KeyStanding {
    match state {
        "live" => KeyStanding::Live,
        "adopted" => KeyStanding::Adopted,
        _ => KeyStanding::Retired,
    }
}

/// What has to be done before a document may be changed past its editors; nothing if it may be changed now.
pub(crate) fn first_outcome(sessions: &Sessions) -> Option<ChangeOutcome> {
    let key = || sessions.live.clone().or_else(|| sessions.left.clone());
    match (rule_on_change(&sessions.facts), key()) {
        (ChangeRuling::WaitForSave, _) => Some(ChangeOutcome::Wait),
        (ChangeRuling::ServerAway, _) => Some(ChangeOutcome::ServerAway),
        (ChangeRuling::AskServer, Some(key)) => Some(ChangeOutcome::AskServer(Box::new(key))),
        (ChangeRuling::FinishFirst, Some(key)) => Some(ChangeOutcome::Finish(Box::new(key))),
        (ChangeRuling::Edited, key) => {
            Some(ChangeOutcome::Edited(key.map(|key| key.users).unwrap_or_default()))
        }
        (ChangeRuling::Go | ChangeRuling::AskServer | ChangeRuling::FinishFirst, _) => None,
    }
}
/// The first text behind all that begin so, as databases order bytes; none if there is no such.
pub(crate) fn beyond(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_all_that_begin_so_is_known() {
        assert_eq!(beyond("ab").as_deref(), Some("ac"));
        assert_eq!(beyond("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(beyond("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!((beyond(""), beyond("\u{10ffff}")), (None, None));
    }
}
