//! Writing down who hands in what, on SQLite.
//!
//! Guarantees: what is written as it was changes nothing and leaves no entry in the trail. An import that is refused or only
//! rehearsed leaves nothing at all: it runs in a savepoint of its own.

use jiff::civil::Date;
use model::scopes::{Deadline, Span};
use model::{OrganisationId, Scope, TemplateId};
use rusqlite::{Connection, Params, params};
use serde_json::Value;

use super::audit::{Actor, append_organisation_act};
use super::facts::exists;
use super::rows::{Stored, ms};
use super::scopes::{find_accreditation, find_deadline, find_organisation, find_registration, names};
use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, How, Import, Imported, Organisation, OrganisationWish,
    PER_REGISTRATION_MAX, Registration, RegistrationWish, ScopeWish, Writing,
};
use crate::wishes::{
    self, ACCREDITATION_WORDS, DEADLINE_WORDS, Effect, ORGANISATION_WORDS, REGISTRATION_WORDS,
    accreditation_text, deadline_text, effect, expect, is_about_the_wish, organisation_text,
    registration_text, told,
};
use crate::{LedgerError, Result};

pub(super) fn organisation(
    connection: &Connection,
    wish: &OrganisationWish,
    writing: &Writing,
) -> Result<(Organisation, Effect)> {
    let before = find_organisation(connection, &wish.id)?;
    expect(writing.how, before.as_ref(), || format!("organisation `{}`", wish.id))?;
    let was = before.as_ref();
    let after = wishes::organisation(wish, was, writing);
    let effect = effect(was, &after);
    if effect != Effect::Unchanged {
        connection
            .prepare_cached(
                "INSERT INTO organisations (id, name, number, created_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET (name, number) = (?2, ?3)",
            )?
            .execute(params![after.id.as_str(), after.name, after.number, ms(after.created_at)])?;
        let act = told(ORGANISATION_WORDS, (organisation_text(&after), was.map(organisation_text)));
        note(connection, &wish.id, writing, act)?;
    }
    Ok((after, effect))
}

pub(super) fn registration(
    connection: &Connection,
    wish: &RegistrationWish,
    writing: &Writing,
) -> Result<(Registration, Effect)> {
    let scope = &wish.scope;
    require_organisation(connection, &scope.organisation)?;
    let before = find_registration(connection, scope)?;
    expect(writing.how, before.as_ref(), || format!("registration `{}`", scope.registration))?;
    let after = wishes::registration(wish, before.as_ref(), writing)?;
    let effect = effect(before.as_ref(), &after);
    if effect == Effect::Unchanged {
        return Ok((after, effect));
    }
    let (organisation, id) = names(scope);
    refuse_taken_number(
        connection,
        "SELECT 1 FROM registrations WHERE organisation = ?1 AND number = ?2 AND id <> ?3",
        (params![organisation, after.number, id], &format!("registration number `{}`", after.number)),
    )?;
    let assigned_before = before.as_ref().and_then(|before| before.template.as_ref());
    if after.template.as_ref() != assigned_before {
        require_template(connection, after.template.as_ref())?;
    }
    let (from, until) = days(after.active);
    connection
        .prepare_cached(
            "INSERT INTO registrations (organisation, id, number, title, material, template, from_day, until_day, created_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (organisation, id) DO UPDATE SET
             (number, title, material, template, from_day, until_day) = (?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            organisation,
            id,
            after.number,
            after.title,
            after.material,
            after.template.as_ref().map(TemplateId::as_str),
            from,
            until,
            ms(after.created_at),
        ])?;
    let act = told(REGISTRATION_WORDS, (registration_text(&after), before.as_ref().map(registration_text)));
    note(connection, &scope.organisation, writing, act)?;
    Ok((after, effect))
}

pub(super) fn accreditation(
    connection: &Connection,
    wish: &AccreditationWish,
    writing: &Writing,
) -> Result<(Accreditation, Effect)> {
    let scope = &wish.scope;
    require_registration(connection, scope)?;
    let before = find_accreditation(connection, scope, &wish.id)?;
    expect(writing.how, before.as_ref(), || format!("accreditation `{}`", wish.id))?;
    let after = wishes::accreditation(wish, before.as_ref(), writing)?;
    let effect = effect(before.as_ref(), &after);
    if effect == Effect::Unchanged {
        return Ok((after, effect));
    }
    if effect == Effect::Created {
        refuse_too_many(connection, scope, ("accreditations", "accreditations of a registration"))?;
    }
    let (organisation, registration) = names(scope);
    refuse_taken_number(
        connection,
        "SELECT 1 FROM accreditations WHERE organisation = ?1 AND registration = ?2 AND number = ?3 AND id <> ?4",
        (
            params![organisation, registration, after.number, after.id.as_str()],
            &format!("accreditation number `{}`", after.number),
        ),
    )?;
    let (from, until) = days(after.valid);
    connection
        .prepare_cached(
            "INSERT INTO accreditations (organisation, registration, id, number, from_day, until_day, created_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (organisation, registration, id) DO UPDATE SET
             (number, from_day, until_day) = (?4, ?5, ?6)",
        )?
        .execute(params![
            organisation,
            registration,
            after.id.as_str(),
            after.number,
            from,
            until,
            ms(after.created_at),
        ])?;
    let act =
        told(ACCREDITATION_WORDS, (accreditation_text(&after), before.as_ref().map(accreditation_text)));
    note(connection, &scope.organisation, writing, act)?;
    Ok((after, effect))
}

pub(super) fn deadline(
    connection: &Connection,
    wish: &DeadlineWish,
    writing: &Writing,
) -> Result<(Deadline, Effect)> {
    let scope = &wish.scope;
    require_registration(connection, scope)?;
    let before = find_deadline(connection, scope, &wish.period)?;
    expect(writing.how, before.as_ref(), || format!("deadline `{}`", wish.period))?;
    let after = wishes::deadline(wish, before.as_ref(), writing)?;
    let effect = effect(before.as_ref(), &after);
    if effect == Effect::Created {
        refuse_too_many(connection, scope, ("deadlines", "deadlines of a registration"))?;
    }
    if effect != Effect::Unchanged {
        let (organisation, registration) = names(scope);
        let (opens, due) = (after.opens.map(Stored), Stored(after.due));
        connection
            .prepare_cached(
                "INSERT INTO deadlines (organisation, registration, period, opens_day, due_day, created_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET (opens_day, due_day) = (?4, ?5)",
            )?
            .execute(params![organisation, registration, after.period, opens, due, ms(writing.at)])?;
        let text = |each: &Deadline| deadline_text(registration, each);
        let act = told(DEADLINE_WORDS, (text(&after), before.as_ref().map(text)));
        note(connection, &scope.organisation, writing, act)?;
    }
    Ok((after, effect))
}

pub(super) fn remove_deadline(
    connection: &Connection,
    (scope, period): (&Scope, &str),
    writing: &Writing,
) -> Result<bool> {
    let Some(deadline) = find_deadline(connection, scope, period)? else { return Ok(false) };
    let (organisation, registration) = names(scope);
    connection
        .prepare_cached(
            "DELETE FROM deadlines WHERE organisation = ?1 AND registration = ?2 AND period = ?3",
        )?
        .execute(params![organisation, registration, period])?;
    let details = deadline_text(registration, &deadline);
    let who = (Actor::person(&writing.by), writing.at);
    append_organisation_act(connection, &scope.organisation, who, ("deadline-removed", &details))?;
    Ok(true)
}

pub(super) fn import(
    connection: &Connection,
    wishes: &[(u32, ScopeWish)],
    import: &Import,
) -> Result<Imported> {
    connection.execute_batch("SAVEPOINT import_scopes")?;
    let imported = write_all(connection, wishes, import)?;
    if import.is_rehearsal || !imported.refused.is_empty() {
        connection.execute_batch("ROLLBACK TO import_scopes")?;
    }
    connection.execute_batch("RELEASE import_scopes")?;
    Ok(imported)
}

/// Goes on after a refusal, so that all of them are told.
fn write_all(connection: &Connection, wishes: &[(u32, ScopeWish)], import: &Import) -> Result<Imported> {
    let writing = Writing { how: How::Merge, by: import.by.clone(), at: import.at };
    let mut imported = Imported::default();
    for (line, wish) in wishes {
        match write(connection, wish, &writing) {
            Ok(Effect::Created) => imported.created += 1,
            Ok(Effect::Changed) => imported.changed += 1,
            Ok(Effect::Unchanged) => imported.unchanged += 1,
            Err(refused) if is_about_the_wish(&refused) => {
                imported.refused.push((*line, refused.to_string()))
            }
            Err(failed) => return Err(failed),
        }
    }
    Ok(imported)
}

fn write(connection: &Connection, wish: &ScopeWish, writing: &Writing) -> Result<Effect> {
    match wish {
        ScopeWish::Organisation(wish) => organisation(connection, wish, writing).map(|put| put.1),
        ScopeWish::Registration(wish) => registration(connection, wish, writing).map(|put| put.1),
        ScopeWish::Accreditation(wish) => accreditation(connection, wish, writing).map(|put| put.1),
        ScopeWish::Deadline(wish) => deadline(connection, wish, writing).map(|put| put.1),
    }
}

fn require_organisation(connection: &Connection, id: &OrganisationId) -> Result<()> {
    let is_there = exists(connection, "SELECT 1 FROM organisations WHERE id = ?1", params![id.as_str()])?;
    if is_there { Ok(()) } else { Err(LedgerError::not_found(format!("organisation `{id}`"))) }
}

fn require_registration(connection: &Connection, scope: &Scope) -> Result<()> {
    match find_registration(connection, scope)? {
        Some(_) => Ok(()),
        None => Err(LedgerError::not_found(format!("registration `{scope}`"))),
    }
}

fn require_template(connection: &Connection, template: Option<&TemplateId>) -> Result<()> {
    let Some(template) = template else { return Ok(()) };
    let query = "SELECT 1 FROM templates WHERE id = ?1 AND retired_ms IS NULL";
    if exists(connection, query, params![template.as_str()])? {
        Ok(())
    } else {
        Err(LedgerError::NoTemplate { template: template.clone() })
    }
}

fn refuse_taken_number(
    connection: &Connection,
    query: &str,
    (values, what): (impl Params, &str),
) -> Result<()> {
    let is_taken = connection.prepare_cached(query)?.exists(values)?;
    if is_taken { Err(LedgerError::AlreadyExists { what: what.to_owned() }) } else { Ok(()) }
}

fn refuse_too_many(
    connection: &Connection,
    scope: &Scope,
    (table, what): (&str, &'static str),
) -> Result<()> {
    let query = format!("SELECT count(*) FROM {table} WHERE organisation = ?1 AND registration = ?2");
    let count: u32 = connection.prepare_cached(&query)?.query_row(names(scope), |row| row.get(0))?;
    if count < PER_REGISTRATION_MAX {
        Ok(())
    } else {
        Err(LedgerError::TooMany { what, limit: PER_REGISTRATION_MAX })
    }
}

fn days(span: Span) -> (Option<Stored<Date>>, Option<Stored<Date>>) {
    (span.from().map(Stored), span.until().map(Stored))
}

fn note(
    connection: &Connection,
    organisation: &OrganisationId,
    writing: &Writing,
    (action, details): (&str, Value),
) -> Result<()> {
    let who = (Actor::person(&writing.by), writing.at);
    append_organisation_act(connection, organisation, who, (action, &details))
}
