//! `saveguard token`: make, list and revoke API tokens, in the ledger itself.
//!
//! Guarantees: a token goes to stdout once, alone on its line, and the words about it to stderr, so that a script can take it
//! without reading further.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use ledger::callers::{ApiToken, Revocation};
use model::access::{Companies, Organisations, Role};
use model::{CompanyId, OrganisationId};
use serde_json::{Value, json};

use super::{last_used, open_ledger, operator, print, print_columns, standing, tell};
use crate::app::App;
use crate::callers::{Wish, check, issue};
use crate::config::Config;

/// Read at once.
const PAGE: u32 = 1000;
/// The word for all companies or organisations.
const ALL: &str = "*";

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make an API token and print it, this once.
    Create {
        /// What people call it.
        #[arg(long)]
        name: String,
        /// viewer, commenter, editor, submitter, regulator or admin.
        #[arg(long)]
        role: String,
        /// A company whose data it opens; give it several times for several companies, or '*' for all.
        #[arg(long = "company", required_unless_present = "organisations", value_name = "ID")]
        companies: Vec<String>,
        /// An organisation its bearer acts for; give it several times for several, or '*' for all.
        #[arg(long = "organisation", value_name = "ID")]
        organisations: Vec<String>,
        /// After how many days it expires. Default: never.
        #[arg(long, value_name = "N")]
        expires_days: Option<u32>,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// List all API tokens: what they open, when they were last used, whether they still count.
    List {
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke an API token. It counts for nothing from the next request on.
    Revoke {
        /// Its number, from `list`.
        number: u64,
    },
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::Create { name, role, companies, organisations, expires_days, json } => {
            let role = Role::parse(&role).with_context(|| format!("there is no role `{role}`"))?;
            let (companies, organisations) =
                (read_companies(&companies)?, read_organisations(&organisations)?);
            let wish = Wish { name, role, companies, organisations, expires_days };
            check(&wish).map_err(anyhow::Error::msg)?;
            let (text, token) = issue(&app, wish, operator()).await.context("the token was not made")?;
            if json {
                print(&json!({ "token": text, "details": line_of(&token) }).to_string());
            } else {
                tell(&format!("Token {} is made. It is shown this once:", token.number));
                print(&text);
            }
        }
        Command::List { json } => list(&app, json).await?,
        Command::Revoke { number } => {
            let revocation = Revocation { number, by: operator(), at: app.now() };
            let is_new = app.ledger.revoke_api_token(&revocation).await.context("nothing was changed")?;
            let word = if is_new { "is revoked" } else { "was revoked before" };
            tell(&format!("Token {number} {word}."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read_companies(ids: &[String]) -> anyhow::Result<Companies> {
    match ids {
        [all] if all == ALL => Ok(Companies::All),
        ids if ids.iter().any(|id| id == ALL) => bail!("`--company '*'` stands alone"),
        ids => Ok(Companies::Only(ids.iter().map(|id| CompanyId::parse(id)).collect::<Result<_, _>>()?)),
    }
}

fn read_organisations(ids: &[String]) -> anyhow::Result<Organisations> {
    match ids {
        [all] if all == ALL => Ok(Organisations::All),
        ids if ids.iter().any(|id| id == ALL) => bail!("`--organisation '*'` stands alone"),
        ids => {
            let ids = ids.iter().map(|id| OrganisationId::parse(id));
            Ok(Organisations::Only(ids.collect::<Result<_, _>>()?))
        }
    }
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, json: bool) -> anyhow::Result<()> {
    let mut tokens: Vec<ApiToken> = Vec::new();
    loop {
        let after = tokens.last().map_or(0, |token| token.number);
        let page = app.ledger.api_tokens(after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        tokens.extend(page);
    }
    if json {
        print(&tokens.iter().map(line_of).collect::<Value>().to_string());
        return Ok(());
    }
    let row = |cells: [&str; 6]| {
        let widths = [6, 10, 20, 20, 20, 0];
        print_columns(&cells.into_iter().zip(widths).collect::<Vec<_>>());
    };
    row(["NUMBER", "ROLE", "COMPANIES", "LAST USED", "STANDING", "NAME"]);
    for token in &tokens {
        let companies = companies_of(token).join(",");
        let used = last_used(token.last_used_at);
        let standing = standing(app.now(), token.revoked_at, token.expires_at);
        row([&token.number.to_string(), token.role.as_str(), &companies, &used, &standing, &token.name]);
    }
    Ok(())
}

fn companies_of(token: &ApiToken) -> Vec<String> {
    match &token.companies {
        Companies::All => vec![ALL.to_owned()],
        Companies::Only(ids) => ids.iter().map(ToString::to_string).collect(),
    }
}

fn line_of(token: &ApiToken) -> Value {
    let organisations: Vec<String> = match &token.organisations {
        Organisations::All => vec![ALL.to_owned()],
        Organisations::Only(ids) => ids.iter().map(ToString::to_string).collect(),
    };
    json!({
        "number": token.number,
        "name": token.name,
        "role": token.role.as_str(),
        "companies": companies_of(token),
        "organisations": organisations,
        "created_by": token.created_by,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    })
}
