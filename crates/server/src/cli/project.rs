//! `saveguard project`: make, list and rename projects, in the ledger itself.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use ledger::documents::{Project, ProjectRenaming};
use model::names::title;
use model::{CompanyId, ProjectId};
use serde_json::{Value, json};

use super::{open_ledger, operator, print, print_columns, tell};
use crate::app::App;
use crate::config::Config;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a project.
    Create {
        /// The id of its company.
        company: String,
        /// Its id, unique in the company: 1 to 64 of 0-9 a-z A-Z . _ = -, beginning with a letter or digit.
        id: String,
        /// What people call it. Default: the id.
        #[arg(long)]
        name: Option<String>,
    },
    /// List the projects of a company.
    List {
        /// The id of the company.
        company: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Change what people call a project.
    Rename {
        /// The id of its company.
        company: String,
        /// Its id.
        id: String,
        /// Its new name.
        name: String,
    },
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::Create { company, id, name } => {
            let name = title(name.as_deref().unwrap_or(&id))?;
            let (company, id) = (CompanyId::parse(&company)?, ProjectId::parse(&id)?);
            let project = Project { company, id, name, created_at: app.now() };
            app.ledger.create_project(&project, &operator()).await.context("the project was not made")?;
            tell(&format!("Project {} of {} is made.", project.id, project.company));
        }
        Command::List { company, json } => list(&app, &CompanyId::parse(&company)?, json).await?,
        Command::Rename { company, id, name } => {
            let (company, id, name) = (CompanyId::parse(&company)?, ProjectId::parse(&id)?, title(&name)?);
            let renaming = ProjectRenaming { company, id, name, by: operator(), at: app.now() };
            app.ledger.rename_project(&renaming).await.context("nothing was changed")?;
            tell(&format!("Project {} of {} has a new name.", renaming.id, renaming.company));
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, company: &CompanyId, json: bool) -> anyhow::Result<()> {
    anyhow::ensure!(app.ledger.company(company).await?.is_some(), "there is no company `{company}`");
    let projects = app.ledger.projects(company).await?;
    if json {
        let line = |project: &Project| {
            json!({
                "company": project.company.as_str(),
                "id": project.id.as_str(),
                "name": project.name,
                "created_at": project.created_at,
            })
        };
        print(&projects.iter().map(line).collect::<Value>().to_string());
        return Ok(());
    }
    print_columns(&[("PROJECT", 24), ("NAME", 0)]);
    for project in &projects {
        print_columns(&[(project.id.as_str(), 24), (&project.name, 0)]);
    }
    Ok(())
}
