//! Organisations, registrations, accreditations and deadlines on PostgreSQL: what is there. How it gets there is in
//! [`super::registering`].

use async_trait::async_trait;
use model::scopes::{Deadline, Span};
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, TemplateId};
use tokio_postgres::Row;

use super::rows::{all, get, get_optional, id};
use super::{PostgresLedger, registering};
use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, Import, Imported, Organisation, OrganisationWish,
    PER_REGISTRATION_MAX, Registration, RegistrationWish, ScopeWish, Writing,
};
use crate::{LedgerError, Result, Scopes};

#[async_trait]
impl Scopes for PostgresLedger {
    async fn write_organisation(&self, wish: &OrganisationWish, writing: &Writing) -> Result<Organisation> {
        let step = self.write().await?;
        let done = registering::organisation(&step, wish, writing).await;
        step.end(done).await
    }

    async fn write_registration(&self, wish: &RegistrationWish, writing: &Writing) -> Result<Registration> {
        let step = self.write().await?;
        let done = registering::registration(&step, wish, writing).await;
        step.end(done).await
    }

    async fn write_accreditation(
        &self,
        wish: &AccreditationWish,
        writing: &Writing,
    ) -> Result<Accreditation> {
        let step = self.write().await?;
        let done = registering::accreditation(&step, wish, writing).await;
        step.end(done).await
    }

    async fn write_deadline(&self, wish: &DeadlineWish, writing: &Writing) -> Result<Deadline> {
        let step = self.write().await?;
        let done = registering::deadline(&step, wish, writing).await;
        step.end(done).await
    }

    async fn remove_deadline(&self, scope: &Scope, period: &str, writing: &Writing) -> Result<bool> {
        let step = self.write().await?;
        let done = registering::remove_deadline(&step, (scope, period), writing).await;
        step.end(done).await
    }

    async fn import_scopes(&self, wishes: &[(u32, ScopeWish)], import: &Import) -> Result<Imported> {
        let step = self.write().await?;
        let done = registering::import(&step, wishes, import).await;
        step.end(done).await
    }

    async fn organisation(&self, id: &OrganisationId) -> Result<Option<Organisation>> {
        let step = self.glance().await?;
        let query = format!("SELECT {ORGANISATION_COLUMNS} FROM organisations t WHERE t.id = $1");
        let found = step.query_optional(&query, &[&id.as_str()]).await;
        let found = found.and_then(|row| row.as_ref().map(organisation).transpose());
        step.end(found).await
    }

    async fn organisations(&self, after: Option<&OrganisationId>, limit: u32) -> Result<Vec<Organisation>> {
        let step = self.glance().await?;
        let query = format!(
            "SELECT {ORGANISATION_COLUMNS} FROM organisations t WHERE t.id > $1 ORDER BY t.id LIMIT $2"
        );
        let after = after.map_or("", OrganisationId::as_str);
        let found = step.query(&query, &[&after, &i64::from(limit)]).await;
        let found = found.and_then(|rows| all(&rows, organisation));
        step.end(found).await
    }

    async fn registration(&self, scope: &Scope) -> Result<Option<Registration>> {
        let step = self.glance().await?;
        let query = format!(
            "SELECT {REGISTRATION_COLUMNS} FROM registrations t WHERE t.organisation = $1 AND t.id = $2"
        );
        let (organisation, id) = names(scope);
        let found = step.query_optional(&query, &[&organisation, &id]).await;
        let found = found.and_then(|row| row.as_ref().map(registration).transpose());
        step.end(found).await
    }

    async fn registrations(
        &self,
        organisation: &OrganisationId,
        after: Option<&RegistrationId>,
        limit: u32,
    ) -> Result<Vec<Registration>> {
        let step = self.glance().await?;
        let query = format!(
            "SELECT {REGISTRATION_COLUMNS} FROM registrations t WHERE t.organisation = $1 AND t.id > $2 ORDER BY t.id LIMIT $3"
        );
        let after = after.map_or("", RegistrationId::as_str);
        let found = step.query(&query, &[&organisation.as_str(), &after, &i64::from(limit)]).await;
        let found = found.and_then(|rows| all(&rows, registration));
        step.end(found).await
    }

    async fn accreditations(&self, scope: &Scope) -> Result<Vec<Accreditation>> {
        let step = self.glance().await?;
        let query = format!(
            "SELECT {ACCREDITATION_COLUMNS} FROM accreditations t WHERE t.organisation = $1 AND t.registration = $2
             ORDER BY coalesce(t.from_day, ''), t.id LIMIT $3"
        );
        let (organisation, registration) = names(scope);
        let limit = i64::from(PER_REGISTRATION_MAX);
        let found = step.query(&query, &[&organisation, &registration, &limit]).await;
        let found = found.and_then(|rows| all(&rows, accreditation));
        step.end(found).await
    }

    async fn deadlines(&self, scope: &Scope) -> Result<Vec<Deadline>> {
        let step = self.glance().await?;
        let query = format!(
            "SELECT {DEADLINE_COLUMNS} FROM deadlines t WHERE t.organisation = $1 AND t.registration = $2
             ORDER BY t.due_day, t.period LIMIT $3"
        );
        let (organisation, registration) = names(scope);
        let limit = i64::from(PER_REGISTRATION_MAX);
        let found = step.query(&query, &[&organisation, &registration, &limit]).await;
        let found = found.and_then(|rows| all(&rows, deadline));
        step.end(found).await
    }
}

/// A scope as it stands in rows.
pub(super) fn names(scope: &Scope) -> (&str, &str) {
    (scope.organisation.as_str(), scope.registration.as_str())
}

pub(super) const ORGANISATION_COLUMNS: &str = "t.id, t.name, t.number, t.created_ms";
pub(super) const REGISTRATION_COLUMNS: &str =
    "t.organisation, t.id, t.number, t.title, t.material, t.template, t.from_day, t.until_day, t.created_ms";
pub(super) const ACCREDITATION_COLUMNS: &str =
    "t.organisation, t.registration, t.id, t.number, t.from_day, t.until_day, t.created_ms";
pub(super) const DEADLINE_COLUMNS: &str = "t.organisation, t.registration, t.period, t.opens_day, t.due_day";

pub(super) fn organisation(row: &Row) -> Result<Organisation> {
    Ok(Organisation {
        id: id(row, "id", OrganisationId::parse)?,
        name: get(row, "name")?,
        number: get_optional(row, "number")?,
        created_at: get(row, "created_ms")?,
    })
}

pub(super) fn registration(row: &Row) -> Result<Registration> {
    let template: Option<String> = get_optional(row, "template")?;
    Ok(Registration {
        scope: scope(row, "id")?,
        number: get(row, "number")?,
        title: get(row, "title")?,
        material: get_optional(row, "material")?,
        template: template.map(|_| id(row, "template", TemplateId::parse)).transpose()?,
        active: span(row)?,
        created_at: get(row, "created_ms")?,
    })
}

pub(super) fn accreditation(row: &Row) -> Result<Accreditation> {
    Ok(Accreditation {
        scope: scope(row, "registration")?,
        id: id(row, "id", AccreditationId::parse)?,
        number: get(row, "number")?,
        valid: span(row)?,
        created_at: get(row, "created_ms")?,
    })
}

pub(super) fn deadline(row: &Row) -> Result<Deadline> {
    Ok(Deadline {
        period: get(row, "period")?,
        opens: get_optional(row, "opens_day")?,
        due: get(row, "due_day")?,
    })
}

/// Whose row it is: the registration stands in this column.
pub(super) fn scope(row: &Row, registration: &str) -> Result<Scope> {
    Ok(Scope {
        organisation: id(row, "organisation", OrganisationId::parse)?,
        registration: id(row, registration, RegistrationId::parse)?,
    })
}

fn span(row: &Row) -> Result<Span> {
    let (from, until) = (get_optional(row, "from_day")?, get_optional(row, "until_day")?);
    Span::new(from, until).map_err(LedgerError::damaged)
}
