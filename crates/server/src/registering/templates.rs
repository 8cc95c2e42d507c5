//! Templates on their way into the ledger: a text is read and checked whole before it is added.

use jiff::Timestamp;
use jiff::civil::Date;
use ledger::LedgerError;
use ledger::documents::Author;
use ledger::scopes::{Accreditation, Registration};
use ledger::templates::NewTemplate;
use model::names::title;
use model::scopes::Span;
use model::{TemplateId, TemplateVersion};
use sheets::{AccreditationFacts, ScopeFacts, Template};

use crate::app::App;

pub(crate) use sheets::Mistake;

/// Bytes of a template at most, as `sheets` reads them.
pub(crate) const TEMPLATE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const STARTER: &str = include_str!("starter.toml");

/// Reads a template that somebody brings. All its mistakes are named at once.
pub(crate) fn read_template(
    text: String,
    (by, at): (Author, Timestamp),
) -> Result<NewTemplate, Vec<Mistake>> {
    let template = Template::parse(&text)?;
    let wrong = |place: &str, what: String| Mistake { place: place.to_owned(), line: None, what };
    let id = TemplateId::parse(&template.id).map_err(|refused| wrong("template.id", refused.to_string()));
    let version = TemplateVersion::parse(&template.version.to_string())
        .map_err(|refused| wrong("template.version", refused.to_string()));
    let title = title(&template.title).map_err(|refused| wrong("template.title", refused.to_string()));
    match (id, version, title) {
        (Ok(id), Ok(version), Ok(title)) => Ok(NewTemplate { id, version, title, text, by, at }),
        (id, version, title) => Err([id.err(), version.err(), title.err()].into_iter().flatten().collect()),
    }
}

/// A template to begin with, explained.
pub(crate) fn starter(id: &TemplateId) -> String {
    STARTER.replace("my-returns", id.as_str())
}

/// What a template may know of a scope.
pub(crate) async fn facts_of(app: &App, registration: &Registration) -> Result<ScopeFacts, LedgerError> {
    let scope = &registration.scope;
    let organisation = app.ledger.organisation(&scope.organisation).await?;
    let organisation = organisation
        .ok_or_else(|| LedgerError::not_found(format!("organisation `{}`", scope.organisation)))?;
    let accreditations = app.ledger.accreditations(scope).await?;
    Ok(ScopeFacts {
        organisation_id: organisation.id.to_string(),
        organisation_name: organisation.name,
        registration_id: scope.registration.to_string(),
        registration_number: registration.number.clone(),
        accreditations: accreditations.into_iter().map(accreditation_facts).collect(),
    })
}

/// An end that is open lies as far away as days go.
fn accreditation_facts(accreditation: Accreditation) -> AccreditationFacts {
    let Accreditation { number, valid, .. } = accreditation;
    let (from, until) = ends(valid);
    AccreditationFacts { number, from, until }
}

fn ends(span: Span) -> (Date, Date) {
    (span.from().unwrap_or(Date::MIN), span.until().unwrap_or(Date::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NewTemplate, Vec<Mistake>> {
        read_template(text.to_owned(), (Author::new("ops", "Ops"), Timestamp::from_second(0).unwrap()))
    }

    #[test]
    fn the_template_to_begin_with_has_no_mistakes() {
        let id = TemplateId::parse("our-returns").unwrap();

        let new = read(&starter(&id)).unwrap();

        assert_eq!((new.id, new.version.to_string().as_str()), (id, "1.0"));
    }

    #[test]
    fn the_template_that_is_shipped_can_be_added() {
        assert_eq!(read(sheets::WASTE_RECORDS).unwrap().id.as_str(), "waste-records");
    }

    #[test]
    fn ids_and_titles_that_the_ledger_does_not_keep_are_mistakes() {
        let id = TemplateId::parse("x").unwrap();
        let long = starter(&id).replace("id = \"x\"", &format!("id = \"{}\"", "x".repeat(65)));
        let nameless = starter(&id).replace("\ntitle = \"", "\ntitle = \"\\t\\u0007");

        assert_eq!(read(&long).unwrap_err()[0].place, "template.id");
        assert_eq!(read(&nameless).unwrap_err()[0].place, "template.title");
    }
}
