//! Force saves: by command, button, timer or a submitted form.
//!
//! Guarantees: one force save per state of the log; while it runs and after the host took it, asking again is
//! "not modified"; if the host did not take it, asking again sends the very same file once more. Any new change
//! makes a new force save possible even while the old one waits for its answer.
//!
//! Does not promise a 6: it is dropped if the session ends before the file is built.

use serde_json::{Value, json};

use super::event::{RequestId, command_error};
use super::state::{ConnId, ForceKind, ForceState, Forced, Purpose, Save};
use super::{CommandReply, Machine, Task};
use crate::journal::Note;

/// Who wants a force save, and how they get the answer.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) key: String,
    pub(super) kind: ForceKind,
    pub(super) userdata: Option<String>,
    pub(super) form_data: Option<Value>,
    pub(super) conn: Option<ConnId>,
    pub(super) response_key: Option<Value>,
    pub(super) request: Option<RequestId>,
}

impl Wish {
    pub(super) fn about(key: &str, kind: ForceKind) -> Wish {
        Wish {
            key: key.to_owned(),
            kind,
            userdata: None,
            form_data: None,
            conn: None,
            response_key: None,
            request: None,
        }
    }
}

/// How a force save ended.
pub(super) struct ForceEnd {
    pub(super) success: bool,
    /// Only for the editor itself.
    pub(super) url: Option<String>,
    /// Who waits for it.
    pub(super) then: Option<RequestId>,
}

/// What the state of force saving says to a wish.
enum Advice {
    NotModified,
    /// Send what was built before.
    SendAgain(Box<Save>),
    Start,
    /// A form is being submitted already.
    Running,
}

impl Machine {
    pub(super) fn press_save(&mut self, conn: ConnId) {
        let Some(key) = self.conns.get(&conn).map(|conn| conn.key.clone()) else { return };
        self.force_save(Wish { conn: Some(conn), ..Wish::about(&key, ForceKind::Button) });
    }

    pub(super) fn submit_form(&mut self, conn: ConnId, data: Value, response_key: Option<Value>) {
        let Some(key) = self.conns.get(&conn).map(|conn| conn.key.clone()) else { return };
        let wish = Wish::about(&key, ForceKind::Form);
        self.force_save(Wish { form_data: Some(data), conn: Some(conn), response_key, ..wish });
    }

    pub(super) fn make_copy(&mut self, conn: ConnId, response_key: Option<Value>) {
        let Some(key) = self.conns.get(&conn).map(|conn| conn.key.clone()) else { return };
        self.force_save(Wish { conn: Some(conn), response_key, ..Wish::about(&key, ForceKind::Internal) });
    }

    pub(super) fn force_save(&mut self, wish: Wish) {
        let key = wish.key.as_str();
        if self.shutdown {
            return self.answer_wish(&wish, command_error::NONE, None);
        }
        if wish.kind == ForceKind::Form {
            self.pretend_change(&wish);
        }
        match self.advise(key, wish.kind) {
            Advice::NotModified => {
                let known = self.durable.row(key).is_some();
                let error = if known { command_error::NOT_MODIFIED } else { command_error::KEY };
                self.answer_wish(&wish, error, None);
            }
            Advice::SendAgain(save) => self.send_again(*save, wish),
            Advice::Start => self.start_force_save(wish),
            Advice::Running => self.answer_aside(&wish, json!({"code": 0, "time": null, "inProgress": true})),
        }
    }

    /// A form can be submitted without any change; the server acts as if its sender had made one.
    fn pretend_change(&mut self, wish: &Wish) {
        let user = wish.conn.and_then(|conn| self.conns.get(&conn)).map(|conn| conn.user.clone());
        let time_ms = self.now_ms / 1000 * 1000;
        let live = self.live_mut(&wish.key);
        if let (None, Some(changed_by)) = (&live.force, user) {
            let force =
                ForceState { time_ms, index: 0, changed_by, started: false, ended: false, cache: None };
            live.force = Some(force);
        }
    }

    fn advise(&mut self, key: &str, kind: ForceKind) -> Advice {
        let is_aside = kind.is_aside();
        let Some(force) = self.live.get(key).and_then(|live| live.force.clone()) else {
            return Advice::NotModified;
        };
        if force.cache.is_some() || force.ended {
            if force.ended && !is_aside {
                return Advice::NotModified;
            }
            if let Some(save) = force.cache.filter(|save| self.is_usable(save, kind)) {
                return Advice::SendAgain(Box::new(save));
            }
            let force = self.live_mut(key).force.as_mut().expect("was read above");
            force.started = false;
            force.ended = false;
            force.cache = None;
            return Advice::Start;
        }
        let has_callback = self.durable.row(key).is_none_or(|row| !row.callbacks.is_empty());
        match force.started {
            false if has_callback || kind == ForceKind::Internal => Advice::Start,
            true if is_aside => Advice::Running,
            _ => Advice::NotModified,
        }
    }

    /// A cached file serves again if it is still there and was built for the same purpose.
    fn is_usable(&self, save: &Save, kind: ForceKind) -> bool {
        let was_form = matches!(&save.purpose, Purpose::Force(forced) if forced.kind == ForceKind::Form);
        let has_file = self.durable.saved(&save.path).is_some_and(|saved| saved.file.is_some());
        has_file && was_form == (kind == ForceKind::Form)
    }

    fn start_force_save(&mut self, wish: Wish) {
        let key = wish.key.as_str();
        if self.durable.row(key).is_none() {
            return self.answer_wish(&wish, command_error::INTERNAL, None);
        }
        let Some(force) = self.live_mut(key).force.as_mut() else { return };
        force.started = true;
        force.ended = false;
        let forced = Forced {
            time_ms: force.time_ms,
            index: force.index,
            kind: wish.kind,
            by: None,
            changed_by: Some(force.changed_by.clone()),
        };
        let time_ms = forced.time_ms;
        let forced = Forced { by: self.presser(&wish), ..forced };
        let asker = wish.conn.map(|conn| (conn, wish.response_key.clone()));
        let (userdata, form_data) = (wish.userdata.clone(), wish.form_data.clone());
        self.queue_save(key, Purpose::Force(forced), |save| Save { userdata, form_data, asker, ..save });
        if wish.kind == ForceKind::Timer {
            let start = json!({"type": "forceSave", "messages": {"type": 2, "time": time_ms, "start": true}});
            self.broadcast(key, None, &start);
        }
        self.answer_wish(&wish, command_error::NONE, Some(time_ms));
    }

    /// Sends a file built earlier once more, inside the question: the answer waits for the host.
    fn send_again(&mut self, save: Save, wish: Wish) {
        let Purpose::Force(forced) = &save.purpose else { return };
        let forced = Forced { kind: wish.kind, by: self.presser(&wish), ..forced.clone() };
        let save = Save {
            purpose: Purpose::Force(forced),
            form_data: wish.form_data.clone(),
            asker: wish.conn.map(|conn| (conn, wish.response_key.clone())),
            resent: true,
            ..save
        };
        let id = self.durable.next_task();
        self.set_task(id, Some(Task::Save(save)));
        self.deliver(id, wish.request);
    }

    fn presser(&self, wish: &Wish) -> Option<(String, u32)> {
        let user = &self.conns.get(&wish.conn?)?.user;
        Some((user.id.clone(), user.index))
    }

    fn answer_wish(&mut self, wish: &Wish, error: u8, time_ms: Option<u64>) {
        let key = wish.key.as_str();
        match (wish.request, wish.conn, wish.kind) {
            (Some(request), _, _) if error == command_error::NONE => {
                self.reply(request, CommandReply { key: Some(key.to_owned()), ..CommandReply::default() });
            }
            (Some(request), _, _) => self.reply_error(request, key, error),
            (None, _, kind) if kind.is_aside() && error == command_error::NONE => {}
            (None, _, kind) if kind.is_aside() => {
                self.answer_aside(wish, json!({"code": error, "time": time_ms, "inProgress": false}));
            }
            (None, Some(conn), _) => {
                let answer = json!({"code": error, "time": time_ms, "inProgress": false});
                self.send(conn, json!({"type": "forceSaveStart", "messages": answer}));
            }
            (None, None, _) => {}
        }
    }

    fn answer_aside(&mut self, wish: &Wish, data: Value) {
        if let Some(conn) = wish.conn {
            self.send(conn, json!({"type": "rpc", "responseKey": wish.response_key, "data": data}));
        }
    }

    /// A force save came to its end: sent and answered, dropped, not built, or made only for the editor.
    pub(super) fn force_ended(&mut self, save: &Save, end: ForceEnd) {
        let Purpose::Force(forced) = &save.purpose else { return };
        self.remember_force(save, forced, &end);
        let ForceEnd { success, url, then } = end;
        if save.resent && !forced.kind.is_aside() {
            let conn = save.asker.as_ref().map(|(conn, _)| *conn);
            let wish = Wish { conn, request: then, ..Wish::about(&save.key, forced.kind) };
            self.answer_wish(&wish, command_error::NONE, None);
        }
        match (&save.asker, forced.kind) {
            (_, ForceKind::Command) => {}
            (Some((conn, response_key)), kind) if kind.is_aside() => {
                let code = if success { command_error::NONE } else { command_error::INTERNAL };
                let data = json!({"code": code, "time": forced.time_ms, "inProgress": false, "url": url});
                self.send(*conn, json!({"type": "rpc", "responseKey": response_key, "data": data}));
            }
            _ => {
                let outcome = json!({"type": forced.kind as u8, "time": forced.time_ms, "success": success});
                self.broadcast(&save.key, None, &json!({"type": "forceSave", "messages": outcome}));
            }
        }
    }

    /// Keeps the outcome, unless a change came in between.
    fn remember_force(&mut self, save: &Save, forced: &Forced, end: &ForceEnd) {
        let Some(force) = self.live.get_mut(&save.key).and_then(|live| live.force.as_mut()) else { return };
        if force.time_ms != forced.time_ms || force.index != forced.index {
            return;
        }
        let ended = if forced.kind.is_aside() { force.ended } else { end.success };
        force.started = ended;
        force.ended = ended;
        let purpose = Purpose::Force(Forced { by: None, ..forced.clone() });
        force.cache = Some(Save { purpose, form_data: None, asker: None, resent: false, ..save.clone() });
    }

    /// A 6 that may not be sent any more.
    pub(super) fn drop_force(&mut self, save: &Save, then: Option<RequestId>) {
        let why = "the row is not in order";
        self.note(Note::CallbackDropped {
            key: save.key.clone(),
            path: save.path.clone(),
            why: why.to_owned(),
        });
        self.force_ended(save, ForceEnd { success: false, url: None, then });
    }
}
