//! Status 1 and 4: who is in, and that nobody is.
//!
//! Guarantees: who is present is read when the request leaves, not when somebody came or went, so the real
//! server's oddities appear by themselves (1 with nobody in it, 4 with a joiner). Never repeated: a bad answer
//! only makes the editors warn.
//!
//! Does not wait for the answer, except that `info` does, and that an empty key is tidied up after it.

use serde_json::json;

use super::body::status;
use super::event::{DeliveryId, RequestId, command_error};
use super::{Action, Answer, Body, CommandReply, Effect, Machine, Post, Verdict, Waiting, judge};
use crate::journal::Note;

/// One status to tell.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) key: String,
    pub(super) action: Option<Action>,
    /// Whose callback address; without it the last registered.
    pub(super) index: Option<u32>,
    /// An address that goes before the registered ones.
    pub(super) url: Option<String>,
    pub(super) userdata: Option<String>,
    /// Afterwards forget what is only in memory for the key …
    pub(super) clean_up: bool,
    /// … and its changes too.
    pub(super) delete_changes: bool,
    /// `info` waits for the answer.
    pub(super) request: Option<RequestId>,
    /// Who was in when the request left; what `info` answers.
    pub(super) users: Vec<String>,
}

impl Ask {
    pub(super) fn about(key: &str, action: Option<Action>, index: Option<u32>) -> Ask {
        Ask {
            key: key.to_owned(),
            action,
            index,
            url: None,
            userdata: None,
            clean_up: false,
            delete_changes: false,
            request: None,
            users: Vec::new(),
        }
    }
}

impl Machine {
    pub(super) fn tell(&mut self, mut ask: Ask) {
        let registered = self.durable.row(&ask.key).and_then(|row| row.callback_of(ask.index));
        let Some(url) = ask.url.clone().or(registered.map(str::to_owned)) else {
            if let Some(request) = ask.request.take() {
                self.reply_error(request, &ask.key, command_error::CALLBACK);
            }
            return self.told(&ask);
        };
        let users = self.editor_ids(&ask.key);
        ask.users.clone_from(&users);
        let idle = users.is_empty() && self.durable.changes(&ask.key).is_empty();
        let body = Body {
            key: ask.key.clone(),
            status: if idle { status::CLOSED } else { status::EDITING },
            users: (!idle).then_some(users),
            actions: ask.action.clone().map(|action| vec![action]),
            userdata: ask.userdata.clone(),
            ..Body::default()
        };
        self.post(url, body, Waiting::Status(ask));
    }

    /// Sends a callback and remembers what its answer is for.
    pub(super) fn post(&mut self, url: String, body: Body, waiting: Waiting) {
        self.delivery_last += 1;
        let delivery = DeliveryId(self.delivery_last);
        let attempt = match &waiting {
            Waiting::Final(offer) => offer.attempt,
            Waiting::Status(_) | Waiting::Force { .. } => 0,
        };
        self.note(Note::CallbackSent {
            delivery: delivery.0,
            attempt: attempt + 1,
            url: url.clone(),
            body: Box::new(body.clone()),
        });
        self.waiting.insert(delivery, waiting);
        self.effects.push(Effect::Post(Box::new(Post { delivery, url, body, attempt })));
    }

    pub(super) fn answered(&mut self, delivery: DeliveryId, answer: &Answer) {
        let Some(waiting) = self.waiting.remove(&delivery) else { return };
        let verdict = judge(answer);
        let note = |reaction: &str| Note::CallbackAnswered {
            delivery: delivery.0,
            answer: answer.clone(),
            verdict,
            reaction: reaction.to_owned(),
        };
        match waiting {
            Waiting::Status(ask) => {
                self.note(note(if verdict == Verdict::Acknowledged { "done" } else { "warned the editors" }));
                if verdict != Verdict::Acknowledged {
                    let warning = json!({"type": "warning", "message": "Error on save server subscription!"});
                    self.broadcast(&ask.key, None, &warning);
                }
                self.told(&ask);
            }
            Waiting::Final(offer) => {
                let place = self.effects.len();
                let reaction = self.final_answered(offer, verdict);
                self.effects.insert(place, Effect::Note(Box::new(note(&reaction))));
            }
            Waiting::Force { task, then } => {
                let place = self.effects.len();
                let reaction = self.force_answered(task, verdict, then);
                self.effects.insert(place, Effect::Note(Box::new(note(reaction))));
            }
        }
    }

    /// What follows a status, told or not.
    fn told(&mut self, ask: &Ask) {
        if ask.clean_up {
            self.live.remove(&ask.key);
        }
        if ask.delete_changes {
            self.delete_changes(&ask.key, "no callback address");
            self.delete_forgotten(&ask.key, "no callback address");
        }
        if let Some(request) = ask.request {
            let (key, users) = (Some(ask.key.clone()), Some(ask.users.clone()));
            self.reply(request, CommandReply { key, users, ..CommandReply::default() });
        }
    }

    /// Ids of those who edit, each once, in the order in which the real server lists them.
    pub(super) fn editor_ids(&self, key: &str) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for (_, conn) in self.conns_of(key).filter(|(_, conn)| conn.edits()) {
            if !ids.contains(&conn.user.id) {
                ids.push(conn.user.id.clone());
            }
        }
        // The real server collects them as names of properties: whole numbers come first, by size.
        let number = |id: &String| id.parse::<u32>().ok().filter(|number| number.to_string() == *id);
        ids.sort_by_key(|id| number(id).map_or((1, 0), |number| (0, number)));
        ids
    }

    pub(super) fn delete_forgotten(&mut self, key: &str, why: &str) {
        if self.durable.forgotten(key).is_none() {
            return;
        }
        self.durable.change(super::Op::Forgotten { key: key.to_owned(), file: None });
        self.note(Note::ForgottenDeleted { key: key.to_owned(), why: why.to_owned() });
    }
}
