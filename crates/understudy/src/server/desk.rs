//! The one task that owns the machine: takes events in, keeps what must be kept, hands the work out.
//!
//! Guarantees: events are taken one at a time, in the order of arrival; durable steps are kept and notes written
//! before any other effect of the same event; every errand's outcome comes back as an event. When the desk ends,
//! so do its errands: a crash leaves nothing behind that could still speak.
//!
//! Does not wait for anything but the next event or deadline.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::busy::{Busy, BusyGuard};
use super::errands::Errands;
use super::mailbox::{Mail, Mailbox, Reaction};
use crate::clock::Clock;
use crate::journal::Journal;
use crate::machine::{
    Command, CommandReply, ConnId, Durable, Effect, Event, Leaving, Machine, RequestId, Shutdown,
};
use crate::store::Store;

/// Events that may wait for their turn.
const WAITING_MAX: usize = 8192;

/// A way to the desk; clones lead to the same one.
#[derive(Clone, Debug)]
pub(crate) struct DeskHandle {
    door: mpsc::Sender<Envelope>,
    busy: Busy,
    clock: Clock,
    numbers: Arc<AtomicU64>,
}

/// The desk is gone: the server was stopped or crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server is not running any more")]
pub struct Gone;

enum Letter {
    Event(Event),
    Question(Event, RequestId, oneshot::Sender<CommandReply>),
    Connect(ConnId, Mailbox),
    Look(Box<dyn FnOnce(&Machine) + Send>),
}

struct Envelope {
    letter: Letter,
    done: Option<oneshot::Sender<()>>,
    _busy: BusyGuard,
}

impl DeskHandle {
    /// Hands in an event and waits until it was taken in.
    pub(crate) async fn tell(&self, event: Event) -> Result<(), Gone> {
        self.hand_in(Letter::Event(event)).await
    }

    /// Registers where messages to a connection go.
    pub(crate) async fn connect(&self, mailbox: Mailbox) -> Result<ConnId, Gone> {
        let conn = ConnId(self.number());
        self.hand_in(Letter::Connect(conn, mailbox)).await?;
        Ok(conn)
    }

    pub(crate) async fn command(&self, command: Command, base_url: &str) -> Result<CommandReply, Gone> {
        let request = RequestId(self.number());
        let event = Event::Command { request, command, base_url: base_url.to_owned() };
        self.ask(request, event).await
    }

    pub(crate) async fn shut_down(&self, what: Shutdown) -> Result<CommandReply, Gone> {
        let request = RequestId(self.number());
        self.ask(request, Event::Shutdown { request, what }).await
    }

    /// Looks at the machine.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Machine) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, seen) = oneshot::channel();
        let look = Box::new(move |machine: &Machine| {
            // Nobody waits for the answer any more: fine.
            let _ = answer.send(look(machine));
        });
        self.hand_in(Letter::Look(look)).await?;
        seen.await.map_err(|_| Gone)
    }

    /// Waits until nothing is going on but waiting for the clock.
    pub(crate) async fn settle_but(&self, but: &(dyn Fn() -> usize + Sync)) {
        self.busy.idle_but(&self.clock, but).await;
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    async fn ask(&self, request: RequestId, event: Event) -> Result<CommandReply, Gone> {
        let (answer, reply) = oneshot::channel();
        self.hand_in(Letter::Question(event, request, answer)).await?;
        reply.await.map_err(|_| Gone)
    }

    async fn hand_in(&self, letter: Letter) -> Result<(), Gone> {
        let (done, taken) = oneshot::channel();
        let envelope = Envelope { letter, done: Some(done), _busy: self.busy.begin() };
        self.door.send(envelope).await.map_err(|_| Gone)?;
        taken.await.map_err(|_| Gone)
    }
}

/// The desk itself.
pub(crate) struct Desk {
    machine: Machine,
    store: Store,
    journal: Journal,
    clock: Clock,
    busy: Busy,
    door: mpsc::Receiver<Envelope>,
    /// Events of our own making, taken before any other.
    own: VecDeque<Event>,
    mailboxes: BTreeMap<ConnId, Mailbox>,
    questions: BTreeMap<RequestId, oneshot::Sender<CommandReply>>,
    errands: Errands,
    running: JoinSet<(Event, BusyGuard)>,
    stop: oneshot::Receiver<oneshot::Sender<Durable>>,
    /// Until the first look at what an earlier life left.
    starting: Option<BusyGuard>,
}

/// What a desk is made of.
pub(crate) struct Furniture {
    pub(crate) machine: Machine,
    pub(crate) store: Store,
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    pub(crate) busy: Busy,
    pub(crate) errands: Errands,
    /// Connections and questions are numbered from here.
    pub(crate) first_number: u64,
}

/// Stops a desk dead, as a kill would, and takes what survives.
pub(crate) type StopDesk = oneshot::Sender<oneshot::Sender<Durable>>;

impl Desk {
    pub(crate) fn set_up(furniture: Furniture) -> (Desk, DeskHandle, StopDesk) {
        let (door, inside) = mpsc::channel(WAITING_MAX);
        let (stop_it, stop) = oneshot::channel();
        let handle = DeskHandle {
            door,
            busy: furniture.busy.clone(),
            clock: furniture.clock.clone(),
            numbers: Arc::new(AtomicU64::new(furniture.first_number)),
        };
        let starting = Some(furniture.busy.begin());
        let desk = Desk {
            machine: furniture.machine,
            store: furniture.store,
            journal: furniture.journal,
            clock: furniture.clock,
            busy: furniture.busy,
            door: inside,
            own: VecDeque::new(),
            mailboxes: BTreeMap::new(),
            questions: BTreeMap::new(),
            errands: furniture.errands,
            running: JoinSet::new(),
            stop,
            starting,
        };
        (desk, handle, stop_it)
    }

    pub(crate) async fn run(mut self) {
        // What an earlier life left in the queue is due at once.
        self.take(Event::Tick);
        self.starting = None;
        loop {
            while let Some(event) = self.own.pop_front() {
                self.take(event);
            }
            let deadline_ms = self.machine.next_deadline_ms().unwrap_or(u64::MAX);
            let clock = self.clock.clone();
            tokio::select! {
                biased;
                stop = &mut self.stop => {
                    if let Ok(answer) = stop {
                        self.running.abort_all();
                        for mailbox in self.mailboxes.values() {
                            mailbox.deliver(Mail::Close);
                        }
                        // Nobody asks for what survived: fine.
                        let _ = answer.send(self.machine.durable().clone());
                    }
                    return;
                }
                envelope = self.door.recv() => match envelope {
                    Some(envelope) => self.receive(envelope),
                    None => return,
                },
                Some(Ok((event, _busy))) = self.running.join_next() => self.take(event),
                _woken = clock.sleep_until(deadline_ms) => self.take(Event::Tick),
            }
        }
    }

    fn receive(&mut self, envelope: Envelope) {
        match envelope.letter {
            Letter::Event(event) => self.take(event),
            Letter::Question(event, request, answer) => {
                self.questions.insert(request, answer);
                self.take(event);
            }
            Letter::Connect(conn, mailbox) => drop(self.mailboxes.insert(conn, mailbox)),
            Letter::Look(look) => look(&self.machine),
        }
        if let Some(done) = envelope.done {
            // Whoever handed it in no longer waits: fine.
            let _ = done.send(());
        }
    }

    fn take(&mut self, event: Event) {
        let now_ms = self.clock.now_ms();
        let gone = match &event {
            Event::Leave { conn, how: Leaving::Lost } => Some(*conn),
            _ => None,
        };
        let effects = self.machine.apply(now_ms, event);
        if let Err(trouble) = self.store.keep(&self.machine.take_steps()) {
            tracing::error!(%trouble, "could not keep the state");
        }
        let (notes, deeds): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Note(_)));
        for note in notes {
            if let Effect::Note(note) = note {
                self.journal.write(now_ms, *note);
            }
        }
        for deed in deeds {
            self.perform(deed);
        }
        if let Some(conn) = gone {
            self.mailboxes.remove(&conn);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Post(post) => self.start(self.errands.clone().post(*post)),
            Effect::Fetch { task, source } => self.start(self.errands.clone().fetch(task, source)),
            Effect::Build { task, recipe } => self.start(self.errands.clone().build(task, *recipe)),
            Effect::Send { conn, message } => self.deliver(conn, Mail::Message(message)),
            Effect::Disconnect { conn } => self.deliver(conn, Mail::Close),
            Effect::Reply { request, reply } => {
                if let Some(answer) = self.questions.remove(&request) {
                    // The asker hung up: fine.
                    let _ = answer.send(*reply);
                }
            }
            Effect::Note(_) => {}
        }
    }

    /// Runs an errand; it counts as going on until its outcome was taken in.
    fn start(&mut self, errand: impl Future<Output = Event> + Send + 'static) {
        let busy = self.busy.begin();
        self.running.spawn(async move { (errand.await, busy) });
    }

    fn deliver(&mut self, conn: ConnId, mail: Mail) {
        let Some(mailbox) = self.mailboxes.get(&conn) else { return };
        match mailbox.deliver(mail) {
            Reaction::None => {}
            Reaction::Close => self.own.push_back(Event::Leave { conn, how: Leaving::Explicit }),
            Reaction::CutOff => {
                tracing::warn!(conn = conn.0, "cut off a client that does not read");
                self.own.push_back(Event::Leave { conn, how: Leaving::Lost });
            }
        }
    }
}
