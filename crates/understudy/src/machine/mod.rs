//! The server's decisions as a pure state machine: events in, effects out, no I/O, no clock of its own.
//!
//! A key lives through these states (PROTOCOL 0): no row → `None` → `WaitQueue` → `Ok`, where people edit. When
//! the last editor leaves with something to save it becomes `SaveVersion` with a tag; after the save delay a
//! result is built; immediately before the POST it becomes `UpdateVersion` (spent) with the minute. The host's
//! answer decides: acknowledged, and the change log and any forgotten copy are deleted; unheard, and it goes back
//! to `SaveVersion` for a repeat; refused, and the result becomes the forgotten copy and the row goes. An editor
//! who opens a key in `SaveVersion` takes it back to `Ok`; one who opens a spent key is told to refresh, or,
//! after the window, revives it from its own `document.url` with whatever changes are still in the log.
//!
//! Guarantees: the same events at the same times with the same seed give the same effects. Every durable step is
//! in [`Machine::take_steps`] before the effects that depend on it are handed out. What the real server reads
//! late (who is present, the row's status) is read late here too, so its races can be played.
//!
//! Does not check tokens, sign bodies or touch files.

mod body;
mod commanding;
mod converting;
mod delivering;
mod editing;
mod event;
mod forcing;
mod leaving;
mod opening;
mod reply;
mod state;
mod sweeping;
mod telling;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

pub use body::{Action, Body, status};
pub use event::{
    Answer, Built, Command, CommandReply, DeliveryId, Edit, Effect, Event, Fetched, Leaving, NewChange, Open,
    Post, Recipe, RequestId, Restore, Shutdown, command_error,
};
pub use reply::{Verdict, judge};
pub use state::{
    Author, Base, Change, ChangeId, Conn, ConnId, Content, Conversion, Durable, ForceKind, Forced, History,
    HistoryChange, HistoryUser, Live, Op, Purpose, Record, Row, Save, Saved, Source, Status, Task, TaskId,
};

use crate::journal::Note;
use crate::links::Signer;
use crate::timings::Timings;
use crate::tokens::SessionTokens;

/// What the machine is set to.
#[derive(Clone, Debug)]
pub struct Rules {
    pub timings: Timings,
    pub seed: u64,
    pub links: Signer,
    pub sessions: SessionTokens,
    /// Timer force saves.
    pub autosave: bool,
    /// Result bytes kept at most; beyond it the oldest results go before their time.
    pub results_bytes_max: u64,
    /// What the server calls itself.
    pub version: String,
    /// Deliveries are numbered from here.
    pub first_delivery: u64,
}

/// The server.
#[derive(Debug)]
pub struct Machine {
    rules: Rules,
    durable: Durable,
    live: BTreeMap<String, Live>,
    conns: BTreeMap<ConnId, Conn>,
    /// Callbacks whose answer is awaited.
    waiting: BTreeMap<DeliveryId, Waiting>,
    timers: BTreeMap<(u64, u64), Timer>,
    timer_last: u64,
    delivery_last: u64,
    /// How often was drawn for a key.
    draws: BTreeMap<String, u64>,
    /// Nobody gets in, nothing is repeated.
    shutdown: bool,
    drains: Vec<Drain>,
    /// Which changes are inside a content we have seen, by its hash.
    lineage: BTreeMap<String, std::sync::Arc<[ChangeId]>>,
    now_ms: u64,
    effects: Vec<Effect>,
}

/// What an answer is awaited for.
#[derive(Clone, Debug)]
enum Waiting {
    Status(telling::Ask),
    Final(delivering::Offer),
    Force { task: TaskId, then: Option<RequestId> },
}

/// Something that happens by itself.
#[derive(Clone, Debug)]
enum Timer {
    /// The lag of a join or leave is over: tell the host.
    Tell(telling::Ask),
    /// The save delay is over.
    Assemble {
        key: String,
        tag: u64,
        leaver: Option<(String, u32)>,
    },
    /// A conversion is ready to read what it needs.
    Convert(TaskId),
    /// A fetched source was converted.
    Opened {
        task: TaskId,
        outcome: Result<Base, i32>,
    },
    FetchAgain(TaskId),
    Deliver(TaskId),
    Gone(ConnId),
    Autosave,
    Sweep,
    ShutdownCheck,
}

/// Somebody waits for a shutdown, or its end, to be through.
#[derive(Clone, Debug)]
struct Drain {
    since_ms: u64,
    request: RequestId,
}

/// Contents remembered by hash, so that a source the host serves back is recognised.
const LINEAGE_MAX: usize = 20_000;

impl Machine {
    /// Starts on what an earlier life left behind. The queue survived: saves on their way go on.
    pub fn new(rules: Rules, durable: Durable, now_ms: u64) -> Machine {
        let mut machine = Machine {
            delivery_last: rules.first_delivery,
            rules,
            durable,
            live: BTreeMap::new(),
            conns: BTreeMap::new(),
            waiting: BTreeMap::new(),
            timers: BTreeMap::new(),
            timer_last: 0,
            draws: BTreeMap::new(),
            shutdown: false,
            drains: Vec::new(),
            lineage: BTreeMap::new(),
            now_ms,
            effects: Vec::new(),
        };
        machine.resume();
        machine
    }

    /// Takes in one event and says what to do.
    pub fn apply(&mut self, now_ms: u64, event: Event) -> Vec<Effect> {
        self.now_ms = self.now_ms.max(now_ms);
        match event {
            Event::Open(open) => self.open(*open),
            Event::Edit(edit) => self.edit(edit),
            Event::AskSaveLock { conn, seen_index } => self.ask_save_lock(conn, seen_index),
            Event::GiveSaveLock { conn } => self.give_save_lock(conn),
            Event::Leave { conn, how } => self.leave(conn, how),
            Event::Freeze { conn } => {
                let loss_ms = self.rules.timings.ping_loss_ms();
                self.in_ms(loss_ms, Timer::Gone(conn));
            }
            Event::PressSave { conn } => self.press_save(conn),
            Event::Cursor { conn, cursor } => self.show_cursor(conn, cursor),
            Event::MakeCopy { conn, response_key } => self.make_copy(conn, response_key),
            Event::SubmitForm { conn, data, response_key } => self.submit_form(conn, data, response_key),
            Event::Command { request, command, base_url } => self.command(request, command, &base_url),
            Event::Fetched { task, outcome } => self.fetched(task, outcome),
            Event::Built { task, outcome } => self.built(task, outcome),
            Event::Answered { delivery, answer } => self.answered(delivery, &answer),
            Event::Shutdown { request, what } => self.shut_down(request, what),
            Event::Tick => {}
        }
        self.fire_due();
        std::mem::take(&mut self.effects)
    }

    /// When something will happen by itself.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.timers.keys().next().map(|(due_ms, _)| *due_ms)
    }

    /// The durable steps taken since the last call.
    pub fn take_steps(&mut self) -> Vec<Op> {
        self.durable.take_steps()
    }

    /// What survives.
    pub fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Who is connected to a key.
    pub fn conns_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (ConnId, &'a Conn)> {
        self.conns.iter().filter(move |(_, conn)| conn.key == key).map(|(id, conn)| (*id, conn))
    }

    /// Whether any callback awaits its answer or any save, retry or status is still to come.
    pub fn is_quiet(&self) -> bool {
        let pending = |timer: &Timer| match timer {
            Timer::Autosave | Timer::Sweep => false,
            Timer::Gone(conn) => self.conns.contains_key(conn),
            _ => true,
        };
        self.waiting.is_empty() && self.durable.tasks.is_empty() && !self.timers.values().any(pending)
    }

    /// Whether a graceful shutdown is on.
    pub fn is_shut_down(&self) -> bool {
        self.shutdown
    }

    fn resume(&mut self) {
        let tasks: Vec<TaskId> = self.durable.tasks.keys().copied().collect();
        for task in tasks {
            match self.durable.tasks.get(&task) {
                Some(Task::Open { .. }) => self.in_ms(0, Timer::FetchAgain(task)),
                Some(Task::Save(save)) if save.conversion.is_none() => self.in_ms(0, Timer::Convert(task)),
                Some(Task::Save(_)) => self.in_ms(0, Timer::Deliver(task)),
                None => {}
            }
        }
        let known: Vec<Content> =
            self.durable.saves.values().filter_map(|saved| saved.file.clone()).collect();
        known.iter().for_each(|content| self.remember(content));
        if self.rules.autosave {
            self.in_ms(self.rules.timings.autosave_step_ms, Timer::Autosave);
        }
        self.in_ms(self.rules.timings.sweep_step_ms, Timer::Sweep);
    }

    fn fire_due(&mut self) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > self.now_ms {
                break;
            }
            match entry.remove() {
                Timer::Tell(ask) => self.tell(ask),
                Timer::Assemble { key, tag, leaver } => self.assemble(&key, tag, leaver),
                Timer::Convert(task) => self.convert(task),
                Timer::Opened { task, outcome } => self.opened(task, outcome),
                Timer::FetchAgain(task) => self.fetch(task),
                Timer::Deliver(task) => self.deliver(task, None),
                Timer::Gone(conn) => self.leave(conn, Leaving::Lost),
                Timer::Autosave => self.autosave(),
                Timer::Sweep => self.sweep(),
                Timer::ShutdownCheck => self.check_shutdown(),
            }
        }
    }

    fn in_ms(&mut self, delay_ms: u64, timer: Timer) {
        self.timer_last += 1;
        self.timers.insert((self.now_ms.saturating_add(delay_ms), self.timer_last), timer);
    }

    fn note(&mut self, note: Note) {
        self.effects.push(Effect::Note(Box::new(note)));
    }

    fn send(&mut self, conn: ConnId, message: Value) {
        self.effects.push(Effect::Send { conn, message });
    }

    fn reply(&mut self, request: RequestId, reply: CommandReply) {
        self.effects.push(Effect::Reply { request, reply: Box::new(reply) });
    }

    /// Puts a task into the queue, or takes it out.
    fn set_task(&mut self, id: TaskId, task: Option<Task>) {
        self.durable.change(Op::Task { id, task: task.map(Box::new) });
    }

    /// Updates a row; like the real server's, every update counts as use.
    fn set_status(&mut self, key: &str, status: Status) {
        let Some(row) = self.durable.row(key) else { return };
        let row = Row { status, last_open_ms: self.now_ms, ..row.clone() };
        self.durable.change(Op::Row { key: key.to_owned(), row: Some(row) });
    }

    fn status_of(&self, key: &str) -> Option<Status> {
        self.durable.row(key).map(|row| row.status)
    }

    fn live_mut(&mut self, key: &str) -> &mut Live {
        self.live.entry(key.to_owned()).or_default()
    }

    fn minute(&self) -> u64 {
        self.now_ms / self.rules.timings.minute_ms.max(1)
    }

    /// Whether a key spent in that minute may be opened again.
    fn window_is_over(&self, minute: u64) -> bool {
        let since_ms = minute.saturating_mul(self.rules.timings.minute_ms);
        self.now_ms.saturating_sub(since_ms) > self.rules.timings.spent_window_ms
    }

    fn has_editors(&self, key: &str) -> bool {
        self.conns_of(key).any(|(_, conn)| conn.edits())
    }

    fn remember(&mut self, content: &Content) {
        if self.lineage.len() >= LINEAGE_MAX {
            self.lineage.pop_first();
        }
        if !content.holds.is_empty() {
            self.lineage.insert(content.sha256.clone(), content.holds.clone());
        }
    }

    /// A number that depends on the seed, the key and how often was drawn, and on nothing else.
    fn draw(&mut self, key: &str) -> u64 {
        let count = self.draws.entry(key.to_owned()).or_default();
        *count += 1;
        crate::chance::draw(self.rules.seed, key, *count)
    }
}
