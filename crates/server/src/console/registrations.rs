//! Everything somebody hands in for, or reads: registrations with how they stand, by organisation, page by page.
//!
//! Guarantees: only organisations that the API would show to the same caller. A page costs a few lookups for each row it shows, however many
//! organisations there are.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use ledger::logs::LogsPage;
use ledger::scopes::{Organisation, Registration};
use model::OrganisationId;
use model::access::{Organisations, Permission, may_for, may_operate};
use model::submissions::LogState;
use serde::Deserialize;

use super::page::{Page, Visitor, render, time};
use crate::app::App;
use crate::http::Problem;

/// Organisations of a page.
const SHOWN: u32 = 20;
/// Registrations of an organisation that are shown; who has more is looked at by its address.
const REGISTRATIONS_SHOWN: u32 = 50;

#[derive(Debug, Deserialize)]
pub(super) struct After {
    after: Option<String>,
}

#[derive(Template)]
#[template(path = "registrations.html")]
struct Registrations {
    page: Page,
    organisations: Vec<Group>,
    next: Option<String>,
    is_first: bool,
}

/// An organisation with its registrations.
struct Group {
    name: String,
    registrations: Vec<Row>,
}

struct Row {
    link: String,
    title: String,
    number: String,
    last: Option<Last>,
    newest: Option<Newest>,
}

/// The last submission.
struct Last {
    number: u64,
    at: String,
    words: String,
}

/// The newest upload.
struct Newest {
    link: String,
    state: &'static str,
    kind: &'static str,
}

/// The page.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Query(query): Query<After>,
) -> Response {
    visitor.answer(list_page(&app, &visitor, query.after.as_deref()).await)
}

async fn list_page(app: &App, visitor: &Visitor, after: Option<&str>) -> Result<Response, Problem> {
    let after = after.map(OrganisationId::parse).transpose().map_err(|refused| Problem::id(&refused))?;
    let found = organisations(app, visitor, after.as_ref()).await?;
    let last = found.last().filter(|_| found.len() == SHOWN as usize);
    let next = last.map(|last| format!("/submissions?after={}", last.id));
    let mut groups = Vec::new();
    for organisation in found {
        groups.push(group(app, organisation).await?);
    }
    let page = visitor.page("submissions");
    render(&Registrations { page, organisations: groups, next, is_first: after.is_none() })
}

/// Those the caller acts for; all of them for operators and regulators of everything.
async fn organisations(
    app: &App,
    visitor: &Visitor,
    after: Option<&OrganisationId>,
) -> Result<Vec<Organisation>, Problem> {
    let caller = &visitor.session.0;
    let mut found = Vec::new();
    match &caller.organisations {
        Organisations::Only(ids) if !may_operate(caller) => {
            let mut ids: Vec<&OrganisationId> = ids.iter().collect();
            ids.sort_unstable();
            for id in ids.into_iter().filter(|id| after.is_none_or(|after| *id > after)).take(SHOWN as usize)
            {
                found.extend(app.ledger.organisation(id).await?);
            }
        }
        _ => found = app.ledger.organisations(after, SHOWN).await?,
    }
    found.retain(|organisation| may_for(caller, Permission::View, &organisation.id));
    Ok(found)
}

async fn group(app: &App, organisation: Organisation) -> Result<Group, Problem> {
    let mut rows = Vec::new();
    for registration in app.ledger.registrations(&organisation.id, None, REGISTRATIONS_SHOWN).await? {
        rows.push(row(app, registration).await?);
    }
    let name = if organisation.name.is_empty() { organisation.id.to_string() } else { organisation.name };
    Ok(Group { name, registrations: rows })
}

async fn row(app: &App, registration: Registration) -> Result<Row, Problem> {
    let scope = &registration.scope;
    let link = format!("/submissions/{}/{}", scope.organisation, scope.registration);
    let last = app.ledger.commits(scope, None, 1).await?.into_iter().next();
    let wish = LogsPage { scope: Some(scope.clone()), limit: 1, ..LogsPage::default() };
    let newest = app.ledger.logs(&wish).await?.into_iter().next();
    let title =
        if registration.title.is_empty() { scope.registration.to_string() } else { registration.title };
    Ok(Row {
        title,
        number: registration.number,
        last: last.map(|commit| Last {
            number: commit.sequence,
            at: commit.at.to_string(),
            words: time(commit.at),
        }),
        newest: newest.map(|log| Newest {
            link: format!("{link}/logs/{}", log.id),
            state: log.state.as_str(),
            kind: kind_of(log.state),
        }),
        link,
    })
}

/// The colour of a state; the same in scripts (`registrations.js`).
fn kind_of(state: LogState) -> &'static str {
    match state {
        LogState::Submitted => "good",
        LogState::Invalid | LogState::ValidationFailed => "bad",
        LogState::Superseded => "",
        _ => "live",
    }
}
