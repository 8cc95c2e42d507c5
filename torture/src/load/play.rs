//! What a virtual user can do: open a document through the service, type, save, leave, come back.
//!
//! Guarantees: every change has a marker of its own, unique in the round; a user who is turned away asks again, as a
//! page does, until the curtain falls or patience ends. A call returns `None` when the scene cannot go on: the Document
//! Server died under it, or nobody let the user in.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use understudy::journal::{Entry, Note};
use understudy::machine::Verdict;
use understudy::office::Edit;
use understudy::server::{FaultKind, Opening, Session};

use crate::checking::Facts;
use crate::dice::Dice;
use crate::world::{Grant, Mode, NoAnswer, World};

/// How long a user keeps asking.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long the Document Server may take to open or to answer.
const EDITOR_PATIENCE: Duration = Duration::from_secs(6);

/// The scenes of one document, played one after another.
pub(crate) struct Play {
    pub(crate) world: Arc<World>,
    pub(crate) document: String,
    pub(crate) dice: Dice,
    changes: u64,
}

/// An open editor.
pub(crate) struct Tab {
    pub(crate) session: Session,
    pub(crate) key: String,
    pub(crate) grant: Grant,
    who: &'static str,
}

/// How somebody leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goodbye {
    /// By closing the editor: saved at once.
    Explicit,
    /// By closing the tab: saved after the save delay.
    Hard,
}

impl Play {
    pub(crate) fn new(world: &Arc<World>, document: &str, dice: Dice) -> Self {
        Self { world: Arc::clone(world), document: document.to_owned(), dice, changes: 0 }
    }

    /// Does nothing for a moment.
    pub(crate) async fn pause(&mut self, range_ms: std::ops::Range<u64>) {
        let wait_ms = self.dice.number(range_ms);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
    }

    /// Gets a configuration to edit, however often it has to ask.
    pub(crate) async fn grant(&mut self, who: &'static str) -> Option<Grant> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && !self.world.curtain.is_cancelled() {
            match self.world.configure(&self.document, who).await {
                Ok(grant) => return Some(grant),
                Err(NoAnswer::Down) => self.pause(10..40).await,
                Err(NoAnswer::Refused(status, _)) => {
                    self.world.chronicle.note_of(&self.document, format!("{who} was turned away: {status}"));
                    self.pause(20..60).await;
                }
            }
        }
        None
    }

    /// Whether the server may still repeat an older final save of this key. Whatever that repeat is answered, the server
    /// then lets go of all changes of the key; were it to spoil them itself at that moment, nobody could save them.
    pub(crate) fn is_repeating(&self, key: &str) -> bool {
        let is_final = |note: &Note| matches!(note, Note::CallbackSent { body, .. } if body.key == key && body.status == 2);
        self.world.editor.journal().entries().iter().any(|entry| is_final(&entry.note))
    }

    /// Whether a final save of this key waits for its answer.
    pub(crate) fn is_delivering(&self, key: &str) -> bool {
        let facts = Facts::of(self.world.editor.journal());
        facts.deliveries.values().any(|sent| sent.key == key && sent.status == 2 && sent.answered.is_none())
    }

    /// Whether a session goes on after its final save.
    pub(crate) fn goes_on(&self, key: &str) -> bool {
        Facts::of(self.world.editor.journal()).goes_on(key)
    }

    /// Opens an editor with a configuration, which may be an old one.
    pub(crate) async fn enter(&mut self, who: &'static str, grant: &Grant) -> Result<Tab, Opening> {
        let gone = Opening::Disconnected(None);
        let session = self.world.editor.open(&grant.config).await.ok_or(gone.clone())?;
        let opened = tokio::time::timeout(EDITOR_PATIENCE, session.opened()).await.unwrap_or(gone);
        let note = format!("{who} opened {}: {opened:?}", grant.key);
        self.world.chronicle.note_of(&self.document, note);
        match opened {
            Opening::Ready => Ok(Tab { session, key: grant.key.clone(), grant: grant.clone(), who }),
            other => Err(other),
        }
    }

    /// Opens the document for editing, asking for a new configuration as often as the editor wants one.
    pub(crate) async fn open(&mut self, who: &'static str) -> Option<Tab> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let grant = self.grant(who).await?;
            match self.enter(who, &grant).await {
                Ok(tab) => return Some(tab),
                Err(_) => self.pause(10..50).await,
            }
        }
        None
    }

    /// Looks at the document without editing it.
    pub(crate) async fn view(&mut self, who: &'static str) -> Option<Session> {
        let grant = self.world.host.configure(&self.document, who, Mode::View).await.ok()?;
        let session = self.world.editor.open(&grant.config).await?;
        tokio::time::timeout(EDITOR_PATIENCE, session.opened()).await.ok()?;
        Some(session)
    }

    /// Types something. If the Document Server died, the editor may come back by itself and go on.
    pub(crate) async fn write(&mut self, tab: &mut Tab) -> Option<String> {
        let id = self.next_change();
        let edit = Edit::append(&id, &format!("Words of {}.", tab.who));
        if tab.session.edit(std::slice::from_ref(&edit)).await.is_ok() {
            return Some(id);
        }
        if self.dice.happens(40) {
            return None;
        }
        self.come_back(tab).await?;
        let id = self.next_change();
        tab.session.edit(&[Edit::append(&id, "Words after a crash.")]).await.ok().map(|()| id)
    }

    fn next_change(&mut self) -> String {
        self.changes += 1;
        format!("{}.{}", self.document, self.changes)
    }

    /// Takes the session up again after the Document Server, or the way to it, was gone.
    async fn come_back(&mut self, tab: &mut Tab) -> Option<()> {
        let deadline = Instant::now() + EDITOR_PATIENCE;
        let session = loop {
            if let Some(session) = self.world.editor.resume(&tab.session).await {
                break session;
            }
            if Instant::now() > deadline {
                return None;
            }
            self.pause(10..30).await;
        };
        let opened = tokio::time::timeout(EDITOR_PATIENCE, session.opened()).await.ok()?;
        self.world
            .chronicle
            .note_of(&self.document, format!("{} came back to {}: {opened:?}", tab.who, tab.key));
        self.world.chronicle.count("sessions resumed", 1);
        tab.session = session;
        (opened == Opening::Ready).then_some(())
    }

    /// Saves, by the button or as an application would.
    pub(crate) async fn save(&mut self, tab: &Tab) {
        if self.dice.happens(50) {
            let _ = tokio::time::timeout(EDITOR_PATIENCE, tab.session.press_save()).await;
        } else {
            self.world.editor.force_save(&tab.key).await;
        }
    }

    /// Leaves, one way or the other.
    pub(crate) async fn leave(&mut self, tab: Tab) {
        let how = *self.dice.one_of(&[Goodbye::Explicit, Goodbye::Hard]);
        self.say(tab, how).await;
    }

    pub(crate) async fn say(&mut self, tab: Tab, how: Goodbye) {
        self.world.chronicle.note_of(&self.document, format!("{} leaves {} ({how:?})", tab.who, tab.key));
        // An error says that the server is gone, and the session with it.
        let _ = match how {
            Goodbye::Explicit => tab.session.close().await,
            Goodbye::Hard => tab.session.hang_up().await,
        };
    }

    /// Lets something go wrong around a key.
    pub(crate) async fn arm(&self, kind: FaultKind, key: &str, (status, times): (Option<u8>, u32)) {
        let fault = kind.times(times).for_key(key);
        let fault = match status {
            Some(status) => fault.for_status(status),
            None => fault,
        };
        self.world.chronicle.note_of(&self.document, format!("armed {:?} for {key}", fault.kind));
        self.world.editor.arm(fault).await;
    }

    /// Waits until a callback of that key and status was answered, with the answer's meaning.
    pub(crate) async fn answered(&self, from: u64, key: &str, status: u8) -> Option<Verdict> {
        let mut sent = Vec::new();
        let answer = self.world.editor.wait_for(from, EDITOR_PATIENCE, |entry| match &entry.note {
            Note::CallbackSent { delivery, body, .. } if body.key == key && body.status == status => {
                sent.push(*delivery);
                None
            }
            Note::CallbackAnswered { delivery, verdict, .. } if sent.contains(delivery) => Some(*verdict),
            _ => None,
        });
        answer.await
    }

    /// Waits for an entry about a key.
    pub(crate) async fn noted(&self, from: u64, wanted: impl Fn(&Note) -> bool) -> Option<()> {
        let matches = |entry: &Entry| wanted(&entry.note).then_some(());
        self.world.editor.wait_for(from, EDITOR_PATIENCE, matches).await
    }

    /// From here on, for [`Play::answered`] and [`Play::noted`].
    pub(crate) fn now(&self) -> u64 {
        self.world.editor.journal().next_number()
    }
}
