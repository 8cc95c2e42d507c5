//! Organisations, registrations, accreditations and deadlines on SQLite: what is there. How it gets there is in [`registering`].

use async_trait::async_trait;
use model::scopes::{Deadline, Span};
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, TemplateId};
use rusqlite::{Connection, Row, params};

use super::rows::{get, get_optional, id, optional};
use super::{SqliteLedger, registering};
use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, Import, Imported, Organisation, OrganisationWish,
    PER_REGISTRATION_MAX, Registration, RegistrationWish, ScopeWish, Writing,
};
use crate::{Result, Scopes};

#[async_trait]
impl Scopes for SqliteLedger {
    async fn write_organisation(&self, wish: &OrganisationWish, writing: &Writing) -> Result<Organisation> {
        let (wish, writing) = (wish.clone(), writing.clone());
        self.write(move |connection, _| {
            registering::organisation(connection, &wish, &writing).map(|put| put.0)
        })
        .await
    }

    async fn write_registration(&self, wish: &RegistrationWish, writing: &Writing) -> Result<Registration> {
        let (wish, writing) = (wish.clone(), writing.clone());
        self.write(move |connection, _| {
            registering::registration(connection, &wish, &writing).map(|put| put.0)
        })
        .await
    }

    async fn write_accreditation(
        &self,
        wish: &AccreditationWish,
        writing: &Writing,
    ) -> Result<Accreditation> {
        let (wish, writing) = (wish.clone(), writing.clone());
        self.write(move |connection, _| {
            registering::accreditation(connection, &wish, &writing).map(|put| put.0)
        })
        .await
    }

    async fn write_deadline(&self, wish: &DeadlineWish, writing: &Writing) -> Result<Deadline> {
        let (wish, writing) = (wish.clone(), writing.clone());
        self.write(move |connection, _| registering::deadline(connection, &wish, &writing).map(|put| put.0))
            .await
    }

    async fn remove_deadline(&self, scope: &Scope, period: &str, writing: &Writing) -> Result<bool> {
        let (scope, period, writing) = (scope.clone(), period.to_owned(), writing.clone());
        self.write(move |connection, _| registering::remove_deadline(connection, (&scope, &period), &writing))
            .await
    }

    async fn import_scopes(&self, wishes: &[(u32, ScopeWish)], import: &Import) -> Result<Imported> {
        let (wishes, import) = (wishes.to_vec(), import.clone());
        self.write(move |connection, _| registering::import(connection, &wishes, &import)).await
    }

    async fn organisation(&self, id: &OrganisationId) -> Result<Option<Organisation>> {
        let id = id.clone();
        self.read(move |connection| find_organisation(connection, &id)).await
    }

    async fn organisations(&self, after: Option<&OrganisationId>, limit: u32) -> Result<Vec<Organisation>> {
        let after = after.map_or_else(String::new, ToString::to_string);
        self.read(move |connection| {
            let mut query = connection
                .prepare_cached("SELECT * FROM organisations WHERE id > ?1 ORDER BY id LIMIT ?2")?;
            Ok(query.query_map(params![after, limit], organisation)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn registration(&self, scope: &Scope) -> Result<Option<Registration>> {
        let scope = scope.clone();
        self.read(move |connection| find_registration(connection, &scope)).await
    }

    async fn registrations(
        &self,
        organisation: &OrganisationId,
        after: Option<&RegistrationId>,
        limit: u32,
    ) -> Result<Vec<Registration>> {
        let (organisation, after) =
            (organisation.to_string(), after.map_or_else(String::new, ToString::to_string));
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM registrations WHERE organisation = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            )?;
            let found = query.query_map(params![organisation, after, limit], registration)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn accreditations(&self, scope: &Scope) -> Result<Vec<Accreditation>> {
        let scope = scope.clone();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM accreditations WHERE organisation = ?1 AND registration = ?2
                 ORDER BY coalesce(from_day, ''), id LIMIT ?3",
            )?;
            let (organisation, registration) = names(&scope);
            let place = params![organisation, registration, PER_REGISTRATION_MAX];
            Ok(query.query_map(place, accreditation)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn deadlines(&self, scope: &Scope) -> Result<Vec<Deadline>> {
        let scope = scope.clone();
        self.read(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT * FROM deadlines WHERE organisation = ?1 AND registration = ?2
                 ORDER BY due_day, period LIMIT ?3",
            )?;
            let (organisation, registration) = names(&scope);
            let place = params![organisation, registration, PER_REGISTRATION_MAX];
            Ok(query.query_map(place, deadline)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

/// A scope as it stands in rows.
pub(super) fn names(scope: &Scope) -> (&str, &str) {
    (scope.organisation.as_str(), scope.registration.as_str())
}

pub(super) fn find_organisation(
    connection: &Connection,
    id: &OrganisationId,
) -> Result<Option<Organisation>> {
    let mut query = connection.prepare_cached("SELECT * FROM organisations WHERE id = ?1")?;
    optional(query.query_row([id.as_str()], organisation))
}

pub(super) fn find_registration(connection: &Connection, scope: &Scope) -> Result<Option<Registration>> {
    let mut query =
        connection.prepare_cached("SELECT * FROM registrations WHERE organisation = ?1 AND id = ?2")?;
    optional(query.query_row(names(scope), registration))
}

pub(super) fn find_accreditation(
    connection: &Connection,
    scope: &Scope,
    id: &AccreditationId,
) -> Result<Option<Accreditation>> {
    let mut query = connection.prepare_cached(
        "SELECT * FROM accreditations WHERE organisation = ?1 AND registration = ?2 AND id = ?3",
    )?;
    let (organisation, registration) = names(scope);
    optional(query.query_row(params![organisation, registration, id.as_str()], accreditation))
}

pub(super) fn find_deadline(
    connection: &Connection,
    scope: &Scope,
    period: &str,
) -> Result<Option<Deadline>> {
    let mut query = connection.prepare_cached(
        "SELECT * FROM deadlines WHERE organisation = ?1 AND registration = ?2 AND period = ?3",
    )?;
    let (organisation, registration) = names(scope);
    optional(query.query_row(params![organisation, registration, period], deadline))
}

fn organisation(row: &Row<'_>) -> rusqlite::Result<Organisation> {
    Ok(Organisation {
        id: id(row, "id", OrganisationId::parse)?,
        name: row.get("name")?,
        number: row.get("number")?,
        created_at: get(row, "created_ms")?,
    })
}

fn registration(row: &Row<'_>) -> rusqlite::Result<Registration> {
    let template: Option<String> = row.get("template")?;
    Ok(Registration {
        scope: scope(row, "id")?,
        number: row.get("number")?,
        title: row.get("title")?,
        material: row.get("material")?,
        template: template.map(|_| id(row, "template", TemplateId::parse)).transpose()?,
        active: span(row)?,
        created_at: get(row, "created_ms")?,
    })
}

fn accreditation(row: &Row<'_>) -> rusqlite::Result<Accreditation> {
    Ok(Accreditation {
        scope: scope(row, "registration")?,
        id: id(row, "id", AccreditationId::parse)?,
        number: row.get("number")?,
        valid: span(row)?,
        created_at: get(row, "created_ms")?,
    })
}

fn deadline(row: &Row<'_>) -> rusqlite::Result<Deadline> {
    Ok(Deadline {
        period: row.get("period")?,
        opens: get_optional(row, "opens_day")?,
        due: get(row, "due_day")?,
    })
}

fn scope(row: &Row<'_>, registration: &str) -> rusqlite::Result<Scope> {
    Ok(Scope {
        organisation: id(row, "organisation", OrganisationId::parse)?,
        registration: id(row, registration, RegistrationId::parse)?,
    })
}

fn span(row: &Row<'_>) -> rusqlite::Result<Span> {
    let (from, until) = (get_optional(row, "from_day")?, get_optional(row, "until_day")?);
    Span::new(from, until).map_err(|cause| rusqlite::Error::ToSqlConversionFailure(cause.into()))
}
