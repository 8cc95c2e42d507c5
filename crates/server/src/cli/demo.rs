//! `saveguard demo`: everything on an empty machine, in a folder it names, with a stand-in Document Server.
//!
//! Guarantees: a second start continues where the first ended; Ctrl-C lets open editors save first.

mod handing_in;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use ledger::LedgerError;
use ledger::documents::{Author, Company, Project};
use model::access::{Caller, Companies, Organisations, Role};
use model::names::FileName;
use model::{CompanyId, DocumentId, Guards, ProjectId};
use serde::{Deserialize, Serialize};
use understudy::{Running, Settings, Timings};

use super::{print, tell, told_to_stop};
use crate::app::App;
use crate::config::Config;
use crate::http::sign_api_token;
use crate::opening::{OpenError, Upload, upload};
use crate::service::{Service, ServiceError};
use crate::telemetry;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Where the demo keeps its state; delete it to begin anew.
    #[arg(long, default_value = "saveguard-demo", value_name = "FOLDER")]
    folder: PathBuf,
    /// The port of the demo's pages; another one is taken if it is in use.
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

/// Where they are remembered.
const PORTS: &str = "ports.toml";
/// Ports change hands while a busy machine starts the demo; that often another one is taken.
const PORTS_TRIED: usize = 5;

/// Remembered between starts, so that links of open editors stay right.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Ports {
    saveguard: u16,
    document_server: u16,
}

pub(super) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let folder = arguments.folder;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut ports = ports(&folder, arguments.port)?;
    telemetry::start_logging(&config(&folder, ports)?.log, None);
    let editor = start_editor(&folder, &mut ports).await?;
    let service = start_service(&folder, &mut ports).await?;
    remember(&folder, ports)?;
    bring_samples(&service.app).await.context("the sample documents could not be brought in")?;
    handing_in::bring(&service.app, &folder).await.context("the sample registration could not be made")?;
    let token = token(&service.app);
    print(&format!("{}sign-in?token={token}", service.app.config.server.public_url));
    tell(&format!(
        "\nOpen this link in a browser. The demo keeps its state in {}; Ctrl-C ends it.",
        folder.display()
    ));
    tell(&handing_in::words(&service.app, &folder, &token));
    told_to_stop().await?;
    tell("Ending: open editors save first …");
    end(editor, service).await
}

/// Open editors save, then the service finishes what it has.
async fn end(editor: Running, service: Service) -> anyhow::Result<ExitCode> {
    let _ = editor.shut_down().await;
    let _ = tokio::time::timeout(Duration::from_secs(15), editor.quiet()).await;
    service.stop().await;
    editor.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Those of the last start, unless somebody else has them now.
fn ports(folder: &Path, wanted: u16) -> anyhow::Result<Ports> {
    let known: Option<Ports> =
        std::fs::read_to_string(folder.join(PORTS)).ok().and_then(|text| toml::from_str(&text).ok());
    match known {
        Some(ports) if is_free(ports.saveguard) && is_free(ports.document_server) => Ok(ports),
        _ => Ok(Ports { saveguard: free_port(wanted)?, document_server: free_port(0)? }),
    }
}

fn remember(folder: &Path, ports: Ports) -> anyhow::Result<()> {
    let file = folder.join(PORTS);
    std::fs::write(&file, toml::to_string(&ports)?)
        .with_context(|| format!("cannot write {}", file.display()))
}

fn is_free(port: u16) -> bool {
    std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn free_port(wanted: u16) -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", wanted))
        .or_else(|_| std::net::TcpListener::bind(("127.0.0.1", 0)))
        .context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

fn config(folder: &Path, ports: Ports) -> anyhow::Result<Config> {
    let data = folder.join("data").display().to_string();
    let settings = [
        ("SERVER_LISTEN", format!("127.0.0.1:{}", ports.saveguard)),
        ("SERVER_PUBLIC_URL", format!("http://127.0.0.1:{}", ports.saveguard)),
        ("SERVER_INTERNAL_URL", format!("http://127.0.0.1:{}", ports.saveguard)),
        ("SERVER_DATA", data),
        ("SERVER_ENVIRONMENT", "demo".to_owned()),
        ("DOCUMENT_SERVER_PUBLIC_URL", format!("http://127.0.0.1:{}", ports.document_server)),
        ("RECOVERING_INTERVAL_SECONDS", "10".to_owned()),
        ("LOG_FILTER", "warn".to_owned()),
    ];
    let environment: BTreeMap<String, String> =
        settings.into_iter().map(|(name, value)| (format!("SAVEGUARD_{name}"), value)).collect();
    Ok(Config::from_sources(toml::Table::new(), environment)?)
}

/// The stand-in Document Server, on another port if its own was taken while we looked.
async fn start_editor(folder: &Path, ports: &mut Ports) -> anyhow::Result<Running> {
    let mut more = 1..PORTS_TRIED;
    loop {
        match understudy::start(editor_settings(folder, *ports)?).await {
            Err(understudy::StartError::Listen { .. }) if more.next().is_some() => {
                ports.document_server = free_port(0)?;
            }
            started => return started.context("the stand-in Document Server cannot start"),
        }
    }
}

fn editor_settings(folder: &Path, ports: Ports) -> anyhow::Result<Settings> {
    let config = config(folder, ports)?;
    let secret = std::str::from_utf8(config.document_server.secrets.current.as_bytes())?;
    let settings = Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], ports.document_server)),
        storage: understudy::settings::Storage::Folder(folder.join("document-server")),
        // As the real one, but its users wait two seconds for a save after closing instead of five, and Ctrl-C does
        // not wait half a minute for saves that are long done.
        timings: Timings {
            save_delay_ms: 2000,
            shutdown_wait_ms: 0,
            shutdown_step_ms: 100,
            ..Timings::default()
        },
        ..Settings::default()
    };
    Ok(settings.with_secret(secret))
}

/// The service, on another port if its own was taken while we looked.
async fn start_service(folder: &Path, ports: &mut Ports) -> anyhow::Result<Service> {
    let mut more = 1..PORTS_TRIED;
    loop {
        match Service::start(config(folder, *ports)?, Guards::ALL).await {
            Err(ServiceError::Listen { .. }) if more.next().is_some() => ports.saveguard = free_port(0)?,
            started => return started.context("the demo cannot start"),
        }
    }
}

/// Sample documents, unless an earlier start brought them.
async fn bring_samples(app: &Arc<App>) -> anyhow::Result<()> {
    let company = CompanyId::parse("demo")?;
    let project = ProjectId::parse("samples")?;
    let created_at = app.now();
    let new = Company::new(company.clone(), "Demo company".to_owned(), created_at);
    unless_there(app.ledger.create_company(&new, &Author::saveguard()).await)?;
    let new =
        Project { company: company.clone(), id: project.clone(), name: "Samples".to_owned(), created_at };
    unless_there(app.ledger.create_project(&new, &Author::saveguard()).await)?;
    for (id, name, bytes) in samples() {
        let new = Upload {
            id: DocumentId::parse(id)?,
            company: company.clone(),
            project: project.clone(),
            name: FileName::parse(name)?,
            author: Author::saveguard(),
        };
        let body = futures_util::stream::once(async move { Ok::<_, std::convert::Infallible>(bytes) });
        match upload(app, new, body).await {
            Ok(_) | Err(OpenError::Exists { .. }) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(())
}

fn unless_there(created: Result<(), LedgerError>) -> Result<(), LedgerError> {
    match created {
        Err(LedgerError::AlreadyExists { .. }) => Ok(()),
        created => created,
    }
}

fn samples() -> [(&'static str, &'static str, Bytes); 3] {
    use understudy::office::{blank, sample_docx, sample_xlsx};
    let welcome = [
        "Type here, then press Save or just close the tab.",
        "Saveguard stores what the editor sends, checks it, and only then says that it is saved.",
        "Open this document in a second tab: both see each other's words.",
    ];
    let budget: [&[&str]; 4] = [
        &["Item", "Planned", "Spent"],
        &["Travel", "1200", "830"],
        &["Software", "3400", "3390"],
        &["Training", "900", "0"],
    ];
    [
        ("welcome", "Welcome to Saveguard.docx", sample_docx("Welcome to Saveguard", &welcome)),
        ("budget", "Budget 2026.xlsx", sample_xlsx(&budget)),
        ("blank", "Blank page.docx", blank("docx")),
    ]
}

/// Ann may do everything here.
fn token(app: &App) -> String {
    let caller = Caller {
        id: "ann".to_owned(),
        name: "Ann Author".to_owned(),
        role: Role::Admin,
        companies: Companies::All,
        organisations: Organisations::All,
    };
    sign_api_token(&app.config, &caller, app.now(), Duration::from_secs(24 * 60 * 60))
}
