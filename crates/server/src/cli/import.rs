//! `saveguard import`: documents of an existing tree, with their backups as history. Exit 0 if all of it is in, 1 if something was
//! left out, 2 if it was broken off.
//!
//! The tree has `{company}/{project}/{document}/{filename}`, and beside the file its backups `{filename}.{timestamp}.bak`, which become
//! versions in the order of their timestamps; the file itself is the head.
//!
//! Guarantees: files are only read. What is in already is not taken in again, so an import that was broken off goes on with the
//! same command; a document whose history is another one by now is left alone. Whatever is left out is named: a file that is damaged or
//! cannot be read, a name that is no id, a folder where a file should be. The others come in. Memory does not grow with the files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use ledger::changes::EditorsInside;
use ledger::documents::{Author, Company, Project};
use model::names::FileName;
use model::{CompanyId, Digest, DocumentId, ProjectId};
use serde_json::json;
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

use super::progress::Bar;
use super::{open_ledger, operator, print, tell};
use crate::app::App;
use crate::changing::{Changer, replace};
use crate::config::Config;
use crate::opening::{Upload, upload};
use crate::preserving::hash_of;
use crate::progress::Progress as _;
use crate::recovering;
use crate::telemetry::report;

/// How long the end waits for files that are being published.
const LAST_PUBLICATIONS: Duration = Duration::from_secs(30);

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
    /// Half-written files beside those that were being written; nothing is missing without them.
    half_written: Vec<String>,
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
    let stop = CancellationToken::new();
    if app.config.ledger.is_shared() {
        // Hints are followed by whoever gives them: a session that stands in the way is finished, and what came in is published. Turns keep
        // instances out of the way; with an embedded ledger there are none between processes, and the service does it a little later.
        tokio::spawn(recovering::follow(Arc::clone(&app), stop.clone()));
    }
    let mut tally = Tally::default();
    let folders = document_folders(&arguments.folder, &mut tally)?;
    let bar = Bar::default();
    bar.begin("documents", folders.len() as u64);
    for folder in &folders {
        match find(folder, &mut tally) {
            Ok(Some(found)) => import(&app, &found, &mut tally).await?,
            Ok(None) => {}
            Err(cause) => tally.left_out.push(format!("{}: {cause:#}", folder.display())),
        }
        bar.advance();
    }
    bar.finish();
    stop.cancel();
    // What is left is owed, and published by the service.
    let _ = app.publications.drain_within(LAST_PUBLICATIONS).await;
    show(&tally, &arguments);
    Ok(if tally.left_out.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every `{company}/{project}/{document}`, in order.
fn document_folders(root: &Path, tally: &mut Tally) -> anyhow::Result<Vec<PathBuf>> {
    let mut level = vec![root.to_owned()];
    for _ in 0..3 {
        let mut next = Vec::new();
        for folder in level {
            let entries = match entries(&folder) {
                Ok(entries) => entries,
                Err(cause) if folder != root => {
                    tally.left_out.push(format!("{cause:#}"));
                    continue;
                }
                Err(cause) => return Err(cause),
            };
            for path in entries {
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
fn find(folder: &Path, tally: &mut Tally) -> anyhow::Result<Option<Found>> {
    let part = |up: usize| {
        let part = folder.ancestors().nth(up).and_then(Path::file_name).and_then(|name| name.to_str());
        part.context("a name is not UTF-8")
    };
    let mut files = Vec::new();
    for path in entries(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).context("a name is not UTF-8")?.to_owned();
        if path.is_file() {
            files.push((path, name));
        } else {
            tally.left_out.push(format!("{}: is not a file", path.display()));
        }
    }
    let names: BTreeSet<String> = files.iter().map(|(_, name)| name.clone()).collect();
    files.retain(|(path, name)| {
        let is_half_written = name.rsplit_once(".tmp.").is_some_and(|(whole, _)| names.contains(whole));
        if is_half_written {
            tally.half_written.push(path.display().to_string());
        }
        !is_half_written
    });
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
    let history = match history_of(found).await {
        Ok(history) => history,
        Err(cause) => {
            tally.left_out.push(format!("{}: {cause:#}", found.id));
            return Ok(());
        }
    };
    let Some(standings) = standings(&history, &versions(app, &found.id).await?) else {
        tally.left_out.push(format!("{}: the document was changed since, or is another one", found.id));
        return Ok(());
    };
    for ((at, _), standing) in history.iter().zip(standings) {
        let (path, stamp) = &found.contents[*at];
        match standing {
            Standing::In => tally.known += 1,
            Standing::PassedOver => tally.left_out.push(format!(
                "{}: was left out before, and newer ones are in: its place in the history is taken",
                path.display()
            )),
            Standing::ToCome => match take_in(app, found, (path, stamp)).await {
                Ok(()) => tally.contents += 1,
                Err(cause) => tally.left_out.push(format!("{}: {cause:#}", path.display())),
            },
        }
    }
    Ok(())
}

/// What is to become the history, as places in what was found, with the hashes: bytes that stood there more than once come once, but for
/// the last, which are the head in any case.
async fn history_of(found: &Found) -> anyhow::Result<Vec<(usize, Digest)>> {
    let mut history: Vec<(usize, Digest)> = Vec::new();
    for (at, (path, _)) in found.contents.iter().enumerate() {
        let file = path.clone();
        let hashed = tokio::task::spawn_blocking(move || hash_of(&file)).await?;
        let digest = hashed.with_context(|| format!("{} cannot be read", path.display()))?;
        let is_last = at + 1 == found.contents.len();
        let is_new = if is_last {
            history.last().is_none_or(|(_, before)| *before != digest)
        } else {
            !history.iter().any(|(_, known)| *known == digest)
        };
        if is_new {
            history.push((at, digest));
        }
    }
    Ok(history)
}

/// The versions of a document, oldest first; none if there is no such document.
async fn versions(app: &App, id: &DocumentId) -> anyhow::Result<Vec<Digest>> {
    if app.ledger.document(id).await?.is_none() {
        return Ok(Vec::new());
    }
    let contents = app.ledger.contents(id).await?;
    Ok(contents.iter().rev().map(|content| content.blob.digest).collect())
}

/// How a content of the tree stands to what is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    In,
    /// It was not taken in when later ones were.
    PassedOver,
    ToCome,
}

/// `None` if what is in is not the beginning of this history, some of it left out: somebody changed the document since, or it is another.
fn standings(history: &[(usize, Digest)], versions: &[Digest]) -> Option<Vec<Standing>> {
    let mut standings = Vec::new();
    let mut versions = versions.iter().peekable();
    for (_, digest) in history {
        standings.push(match versions.peek() {
            None => Standing::ToCome,
            Some(version) if *version == digest => {
                versions.next();
                Standing::In
            }
            Some(_) => Standing::PassedOver,
        });
    }
    versions.peek().is_none().then_some(standings)
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
            "half_written": tally.half_written,
        });
        return print(&line.to_string());
    }
    for what in &tally.left_out {
        print(what);
    }
    for what in &tally.half_written {
        tell(&format!("{what}: is half written and was passed over."));
    }
    tell(&format!(
        "{} documents: {} contents taken in, {} known already, {} left out.",
        tally.documents,
        tally.contents,
        tally.known,
        tally.left_out.len()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_is_the_beginning_of_the_history_or_somebody_changed_it() {
        use Standing::{In, PassedOver, ToCome};
        let digest = |name: &str| Digest::of(name.as_bytes());
        let history: Vec<_> = ["a", "x", "b", "a"].iter().map(|name| digest(name)).enumerate().collect();
        let of = |versions: &[&str]| {
            standings(&history, &versions.iter().map(|name| digest(name)).collect::<Vec<_>>())
        };

        assert_eq!(of(&[]).unwrap(), [ToCome; 4]);
        assert_eq!(of(&["a"]).unwrap(), [In, ToCome, ToCome, ToCome], "broken off");
        assert_eq!(of(&["a", "b", "a"]).unwrap(), [In, PassedOver, In, In], "one was damaged");
        assert_eq!(of(&["a", "x", "b", "a", "b"]), None, "somebody restored an older one");
        assert_eq!(of(&["other"]), None);
    }
}
