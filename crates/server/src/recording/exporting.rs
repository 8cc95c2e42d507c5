//! Records on their way out: page by page, of one moment of each scope.
//!
//! A table needs its columns before its first row, so the records are walked twice: [`sheet_of`] finds the columns, [`Walk`] gives the rows. Both
//! look at the same commits.
//!
//! Guarantees: a page is in memory, no more; columns stand in the order of their templates, then those that only workbooks had. Does not do: formats.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ledger::LedgerError;
use ledger::records::{Ended, RecordVersion, RecordsPage};
use model::records::{RecordKey, values_of};
use model::{Scope, TemplateId, TemplateVersion};
use sheets::{ColumnKind, ExportColumn, ExportKind, Template, Version};

use crate::app::App;

/// Records in memory at once.
const PAGE: u32 = 500;
/// Columns that no template knows, at most: they come from workbooks, and anybody can make up more.
const OTHERS_MAX: usize = 1000;

/// What stands before the values of each row, and how it is written.
const FACTS: [(&str, ExportKind); 14] = [
    ("organisation", ExportKind::Text),
    ("registration", ExportKind::Text),
    ("accreditation", ExportKind::Text),
    ("kind", ExportKind::Text),
    ("key", ExportKind::Text),
    ("outcome", ExportKind::Text),
    ("reason", ExportKind::Text),
    ("measure", ExportKind::Number),
    ("submission", ExportKind::Number),
    ("submitted_at", ExportKind::Text),
    ("validatedAt", ExportKind::Text),
    ("log", ExportKind::Text),
    ("sheet", ExportKind::Text),
    ("row", ExportKind::Number),
];

/// Which records are meant.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this kind only.
    pub kind: Option<String>,
    /// Whose key begins so.
    pub key_prefix: Option<String>,
    /// That count so.
    pub outcome: Option<String>,
    /// Whose column says so.
    pub column: Option<(String, String)>,
}

impl Filter {
    /// A page of the records that are meant.
    pub fn page(&self, (scope, as_of): (&Scope, u64), limit: u32) -> RecordsPage {
        RecordsPage {
            as_of: Some(as_of),
            kind: self.kind.clone(),
            key_prefix: self.key_prefix.clone(),
            outcome: self.outcome.clone(),
            column: self.column.clone(),
            ended: Ended::LeftOut,
            ..RecordsPage::of(scope, limit)
        }
    }
}

/// Walks over the records of scopes, each as it was after a commit.
pub struct Walk {
    app: Arc<App>,
    scopes: VecDeque<(Scope, u64)>,
    filter: Filter,
    after: Option<RecordKey>,
}

impl Walk {
    /// Over these scopes, each as of its commit.
    pub fn new(app: Arc<App>, scopes: Vec<(Scope, u64)>, filter: Filter) -> Self {
        Self { app, scopes: scopes.into(), filter, after: None }
    }

    /// The next records, all of one scope; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<(Scope, Vec<RecordVersion>)>, LedgerError> {
        while let Some((scope, as_of)) = self.scopes.front() {
            let after = self.after.take();
            let page = RecordsPage { after, ..self.filter.page((scope, *as_of), PAGE) };
            let found = self.app.ledger.find_by_registration(&page).await?;
            if let Some(last) = found.last() {
                self.after = Some(last.key.clone());
                return Ok(Some((scope.clone(), found)));
            }
            self.scopes.pop_front();
        }
        Ok(None)
    }
}

/// The columns of a table of records.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// All columns: facts first, then values.
    pub columns: Vec<ExportColumn>,
}

impl Sheet {
    /// The cells of a record.
    pub fn row(&self, scope: &Scope, version: &RecordVersion) -> Vec<String> {
        let content = version.content.as_ref();
        let mut values = values_of(content.map(|content| content.values.as_str()));
        let place = version.place.as_ref().map(|(sheet, row)| (sheet.clone(), row.to_string()));
        let (sheet, row) = place.unwrap_or_default();
        let mut cells = vec![
            scope.organisation.to_string(),
            scope.registration.to_string(),
            version.accreditation.as_ref().map(ToString::to_string).unwrap_or_default(),
            version.key.kind.clone(),
            version.key.key.clone(),
            content.map(|content| content.outcome.clone()).unwrap_or_default(),
            content.and_then(|content| content.reason.clone()).unwrap_or_default(),
            content.and_then(|content| content.measure.clone()).unwrap_or_default(),
            version.sequence.to_string(),
            version.committed_at.to_string(),
            version.validated_at.map(|at| at.to_string()).unwrap_or_default(),
            version.log.to_string(),
            sheet,
            row,
        ];
        let columns = self.columns.iter().skip(FACTS.len());
        cells.extend(columns.map(|column| values.remove(&column.header).unwrap_or_default()));
        cells
    }
}

/// Finds the columns of everything a walk will give.
pub async fn sheet_of(app: &App, mut walk: Walk) -> Result<Sheet, LedgerError> {
    let (mut templates, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while let Some((_, page)) = walk.next().await? {
        for version in page {
            let content = version.content.as_ref().map(|content| content.values.as_str());
            seen.extend(values_of(content).into_keys());
            templates.insert(version.template);
        }
    }
    let known = known_columns(app, templates).await?;
    for (name, _) in &known {
        seen.remove(name);
    }
    let mut columns: Vec<ExportColumn> = FACTS.map(|(name, kind)| column(name, kind)).to_vec();
    columns.extend(known.iter().map(|(name, kind)| column(name, *kind)));
    columns.extend(seen.iter().take(OTHERS_MAX).map(|name| column(name, ExportKind::Text)));
    Ok(Sheet { columns })
}

fn column(header: &str, kind: ExportKind) -> ExportColumn {
    ExportColumn { header: header.to_owned(), kind }
}

/// The columns of templates, in their order; of several versions of one, the newest first.
async fn known_columns(
    app: &App,
    used: BTreeSet<(String, String)>,
) -> Result<Vec<(String, ExportKind)>, LedgerError> {
    let mut by_template: BTreeMap<String, Vec<(Option<Version>, String)>> = BTreeMap::new();
    for (template, version) in used {
        by_template.entry(template).or_default().push((Version::parse(&version), version));
    }
    let mut columns: Vec<(String, ExportKind)> = Vec::new();
    for (template, mut versions) in by_template {
        versions.sort();
        for (_, version) in versions.iter().rev() {
            let Some(template) = template_of(app, (&template, version)).await? else { continue };
            for column in template.tables.iter().flat_map(|table| &table.columns) {
                if !columns.iter().any(|(name, _)| *name == column.name) {
                    columns.push((column.name.clone(), kind_of(&column.kind)));
                }
            }
        }
    }
    Ok(columns)
}

/// A version of a template that records came under. One that cannot be read any more names no columns.
pub(super) async fn template_of(
    app: &App,
    (id, version): (&str, &str),
) -> Result<Option<Template>, LedgerError> {
    let (Ok(id), Ok(version)) = (TemplateId::parse(id), TemplateVersion::parse(version)) else {
        return Ok(None);
    };
    let found = app.ledger.template(&id, &version).await?;
    Ok(found.and_then(|found| Template::parse(&found.text).ok()))
}

fn kind_of(kind: &ColumnKind) -> ExportKind {
    match kind {
        ColumnKind::Decimal { .. } | ColumnKind::Integer { .. } => ExportKind::Number,
        ColumnKind::Date { .. } => ExportKind::Day,
        ColumnKind::Text { .. }
        | ColumnKind::Choice { .. }
        | ColumnKind::YesNo
        | ColumnKind::Pattern { .. } => ExportKind::Text,
    }
}
