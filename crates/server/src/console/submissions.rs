//! Pages of those who hand in and of those who read it. The frames are made here, after the same checks as the API; what is in them
//! comes from the API, by their scripts.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use ledger::scopes::Registration;
use model::SummaryLogId;
use model::access::{Permission, may_for};

use super::page::{Page, Visitor, render};
use crate::app::App;
use crate::http::Problem;

/// A registration, for the head of a page.
struct Place {
    organisation: String,
    organisation_name: String,
    registration: String,
    title: String,
    number: String,
    may_submit: bool,
}

#[derive(Template)]
#[template(path = "registration.html")]
struct RegistrationPage {
    page: Page,
    place: Place,
}

#[derive(Template)]
#[template(path = "log.html")]
struct LogPage {
    page: Page,
    place: Place,
    log: String,
    name: String,
}

#[derive(Template)]
#[template(path = "records.html")]
struct RecordsPage {
    page: Page,
    place: Place,
    /// Kind and key of the record that is looked at; empty for all.
    record: Option<(String, String)>,
}

/// One registration: hand in, and what was handed in.
pub(super) async fn registration(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Path((organisation, registration)): Path<(String, String)>,
) -> Response {
    let page = async {
        let place = place(&app, &visitor, (&organisation, &registration)).await?.0;
        render(&RegistrationPage { page: visitor.page("submissions"), place })
    };
    visitor.answer(page.await)
}

/// One summary log.
pub(super) async fn log(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Path((organisation, registration, log)): Path<(String, String, String)>,
) -> Response {
    let page = async {
        let (place, found) = place(&app, &visitor, (&organisation, &registration)).await?;
        let id = SummaryLogId::parse(&log).map_err(|refused| Problem::id(&refused))?;
        let log = app.ledger.log(&found.scope, &id).await?.ok_or_else(Problem::not_found)?;
        let name = match log.source {
            ledger::logs::LogSource::Workbook { name, .. } => name,
            ledger::logs::LogSource::Undo(_) => String::new(),
        };
        render(&LogPage { page: visitor.page("submissions"), place, log: id.to_string(), name })
    };
    visitor.answer(page.await)
}

/// The records of a registration.
pub(super) async fn records(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Path((organisation, registration)): Path<(String, String)>,
) -> Response {
    visitor.answer(records_page(&app, &visitor, (&organisation, &registration), None).await)
}

/// The history of one record.
pub(super) async fn record(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Path((organisation, registration, kind, key)): Path<(String, String, String, String)>,
) -> Response {
    let record = Some((kind, key));
    visitor.answer(records_page(&app, &visitor, (&organisation, &registration), record).await)
}

async fn records_page(
    app: &App,
    visitor: &Visitor,
    ids: (&str, &str),
    record: Option<(String, String)>,
) -> Result<Response, Problem> {
    let place = place(app, visitor, ids).await?.0;
    render(&RecordsPage { page: visitor.page("submissions"), place, record })
}

/// The place, if the caller may look at it.
async fn place(app: &App, visitor: &Visitor, ids: (&str, &str)) -> Result<(Place, Registration), Problem> {
    let registration = visitor.session.registration(app, ids, Permission::View).await?;
    let organisation = visitor.session.organisation(app, ids.0, Permission::View).await?;
    let place = Place {
        organisation: organisation.id.to_string(),
        organisation_name: organisation.name,
        registration: registration.scope.registration.to_string(),
        title: registration.title.clone(),
        number: registration.number.clone(),
        may_submit: may_for(&visitor.session.0, Permission::Submit, &organisation.id),
    };
    Ok((place, registration))
}
