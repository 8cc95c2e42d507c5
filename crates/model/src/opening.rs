//! Which key an editor gets: the life of an edit key.
//!
//! A key is the only name under which the Document Server finds unsaved work again. Handing out a new one too early
//! hides that work; handing out a spent one yields a stale session. So a key is reused while it can be, retired only
//! when the server has nothing left under it, and the server is asked whenever we cannot know.
//!
//! Guarantees: total and pure. Does not do: ask the server, wait, write. `opening` does, in a loop around this rule.

use crate::{Digest, Guards, InboxNumber};

/// What the Document Server says of a key (`info` and the callback it causes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerKnowledge {
    /// Never opened, forgotten, or long finished: no changes are held under the key itself.
    Unknown,
    /// Somebody is editing.
    UsersInside,
    /// Nobody is inside, yet changes are held: being saved, or stranded by a crash.
    ChangesHeld,
    /// Nobody is inside and nothing is held.
    NothingHeld,
    /// The server did not answer.
    Away,
}

/// What is known of the document's live edit key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveKeyFacts {
    /// The content its session started from.
    pub base: Digest,
    /// Whether any save of it was received, or a failed one announced, or its forgotten file collected: the server may
    /// hold or have lost more.
    pub has_received_saves: bool,
    /// What the server said, if it was asked since the last save of this key.
    pub server: Option<ServerKnowledge>,
    /// Whether, when it was asked, neither a save nor our answer to one could be on its way.
    pub quiet: Quiet,
}

/// What is known when somebody wants to edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFacts {
    /// The head's bytes.
    pub head: Digest,
    /// Whether a final save of any key of the document was received and can still be committed.
    pub final_save_is_being_stored: bool,
    /// The live edit key, if there is one.
    pub live: Option<LiveKeyFacts>,
    /// The newest key that retired with its final save, if the server was not yet heard to be done with it.
    pub left: Option<LeftKeyFacts>,
}

/// What is known of a key that retired with its final save. Our 0 may never have been heard: we stopped before it left, or it
/// was lost. Then the server holds the session's changes, and people may have gone on with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftKeyFacts {
    /// What the server said, if it was asked.
    pub server: Option<ServerKnowledge>,
    /// Whether, when it was asked, our answer could not be on its way any more, nor a repeat of the save.
    pub quiet: Quiet,
}

/// What to do for somebody who wants to edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenRuling {
    /// A final save is on its way: wait for it.
    WaitForSave,
    /// Only the server knows whether the live key can be used: ask it, then rule again.
    AskServer,
    /// Hand out the live key with its base.
    Reuse,
    /// Hand out the live key with its base: the server holds changes that only this key brings back. Alert.
    BringBackStranded,
    /// The live key is finished: collect its forgotten file if there is one, retire it, issue a new one on the head.
    RetireThenIssue,
    /// Hand out the key that retired with its final save: the server did not hear so, and holds changes that only this key
    /// brings back. Alert.
    Revive,
    /// Issue a new key on the head.
    Issue,
    /// The server is away and its word is needed.
    ServerAway,
}

/// Decides which key an editor gets.
pub fn rule_on_open(guards: &Guards, facts: &OpenFacts) -> OpenRuling {
    if facts.final_save_is_being_stored && guards.open_barrier {
        return OpenRuling::WaitForSave;
    }
    let Some(live) = &facts.live else {
        return facts.left.as_ref().map_or(OpenRuling::Issue, rule_on_left);
    };
    if !live.has_received_saves && live.base == facts.head {
        return rule_on_unsaved(live);
    }
    match live.server {
        None => OpenRuling::AskServer,
        Some(ServerKnowledge::UsersInside) => OpenRuling::Reuse,
        // While our answer is on its way, whoever opens the key is only told to come again.
        Some(ServerKnowledge::ChangesHeld) if live.quiet == Quiet::No => OpenRuling::WaitForSave,
        Some(ServerKnowledge::ChangesHeld) => OpenRuling::BringBackStranded,
        Some(ServerKnowledge::NothingHeld | ServerKnowledge::Unknown) => OpenRuling::RetireThenIssue,
        Some(ServerKnowledge::Away) => OpenRuling::ServerAway,
    }
}

/// A key of which no save was received. It is not over for us, whatever the server says, and whoever reloads a page does not wait;
/// but what the server sent while nobody listened may lie there as a forgotten file beside the very changes it holds.
fn rule_on_unsaved(live: &LiveKeyFacts) -> OpenRuling {
    match live.server {
        None => OpenRuling::AskServer,
        Some(ServerKnowledge::ChangesHeld) if live.quiet == Quiet::No => OpenRuling::WaitForSave,
        Some(ServerKnowledge::Away) => OpenRuling::ServerAway,
        Some(_) => OpenRuling::Reuse,
    }
}

fn rule_on_left(left: &LeftKeyFacts) -> OpenRuling {
    match (left.server, left.quiet) {
        (None, _) => OpenRuling::AskServer,
        (Some(ServerKnowledge::Away), _) => OpenRuling::ServerAway,
        (Some(server), _) if may_retire(server) => OpenRuling::Issue,
        (Some(_), Quiet::No) => OpenRuling::WaitForSave,
        (Some(_), Quiet::Yes) => OpenRuling::Revive,
    }
}

/// Whether nothing can come from a key any more, so that it may retire.
pub fn may_retire(server: ServerKnowledge) -> bool {
    matches!(server, ServerKnowledge::Unknown | ServerKnowledge::NothingHeld)
}

/// Whether the server may be busy with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quiet {
    /// Nothing was heard of it for longer than the server repeats a save.
    Yes,
    /// A save may be on its way.
    No,
}

/// What happens to a forgotten file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectRuling {
    /// Somebody is or may be working on it.
    Leave,
    /// Collect it; the key is spent with it.
    Collect,
    /// Collect it. The server also holds changes, which only opening the key on its base brings back; opened on the
    /// forgotten file, which has them, they would count twice.
    CollectAndKeepSource,
}

/// Decides what happens to a forgotten file: never taken while somebody could still be working on it.
pub fn rule_on_collecting(server: ServerKnowledge, quiet: Quiet) -> CollectRuling {
    match server {
        ServerKnowledge::Unknown | ServerKnowledge::NothingHeld => CollectRuling::Collect,
        ServerKnowledge::ChangesHeld if quiet == Quiet::Yes => CollectRuling::CollectAndKeepSource,
        _ => CollectRuling::Leave,
    }
}

/// The newest callback of a key that brought a file, whatever became of that file. One that names an earlier change than a callback
/// before it was overtaken on its way: it is older than that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBrought {
    /// Its place in the order of arrival.
    pub number: InboxNumber,
    /// Whether it came with a history of changes.
    pub has_history: bool,
}

/// Whether changes the server holds were made on the forgotten file that lies beside them: then only that file brings them
/// back, and it stays where it is. Opened from it, the server sends no history. `came_as` is the callback that brought us
/// the same bytes, if one did: what comes with or after the newest save holds the changes itself.
pub fn builds_on_forgotten(last: Option<LastBrought>, came_as: Option<InboxNumber>) -> bool {
    last.is_some_and(|last| !last.has_history && came_as.is_none_or(|number| number < last.number))
}

/// What `document.url` of a key serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceRuling {
    /// The content the key was issued on, whatever the head is now.
    Base,
    /// The newest content this key saved: its session goes on from its forgotten file, which was collected.
    Newest,
    /// Nothing: the key is spent, and whatever was served would be edited beside the current session.
    Spent,
}

/// As long as the server holds unacknowledged changes it replays them on whatever it fetches; on the saved file they
/// would count twice. So a key's source is its base until its final save was answered 0, and nothing from then on.
pub fn rule_on_source(key_is_spent: KeySpent) -> SourceRuling {
    match key_is_spent {
        KeySpent::Yes => SourceRuling::Spent,
        KeySpent::Collected => SourceRuling::Newest,
        KeySpent::No => SourceRuling::Base,
    }
}

/// Whether a key's final save was answered 0, its forgotten file collected, or the key retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySpent {
    /// The server should open nothing under it any more.
    Yes,
    /// Its forgotten file was collected while somebody may have been entering it: it is still live.
    Collected,
    /// Its session may still be alive.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Digest = Digest::new([1; 32]);
    const OTHER: Digest = Digest::new([2; 32]);

    fn check(live: Option<LiveKeyFacts>, expected: OpenRuling) {
        let facts = OpenFacts { head: HEAD, final_save_is_being_stored: false, live, left: None };
        assert_eq!(rule_on_open(&Guards::ALL, &facts), expected, "{facts:?}");

        let while_saving = OpenFacts { final_save_is_being_stored: true, ..facts };
        assert_eq!(rule_on_open(&Guards::ALL, &while_saving), OpenRuling::WaitForSave, "{while_saving:?}");
    }

    fn unused(base: Digest) -> Option<LiveKeyFacts> {
        Some(LiveKeyFacts { base, has_received_saves: false, server: None, quiet: Quiet::Yes })
    }

    fn saved_under(base: Digest, server: Option<ServerKnowledge>) -> Option<LiveKeyFacts> {
        Some(LiveKeyFacts { base, has_received_saves: true, server, quiet: Quiet::Yes })
    }

    #[test]
    fn without_a_live_key_a_new_one_is_issued() {
        check(None, OpenRuling::Issue);
    }

    #[test]
    fn a_key_that_retired_with_its_final_save_is_asked_about_before_another_is_issued() {
        let left = |server, quiet| {
            let left = Some(LeftKeyFacts { server, quiet });
            let facts = OpenFacts { head: HEAD, final_save_is_being_stored: false, live: None, left };
            rule_on_open(&Guards::ALL, &facts)
        };
        let rulings = [
            (None, OpenRuling::AskServer, OpenRuling::AskServer),
            (Some(ServerKnowledge::Away), OpenRuling::ServerAway, OpenRuling::ServerAway),
            (Some(ServerKnowledge::Unknown), OpenRuling::Issue, OpenRuling::Issue),
            (Some(ServerKnowledge::NothingHeld), OpenRuling::Issue, OpenRuling::Issue),
            // Our answer may be on its way: after it, the server would open the base under this key.
            (Some(ServerKnowledge::ChangesHeld), OpenRuling::WaitForSave, OpenRuling::Revive),
            (Some(ServerKnowledge::UsersInside), OpenRuling::WaitForSave, OpenRuling::Revive),
        ];
        for (server, busy, quiet) in rulings {
            assert_eq!((left(server, Quiet::No), left(server, Quiet::Yes)), (busy, quiet), "{server:?}");
        }
    }

    #[test]
    fn a_key_without_saves_is_reused_while_its_base_is_the_head() {
        let expected = [
            (None, OpenRuling::AskServer),
            (Some(ServerKnowledge::UsersInside), OpenRuling::Reuse),
            (Some(ServerKnowledge::ChangesHeld), OpenRuling::Reuse),
            (Some(ServerKnowledge::NothingHeld), OpenRuling::Reuse),
            (Some(ServerKnowledge::Unknown), OpenRuling::Reuse),
            (Some(ServerKnowledge::Away), OpenRuling::ServerAway),
        ];
        for (server, ruling) in expected {
            check(unused(HEAD).map(|live| LiveKeyFacts { server, ..live }), ruling);
        }
        check(unused(OTHER), OpenRuling::AskServer);
    }

    #[test]
    fn a_key_without_saves_is_waited_for_while_one_may_have_come_when_nobody_listened() {
        let server = Some(ServerKnowledge::ChangesHeld);
        let live = unused(HEAD).map(|live| LiveKeyFacts { server, quiet: Quiet::No, ..live });
        check(live, OpenRuling::WaitForSave);
    }

    #[test]
    fn a_key_with_saves_goes_by_what_the_server_says() {
        let expected = [
            (None, OpenRuling::AskServer),
            (Some(ServerKnowledge::UsersInside), OpenRuling::Reuse),
            (Some(ServerKnowledge::ChangesHeld), OpenRuling::BringBackStranded),
            (Some(ServerKnowledge::NothingHeld), OpenRuling::RetireThenIssue),
            (Some(ServerKnowledge::Unknown), OpenRuling::RetireThenIssue),
            (Some(ServerKnowledge::Away), OpenRuling::ServerAway),
        ];
        for (server, ruling) in expected {
            check(saved_under(HEAD, server), ruling);
            check(saved_under(OTHER, server), ruling);
        }
    }

    #[test]
    fn changes_the_server_holds_are_not_brought_back_while_an_answer_may_be_on_its_way() {
        let server = Some(ServerKnowledge::ChangesHeld);
        let live = LiveKeyFacts { base: HEAD, has_received_saves: true, server, quiet: Quiet::No };
        check(Some(live), OpenRuling::WaitForSave);
    }

    #[test]
    fn a_save_without_history_was_made_on_the_forgotten_file() {
        let last = |has_history| Some(LastBrought { number: InboxNumber(7), has_history });

        assert!(builds_on_forgotten(last(false), None), "we never saw that file before");
        assert!(
            builds_on_forgotten(last(false), Some(InboxNumber(6))),
            "we have it, the server did not hear so"
        );
        assert!(!builds_on_forgotten(last(false), Some(InboxNumber(7))), "it is the save itself");
        assert!(!builds_on_forgotten(last(true), None), "the session ran on the base");
        assert!(!builds_on_forgotten(None, None));
    }

    #[test]
    fn a_forgotten_file_is_left_alone_while_somebody_may_be_on_it() {
        let rulings = [
            (ServerKnowledge::Unknown, CollectRuling::Collect, CollectRuling::Collect),
            (ServerKnowledge::NothingHeld, CollectRuling::Collect, CollectRuling::Collect),
            (ServerKnowledge::ChangesHeld, CollectRuling::Leave, CollectRuling::CollectAndKeepSource),
            (ServerKnowledge::UsersInside, CollectRuling::Leave, CollectRuling::Leave),
            (ServerKnowledge::Away, CollectRuling::Leave, CollectRuling::Leave),
        ];
        for (server, busy, quiet) in rulings {
            assert_eq!(rule_on_collecting(server, Quiet::No), busy, "{server:?}");
            assert_eq!(rule_on_collecting(server, Quiet::Yes), quiet, "{server:?}");
            assert_eq!(may_retire(server), busy == CollectRuling::Collect, "{server:?}");
        }
    }
}
