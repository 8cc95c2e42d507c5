//! Words and rules of Saveguard.
//!
//! Everything the product decides is decided here, by pure functions over plain values: which save may become
//! the head ([`saves::rule_on_save`]), which key an editor gets ([`opening::rule_on_open`]), what the Document
//! Server is told ([`callbacks::plan_for`]), what follows from a check ([`checking`]), which names are safe ([`names::FileName`]), who may do what
//! ([`access::may`], [`operations`], [`sharing`]), how much fits ([`quotas`]), when a session is over ([`sessions::rule_on_look`]), the way of a
//! summary log to its records ([`submissions`], [`records`], [`shifts`]), who hands in what by when ([`scopes`]) and in which order templates came ([`templates`]).
//!
//! Guarantees: no I/O, no async, no clock, no randomness, so a decision can be replayed, tested in a table and
//! searched exhaustively (`tests/rules` does).
//! Does not do: storing, fetching, parsing wire formats. Adapters and edges do that.

pub mod access;
pub mod audit;
pub mod callbacks;
pub mod changing;
pub mod checking;
pub mod disk;
pub mod guards;
pub mod ids;
pub mod keys;
pub mod names;
pub mod opening;
pub mod operations;
pub mod problems;
pub mod quotas;
pub mod records;
pub mod retention;
pub mod saves;
pub mod scopes;
pub mod sessions;
pub mod sharing;
pub mod shifts;
pub mod submissions;
pub mod templates;
pub mod trail;
pub mod trail_file;
pub mod versions;
pub mod webhooks;

pub use guards::Guards;
pub use ids::{
    AccreditationId, CompanyId, Digest, DocumentId, InboxNumber, OrganisationId, ProjectId, RegistrationId,
    SummaryLogId, TemplateId,
};
pub use keys::{EditorKey, Environment};
pub use scopes::Scope;
pub use templates::TemplateVersion;
pub use versions::Label;
