//! What may be let go, and when.
//!
//! Three questions: which contents of a document ([`rule_on_contents`]), whether a deleted document ([`rule_on_purge`]), whether
//! a kept copy ([`rule_on_kept`]). Rows are never removed; what is let go is bytes.
//!
//! Guarantees: the head, whatever a session may still need, what the published tree shows and what somebody was just given a
//! link to is never let go, and nothing younger than the policy says. A checkpoint goes before its time only if a later save
//! of the same session holds what it held. Asking twice lets nothing more go. Does not do: remove anything, read the clock.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{EditorKey, Label};

/// What an operator wants to keep. `None` means for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Checkpoints younger than this are all kept.
    pub checkpoints_all: Option<SignedDuration>,
    /// Of older ones, the newest of each span of this length is kept.
    pub checkpoints_one_per: SignedDuration,
    /// So many of the newest versions are kept, however old.
    pub versions_newest: Option<u32>,
    /// Versions younger than this are kept, however many. With both limits a version must be beyond both to go.
    pub versions_younger: Option<SignedDuration>,
    /// Deleted documents are purged after this.
    pub deleted: Option<SignedDuration>,
    /// Kept copies that a person used or dismissed are let go after this.
    pub kept: Option<SignedDuration>,
    /// How long a link to a content may be used.
    pub links: SignedDuration,
    /// How long the bytes stay after the last row that needs them was let go.
    pub bytes: SignedDuration,
}

impl Retention {
    /// Everything, for ever.
    pub const EVERYTHING: Self = Self {
        checkpoints_all: None,
        checkpoints_one_per: SignedDuration::from_hours(24),
        versions_newest: None,
        versions_younger: None,
        deleted: None,
        kept: None,
        links: SignedDuration::from_hours(24),
        bytes: SignedDuration::from_hours(24 * 7),
    };

    /// Whether any content of a document that is there may ever go.
    pub fn lets_contents_go(&self) -> bool {
        self.checkpoints_all.is_some() || self.has_version_limit()
    }

    /// Contents younger than this all stay, whatever else is so: most documents have no older ones, and need not be looked into.
    /// `None` if age alone tells nothing.
    pub fn spares_younger_than(&self) -> Option<SignedDuration> {
        if self.versions_newest.is_some() && self.versions_younger.is_none() {
            return None;
        }
        [self.checkpoints_all, self.versions_younger].into_iter().flatten().min()
    }

    fn has_version_limit(&self) -> bool {
        self.versions_newest.is_some() || self.versions_younger.is_some()
    }
}

/// A content, as far as letting it go is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentFacts {
    /// Its number.
    pub label: Label,
    /// When it was committed.
    pub committed_at: Timestamp,
    /// The key it was saved under.
    pub key: Option<EditorKey>,
    /// Whether it arrived late and was filed beside a newer one.
    pub is_filed_beside: bool,
    /// Whether it was let go before.
    pub is_pruned: bool,
    /// Whether it is the head, the newest version, the base or a save of a session that is not over, or what the published
    /// tree shows.
    pub is_in_use: bool,
    /// When somebody was last given a link to it.
    pub handed_out_at: Option<Timestamp>,
}

/// Why a content is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A later save of its session holds what it held, and a checkpoint of the same span is kept.
    Thinned,
    /// More newer versions than the policy keeps, all of them older than it keeps.
    BeyondLimit,
    /// A checkpoint on a version that is let go.
    WithItsVersion,
}

impl Reason {
    /// The word for the audit trail.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Thinned => "thinned",
            Self::BeyondLimit => "beyond-limit",
            Self::WithItsVersion => "with-its-version",
        }
    }
}

/// Which contents of a document may go now. `contents` are all of them, also those that were let go before.
pub fn rule_on_contents(
    policy: &Retention,
    contents: &[ContentFacts],
    now: Timestamp,
) -> BTreeMap<Label, Reason> {
    let newest = newest_of_sessions(contents);
    let (passing, lasting): (Vec<_>, Vec<_>) =
        contents.iter().partition(|content| is_held_by_a_later_one(content, &newest));
    let mut going = versions_beyond_limit(policy, lasting, now);
    let gone = contents.iter().filter(|content| content.is_pruned).map(|content| content.label);
    let versions_gone: BTreeSet<u32> = gone
        .chain(going.keys().copied())
        .filter(|label| label.is_version())
        .map(|label| label.version)
        .collect();
    let follow = passing.iter().filter(|content| versions_gone.contains(&content.label.version));
    let follow = follow.filter(|content| may_go(policy, content, now) && is_old(policy, content, now));
    let follow: Vec<_> = follow.map(|content| (content.label, Reason::WithItsVersion)).collect();
    going.extend(thinned(policy, &passing, now));
    going.extend(follow);
    going
}

/// The newest content of each session; what was filed beside it is older.
fn newest_of_sessions(contents: &[ContentFacts]) -> BTreeMap<&EditorKey, Label> {
    let mut newest = BTreeMap::new();
    for content in contents.iter().filter(|content| !content.is_filed_beside) {
        if let Some(key) = &content.key {
            let best = newest.entry(key).or_insert(content.label);
            *best = content.label.max(*best);
        }
    }
    newest
}

/// Whether a checkpoint is but a step on the way to a later save of its session. The last save of a session is not: what came
/// after it may have been made of something else.
fn is_held_by_a_later_one(content: &ContentFacts, newest: &BTreeMap<&EditorKey, Label>) -> bool {
    let of_session = content.key.as_ref().and_then(|key| newest.get(key));
    let is_later = |newest: &Label| content.is_filed_beside || *newest > content.label;
    !content.label.is_version() && of_session.is_some_and(is_later)
}

fn may_go(policy: &Retention, content: &ContentFacts, now: Timestamp) -> bool {
    let is_linked = content.handed_out_at.is_some_and(|at| age(at, now) <= policy.links);
    !content.is_pruned && !content.is_in_use && !is_linked
}

fn age(at: Timestamp, now: Timestamp) -> SignedDuration {
    now.duration_since(at)
}

fn versions_beyond_limit(
    policy: &Retention,
    mut lasting: Vec<&ContentFacts>,
    now: Timestamp,
) -> BTreeMap<Label, Reason> {
    if !policy.has_version_limit() {
        return BTreeMap::new();
    }
    lasting.sort_by_key(|content| std::cmp::Reverse(content.label));
    let newest =
        policy.versions_newest.map_or(0, |count| usize::try_from(count.max(1)).unwrap_or(usize::MAX));
    let beyond = lasting.into_iter().skip(newest);
    let beyond =
        beyond.filter(|content| may_go(policy, content, now) && is_old_version(policy, content, now));
    beyond.map(|content| (content.label, Reason::BeyondLimit)).collect()
}

fn is_old_version(policy: &Retention, content: &ContentFacts, now: Timestamp) -> bool {
    policy.versions_younger.is_none_or(|limit| age(content.committed_at, now) > limit)
}

/// Older than either limit, as far as there is one.
fn is_old(policy: &Retention, content: &ContentFacts, now: Timestamp) -> bool {
    is_old_version(policy, content, now) && is_old_checkpoint(policy, content, now)
}

fn is_old_checkpoint(policy: &Retention, content: &ContentFacts, now: Timestamp) -> bool {
    policy.checkpoints_all.is_none_or(|limit| age(content.committed_at, now) > limit)
}

/// All but the newest of each span. Spans are counted from the beginning of time, so that the same ones stay next time.
fn thinned(policy: &Retention, passing: &[&ContentFacts], now: Timestamp) -> Vec<(Label, Reason)> {
    if policy.checkpoints_all.is_none() {
        return Vec::new();
    }
    let span_ms = i64::try_from(policy.checkpoints_one_per.as_millis()).unwrap_or(i64::MAX).max(1);
    let span_of = |content: &ContentFacts| content.committed_at.as_millisecond().div_euclid(span_ms);
    let mut newest: BTreeMap<i64, (Timestamp, Label)> = BTreeMap::new();
    for content in passing.iter().filter(|content| !content.is_pruned) {
        let place = (content.committed_at, content.label);
        let best = newest.entry(span_of(content)).or_insert(place);
        *best = (*best).max(place);
    }
    let is_newest = |content: &ContentFacts| {
        newest.get(&span_of(content)).is_some_and(|(_, label)| *label == content.label)
    };
    let going = passing.iter().filter(|content| {
        may_go(policy, content, now) && is_old_checkpoint(policy, content, now) && !is_newest(content)
    });
    going.map(|content| (content.label, Reason::Thinned)).collect()
}

/// A deleted document, as far as purging it is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedFacts {
    /// When it was deleted.
    pub deleted_at: Timestamp,
    /// Whether a key of it is live, somebody is inside one, or the server was not yet heard to be done with one.
    pub has_session: bool,
    /// Whether a save of it was received and is not finished.
    pub has_open_save: bool,
    /// Whether a copy of it is kept that no person looked at.
    pub has_kept_copy: bool,
    /// Whether the published tree still shows it.
    pub is_shown: bool,
}

/// What becomes of a deleted document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PurgeRuling {
    /// Its time has not come.
    NotYet,
    /// Its time has come and it has to wait, for this.
    Waits(WaitsFor),
    /// It goes.
    Purge,
}

/// What a purge waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitsFor {
    /// The end of a session.
    Session,
    /// A save that is being stored.
    Save,
    /// A person's word about a kept copy.
    KeptCopy,
    /// The published tree.
    Tree,
}

impl WaitsFor {
    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Save => "save",
            Self::KeptCopy => "kept-copy",
            Self::Tree => "published-tree",
        }
    }
}

/// Whether a deleted document is purged.
pub fn rule_on_purge(policy: &Retention, document: &DeletedFacts, now: Timestamp) -> PurgeRuling {
    let is_due = policy.deleted.is_some_and(|limit| age(document.deleted_at, now) > limit);
    if !is_due {
        PurgeRuling::NotYet
    } else if document.has_session {
        PurgeRuling::Waits(WaitsFor::Session)
    } else if document.has_open_save {
        PurgeRuling::Waits(WaitsFor::Save)
    } else if document.has_kept_copy {
        PurgeRuling::Waits(WaitsFor::KeptCopy)
    } else if document.is_shown {
        PurgeRuling::Waits(WaitsFor::Tree)
    } else {
        PurgeRuling::Purge
    }
}

/// Whether a kept copy is let go: a person must have settled it, long enough ago.
pub fn rule_on_kept(policy: &Retention, settled_at: Option<Timestamp>, now: Timestamp) -> bool {
    settled_at.zip(policy.kept).is_some_and(|(settled_at, limit)| age(settled_at, now) > limit)
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
