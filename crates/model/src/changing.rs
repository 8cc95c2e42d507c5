//! When a document may be changed past its editors: deleted, replaced by an upload, restored to an earlier content.
//!
//! Such a change and a session must never cross: what people type during it would end as a conflict copy. So it happens only
//! when the server holds nothing of the document, and whenever we cannot know, the server is asked.
//!
//! Guarantees: total and pure. Does not do: ask, wait, write; the flow `changing` does, in a loop around this rule.

use crate::opening::{OpenFacts, Quiet, ServerKnowledge, may_retire};

/// What to do for somebody who wants to change a document past its editors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeRuling {
    /// Do it; a live key that nobody uses retires with it.
    Go,
    /// A final save is on its way: wait for it.
    WaitForSave,
    /// Only the server knows whether somebody works on it: ask, then rule again.
    AskServer,
    /// The live key is finished: collect its forgotten file if there is one, retire it, then rule again.
    FinishFirst,
    /// Somebody is editing, or the server holds changes that nobody saved.
    Edited,
    /// The server is away and its word is needed.
    ServerAway,
}

/// Decides whether a document may be changed past its editors.
pub fn rule_on_change(facts: &OpenFacts) -> ChangeRuling {
    if facts.final_save_is_being_stored {
        return ChangeRuling::WaitForSave;
    }
    match (&facts.live, &facts.left) {
        (Some(live), _) => match live.server {
            Some(server) if may_retire(server) && live.has_received_saves => ChangeRuling::FinishFirst,
            server => rule_on_server(server, live.quiet),
        },
        (None, Some(left)) => rule_on_server(left.server, left.quiet),
        (None, None) => ChangeRuling::Go,
    }
}

fn rule_on_server(server: Option<ServerKnowledge>, quiet: Quiet) -> ChangeRuling {
    match server {
        None => ChangeRuling::AskServer,
        Some(ServerKnowledge::Away) => ChangeRuling::ServerAway,
        Some(server) if may_retire(server) => ChangeRuling::Go,
        Some(ServerKnowledge::UsersInside) => ChangeRuling::Edited,
        // Our answer to the final save may be on its way.
        Some(_) if quiet == Quiet::No => ChangeRuling::WaitForSave,
        Some(_) => ChangeRuling::Edited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::opening::{LeftKeyFacts, LiveKeyFacts};

    const HEAD: Digest = Digest::new([1; 32]);

    fn facts(live: Option<LiveKeyFacts>, left: Option<LeftKeyFacts>) -> OpenFacts {
        OpenFacts { head: HEAD, final_save_is_being_stored: false, live, left }
    }

    fn left(server: Option<ServerKnowledge>, quiet: Quiet) -> OpenFacts {
        facts(None, Some(LeftKeyFacts { server, quiet }))
    }

    #[test]
    fn a_document_without_sessions_is_changed_at_once_and_never_past_a_save_on_its_way() {
        assert_eq!(rule_on_change(&facts(None, None)), ChangeRuling::Go);
        let being_saved = OpenFacts { final_save_is_being_stored: true, ..facts(None, None) };
        assert_eq!(rule_on_change(&being_saved), ChangeRuling::WaitForSave);
    }

    #[test]
    fn the_server_decides_about_a_live_key() {
        use ServerKnowledge as Says;
        for has_saves in [false, true] {
            let rule = |server| {
                let (has_received_saves, quiet) = (has_saves, Quiet::Yes);
                let live = LiveKeyFacts { base: HEAD, has_received_saves, server, quiet };
                rule_on_change(&facts(Some(live), None))
            };
            let over = if has_saves { ChangeRuling::FinishFirst } else { ChangeRuling::Go };
            assert_eq!(rule(None), ChangeRuling::AskServer);
            assert_eq!(rule(Some(Says::Away)), ChangeRuling::ServerAway);
            assert_eq!((rule(Some(Says::Unknown)), rule(Some(Says::NothingHeld))), (over, over));
            assert_eq!(rule(Some(Says::UsersInside)), ChangeRuling::Edited);
            assert_eq!(rule(Some(Says::ChangesHeld)), ChangeRuling::Edited);
        }
    }

    #[test]
    fn a_key_that_just_retired_is_waited_for() {
        let held = Some(ServerKnowledge::ChangesHeld);
        assert_eq!(rule_on_change(&left(None, Quiet::Yes)), ChangeRuling::AskServer);
        assert_eq!(rule_on_change(&left(held, Quiet::No)), ChangeRuling::WaitForSave);
        assert_eq!(rule_on_change(&left(held, Quiet::Yes)), ChangeRuling::Edited);
        assert_eq!(rule_on_change(&left(Some(ServerKnowledge::Unknown), Quiet::No)), ChangeRuling::Go);
    }
}
