//! What changed between two contents of a document, over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use model::access::Permission;
use office_diff::{Change, Place, Shown};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::{Problem, ProblemDocument};
use super::caller::Session;
use super::extract::{PathOf, QueryOf};
use crate::app::App;
use crate::comparing::{Compared, Which, compare};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CompareQuery {
    /// The older content: a version (`13`), a checkpoint (`13.2`) or a kept copy (`kept:7`). Else the one before `to`.
    #[param(pattern = r"^([1-9][0-9]{0,8}(\.[1-9][0-9]{0,8})?|kept:[0-9]{1,18})$")]
    from: Option<String>,
    /// The newer content, named the same way. Else the head.
    #[param(pattern = r"^([1-9][0-9]{0,8}(\.[1-9][0-9]{0,8})?|kept:[0-9]{1,18})$")]
    to: Option<String>,
}

/// What changed between two contents.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ComparisonView {
    /// What was compared: `document`, `workbook`, `presentation` or `text`.
    #[schema(example = "document")]
    subject: &'static str,
    /// The older content.
    #[schema(example = "13")]
    from: String,
    /// The newer content.
    #[schema(example = "14")]
    to: String,
    /// How many pieces were added.
    added: u64,
    /// How many were removed.
    removed: u64,
    /// How many say something else.
    changed: u64,
    /// The changes, in the order of the contents.
    changes: Vec<ChangeView>,
    /// Whether a limit was met, so that this is not everything.
    is_cut: bool,
    /// Which limits: `read` (a content is larger than what is read), `damaged` (a part of it cannot be read), `rough` (they
    /// differ too much for the shortest list), `changes` (more changes than are listed), `shown` (a text is shortened).
    cut: Vec<&'static str>,
}

/// One change. Where it is depends on the subject.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(default)]
pub(super) struct ChangeView {
    /// `added`, `removed` or `changed`.
    #[schema(example = "changed")]
    kind: &'static str,
    /// The part of a document: `body`, `header1`, `footnotes` …
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// The slide, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    slide: Option<u32>,
    /// The paragraph in the part or on the slide, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    paragraph: Option<u32>,
    /// The line of a text, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// The sheet of a workbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    sheet: Option<String>,
    /// The cell; absent if it is about the whole sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "B7")]
    address: Option<String>,
    /// What it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<String>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<String>,
    /// The formula it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_formula: Option<String>,
    /// The formula it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_formula: Option<String>,
}

impl From<Change> for ChangeView {
    fn from(change: Change) -> Self {
        let parted = |shown: Option<Shown>| shown.map(|shown| (shown.text, shown.formula)).unzip();
        let ((old, old_formula), (new, new_formula)) = (parted(change.old), parted(change.new));
        let (old_formula, new_formula) = (old_formula.flatten(), new_formula.flatten());
        let view = Self { kind: change.kind.as_str(), old, new, old_formula, new_formula, ..Self::default() };
        match change.place {
            Place::Paragraph { part, number } => Self { part: Some(part), paragraph: Some(number), ..view },
            Place::Slide { slide, number } => Self { slide: Some(slide), paragraph: Some(number), ..view },
            Place::Line { number } => Self { line: Some(number), ..view },
            Place::Cell { sheet, address } => Self { sheet: Some(sheet), address: Some(address), ..view },
            Place::Sheet { sheet } => Self { sheet: Some(sheet), ..view },
        }
    }
}

impl From<Compared> for ComparisonView {
    fn from(compared: Compared) -> Self {
        let comparison = compared.comparison;
        Self {
            subject: comparison.subject.as_str(),
            from: compared.from.to_string(),
            to: compared.to.to_string(),
            added: comparison.counts.added,
            removed: comparison.counts.removed,
            changed: comparison.counts.changed,
            changes: comparison.changes.into_iter().map(Into::into).collect(),
            is_cut: !comparison.cut.is_empty(),
            cut: comparison.cut.into_iter().map(|cut| cut.as_str()).collect(),
        }
    }
}

/// What was added, removed and changed between two contents: paragraphs, cells, or paragraphs on slides.
#[utoipa::path(get, path = "/api/v1/documents/{document}/diff", tag = "documents", security(("bearer" = [])),
    params(("document" = String, Path), CompareQuery),
    responses((status = 200, body = ComparisonView),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "API_004: they have no text, or are of different kinds", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub(super) async fn compare_contents(
    State(app): State<Arc<App>>,
    session: Session,
    PathOf(document): PathOf<String>,
    QueryOf(query): QueryOf<CompareQuery>,
) -> Result<Json<ComparisonView>, Problem> {
    let document = session.document(&app, &document, Permission::View).await?;
    let (from, to) = (which(query.from)?, which(query.to)?);
    Ok(Json(compare(&app, &document, (from, to)).await?.into()))
}

fn which(text: Option<String>) -> Result<Option<Which>, Problem> {
    let parse = |text: String| {
        let refused =
            || Problem::bad_request("A content is a number like 14 or 14.2, or a kept copy like kept:7.");
        Which::parse(&text).ok_or_else(refused)
    };
    text.map(parse).transpose()
}
