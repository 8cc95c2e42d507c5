//! `saveguard company`: make, list, rename and limit companies, in the ledger itself.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use ledger::documents::{Company, CompanyChange};
use model::CompanyId;
use model::names::title;
use model::quotas::Quota;
use serde_json::{Value, json};

use super::{open_ledger, operator, print, print_columns, tell};
use crate::app::App;
use crate::config::Config;

/// The largest limit, as over HTTP: 2^53 - 1.
const LIMIT_MAX: u64 = (1 << 53) - 1;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a company.
    Create {
        /// Its id: 1 to 64 of 0-9 a-z A-Z . _ = -, beginning with a letter or digit.
        id: String,
        /// What people call it. Default: the id.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        limits: Limits,
    },
    /// List all companies with their limits and what they have.
    List {
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Change what people call a company.
    Rename {
        /// Its id.
        id: String,
        /// Its new name.
        name: String,
    },
    /// Set how much a company may keep. What is not given is unlimited from then on.
    Quota {
        /// Its id.
        id: String,
        #[command(flatten)]
        limits: Limits,
    },
}

#[derive(Debug, Args)]
struct Limits {
    /// At most so many documents.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=LIMIT_MAX))]
    documents: Option<u64>,
    /// At most so many bytes in the current files of all documents together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=LIMIT_MAX))]
    bytes: Option<u64>,
}

impl Limits {
    fn quota(&self) -> Quota {
        Quota { documents: self.documents, bytes: self.bytes }
    }
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::Create { id, name, limits } => {
            let name = title(name.as_deref().unwrap_or(&id))?;
            let company = Company::new(CompanyId::parse(&id)?, name, app.now());
            let company = Company { quota: limits.quota(), ..company };
            app.ledger.create_company(&company, &operator()).await.context("the company was not made")?;
            tell(&format!("Company {id} is made."));
        }
        Command::List { json } => list(&app, json).await?,
        Command::Rename { id, name } => {
            change(&app, &id, (Some(title(&name)?), None)).await?;
            tell(&format!("Company {id} has a new name."));
        }
        Command::Quota { id, limits } => {
            change(&app, &id, (None, Some(limits.quota()))).await?;
            tell(&format!("Company {id} has new limits."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn change(app: &App, id: &str, (name, quota): (Option<String>, Option<Quota>)) -> anyhow::Result<()> {
    let id = CompanyId::parse(id)?;
    let change = CompanyChange { id, name, quota, by: operator(), at: app.now() };
    app.ledger.change_company(&change).await.context("nothing was changed")?;
    Ok(())
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, json: bool) -> anyhow::Result<()> {
    let companies = app.ledger.companies().await?;
    if json {
        print(&companies.iter().map(line_of).collect::<Value>().to_string());
        return Ok(());
    }
    let row = |cells: [&str; 4]| print_columns(&cells.into_iter().zip([24, 21, 29, 0]).collect::<Vec<_>>());
    row(["COMPANY", "DOCUMENTS", "BYTES", "NAME"]);
    for company in &companies {
        let (usage, quota) = (company.usage, company.quota);
        let cell = |has: u64, may: Option<u64>| match may {
            Some(may) => format!("{has} of {may}"),
            None => has.to_string(),
        };
        let documents = cell(usage.documents, quota.documents);
        row([company.id.as_str(), &documents, &cell(usage.bytes, quota.bytes), &company.name]);
    }
    Ok(())
}

fn line_of(company: &Company) -> Value {
    json!({
        "id": company.id.as_str(),
        "name": company.name,
        "created_at": company.created_at,
        "quota": { "documents": company.quota.documents, "bytes": company.quota.bytes },
        "usage": { "documents": company.usage.documents, "bytes": company.usage.bytes },
    })
}
