//! Acts on their way into the audit trail, as every engine is given them.
//!
//! Does not do: chains and hashes, which stand in rows (`audit.rs` of each engine).

use jiff::Timestamp;
use model::{CompanyId, DocumentId, Scope};
use serde_json::Value;

use crate::documents::Author;
use crate::trail::{ActsOrder, ActsPage};

/// The chain of what happens to the installation as a whole. No id has a colon, so no document's chain has this name.
pub(crate) const INSTALLATION: &str = "saveguard:installation";
/// What came of an act that can only be done.
pub(crate) const DONE: &str = "done";

/// Who acts, and from where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor<'a> {
    pub(crate) id: &'a str,
    pub(crate) from: &'a str,
}

impl<'a> Actor<'a> {
    /// The service itself.
    pub(crate) const SAVEGUARD: Self = Self { id: "saveguard", from: "saveguard" };
    /// The Document Server, for nobody in particular.
    pub(crate) const DOCUMENT_SERVER: Self = Self::through_server("document-server");

    /// Somebody whose act the Document Server tells of.
    pub(crate) const fn through_server(id: &'a str) -> Self {
        Self { id, from: "document-server" }
    }

    /// Somebody who called us.
    pub(crate) fn person(author: &'a Author) -> Self {
        Self { id: &author.id, from: &author.from }
    }
}

/// What is about to be written down. Its outcome is the one in the details, else `done`.
pub(crate) struct Act<'a> {
    pub(crate) document: &'a DocumentId,
    pub(crate) at: Timestamp,
    pub(crate) actor: Actor<'a>,
    pub(crate) action: &'a str,
    pub(crate) details: Value,
}

/// What is about to be written down of a company, or of the installation as a whole.
pub(crate) struct CompanyAct<'a> {
    /// None: the installation.
    pub(crate) company: Option<&'a CompanyId>,
    pub(crate) at: Timestamp,
    pub(crate) actor: Actor<'a>,
    pub(crate) action: &'a str,
    pub(crate) details: Value,
}

/// What is about to be written down of a scope of records.
pub(crate) struct ScopeAct<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) at: Timestamp,
    pub(crate) actor: Actor<'a>,
    pub(crate) action: &'a str,
    pub(crate) details: Value,
}

/// Where a page of a company's entries begins (time, chain, number; itself left out), and the time it does not pass.
pub(crate) fn range_of(page: &ActsPage) -> ((i64, &str, i64), i64) {
    let after = page.after.as_ref().map(|after| {
        (after.at.as_millisecond(), after.chain.as_str(), i64::try_from(after.sequence).unwrap_or(i64::MAX))
    });
    let since = page.since.map_or(i64::MIN, Timestamp::as_millisecond);
    let until = page.until.map_or(i64::MAX, Timestamp::as_millisecond);
    // No chain is called nothing: this lies before all entries of that time.
    match page.order {
        ActsOrder::OldestFirst => (after.filter(|after| after.0 >= since).unwrap_or((since, "", 0)), until),
        ActsOrder::NewestFirst => (after.filter(|after| after.0 < until).unwrap_or((until, "", 0)), since),
    }
}
