//! `saveguard import`: documents of an existing tree, with their backups as history. Exit 0 if all of it is in, 1 if something was
//! left out, 2 if it was broken off.
//!
//! The tree has `{company}/{project}/{document}/{filename}`, and beside the file its backups `{filename}.{timestamp}.bak`, which become
//! versions in the order of their timestamps; the file itself is the head.
//!
//! Guarantees: files are only read. What is in already is not taken in again, so an import that was broken off goes on with the
//! same command. A file that is damaged, or whose name is no id, is named and left out; the others come in.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ledger::changes::EditorsInside;
use ledger::documents::{Author, Company, Project};
use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, ProjectId};
use serde_json::json;
use tokio_util::io::ReaderStream;

use super::progress::Bar;
use super::{open_ledger, operator, print, tell};
use crate::app::App;
use crate::changing::{Changer, replace};
use crate::config::Config;
use crate::opening::{Upload, upload};
use crate::progress::Progress as _;
use crate::telemetry::report;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The folder with the companies in it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// What was done.
#[derive(Debug, Default)]
struct Tally {
    documents: u64,
    contents: u64,
    known: u64,
    left_out: Vec<String>,
}

/// A document as it lies in the tree.
struct Found {
    company: CompanyId,
    project: ProjectId,
    id: DocumentId,
    name: FileName,
    /// Oldest first, the file itself last; with what is known of when it stood there.
    contents: Vec<(PathBuf, String)>,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let app = Arc::new(open_ledger(config).await?);
    let mut tally = Tally::default();
    let folders = document_folders(&arguments.folder, &mut tally)?;
    let bar = Bar::default();
    bar.begin("documents", folders.len() as u64);
    for folder in &folders {
        match find(folder) {
            Ok(Some(found)) => import(&app, &found, &mut tally).await?,
            Ok(None) => {}
            Err(cause) => tally.left_out.push(format!("{}: {cause:#}", folder.display())),
        }
        bar.advance();
    }
    bar.finish();
    show(&tally, &arguments);
    Ok(if tally.left_out.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every `{company}/{project}/{document}`, in order.
fn document_folders(root: &Path, tally: &mut Tally) -> anyhow::Result<Vec<PathBuf>> {
    let mut level = vec![root.to_owned()];
    for _ in 0..3 {
        let mut next = Vec::new();
        for folder in level {
            for path in entries(&folder)? {
                if path.is_dir() {
                    next.push(path);
                } else {
                    tally.left_out.push(format!("{}: is not in the folder of a document", path.display()));
                }
            }
        }
        level = next;
    }
    Ok(level)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || folder.read_dir()?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = read().with_context(|| format!("{} cannot be read", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// `None` for an empty folder.
fn find(folder: &Path) -> anyhow::Result<Option<Found>> {
    let part = |up: usize| {
        let part = folder.ancestors().nth(up).and_then(Path::file_name).and_then(|name| name.to_str());
        part.context("a name is not UTF-8")
    };
    let mut files = Vec::new();
    for path in entries(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).context("a name is not UTF-8")?.to_owned();
        if path.is_file() && !name.contains(".tmp.") {
            files.push((path, name));
        }
    }
    let (backups, current): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(_, name)| name.ends_with(".bak"));
    let [(path, name)] = current.as_slice() else {
        if current.is_empty() && backups.is_empty() {
            return Ok(None);
        }
        bail!("has {} files that are no backups; it must be one", current.len());
    };
    let mut contents = Vec::new();
    for (path, backup) in backups {
        let stamp = backup.strip_prefix(&format!("{name}.")).and_then(|rest| rest.strip_suffix(".bak"));
        let stamp = stamp.with_context(|| format!("`{backup}` is a backup of another file than `{name}`"))?;
        contents.push((path, stamp.to_owned()));
    }
    contents.sort_by(|one, other| one.1.cmp(&other.1));
    contents.push((path.clone(), "the last".to_owned()));
    Ok(Some(Found {
        company: CompanyId::parse(part(2)?)?,
        project: ProjectId::parse(part(1)?)?,
        id: DocumentId::parse(part(0)?)?,
        name: FileName::parse(name)?,
        contents,
    }))
}

async fn import(app: &Arc<App>, found: &Found, tally: &mut Tally) -> anyhow::Result<()> {
    ensure_place(app, found).await?;
    tally.documents += 1;
    let mut digests = Vec::new();
    for (path, _) in &found.contents {
        let bytes = tokio::fs::read(path).await;
        digests.push(Digest::of(&bytes.with_context(|| format!("{} cannot be read", path.display()))?));
    }
    let head = app.ledger.document(&found.id).await?.map(|document| document.head_digest);
    if head.is_some_and(|head| !digests.contains(&head)) {
        tally.left_out.push(format!("{}: the document was changed since, or is another one", found.id));
        return Ok(());
    }
    for (at, (path, stamp)) in found.contents.iter().enumerate() {
        // The same bytes may have stood there more than once; the last ones are the head in any case.
        let is_in = match app.ledger.document(&found.id).await? {
            Some(document) if at + 1 == found.contents.len() => document.head_digest == digests[at],
            _ => app.ledger.knows_content(&found.id, &digests[at]).await?,
        };
        if is_in {
            tally.known += 1;
            continue;
        }
        match take_in(app, found, (path, stamp)).await {
            Ok(()) => tally.contents += 1,
            Err(cause) => tally.left_out.push(format!("{}: {cause:#}", path.display())),
        }
    }
    Ok(())
}

async fn take_in(app: &Arc<App>, found: &Found, (path, stamp): (&Path, &str)) -> anyhow::Result<()> {
    let author = Author::new("saveguard-import", format!("Import ({stamp})")).calling_from("command line");
    let body = ReaderStream::new(tokio::fs::File::open(path).await?);
    let told = |cause: &dyn std::error::Error| anyhow::anyhow!(report(cause));
    match app.ledger.document(&found.id).await? {
        None => {
            let new = Upload {
                id: found.id.clone(),
                company: found.company.clone(),
                project: found.project.clone(),
                name: found.name.clone(),
                author,
            };
            upload(app, new, body).await.map_err(|cause| told(&cause))?;
        }
        Some(document) if document.company != found.company => {
            bail!("another company has a document with this id");
        }
        Some(document) => {
            let changer = Changer { who: author, expected_head: None, editors: EditorsInside::Refuse };
            replace(app, &document, changer, body).await.map_err(|cause| told(&cause))?;
        }
    }
    Ok(())
}

async fn ensure_place(app: &App, found: &Found) -> anyhow::Result<()> {
    if app.ledger.company(&found.company).await?.is_none() {
        let company = Company::new(found.company.clone(), found.company.to_string(), app.now());
        app.ledger.create_company(&company, &operator()).await.context("the company was not made")?;
    }
    let projects = app.ledger.projects(&found.company).await?;
    if !projects.iter().any(|project| project.id == found.project) {
        let project = Project {
            company: found.company.clone(),
            id: found.project.clone(),
            name: found.project.to_string(),
            created_at: app.now(),
        };
        app.ledger.create_project(&project, &operator()).await.context("the project was not made")?;
    }
    Ok(())
}

fn show(tally: &Tally, arguments: &Arguments) {
    if arguments.json {
        let line = json!({
            "documents": tally.documents,
            "contents": tally.contents,
            "known": tally.known,
            "left_out": tally.left_out,
        });
        return print(&line.to_string());
    }
    for what in &tally.left_out {
        print(what);
    }
    tell(&format!(
        "{} documents: {} contents taken in, {} known already, {} left out.",
        tally.documents,
        tally.contents,
        tally.known,
        tally.left_out.len()
    ));
}
