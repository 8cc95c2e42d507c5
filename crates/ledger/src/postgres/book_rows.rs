//! Between a [`Book`] and its rows: what some wishes are about is loaded at once, what they changed is written at once.
//!
//! Guarantees: a handful of statements, however many wishes there are. Does not do: locks, which whoever loads has taken before.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::civil::Date;
use model::trail::chain_of_organisation;
use model::{OrganisationId, Scope, TemplateId};

use super::book::Book;
use super::chains::{self, Told};
use super::rows::{all, id, ms, text};
use super::scopes::{
    self, ACCREDITATION_COLUMNS, DEADLINE_COLUMNS, ORGANISATION_COLUMNS, REGISTRATION_COLUMNS, names,
};
use super::step::Step;
use crate::Result;
use crate::documents::Author;
use crate::scopes::ScopeWish;

pub(super) fn organisation_of(wish: &ScopeWish) -> &OrganisationId {
    match wish {
        ScopeWish::Organisation(wish) => &wish.id,
        ScopeWish::Registration(wish) => &wish.scope.organisation,
        ScopeWish::Accreditation(wish) => &wish.scope.organisation,
        ScopeWish::Deadline(wish) => &wish.scope.organisation,
    }
}

fn scope_of(wish: &ScopeWish) -> Option<&Scope> {
    match wish {
        ScopeWish::Organisation(_) => None,
        ScopeWish::Registration(wish) => Some(&wish.scope),
        ScopeWish::Accreditation(wish) => Some(&wish.scope),
        ScopeWish::Deadline(wish) => Some(&wish.scope),
    }
}

/// What some wishes are about.
pub(super) async fn load(step: &Step, wishes: &[&ScopeWish]) -> Result<Book> {
    let mut book = Book::default();
    let ids: BTreeSet<&str> = wishes.iter().map(|wish| organisation_of(wish).as_str()).collect();
    let query = format!("SELECT {ORGANISATION_COLUMNS} FROM organisations t WHERE t.id = ANY($1)");
    let rows = step.query(&query, &[&Vec::from_iter(ids)]).await?;
    for found in all(&rows, scopes::organisation)? {
        book.organisations.insert(found.id.clone(), found);
    }
    load_registrations(step, wishes, &mut book).await?;
    let scopes_of = |wanted: fn(&ScopeWish) -> bool| -> BTreeSet<&Scope> {
        wishes.iter().filter(|wish| wanted(wish)).filter_map(|wish| scope_of(wish)).collect()
    };
    let licensed = scopes_of(|wish| matches!(wish, ScopeWish::Accreditation(_)));
    for row in of_scopes(step, ("accreditations", ACCREDITATION_COLUMNS), licensed).await? {
        let found = scopes::accreditation(&row)?;
        book.accreditations.entry(found.scope.clone()).or_default().insert(found.id.clone(), found);
    }
    let due = scopes_of(|wish| matches!(wish, ScopeWish::Deadline(_)));
    for row in of_scopes(step, ("deadlines", DEADLINE_COLUMNS), due).await? {
        let (scope, found) = (scopes::scope(&row, "registration")?, scopes::deadline(&row)?);
        book.deadlines.entry(scope).or_default().insert(found.period.clone(), found);
    }
    Ok(book)
}

/// Registrations by id, and those that have a number which is wished for.
async fn load_registrations(step: &Step, wishes: &[&ScopeWish], book: &mut Book) -> Result<()> {
    let (mut wanted, mut templates) = (BTreeSet::new(), BTreeSet::new());
    for wish in wishes {
        let Some(scope) = scope_of(wish) else { continue };
        let (organisation, id) = names(scope);
        let mut number = text(id);
        if let ScopeWish::Registration(wish) = wish {
            templates.extend(wish.template.as_ref().map(TemplateId::as_str));
            number = wish.number.as_deref().map_or(number, text);
        }
        wanted.insert((organisation, id, number));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let query = format!(
        "SELECT {REGISTRATION_COLUMNS} FROM UNNEST($1::text[], $2::text[]) AS w (organisation, id)
         JOIN registrations t ON t.organisation = w.organisation AND t.id = w.id
         UNION SELECT {REGISTRATION_COLUMNS} FROM UNNEST($1::text[], $3::text[]) AS w (organisation, number)
         JOIN registrations t ON t.organisation = w.organisation AND t.number = w.number"
    );
    let organisations: Vec<&str> = wanted.iter().map(|(organisation, ..)| *organisation).collect();
    let ids: Vec<&str> = wanted.iter().map(|(_, id, _)| *id).collect();
    let numbers: Vec<&str> = wanted.iter().map(|(.., number)| &**number).collect();
    let rows = step.query(&query, &[&organisations, &ids, &numbers]).await?;
    all(&rows, scopes::registration)?.into_iter().for_each(|found| book.know(found));
    if !templates.is_empty() {
        let query = "SELECT DISTINCT id FROM templates WHERE id = ANY($1) AND retired_ms IS NULL";
        let rows = step.query(query, &[&Vec::from_iter(templates)]).await?;
        book.templates = all(&rows, |row| id(row, "id", TemplateId::parse))?.into_iter().collect();
    }
    Ok(())
}

/// All rows of some scopes.
async fn of_scopes(
    step: &Step,
    (table, columns): (&str, &str),
    wanted: BTreeSet<&Scope>,
) -> Result<Vec<tokio_postgres::Row>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (organisations, registrations): (Vec<&str>, Vec<&str>) = wanted.into_iter().map(names).unzip();
    let query = format!(
        "SELECT {columns} FROM UNNEST($1::text[], $2::text[]) AS w (organisation, registration)
         JOIN {table} t ON t.organisation = w.organisation AND t.registration = w.registration"
    );
    step.query(&query, &[&organisations, &registrations]).await
}

/// Writes what changed, with its entries in the trail.
pub(super) async fn save(step: &Step, book: &Book, (by, at): (&Author, Timestamp)) -> Result<()> {
    save_organisations(step, book).await?;
    save_registrations(step, book).await?;
    save_accreditations(step, book).await?;
    save_deadlines(step, book, at).await?;
    let told: Vec<Told> = book
        .changed
        .acts
        .iter()
        .map(|(organisation, action, details)| Told {
            chain: chain_of_organisation(organisation),
            action,
            details: details.to_string(),
        })
        .collect();
    chains::append(step, (by, at), &told).await
}

async fn save_organisations(step: &Step, book: &Book) -> Result<()> {
    let changed: Vec<_> =
        book.changed.organisations.iter().filter_map(|id| book.organisations.get(id)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    step.execute(
        "INSERT INTO organisations (id, name, number, created_ms)
         SELECT n.* FROM UNNEST($1::text[], $2::text[], $3::text[], $4::bigint[]) AS n
         ON CONFLICT (id) DO UPDATE SET (name, number) = (excluded.name, excluded.number)",
        &[
            &changed.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(),
            &changed.iter().map(|each| text(&each.name)).collect::<Vec<_>>(),
            &changed.iter().map(|each| each.number.as_deref().map(text)).collect::<Vec<_>>(),
            &changed.iter().map(|each| each.created_at.as_millisecond()).collect::<Vec<_>>(),
        ],
    )
    .await?;
    Ok(())
}

async fn save_registrations(step: &Step, book: &Book) -> Result<()> {
    let changed: Vec<_> =
        book.changed.registrations.iter().filter_map(|scope| book.registrations.get(scope)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let (organisations, ids): (Vec<&str>, Vec<&str>) = changed.iter().map(|each| names(&each.scope)).unzip();
    let numbers: Vec<_> = changed.iter().map(|each| text(&each.number)).collect();
    // Numbers may change hands: nobody has an old one while new ones are given.
    let leave = "UPDATE registrations t SET number = chr(1) || t.id
                 FROM UNNEST($1::text[], $2::text[], $3::text[]) AS n (organisation, id, number)
                 WHERE t.organisation = n.organisation AND t.id = n.id AND t.number <> n.number";
    step.execute(leave, &[&organisations, &ids, &numbers]).await?;
    step.execute(
        "INSERT INTO registrations (organisation, id, number, title, material, template, from_day, until_day, created_ms)
         SELECT n.* FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
           $9::bigint[]) AS n
         ON CONFLICT (organisation, id) DO UPDATE SET (number, title, material, template, from_day, until_day) =
           (excluded.number, excluded.title, excluded.material, excluded.template, excluded.from_day, excluded.until_day)",
        &[
            &organisations,
            &ids,
            &numbers,
            &changed.iter().map(|each| text(&each.title)).collect::<Vec<_>>(),
            &changed.iter().map(|each| each.material.as_deref().map(text)).collect::<Vec<_>>(),
            &changed.iter().map(|each| each.template.as_ref().map(TemplateId::as_str)).collect::<Vec<_>>(),
            &changed.iter().map(|each| day(each.active.from())).collect::<Vec<_>>(),
            &changed.iter().map(|each| day(each.active.until())).collect::<Vec<_>>(),
            &changed.iter().map(|each| each.created_at.as_millisecond()).collect::<Vec<_>>(),
        ],
    )
    .await?;
    Ok(())
}

async fn save_accreditations(step: &Step, book: &Book) -> Result<()> {
    let changed: Vec<_> = book
        .changed
        .accreditations
        .iter()
        .filter_map(|(scope, id)| book.accreditations.get(scope).and_then(|there| there.get(id)))
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let (organisations, registrations): (Vec<&str>, Vec<&str>) =
        changed.iter().map(|each| names(&each.scope)).unzip();
    let ids: Vec<&str> = changed.iter().map(|each| each.id.as_str()).collect();
    let numbers: Vec<_> = changed.iter().map(|each| text(&each.number)).collect();
    let leave = "UPDATE accreditations t SET number = chr(1) || t.id
                 FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[]) AS n (organisation, registration, id, number)
                 WHERE t.organisation = n.organisation AND t.registration = n.registration AND t.id = n.id
                   AND t.number <> n.number";
    step.execute(leave, &[&organisations, &registrations, &ids, &numbers]).await?;
    step.execute(
        "INSERT INTO accreditations (organisation, registration, id, number, from_day, until_day, created_ms)
         SELECT n.* FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) AS n
         ON CONFLICT (organisation, registration, id) DO UPDATE SET (number, from_day, until_day) =
           (excluded.number, excluded.from_day, excluded.until_day)",
        &[
            &organisations,
            &registrations,
            &ids,
            &numbers,
            &changed.iter().map(|each| day(each.valid.from())).collect::<Vec<_>>(),
            &changed.iter().map(|each| day(each.valid.until())).collect::<Vec<_>>(),
            &changed.iter().map(|each| each.created_at.as_millisecond()).collect::<Vec<_>>(),
        ],
    )
    .await?;
    Ok(())
}

async fn save_deadlines(step: &Step, book: &Book, at: Timestamp) -> Result<()> {
    let changed: Vec<_> = book
        .changed
        .deadlines
        .iter()
        .filter_map(|(scope, period)| Some((scope, book.deadlines.get(scope)?.get(period)?)))
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    let (organisations, registrations): (Vec<&str>, Vec<&str>) =
        changed.iter().map(|(scope, _)| names(scope)).unzip();
    step.execute(
        "INSERT INTO deadlines (organisation, registration, period, opens_day, due_day, created_ms)
         SELECT n.*, $6::bigint FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS n
         ON CONFLICT (organisation, registration, period) DO UPDATE SET (opens_day, due_day) = (excluded.opens_day, excluded.due_day)",
        &[
            &organisations,
            &registrations,
            &changed.iter().map(|(_, each)| text(&each.period)).collect::<Vec<_>>(),
            &changed.iter().map(|(_, each)| day(each.opens)).collect::<Vec<_>>(),
            &changed.iter().map(|(_, each)| each.due.to_string()).collect::<Vec<_>>(),
            &ms(at),
        ],
    )
    .await?;
    Ok(())
}

fn day(day: Option<Date>) -> Option<String> {
    day.map(|day| day.to_string())
}
