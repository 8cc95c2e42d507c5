//! The recipe of a save: fetch, check, store; then, in turn, commit; then tell.
//!
//! `recovering` runs this same recipe for rows that an earlier process left open: there is no second path for the rare
//! case. Every step may be repeated.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::documents::BlobFacts;
use ledger::saves::{Aside, Committed, OpenSave, PreparedSave};
use model::Digest;
use model::callbacks::{Answer, AsideReason, Plan, answer_to_failure};
use model::saves::{Ruling, SaveKind, SomeoneWaits};
use signals::Signal;
use vault::{Sidecar, Spooled};

use super::SaveError;
use super::accept::Work;
use super::claims::recorded;
use super::fetch::{fetch, opened_on};
use super::jobs::{Job, Outcome};
use super::record::Record;
use crate::app::App;
use crate::incoming::{Checked, Life, life_of, store, tell_over_quota, tell_vanished};
use crate::room::space;
use crate::telemetry::{self, report, timed};

/// How often somebody who waits for an earlier save looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A save whose bytes are stored (or that brought none).
pub(super) struct Prepared {
    content: Option<Stored>,
    form: Option<Stored>,
    changes: Option<BlobFacts>,
    opened_on: Option<Digest>,
}

/// Bytes in the vault, and what the check said of them.
struct Stored {
    spooled: Spooled,
    sidecar: Sidecar,
    checked: Checked,
    life: Life,
}

/// Steps 3 to 5: fetch, check, store. Runs side by side with other saves of the document.
pub(super) async fn prepare(work: Arc<Work>) -> Result<Prepared, SaveError> {
    let (app, save, plan) = (&work.app, &work.open, work.plan);
    if matches!(plan, Plan::Alert(_)) {
        return Ok(Prepared { content: None, form: None, changes: None, opened_on: None });
    }
    // Written down and not fetched: the server keeps it, and once there is room it is taken up, by a repeat or by recovery.
    if !space(app).takes_saves() {
        return Err(SaveError::NoRoom);
    }
    let permit = Arc::clone(&app.fetching).acquire_owned().await.map_err(|_| SaveError::Interrupted)?;
    let record = Record::begin(app, save, plan);
    let content = bring_in(app, save, save.callback.url.as_deref()).await?;
    // A submitted form is a record of its own: its data must be safe before the server may forget it.
    let form = match plan {
        Plan::Store(_) => bring_in(app, save, save.callback.forms_data_url.as_deref()).await?,
        _ => None,
    };
    let opened_on = match plan {
        Plan::Store(_) => opened_on(app, save).await,
        _ => None,
    };
    let changes = record.here(save).await;
    drop(permit);
    if plan == Plan::Store(SaveKind::Final) {
        let_earlier_ones_go_first(app, save).await?;
    }
    Ok(Prepared { content, form, changes, opened_on })
}

/// The repeat of an older save can come while the newer one is still being fetched, and nothing in it tells that it is old.
/// So final saves of one key never pass each other, however long that takes: here, where nobody else waits in line.
async fn let_earlier_ones_go_first(app: &App, save: &OpenSave) -> Result<(), SaveError> {
    let deadline = Instant::now() + app.config.saving.answer_within;
    while app.guards.order_guard && app.ledger.is_overtaking(save.number, app.now()).await? {
        if Instant::now() >= deadline {
            return Err(SaveError::Overtaking);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn bring_in(app: &App, save: &OpenSave, link: Option<&str>) -> Result<Option<Stored>, SaveError> {
    let Some(link) = link else { return Ok(None) };
    let (spooled, checked) = fetch(app, save, link).await?;
    let sidecar = Sidecar::Saved { key: save.callback.key.clone(), status: save.callback.status };
    let life = if app.guards.blob_before_row {
        timed("store", store(app, &spooled, &sidecar)).await.map_err(SaveError::Store)?
    } else {
        life_of(app, &spooled).await?
    };
    steps::reached("save.stored");
    Ok(Some(Stored { spooled, sidecar, checked, life }))
}

/// Step 6: commit, alone for the document. Whoever waits hears the answer, or that the server should try again.
pub(super) async fn commit(work: Arc<Work>, prepared: Result<Prepared, SaveError>) {
    let (app, save) = (&work.app, &work.open);
    let committed = match prepared {
        Ok(prepared) => timed("commit", commit_prepared(&work, prepared)).await,
        Err(cause) => Err(cause),
    };
    let outcome = match committed {
        Ok(committed) => {
            steps::reached("save.committed");
            announce(app, save, &committed).await;
            Some(Outcome::Committed(committed.answer))
        }
        Err(cause) => {
            // The turn may have been lost and somebody else's commit found the row first.
            if let Some(answer) = recorded(app, save.number).await {
                return app.jobs.end(save.number, &work.job, Some(Outcome::Found(answer)));
            }
            telemetry::save_ended("postponed");
            tracing::warn!(inbox = save.number.0, error = %report(&cause), "a save could not be finished now");
            give_up_if_hopeless(app, save, &cause).await;
            None
        }
    };
    app.jobs.end(save.number, &work.job, outcome);
}

/// Links die after a while. A save whose link is dead can only come again: by a new delivery or as a forgotten file.
async fn give_up_if_hopeless(app: &App, save: &OpenSave, cause: &SaveError) {
    let link_age = app.now().duration_since(save.link_received_at);
    if !matches!(cause, SaveError::Fetch(_)) || link_age <= app.config.saving.identity_window {
        return;
    }
    telemetry::alert("expired-save");
    tracing::error!(inbox = save.number.0, "the link of a save is dead and its bytes never came");
    match app.ledger.give_up(save.number, app.now()).await {
        Ok(()) => telemetry::save_ended("expired"),
        Err(cause) => {
            tracing::warn!(inbox = save.number.0, error = %cause, "a dead save could not be written down")
        }
    }
}

async fn commit_prepared(work: &Work, prepared: Prepared) -> Result<Committed, SaveError> {
    let (app, save) = (&work.app, &work.open);
    let Prepared { content, form, changes, opened_on } = prepared;
    let is_damaged = content.as_ref().is_some_and(|stored| stored.checked.is_refused());
    let blob = content.as_ref().map(Stored::facts);
    let committed = match (work.plan, blob) {
        _ if save.document.is_none() => keep_orphan(app, save, content.as_ref()).await?,
        (Plan::Store(kind), Some(blob)) if !(is_damaged && app.guards.quarantine) => {
            let someone_waits = someone_waits(&work.job, app, save);
            let form = form.as_ref().map(Stored::facts);
            let (number, at) = (save.number, app.now());
            let policy = Arc::clone(&app.config.checking);
            let prepared =
                PreparedSave { number, kind, blob, form, changes, opened_on, policy, someone_waits, at };
            let committed = app.ledger.commit_save(&prepared).await?;
            if committed.answer == Answer::TryAgain {
                return Err(SaveError::Overtaking);
            }
            committed
        }
        (Plan::Store(_), blob) => keep_aside(app, save, (AsideReason::Damaged, blob)).await?,
        (Plan::KeepAside(reason) | Plan::Alert(reason), blob) => {
            keep_aside(app, save, (reason, blob)).await?
        }
        (Plan::NotePresence | Plan::NoteIdle | Plan::Ignore, _) => return Err(SaveError::Interrupted),
    };
    if !app.guards.blob_before_row {
        for stored in content.iter().chain(&form) {
            store(app, &stored.spooled, &stored.sidecar).await.map_err(SaveError::Store)?;
        }
    }
    Ok(committed)
}

/// Whether somebody is going to be answered 0.
fn someone_waits(job: &Job, app: &App, save: &OpenSave) -> SomeoneWaits {
    let is_harmless = |received| !app.entries.since(&save.callback.key, received);
    job.someone_waits(app.config.saving.answer_zero_within, is_harmless)
}

impl Stored {
    fn facts(&self) -> BlobFacts {
        self.checked.facts(&self.spooled, self.life)
    }
}

async fn keep_aside(
    app: &App,
    save: &OpenSave,
    (reason, blob): (AsideReason, Option<BlobFacts>),
) -> Result<Committed, SaveError> {
    let answer = answer_to_failure(&app.guards, reason);
    Ok(app.ledger.keep_aside(&Aside { number: save.number, reason, blob, answer, at: app.now() }).await?)
}

/// Bytes of a document we do not have: kept, announced, and left with the server too.
async fn keep_orphan(app: &App, save: &OpenSave, content: Option<&Stored>) -> Result<Committed, SaveError> {
    let blob = content.map(Stored::facts);
    let aside = Aside {
        number: save.number,
        reason: AsideReason::UnknownStatus,
        blob,
        answer: Answer::TryAgain,
        at: app.now(),
    };
    Ok(app.ledger.keep_aside(&aside).await?)
}

/// Step 7: wake who waits, publish, and tell people what they should look at.
async fn announce(app: &App, save: &OpenSave, committed: &Committed) {
    telemetry::save_ended(outcome_word(committed));
    if let Some(document) = &committed.document {
        if save.callback.status == 2 {
            app.signals.show_users(document, &[]).await;
        }
        app.signals.announce(Signal::Settled(document.clone())).await;
    }
    tell_vanished(app, committed);
    tell_over_quota(committed);
    let document = committed.document.as_ref().map_or("?", model::DocumentId::as_str);
    match (&committed.ruling, committed.label, committed.kept) {
        _ if !committed.is_new => {}
        (_, Some(label), _) => {
            tracing::info!(
                document.id = document,
                inbox = save.number.0,
                "content {label} of document {document} is committed"
            );
        }
        (Some(Ruling::KeepAside(reason)), _, _) => {
            telemetry::alert("conflict");
            tracing::warn!(
                document.id = document,
                inbox = save.number.0,
                reason = reason.as_str(),
                "a save of document {document} was kept as a conflict copy"
            );
        }
        (None, _, kept) => {
            telemetry::alert(if kept.is_some() { "quarantine" } else { "failed-save" });
            tracing::error!(
                document.id = document,
                inbox = save.number.0,
                status = save.callback.status,
                "a save of document {document} was kept aside and needs a person"
            );
        }
        _ => tracing::debug!(document.id = document, inbox = save.number.0, "a save brought nothing new"),
    }
}

fn outcome_word(committed: &Committed) -> &'static str {
    match (committed.is_new, committed.ruling, committed.kept) {
        (false, ..) => "repeated",
        (_, Some(Ruling::NewVersion), _) => "version",
        (_, Some(Ruling::NewCheckpoint), _) => "checkpoint",
        (_, Some(Ruling::FileBeside), _) => "filed",
        (_, Some(Ruling::NothingNew), _) => "nothing-new",
        (_, Some(Ruling::KeepAside(_)), _) => "conflict",
        (_, None, Some(_)) => "quarantine",
        (_, None, None) => "alert",
    }
}

/// What a callback's status asks for, seen again from its open row.
pub(crate) fn plan_of(save: &OpenSave) -> Plan {
    use model::callbacks::{HasUrl, plan_for};
    plan_for(save.callback.status, if save.callback.url.is_some() { HasUrl::Yes } else { HasUrl::No })
}
