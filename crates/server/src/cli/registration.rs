//! `saveguard registration` and `saveguard accreditation`: what organisations hand in for, by when, and under which licence.

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use ledger::scopes::{Accreditation, AccreditationWish, DeadlineWish, How, Registration, RegistrationWish};
use model::names::title;
use model::scopes::{Deadline, day, label};
use model::{AccreditationId, OrganisationId, TemplateId};
use serde_json::{Value, json};

use super::organisation::{day_of, existing, registrations_of, scope_of, shown_span, writing};
use super::{open_ledger, print, print_columns, tell};
use crate::app::App;
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a registration.
    Create(NewRegistration),
    /// List the registrations of an organisation.
    List {
        /// The organisation.
        organisation: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say by which template its workbooks are read.
    Assign {
        /// The organisation.
        organisation: String,
        /// The registration.
        registration: String,
        /// The template, from `saveguard template list`.
        template: String,
    },
    /// Set, move or take away the deadline of a period.
    Deadline(DeadlineOf),
}

#[derive(Debug, Args)]
struct NewRegistration {
    /// The organisation.
    organisation: String,
    /// Its id, unique in the organisation: 1 to 64 of 0-9 a-z A-Z . _ = -.
    id: String,
    /// Its number, unique in the organisation. Default: the id.
    #[arg(long)]
    number: Option<String>,
    /// What people call it. Default: the id.
    #[arg(long)]
    title: Option<String>,
    /// The material it is for.
    #[arg(long)]
    material: Option<String>,
    /// The template its workbooks are read by.
    #[arg(long, value_name = "ID")]
    template: Option<String>,
    /// The first day it is active.
    #[arg(long, value_name = "YYYY-MM-DD")]
    from: Option<String>,
    /// The last day it is active.
    #[arg(long, value_name = "YYYY-MM-DD")]
    until: Option<String>,
}

#[derive(Debug, Args)]
struct DeadlineOf {
    /// The organisation.
    organisation: String,
    /// The registration.
    registration: String,
    /// What it is for, such as '2026 Q1'.
    period: String,
    /// The last day, in UTC.
    #[arg(long, value_name = "YYYY-MM-DD", required_unless_present = "remove")]
    due: Option<String>,
    /// The first day on which a submission counts for it. Default: the day after the deadline before it.
    #[arg(long, value_name = "YYYY-MM-DD", conflicts_with = "remove")]
    opens: Option<String>,
    /// Take it away.
    #[arg(long, conflicts_with = "due")]
    remove: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::Create(new) => create(&app, &new).await?,
        Command::List { organisation, json } => {
            list(&app, &OrganisationId::parse(&organisation)?, json).await?;
        }
        Command::Assign { organisation, registration, template } => {
            let scope = scope_of(&organisation, &registration)?;
            ensure!(app.ledger.registration(&scope).await?.is_some(), "there is no registration `{scope}`");
            let template = Some(TemplateId::parse(&template)?);
            let wish = RegistrationWish { template, ..RegistrationWish::new(scope) };
            let written = app.ledger.write_registration(&wish, &writing(&app, How::Merge)).await;
            written.context("nothing was changed")?;
            tell(&format!(
                "Workbooks of {organisation}/{registration} are read by this template from now on."
            ));
        }
        Command::Deadline(wish) => deadline(&app, &wish).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(app: &App, new: &NewRegistration) -> anyhow::Result<()> {
    let wish = RegistrationWish {
        scope: scope_of(&new.organisation, &new.id)?,
        number: new.number.as_deref().map(label).transpose()?,
        title: new.title.as_deref().map(title).transpose()?,
        material: new.material.as_deref().map(label).transpose()?,
        template: new.template.as_deref().map(TemplateId::parse).transpose()?,
        from: day_of(new.from.as_deref())?,
        until: day_of(new.until.as_deref())?,
    };
    let written = app.ledger.write_registration(&wish, &writing(app, How::Create)).await;
    written.context("the registration was not made")?;
    tell(&format!("Registration {} is made.", wish.scope));
    Ok(())
}

async fn deadline(app: &App, wish: &DeadlineOf) -> anyhow::Result<()> {
    let (scope, period) = (scope_of(&wish.organisation, &wish.registration)?, label(&wish.period)?);
    let Some(due) = wish.due.as_deref() else {
        let is_gone = app.ledger.remove_deadline(&scope, &period, &writing(app, How::Merge)).await?;
        ensure!(is_gone, "{scope} has no deadline for `{period}`");
        tell(&format!("{scope} has no deadline for {period} any more."));
        return Ok(());
    };
    let due = day(due).with_context(|| format!("`{due}`"))?;
    let opens = day_of(wish.opens.as_deref())?;
    let wish = DeadlineWish { scope, period, opens, due };
    app.ledger.write_deadline(&wish, &writing(app, How::Merge)).await.context("nothing was changed")?;
    tell(&format!("{}: {} is due by {due}.", wish.scope, wish.period));
    Ok(())
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, organisation: &OrganisationId, json: bool) -> anyhow::Result<()> {
    existing(app, organisation).await?;
    let found = registrations_of(app, organisation).await?;
    if json {
        print(&found.iter().map(line_of).collect::<Value>().to_string());
        return Ok(());
    }
    let row =
        |cells: [&str; 5]| print_columns(&cells.into_iter().zip([20, 20, 20, 22, 0]).collect::<Vec<_>>());
    row(["REGISTRATION", "NUMBER", "TEMPLATE", "ACTIVE", "TITLE"]);
    for each in &found {
        let template = each.template.as_ref().map_or("-", TemplateId::as_str);
        let id = each.scope.registration.as_str();
        row([id, &each.number, template, &shown_span(each.active), &each.title]);
    }
    Ok(())
}

pub(super) fn line_of(registration: &Registration) -> Value {
    json!({
        "organisation": registration.scope.organisation.as_str(),
        "id": registration.scope.registration.as_str(),
        "number": registration.number,
        "title": registration.title,
        "material": registration.material,
        "template": registration.template.as_ref().map(TemplateId::as_str),
        "from": registration.active.from().map(|day| day.to_string()),
        "until": registration.active.until().map(|day| day.to_string()),
        "created_at": registration.created_at,
    })
}

pub(super) fn line_of_accreditation(accreditation: &Accreditation) -> Value {
    json!({
        "id": accreditation.id.as_str(),
        "number": accreditation.number,
        "from": accreditation.valid.from().map(|day| day.to_string()),
        "until": accreditation.valid.until().map(|day| day.to_string()),
        "created_at": accreditation.created_at,
    })
}

pub(super) fn line_of_deadline(deadline: &Deadline) -> Value {
    json!({
        "period": deadline.period,
        "opens": deadline.opens.map(|day| day.to_string()),
        "due": deadline.due.to_string(),
    })
}

/// A registration for people, with what stands under it.
pub(super) fn told(line: &Value) -> String {
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or("-").to_owned();
    let span = |line: &Value| format!("{}..{}", text(line, "from"), text(line, "until"));
    let mut told = format!(
        "  {} ({}), number {}, active {}, template {}",
        text(line, "title"),
        text(line, "id"),
        text(line, "number"),
        span(line),
        text(line, "template")
    );
    for each in line["accreditations"].as_array().into_iter().flatten() {
        let (id, number) = (text(each, "id"), text(each, "number"));
        told.push_str(&format!("\n    accreditation {id}, number {number}, {}", span(each)));
    }
    for each in line["deadlines"].as_array().into_iter().flatten() {
        told.push_str(&format!("\n    {} is due by {}", text(each, "period"), text(each, "due")));
    }
    told
}

#[derive(Debug, Args)]
pub(super) struct AccreditationArguments {
    #[command(subcommand)]
    command: AccreditationCommand,
}

#[derive(Debug, Subcommand)]
enum AccreditationCommand {
    /// Make an accreditation under a registration.
    Create {
        /// The organisation.
        organisation: String,
        /// The registration.
        registration: String,
        /// Its id, unique under the registration: 1 to 64 of 0-9 a-z A-Z . _ = -.
        id: String,
        /// Its number, unique under the registration. Default: the id.
        #[arg(long)]
        number: Option<String>,
        /// The first day it counts.
        #[arg(long, value_name = "YYYY-MM-DD")]
        from: Option<String>,
        /// The last day it counts.
        #[arg(long, value_name = "YYYY-MM-DD")]
        until: Option<String>,
    },
    /// List the accreditations under a registration.
    List {
        /// The organisation.
        organisation: String,
        /// The registration.
        registration: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn accreditation(
    config: Config,
    arguments: AccreditationArguments,
) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        AccreditationCommand::Create { organisation, registration, id, number, from, until } => {
            let wish = AccreditationWish {
                scope: scope_of(&organisation, &registration)?,
                id: AccreditationId::parse(&id)?,
                number: number.as_deref().map(label).transpose()?,
                from: day_of(from.as_deref())?,
                until: day_of(until.as_deref())?,
            };
            let written = app.ledger.write_accreditation(&wish, &writing(&app, How::Create)).await;
            written.context("the accreditation was not made")?;
            tell(&format!("Accreditation {id} of {} is made.", wish.scope));
        }
        AccreditationCommand::List { organisation, registration, json } => {
            let scope = scope_of(&organisation, &registration)?;
            ensure!(app.ledger.registration(&scope).await?.is_some(), "there is no registration `{scope}`");
            let found = app.ledger.accreditations(&scope).await?;
            if json {
                print(&found.iter().map(line_of_accreditation).collect::<Value>().to_string());
                return Ok(ExitCode::SUCCESS);
            }
            print_columns(&[("ACCREDITATION", 24), ("VALID", 22), ("NUMBER", 0)]);
            for each in &found {
                print_columns(&[(each.id.as_str(), 24), (&shown_span(each.valid), 22), (&each.number, 0)]);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
