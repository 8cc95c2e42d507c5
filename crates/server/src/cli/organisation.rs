//! `saveguard organisation`: make, list and show those who hand in, in the ledger itself.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use jiff::civil::Date;
use ledger::scopes::{How, Organisation, OrganisationWish, Registration, Writing};
use model::names::title;
use model::scopes::{Span, day, label};
use model::{OrganisationId, RegistrationId, Scope};
use serde_json::{Value, json};

use super::{open_ledger, operator, print, print_columns, registration, tell};
use crate::app::App;
use crate::config::Config;

/// Read at once.
const PAGE: u32 = 1000;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make an organisation.
    Create {
        /// Its id, the one in the claim `organisations` of tokens: 1 to 64 of 0-9 a-z A-Z . _ = -.
        id: String,
        /// What people call it. Default: the id.
        #[arg(long)]
        name: Option<String>,
        /// Its number, as others know it.
        #[arg(long)]
        number: Option<String>,
    },
    /// List all organisations.
    List {
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show an organisation with its registrations, accreditations and deadlines.
    Show {
        /// Its id.
        id: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::Create { id, name, number } => {
            let wish = OrganisationWish {
                id: OrganisationId::parse(&id)?,
                name: name.as_deref().map(title).transpose()?,
                number: number.as_deref().map(label).transpose()?,
            };
            let written = app.ledger.write_organisation(&wish, &writing(&app, How::Create)).await;
            written.context("the organisation was not made")?;
            tell(&format!("Organisation {id} is made."));
        }
        Command::List { json } => list(&app, json).await?,
        Command::Show { id, json } => show(&app, &OrganisationId::parse(&id)?, json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A change from the command line, now.
pub(super) fn writing(app: &App, how: How) -> Writing {
    Writing { how, by: operator(), at: app.now() }
}

/// The ids of a scope, as they were typed.
pub(super) fn scope_of(organisation: &str, registration: &str) -> anyhow::Result<Scope> {
    Ok(Scope {
        organisation: OrganisationId::parse(organisation)?,
        registration: RegistrationId::parse(registration)?,
    })
}

/// A day, as it was typed.
pub(super) fn day_of(text: Option<&str>) -> anyhow::Result<Option<Date>> {
    text.map(|text| day(text).with_context(|| format!("`{text}`"))).transpose()
}

/// A span in a table.
pub(super) fn shown_span(span: Span) -> String {
    let shown = |day: Option<Date>| day.map(|day| day.to_string()).unwrap_or_default();
    match (span.from(), span.until()) {
        (None, None) => "always".to_owned(),
        (from, until) => format!("{}..{}", shown(from), shown(until)),
    }
}

/// The organisation, which must be there.
pub(super) async fn existing(app: &App, id: &OrganisationId) -> anyhow::Result<Organisation> {
    app.ledger.organisation(id).await?.with_context(|| format!("there is no organisation `{id}`"))
}

/// All registrations of an organisation.
pub(super) async fn registrations_of(app: &App, id: &OrganisationId) -> anyhow::Result<Vec<Registration>> {
    let mut found: Vec<Registration> = Vec::new();
    loop {
        let after = found.last().map(|last| last.scope.registration.clone());
        let page = app.ledger.registrations(id, after.as_ref(), PAGE).await?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page);
    }
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, json: bool) -> anyhow::Result<()> {
    let mut found: Vec<Organisation> = Vec::new();
    loop {
        let page = app.ledger.organisations(found.last().map(|last| &last.id), PAGE).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    if json {
        print(&found.iter().map(line_of).collect::<Value>().to_string());
        return Ok(());
    }
    print_columns(&[("ORGANISATION", 24), ("NUMBER", 20), ("NAME", 0)]);
    for each in &found {
        print_columns(&[
            (each.id.as_str(), 24),
            (each.number.as_deref().unwrap_or_default(), 20),
            (&each.name, 0),
        ]);
    }
    Ok(())
}

fn line_of(organisation: &Organisation) -> Value {
    json!({
        "id": organisation.id.as_str(),
        "name": organisation.name,
        "number": organisation.number,
        "created_at": organisation.created_at,
    })
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn show(app: &App, id: &OrganisationId, json: bool) -> anyhow::Result<()> {
    let organisation = existing(app, id).await?;
    let mut lines = Vec::new();
    for each in registrations_of(app, id).await? {
        let mut line = registration::line_of(&each);
        let accreditations = app.ledger.accreditations(&each.scope).await?;
        line["accreditations"] = accreditations.iter().map(registration::line_of_accreditation).collect();
        let deadlines = app.ledger.deadlines(&each.scope).await?;
        line["deadlines"] = deadlines.iter().map(registration::line_of_deadline).collect();
        lines.push(line);
    }
    if json {
        let mut line = line_of(&organisation);
        line["registrations"] = Value::Array(lines);
        print(&line.to_string());
        return Ok(());
    }
    let number = organisation.number.map(|number| format!(", number {number}")).unwrap_or_default();
    print(&format!("{} ({}){number}", organisation.name, organisation.id));
    for line in &lines {
        print(&registration::told(line));
    }
    Ok(())
}
