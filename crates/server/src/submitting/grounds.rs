//! What a log is read by: the template, and the facts of its scope.
//!
//! Guarantees: a log that was begun under a version of a template is read by that version, also when it is retired meanwhile.

use jiff::civil::Date;
use ledger::logs::SummaryLog;
use model::scopes::Span;
use model::{Scope, TemplateId, TemplateVersion};
use sheets::{AccreditationFacts, ScopeFacts, Template};

use super::SubmissionError;
use crate::app::App;

/// What a workbook is read by.
#[derive(Debug, Clone)]
pub struct Grounds {
    /// The template.
    pub template: Template,
    /// What it may know of the scope.
    pub facts: ScopeFacts,
}

/// What a workbook that comes in now is read by: the newest version of the assigned template that is not retired.
pub(crate) async fn of_scope(app: &App, scope: &Scope) -> Result<Grounds, SubmissionError> {
    let registration = app.ledger.registration(scope).await?.ok_or(SubmissionError::NotFound)?;
    let template = registration.template.ok_or(SubmissionError::NoTemplate)?;
    let versions = app.ledger.templates(Some(&template)).await?;
    let current = versions.into_iter().find(|version| version.retired_at.is_none());
    let current = current.ok_or(SubmissionError::NoTemplate)?;
    read(app, scope, (&template, &current.version)).await
}

/// What a log is read by.
pub(super) async fn of_log(app: &App, log: &SummaryLog) -> Result<Grounds, SubmissionError> {
    let id = TemplateId::parse(&log.template).map_err(|_| SubmissionError::NoTemplate)?;
    let version = TemplateVersion::parse(&log.template_version).map_err(|_| SubmissionError::NoTemplate)?;
    read(app, &log.scope, (&id, &version)).await
}

async fn read(
    app: &App,
    scope: &Scope,
    (id, version): (&TemplateId, &TemplateVersion),
) -> Result<Grounds, SubmissionError> {
    let text = app.ledger.template(id, version).await?.ok_or(SubmissionError::NoTemplate)?.text;
    // It was checked when it was added; a later program may know better.
    let template = Template::parse(&text).map_err(|_| SubmissionError::NoTemplate)?;
    Ok(Grounds { template, facts: facts_of(app, scope).await? })
}

async fn facts_of(app: &App, scope: &Scope) -> Result<ScopeFacts, SubmissionError> {
    let organisation =
        app.ledger.organisation(&scope.organisation).await?.ok_or(SubmissionError::NotFound)?;
    let registration = app.ledger.registration(scope).await?.ok_or(SubmissionError::NotFound)?;
    let accreditations = app.ledger.accreditations(scope).await?;
    Ok(ScopeFacts {
        organisation_id: organisation.id.to_string(),
        organisation_name: organisation.name,
        registration_id: registration.scope.registration.to_string(),
        registration_number: registration.number,
        accreditations: accreditations
            .into_iter()
            .map(|each| AccreditationFacts {
                number: each.number,
                from: first(each.valid),
                until: last(each.valid),
            })
            .collect(),
    })
}

fn first(span: Span) -> Date {
    span.from().unwrap_or(Date::MIN)
}

fn last(span: Span) -> Date {
    span.until().unwrap_or(Date::MAX)
}
