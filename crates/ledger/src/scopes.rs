//! The part of the port about who hands in what and by when: organisations, their registrations, accreditations and deadlines.
//!
//! Guarantees: nothing of it goes but deadlines, and every change is in the audit chain of its organisation, in the same step; what
//! is written as it was leaves no entry. A number stands for one registration of its organisation, and for one accreditation of
//! its registration. An assigned template exists in a version that is not retired. An import is one step: all of it or nothing.
//! Does not do: say who may write (the edges do), or who is late (`model::scopes`).

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use model::scopes::{Deadline, Span};
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, TemplateId};

use crate::Result;
use crate::documents::Author;

/// Who hands in what.
#[async_trait]
pub trait Scopes: Send + Sync {
    /// Writes an organisation down.
    async fn write_organisation(&self, wish: &OrganisationWish, writing: &Writing) -> Result<Organisation>;
    /// Writes a registration of an organisation down.
    async fn write_registration(&self, wish: &RegistrationWish, writing: &Writing) -> Result<Registration>;
    /// Writes an accreditation under a registration down.
    async fn write_accreditation(&self, wish: &AccreditationWish, writing: &Writing)
    -> Result<Accreditation>;
    /// Writes a deadline of a scope down.
    async fn write_deadline(&self, wish: &DeadlineWish, writing: &Writing) -> Result<Deadline>;
    /// Takes a deadline away; `false` if there is none for this period.
    async fn remove_deadline(&self, scope: &Scope, period: &str, writing: &Writing) -> Result<bool>;
    /// Writes many things down at once, or none of them if one is refused or it is only a rehearsal. Each has the line it
    /// stands in.
    async fn import_scopes(&self, wishes: &[(u32, ScopeWish)], import: &Import) -> Result<Imported>;

    /// One organisation.
    async fn organisation(&self, id: &OrganisationId) -> Result<Option<Organisation>>;
    /// A page of all organisations, by id, from the one after `after`.
    async fn organisations(&self, after: Option<&OrganisationId>, limit: u32) -> Result<Vec<Organisation>>;
    /// One registration.
    async fn registration(&self, scope: &Scope) -> Result<Option<Registration>>;
    /// A page of an organisation's registrations, by id, from the one after `after`.
    async fn registrations(
        &self,
        organisation: &OrganisationId,
        after: Option<&RegistrationId>,
        limit: u32,
    ) -> Result<Vec<Registration>>;
    /// The accreditations under a registration, by their first day.
    async fn accreditations(&self, scope: &Scope) -> Result<Vec<Accreditation>>;
    /// The deadlines of a scope, the earliest first.
    async fn deadlines(&self, scope: &Scope) -> Result<Vec<Deadline>>;
}

/// Most accreditations of a registration, and most deadlines of it: they are listed whole.
pub const PER_REGISTRATION_MAX: u32 = 1000;

/// Somebody who hands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organisation {
    /// Its id.
    pub id: OrganisationId,
    /// What people call it.
    pub name: String,
    /// Its number, as others know it.
    pub number: Option<String>,
    /// When it was added.
    pub created_at: Timestamp,
}

/// What an organisation hands in for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Whose and which.
    pub scope: Scope,
    /// Its number, unique in the organisation.
    pub number: String,
    /// What people call it.
    pub title: String,
    /// The material it is for, if templates compare that.
    pub material: Option<String>,
    /// The template its workbooks are read by.
    pub template: Option<TemplateId>,
    /// When it is active.
    pub active: Span,
    /// When it was added.
    pub created_at: Timestamp,
}

/// A licence under a registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accreditation {
    /// The registration it is under.
    pub scope: Scope,
    /// Its id, unique under the registration.
    pub id: AccreditationId,
    /// Its number, unique under the registration.
    pub number: String,
    /// When it counts.
    pub valid: Span,
    /// When it was added.
    pub created_at: Timestamp,
}

/// An organisation as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrganisationWish {
    /// Its id.
    pub id: OrganisationId,
    /// What people call it; the id if nobody says.
    pub name: Option<String>,
    /// Its number.
    pub number: Option<String>,
}

/// A registration as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationWish {
    /// Whose and which.
    pub scope: Scope,
    /// Its number; the id if nobody says.
    pub number: Option<String>,
    /// What people call it; the id if nobody says.
    pub title: Option<String>,
    /// The material it is for.
    pub material: Option<String>,
    /// The template its workbooks are read by.
    pub template: Option<TemplateId>,
    /// The first day it is active.
    pub from: Option<Date>,
    /// The last one.
    pub until: Option<Date>,
}

impl RegistrationWish {
    /// A registration of which nothing is said.
    pub fn new(scope: Scope) -> Self {
        Self { scope, number: None, title: None, material: None, template: None, from: None, until: None }
    }
}

/// An accreditation as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccreditationWish {
    /// The registration it is under.
    pub scope: Scope,
    /// Its id.
    pub id: AccreditationId,
    /// Its number; the id if nobody says.
    pub number: Option<String>,
    /// The first day it counts.
    pub from: Option<Date>,
    /// The last one.
    pub until: Option<Date>,
}

/// A deadline as it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlineWish {
    /// The scope that hands in.
    pub scope: Scope,
    /// What for.
    pub period: String,
    /// The first day on which a submission counts for it.
    pub opens: Option<Date>,
    /// The last day.
    pub due: Date,
}

/// What becomes of what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It is new; refused if it is there.
    Create,
    /// There or not: it is from now on what the wish says, no more and no less.
    Put,
    /// There or not: what the wish does not say stays as it is.
    Merge,
}

/// A change of what is said of organisations.
#[derive(Debug, Clone)]
pub struct Writing {
    /// What becomes of what is there.
    pub how: How,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// One of many things to be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeWish {
    /// An organisation.
    Organisation(OrganisationWish),
    /// A registration.
    Registration(RegistrationWish),
    /// An accreditation.
    Accreditation(AccreditationWish),
    /// A deadline.
    Deadline(DeadlineWish),
}

/// Many things at once. What they do not say stays as it is.
#[derive(Debug, Clone)]
pub struct Import {
    /// Whether it is only said what would happen.
    pub is_rehearsal: bool,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// What came of an import, or would have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// Things that were not there.
    pub created: u32,
    /// Things that are different now.
    pub changed: u32,
    /// Things that were as they shall be.
    pub unchanged: u32,
    /// What was refused, by line. If this is not empty, nothing was written.
    pub refused: Vec<(u32, String)>,
}
