//! The part of the port about templates: texts that say how workbooks are read.
//!
//! Guarantees: a version is what it was when it was added, for ever; a retired one stays readable, for records came under it.
//! Adding and retiring are in the audit chain of the installation, in the same step. Does not do: read the texts (`sheets`).

use async_trait::async_trait;
use jiff::Timestamp;
use model::{TemplateId, TemplateVersion};

use crate::Result;
use crate::documents::Author;

/// Templates.
#[async_trait]
pub trait Templates: Send + Sync {
    /// Adds a version of a template. The same text again is nothing new, whoever brings it.
    async fn add_template(&self, new: &NewTemplate) -> Result<Added>;
    /// Retires a version: no upload is read by it from now on. `false` if it was retired before.
    async fn retire_template(&self, retirement: &TemplateRetirement) -> Result<bool>;
    /// One version, retired or not.
    async fn template(&self, id: &TemplateId, version: &TemplateVersion) -> Result<Option<Template>>;
    /// The versions of one template, or of all, by id and then the newest first. Their texts are left out.
    async fn templates(&self, id: Option<&TemplateId>) -> Result<Vec<TemplateEntry>>;
}

/// Most versions of all templates together: they are listed whole, and each is a decision of somebody.
pub const TEMPLATES_MAX: u32 = 10_000;

/// A version to be added.
#[derive(Debug, Clone)]
pub struct NewTemplate {
    /// The template.
    pub id: TemplateId,
    /// Its version.
    pub version: TemplateVersion,
    /// What people call it.
    pub title: String,
    /// The text, as it was brought.
    pub text: String,
    /// Who brings it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// What came of adding a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is there now.
    New,
    /// It was there, with this very text.
    Same,
    /// It was there with another text, and still is.
    OtherText,
}

/// A version in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateEntry {
    /// The template.
    pub id: TemplateId,
    /// Its version.
    pub version: TemplateVersion,
    /// What people call it.
    pub title: String,
    /// The id of who added it.
    pub added_by: String,
    /// When.
    pub added_at: Timestamp,
    /// When it was retired.
    pub retired_at: Option<Timestamp>,
}

/// A version with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// What is known of it.
    pub entry: TemplateEntry,
    /// Its text.
    pub text: String,
}

/// A version to be retired.
#[derive(Debug, Clone)]
pub struct TemplateRetirement {
    /// The template.
    pub id: TemplateId,
    /// Its version.
    pub version: TemplateVersion,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}
