//! `saveguard share`: make, list and revoke share links, in the ledger itself.
//!
//! Guarantees: a link goes to stdout once, alone on its line, and the words about it to stderr. A password comes from a file or from
//! stdin, never from an argument, which everybody on the machine could read.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use ledger::shares::Share;
use model::DocumentId;
use model::sharing::{Allows, DownloadSwitch};
use serde_json::{Value, json};

use super::{last_used, open_ledger, operator, print, print_columns, standing, tell};
use crate::app::App;
use crate::config::Config;
use crate::sharing::{Wish, create, link_of, revoke};

/// Read at once.
const PAGE: u32 = 1000;
/// Longer is no password.
const PASSWORD_BYTES_MAX: u64 = 4096;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What a link allows.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AllowsArgument {
    View,
    Comment,
    Edit,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a share link and print it, this once.
    Create {
        /// The document it opens.
        document: String,
        /// What its guests may do.
        #[arg(long, value_enum, default_value = "view")]
        allows: AllowsArgument,
        /// What people call it.
        #[arg(long, default_value = "")]
        label: String,
        /// After how many hours it expires. Default: never.
        #[arg(long, value_name = "N")]
        expires_hours: Option<u32>,
        /// A file with the password its guests must know; `-` reads it from stdin. Only the first line counts.
        #[arg(long, value_name = "FILE")]
        password_file: Option<String>,
        /// Its guests may neither download nor print.
        #[arg(long)]
        no_download: bool,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the share links of a document: what they allow, how often they were used, whether they still count.
    List {
        /// The document.
        document: String,
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a share link. It opens nothing any more; the running service asks its guests to leave within a minute.
    Revoke {
        /// Its number, from `list`.
        number: u64,
    },
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = open_ledger(config).await?;
    match arguments.command {
        Command::Create { document, allows, label, expires_hours, password_file, no_download, json } => {
            let wish = Wish {
                document: DocumentId::parse(&document)?,
                allows: match allows {
                    AllowsArgument::View => Allows::View,
                    AllowsArgument::Comment => Allows::Comment,
                    AllowsArgument::Edit => Allows::Edit,
                },
                download: if no_download { DownloadSwitch::Off } else { DownloadSwitch::On },
                label,
                password: password_file.as_deref().map(read_password).transpose()?,
                expires_hours,
            };
            let (token, share) = create(&app, wish, operator()).await.context("the link was not made")?;
            let link = link_of(&app.config, &token);
            if json {
                print(&json!({ "token": token, "url": link, "details": line_of(&share) }).to_string());
            } else {
                tell(&format!("Share link {} is made. It is shown this once:", share.number));
                print(&link);
            }
        }
        Command::List { document, json } => list(&app, &DocumentId::parse(&document)?, json).await?,
        Command::Revoke { number } => {
            let is_new = revoke(&app, number, operator()).await.context("nothing was changed")?;
            let word = if is_new { "is revoked" } else { "was revoked before" };
            tell(&format!("Share link {number} {word}."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read_password(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    match file {
        "-" => std::io::stdin().take(PASSWORD_BYTES_MAX).read_to_string(&mut text),
        path => {
            let file = std::fs::File::open(path).with_context(|| format!("{path} cannot be read"))?;
            file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text)
        }
    }
    .context("the password cannot be read")?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, document: &DocumentId, json: bool) -> anyhow::Result<()> {
    let mut shares: Vec<Share> = Vec::new();
    loop {
        let after = shares.last().map_or(0, |share| share.number);
        let page = app.ledger.shares(document, after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        shares.extend(page);
    }
    if json {
        print(&shares.iter().map(line_of).collect::<Value>().to_string());
        return Ok(());
    }
    let row = |cells: [&str; 6]| {
        let widths = [6, 8, 6, 20, 20, 0];
        print_columns(&cells.into_iter().zip(widths).collect::<Vec<_>>());
    };
    row(["NUMBER", "ALLOWS", "USES", "LAST USED", "STANDING", "LABEL"]);
    for share in &shares {
        let used = last_used(share.last_used_at);
        let standing = standing(app.now(), share.revoked_at, share.expires_at);
        let (number, uses) = (share.number.to_string(), share.uses.to_string());
        row([&number, share.allows.as_str(), &uses, &used, &standing, &share.label]);
    }
    Ok(())
}

fn line_of(share: &Share) -> Value {
    json!({
        "number": share.number,
        "document": share.document.as_str(),
        "label": share.label,
        "allows": share.allows.as_str(),
        "may_download": share.download == DownloadSwitch::On,
        "has_password": share.password.is_some(),
        "created_by": share.created_by,
        "created_at": share.created_at,
        "expires_at": share.expires_at,
        "revoked_at": share.revoked_at,
        "uses": share.uses,
        "last_used_at": share.last_used_at,
    })
}
