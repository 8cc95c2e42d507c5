//! `saveguard template`: check, begin, add, list and retire templates, and write the workbooks that people fill in.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand};
use ledger::templates::{Added, TemplateEntry, TemplateRetirement};
use model::{TemplateId, TemplateVersion};
use serde_json::{Value, json};
use sheets::{ScopeFacts, Template};

use super::organisation::scope_of;
use super::scopes::read_text;
use super::{open_ledger, operator, print, print_columns, shown, tell};
use crate::app::App;
use crate::config::Config;
use crate::registering::{Mistake, TEMPLATE_BYTES_MAX, facts_of, read_template, starter};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Name every mistake of a template. Exit 0 if there is none, 1 if there is one.
    Check {
        /// The file.
        file: PathBuf,
        /// Print one line of JSON: {"id","version","mistakes"}.
        #[arg(long)]
        json: bool,
    },
    /// Print a template to begin with, explained line by line.
    Init {
        /// Its id: letters, digits, - and _.
        #[arg(long, default_value = "my-returns")]
        id: String,
    },
    /// Add a version of a template. The same file again changes nothing; another text for the same version is refused.
    Add {
        /// The file.
        file: PathBuf,
    },
    /// List every version of every template.
    List {
        /// Print one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Retire a version: no upload is read by it from now on.
    Retire {
        /// The template.
        id: String,
        /// Its version.
        version: String,
    },
    /// Write the workbook that people fill in, with markers, drop-downs and formats.
    Workbook(WorkbookOf),
}

#[derive(Debug, Args)]
pub(super) struct WorkbookOf {
    /// The template: a file, or the id of one that was added (its newest version that is not retired).
    template: String,
    /// Where the workbook is written; nothing there is overwritten. Default: stdout.
    #[arg(long, short, value_name = "FILE.xlsx")]
    output: Option<PathBuf>,
    /// Fill in the numbers of this registration: ORGANISATION/REGISTRATION.
    #[arg(long = "for", value_name = "SCOPE")]
    scope: Option<String>,
}

impl Command {
    /// Whether it does without a data folder.
    pub(super) fn is_about_files(&self) -> bool {
        matches!(self, Self::Check { .. } | Self::Init { .. })
    }
}

/// What needs no data folder.
pub(super) fn run_on_files(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check { file, json } => check(&file, json),
        Command::Init { id } => {
            print(starter(&TemplateId::parse(&id)?).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("this needs a data folder"),
    }
}

pub(super) async fn run(config: Config, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check { .. } | Command::Init { .. } => run_on_files(command),
        Command::Add { file } => add(&open_ledger(config).await?, &file).await,
        Command::List { json } => list(&open_ledger(config).await?, json).await,
        Command::Retire { id, version } => {
            let (id, version) = (TemplateId::parse(&id)?, TemplateVersion::parse(&version)?);
            retire(&open_ledger(config).await?, id, version).await
        }
        Command::Workbook(wish) => workbook(config, &wish).await,
    }
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
fn check(file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let parsed = Template::parse(&read_text(file, TEMPLATE_BYTES_MAX)?);
    let code = if parsed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    match (parsed, json) {
        (Ok(template), true) => {
            let version = template.version.to_string();
            print(&json!({ "id": template.id, "version": version, "mistakes": [] }).to_string());
        }
        (Ok(template), false) => tell(&format!("{} {} has no mistakes.", template.id, template.version)),
        (Err(mistakes), true) => {
            let line = |each: &Mistake| json!({ "line": each.line, "place": each.place, "what": each.what });
            let mistakes: Value = mistakes.iter().map(line).collect();
            print(&json!({ "id": null, "version": null, "mistakes": mistakes }).to_string());
        }
        (Err(mistakes), false) => tell_all(&mistakes),
    }
    Ok(code)
}

fn tell_all(mistakes: &[Mistake]) {
    for mistake in mistakes {
        tell(&mistake.to_string());
    }
    tell(&format!("{} mistakes.", mistakes.len()));
}

async fn add(app: &App, file: &Path) -> anyhow::Result<ExitCode> {
    let text = read_text(file, TEMPLATE_BYTES_MAX)?;
    let new = match read_template(text, (operator(), app.now())) {
        Ok(new) => new,
        Err(mistakes) => {
            tell_all(&mistakes);
            return Ok(ExitCode::FAILURE);
        }
    };
    let what = format!("Version {} of template {}", new.version, new.id);
    match app.ledger.add_template(&new).await.context("nothing was added")? {
        Added::New => tell(&format!("{what} is added.")),
        Added::Same => tell(&format!("{what} is there already, with this very text.")),
        Added::OtherText => bail!(
            "{what} is there already with another text, and stays as it is: give the changed one a new version"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::fn_params_excessive_bools, reason = "a flag of the command line, passed through")]
async fn list(app: &App, json: bool) -> anyhow::Result<ExitCode> {
    let found = app.ledger.templates(None).await?;
    if json {
        print(&found.iter().map(line_of).collect::<Value>().to_string());
        return Ok(ExitCode::SUCCESS);
    }
    let row = |cells: [&str; 4]| print_columns(&cells.into_iter().zip([24, 10, 28, 0]).collect::<Vec<_>>());
    row(["TEMPLATE", "VERSION", "STANDING", "TITLE"]);
    for each in &found {
        let standing =
            each.retired_at.map_or_else(|| "in use".to_owned(), |at| format!("retired {}", shown(at)));
        row([each.id.as_str(), &each.version.to_string(), &standing, &each.title]);
    }
    Ok(ExitCode::SUCCESS)
}

fn line_of(entry: &TemplateEntry) -> Value {
    json!({
        "id": entry.id.as_str(),
        "version": entry.version.to_string(),
        "title": entry.title,
        "added_by": entry.added_by,
        "added_at": entry.added_at,
        "retired_at": entry.retired_at,
    })
}

async fn retire(app: &App, id: TemplateId, version: TemplateVersion) -> anyhow::Result<ExitCode> {
    let retirement = TemplateRetirement { id, version, by: operator(), at: app.now() };
    let is_new = app.ledger.retire_template(&retirement).await.context("nothing was changed")?;
    let word = if is_new { "is retired" } else { "was retired before" };
    tell(&format!("Version {} of template {} {word}.", retirement.version, retirement.id));
    Ok(ExitCode::SUCCESS)
}

async fn workbook(config: Config, wish: &WorkbookOf) -> anyhow::Result<ExitCode> {
    let is_file = Path::new(&wish.template).is_file();
    // A file and no registration: then nothing is asked of the ledger.
    let app = if is_file && wish.scope.is_none() { None } else { Some(open_ledger(config).await?) };
    let text = match &app {
        Some(app) if !is_file => added_text(app, &wish.template).await?,
        _ => read_text(Path::new(&wish.template), TEMPLATE_BYTES_MAX)?,
    };
    let facts = match (&app, &wish.scope) {
        (Some(app), Some(scope)) => facts(app, scope).await?,
        _ => ScopeFacts::default(),
    };
    let template = match Template::parse(&text) {
        Ok(template) => template,
        Err(mistakes) => {
            tell_all(&mistakes);
            return Ok(ExitCode::FAILURE);
        }
    };
    write(&template, &facts, wish.output.as_deref())?;
    tell(&format!("It is a workbook of {} {}.", template.id, template.version));
    Ok(ExitCode::SUCCESS)
}

fn write(template: &Template, facts: &ScopeFacts, output: Option<&Path>) -> anyhow::Result<()> {
    let Some(file) = output else {
        let stdout = std::io::stdout();
        ensure!(
            !stdout.is_terminal(),
            "a workbook is nothing to read here: say where to, with --output or >"
        );
        return write_to(template, facts, BufWriter::new(stdout.lock()));
    };
    let name = file.display();
    let out = File::create_new(file).with_context(|| format!("cannot write {name}"))?;
    write_to(template, facts, BufWriter::new(out)).with_context(|| format!("{name} is not whole"))
}

fn write_to(template: &Template, facts: &ScopeFacts, mut out: impl Write) -> anyhow::Result<()> {
    sheets::write_workbook(template, facts, &mut out)?;
    Ok(out.flush()?)
}

async fn added_text(app: &App, id: &str) -> anyhow::Result<String> {
    let id = TemplateId::parse(id).with_context(|| format!("`{id}` is neither a file nor an id"))?;
    let versions = app.ledger.templates(Some(&id)).await?;
    let newest = versions.iter().find(|each| each.retired_at.is_none());
    let newest =
        newest.with_context(|| format!("there is no version of the template `{id}` that is not retired"))?;
    let template = app.ledger.template(&id, &newest.version).await?;
    Ok(template.with_context(|| format!("the template `{id}` is gone"))?.text)
}

async fn facts(app: &App, scope: &str) -> anyhow::Result<ScopeFacts> {
    let (organisation, registration) =
        scope.split_once('/').with_context(|| format!("`{scope}` is not ORGANISATION/REGISTRATION"))?;
    let scope = scope_of(organisation, registration)?;
    let registration = app.ledger.registration(&scope).await?;
    let registration = registration.with_context(|| format!("there is no registration `{scope}`"))?;
    Ok(facts_of(app, &registration).await?)
}
