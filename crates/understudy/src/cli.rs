//! Command line of the program.
//!
//! Guarantees: everything the library can be set to can be set here; what is wrong is said before anything starts.
//!
//! Does not do the work; the library does.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use understudy::load::{self, Mix, Plan, Target};
use understudy::settings::{Jwt, LinkBase, Secrets, Settings, Storage};
use understudy::tokens::Secret;
use understudy::{Timings, office};

/// A stand-in ONLYOFFICE Document Server: for demos, tests, crash harnesses and load.
///
/// It opens, edits and saves real files, talks to a host exactly like the real server (callbacks, retries,
/// forgotten files, commands, links, tokens), and writes down everything it did. It listens on loopback only.
#[derive(Debug, Parser)]
#[command(name = "understudy", version, max_term_width = 110)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server until Ctrl+C.
    Serve(Box<Serve>),
    /// Send people to a Document Server: open, write, force-save, leave.
    Load(Box<Load>),
    /// Write a blank file to stdout or to a path.
    Blank(Blank),
}

/// What the server is started with.
#[derive(Debug, Args)]
struct Serve {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    #[command(flatten)]
    secrets: SecretArguments,
    /// Ask for no tokens and send none.
    #[arg(long)]
    no_jwt: bool,
    /// Header for tokens in both directions.
    #[arg(long, default_value = "Authorization")]
    jwt_header: String,
    /// Divide all delays of the real server by this number.
    #[arg(long, default_value_t = 1.0)]
    time_scale: f64,
    /// Set one delay by itself, after scaling, such as `save_delay_ms=500` (repeat for more; `help` lists them).
    #[arg(long = "timing", value_name = "NAME=VALUE")]
    timings: Vec<String>,
    /// Begin links with this address instead of the one the browser used.
    #[arg(long, value_name = "URL")]
    link_base: Option<String>,
    /// Keep rows, change logs, results and forgotten files in this folder.
    #[arg(long, value_name = "FOLDER")]
    storage: Option<PathBuf>,
    /// Write the journal to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// The same seed makes the same random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Force-save by timer, too.
    #[arg(long)]
    autosave: bool,
    /// Serve no files until so many milliseconds after the start.
    #[arg(long, default_value_t = 0, value_name = "MS")]
    serve_files_after_ms: u64,
}

#[derive(Debug, Args)]
struct SecretArguments {
    /// The shared secret, for both directions.
    #[arg(long, env = "UNDERSTUDY_SECRET", default_value = "secret", hide_env_values = true)]
    secret: String,
    /// Read the shared secret from this file.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Another secret for what the host signs.
    #[arg(long, env = "UNDERSTUDY_INBOX_SECRET", hide_env_values = true)]
    inbox_secret: Option<String>,
    /// Another secret for what this server signs.
    #[arg(long, env = "UNDERSTUDY_OUTBOX_SECRET", hide_env_values = true)]
    outbox_secret: Option<String>,
}

/// What the load driver does.
#[derive(Debug, Args)]
struct Load {
    /// The Document Server to use.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    server: String,
    /// Where to ask for configurations; `{document}` and `{user}` are filled in.
    #[arg(long, value_name = "URL", required_unless_present_all = ["document_url", "callback_url"])]
    config_url: Option<String>,
    /// Bearer token for that address.
    #[arg(long, env = "UNDERSTUDY_BEARER", hide_env_values = true)]
    bearer: Option<String>,
    /// Make configurations ourselves: where documents are (`{document}`, `{user}`).
    #[arg(long, value_name = "URL")]
    document_url: Option<String>,
    /// Make configurations ourselves: where callbacks go (`{document}`, `{user}`).
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// Make configurations ourselves: what keys begin with.
    #[arg(long, default_value = "load-")]
    key_prefix: String,
    /// Make configurations ourselves: the secret to sign them with.
    #[arg(long, env = "UNDERSTUDY_SECRET", default_value = "secret", hide_env_values = true)]
    secret: String,
    /// People at the same time.
    #[arg(long, default_value_t = 10)]
    sessions: usize,
    /// Documents they share; fewer documents than people means overlaps.
    #[arg(long, default_value_t = 5)]
    documents: usize,
    /// Saves begun per second.
    #[arg(long, default_value_t = 10.0)]
    saves_per_second: f64,
    /// How long.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Changes a person makes at most.
    #[arg(long, default_value_t = 5)]
    changes_max: u32,
    /// Percent of changes followed by a press on Save.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    force_saves: u8,
    /// Percent of people who come and leave without a change.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(..=100))]
    idlers: u8,
    /// Percent of people who say goodbye; the others' tabs just vanish.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(..=100))]
    polite: u8,
    /// Percent of people who come back at once.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u8).range(..=100))]
    returners: u8,
    /// The same seed makes the same choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
struct Blank {
    /// docx, xlsx, pptx or txt.
    #[arg(default_value = "docx")]
    ext: String,
    /// Write to this path instead of stdout.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Does what was asked.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()),
        )
        .init();
    let runtime = tokio::runtime::Runtime::new().context("could not start the runtime")?;
    match arguments.command {
        Command::Serve(serve) => runtime.block_on(run_server(*serve)),
        Command::Load(load) => runtime.block_on(run_load(*load)),
        Command::Blank(blank) => write_blank(&blank),
    }
}

/// Says what went wrong, with its causes.
pub(crate) fn complain(trouble: &anyhow::Error) {
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "understudy: {trouble:#}");
}

async fn run_server(serve: Serve) -> Result<()> {
    let settings = settings(serve)?;
    let server = understudy::start(settings).await.context("could not start")?;
    let started = serde_json::json!({"url": server.url(), "api_js": server.api_js_url()});
    writeln!(std::io::stdout(), "{started}").context("could not write to stdout")?;
    tracing::info!(url = server.url(), "the understudy is on stage at {}", server.url());
    tokio::signal::ctrl_c().await.context("could not wait for Ctrl+C")?;
    server.stop().await;
    Ok(())
}

fn settings(serve: Serve) -> Result<Settings> {
    let mut timings = Timings::scaled(serve.time_scale);
    for timing in &serve.timings {
        let (name, value) = timing.split_once('=').unwrap_or((timing, ""));
        let value = value.parse().ok();
        if value.is_none_or(|value| timings.set(name, value).is_err()) {
            bail!("`{timing}` is no NAME=VALUE; names are: {}", Timings::NAMES.join(", "));
        }
    }
    let mut jwt = if serve.no_jwt { Jwt::off() } else { Jwt::on() };
    jwt.header = serve.jwt_header;
    Ok(Settings {
        listen: serve.listen,
        secrets: secrets(serve.secrets)?,
        jwt,
        timings,
        link_base: serve.link_base.map_or(LinkBase::FromOpener, LinkBase::Fixed),
        storage: serve.storage.map_or(Storage::Memory, Storage::Folder),
        journal: serve.journal,
        seed: serve.seed,
        autosave: serve.autosave,
        serve_files_after_ms: serve.serve_files_after_ms,
        ..Settings::default()
    })
}

fn secrets(arguments: SecretArguments) -> Result<Secrets> {
    let shared = match &arguments.secret_file {
        Some(path) => {
            std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?
        }
        None => arguments.secret,
    };
    let mut secrets = Secrets::same(shared.trim());
    if let Some(inbox) = arguments.inbox_secret {
        secrets.inbox = Secret::new(inbox);
    }
    if let Some(outbox) = arguments.outbox_secret {
        secrets.outbox = Secret::new(outbox);
    }
    Ok(secrets)
}

async fn run_load(arguments: Load) -> Result<()> {
    let invite = match (arguments.config_url, arguments.document_url, arguments.callback_url) {
        (Some(address), _, _) => load::hosts_invitations(address, arguments.bearer),
        (None, Some(document), Some(callback)) => {
            load::own_invitations(document, callback, arguments.key_prefix, Secret::new(arguments.secret))
        }
        _ => bail!("give --config-url, or --document-url and --callback-url"),
    };
    let plan = Plan {
        sessions: arguments.sessions,
        documents: arguments.documents,
        saves_per_s: arguments.saves_per_second,
        duration: Duration::from_secs(arguments.seconds),
        changes_max: arguments.changes_max,
        mix: Mix {
            force_saves: arguments.force_saves,
            idlers: arguments.idlers,
            polite: arguments.polite,
            returners: arguments.returners,
        },
        seed: arguments.seed,
        ..Plan::default()
    };
    let report = load::run(plan, invite, Target::Socket(arguments.server)).await;
    writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&report)?)?;
    if report.counts.get("opened").copied().unwrap_or(0) == 0 {
        bail!("nobody could open anything");
    }
    Ok(())
}

fn write_blank(blank: &Blank) -> Result<()> {
    let bytes = office::blank(&blank.ext);
    match &blank.out {
        Some(path) => {
            std::fs::write(path, &bytes).with_context(|| format!("could not write {}", path.display()))
        }
        None => std::io::stdout().write_all(&bytes).context("could not write to stdout"),
    }
}
