//! Writing down who hands in what, on PostgreSQL.
//!
//! What the wishes are about is loaded into a [`Book`], changed there, and written back: a handful of statements, however many
//! wishes there are.
//!
//! Guarantees: what is written as it was changes nothing and leaves no entry in the trail. An import that is refused or only
//! rehearsed leaves nothing at all. Writers of one organisation wait for each other; an import waits for all of them, and they
//! for it.

use model::scopes::Deadline;
use model::trail::chain_of_organisation;
use model::{OrganisationId, Scope};

use super::book::Book;
use super::book_rows::{load, organisation_of, save};
use super::chains::{self, Told};
use super::locks;
use super::rows::text;
use super::scopes::{self, DEADLINE_COLUMNS, names};
use super::step::Step;
use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, How, Import, Imported, Organisation, OrganisationWish,
    Registration, RegistrationWish, ScopeWish, Writing,
};
use crate::wishes::{Effect, deadline_text, is_about_the_wish};
use crate::{LedgerError, Result};

/// The lock that imports take alone and all others share.
const REGISTERING: i64 = 0x53_47_11;

pub(super) async fn organisation(
    step: &Step,
    wish: &OrganisationWish,
    writing: &Writing,
) -> Result<Organisation> {
    let mut book = write_one(step, ScopeWish::Organisation(wish.clone()), writing).await?;
    book.organisations.remove(&wish.id).ok_or_else(vanished)
}

pub(super) async fn registration(
    step: &Step,
    wish: &RegistrationWish,
    writing: &Writing,
) -> Result<Registration> {
    let mut book = write_one(step, ScopeWish::Registration(wish.clone()), writing).await?;
    book.registrations.remove(&wish.scope).ok_or_else(vanished)
}

pub(super) async fn accreditation(
    step: &Step,
    wish: &AccreditationWish,
    writing: &Writing,
) -> Result<Accreditation> {
    let mut book = write_one(step, ScopeWish::Accreditation(wish.clone()), writing).await?;
    let there = book.accreditations.get_mut(&wish.scope);
    there.and_then(|there| there.remove(&wish.id)).ok_or_else(vanished)
}

pub(super) async fn deadline(step: &Step, wish: &DeadlineWish, writing: &Writing) -> Result<Deadline> {
    let mut book = write_one(step, ScopeWish::Deadline(wish.clone()), writing).await?;
    let there = book.deadlines.get_mut(&wish.scope);
    there.and_then(|there| there.remove(&wish.period)).ok_or_else(vanished)
}

fn vanished() -> LedgerError {
    LedgerError::damaged("what was just written is gone")
}

async fn write_one(step: &Step, wish: ScopeWish, writing: &Writing) -> Result<Book> {
    lock(step, organisation_of(&wish)).await?;
    let mut book = load(step, &[&wish]).await?;
    book.write(&wish, writing)?;
    save(step, &book, (&writing.by, writing.at)).await?;
    Ok(book)
}

pub(super) async fn remove_deadline(
    step: &Step,
    (scope, period): (&Scope, &str),
    writing: &Writing,
) -> Result<bool> {
    lock(step, &scope.organisation).await?;
    let delete = format!(
        "DELETE FROM deadlines t WHERE t.organisation = $1 AND t.registration = $2 AND t.period = $3 RETURNING {DEADLINE_COLUMNS}"
    );
    let (organisation, registration) = names(scope);
    let removed = step.query_optional(&delete, &[&organisation, &registration, &text(period)]).await?;
    let Some(removed) = removed else { return Ok(false) };
    let details = deadline_text(registration, &scopes::deadline(&removed)?).to_string();
    let told =
        Told { chain: chain_of_organisation(&scope.organisation), action: "deadline-removed", details };
    chains::append(step, (&writing.by, writing.at), &[told]).await?;
    Ok(true)
}

pub(super) async fn import(step: &Step, wishes: &[(u32, ScopeWish)], import: &Import) -> Result<Imported> {
    step.query("SELECT pg_advisory_xact_lock($1)", &[&REGISTERING]).await?;
    let all: Vec<&ScopeWish> = wishes.iter().map(|(_, wish)| wish).collect();
    let mut book = load(step, &all).await?;
    let writing = Writing { how: How::Merge, by: import.by.clone(), at: import.at };
    let mut imported = Imported::default();
    // Goes on after a refusal, so that all of them are told.
    for (line, wish) in wishes {
        match book.write(wish, &writing) {
            Ok(Effect::Created) => imported.created += 1,
            Ok(Effect::Changed) => imported.changed += 1,
            Ok(Effect::Unchanged) => imported.unchanged += 1,
            Err(refused) if is_about_the_wish(&refused) => {
                imported.refused.push((*line, refused.to_string()));
            }
            Err(failed) => return Err(failed),
        }
    }
    if !import.is_rehearsal && imported.refused.is_empty() {
        save(step, &book, (&import.by, import.at)).await?;
    }
    Ok(imported)
}

/// Alone with an organisation, and not during an import.
async fn lock(step: &Step, organisation: &OrganisationId) -> Result<()> {
    step.query("SELECT pg_advisory_xact_lock_shared($1)", &[&REGISTERING]).await?;
    locks::name(step, &chain_of_organisation(organisation)).await
}
