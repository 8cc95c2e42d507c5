//! The list of documents: by company and project, searched, sorted, page by page; and the bin.
//!
//! Guarantees: only companies the caller may view are named or listed; a page costs one search and a look at what it shows, however
//! many documents there are.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use ledger::documents::{Company, Document, KeptPage, Project, Whose};
use ledger::searching::{DocumentSearch, SortedBy};
use ledger::sessions::SessionPage;
use model::access::{Permission, may};
use model::{CompanyId, ProjectId};
use serde::Deserialize;

use super::page::{Page, Visitor, render, size, time};
use crate::app::App;
use crate::http::Problem;

/// Documents of a page.
const SHOWN: u32 = 50;
/// Pages beyond this are not counted; a search is the better way.
const PAGE_MAX: u32 = 20_000;
/// Kept copies that are counted.
const KEPT_COUNTED: u32 = 20;
/// Sessions of a document that are looked at for names.
const SESSIONS_SHOWN: u32 = 5;

/// What the list is asked for; all of it stands in the address.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ListQuery {
    company: Option<String>,
    project: Option<String>,
    words: Option<String>,
    sort: Option<String>,
    order: Option<String>,
    page: Option<u32>,
    bin: Option<String>,
}

impl ListQuery {
    fn sorted_by(&self) -> (SortedBy, bool) {
        let by = match self.sort.as_deref() {
            Some("name") => SortedBy::Name,
            Some("size") => SortedBy::Size,
            _ => SortedBy::Changed,
        };
        let descending = match self.order.as_deref() {
            Some("up") => false,
            Some("down") => true,
            _ => by != SortedBy::Name,
        };
        (by, descending)
    }

    fn is_bin(&self) -> bool {
        self.bin.is_some()
    }

    /// The address of the same list with some of it different; an empty value leaves it out.
    fn link(&self, changes: &[(&str, &str)]) -> String {
        let page = self.page.map(|page| page.to_string());
        let now = [
            ("company", &self.company),
            ("project", &self.project),
            ("words", &self.words),
            ("sort", &self.sort),
            ("order", &self.order),
            ("page", &page),
            ("bin", &self.bin),
        ];
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in now {
            let changed = changes.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
            if let Some(value) = changed.or(value.as_deref()).filter(|value| !value.is_empty()) {
                query.append_pair(name, value);
            }
        }
        format!("/?{}", query.finish())
    }
}

#[derive(Template)]
#[template(path = "documents.html")]
struct List {
    page: Page,
    companies: Vec<Choice>,
    projects: Vec<Choice>,
    company: String,
    project: String,
    words: String,
    columns: Vec<Column>,
    documents: Vec<Row>,
    total: u64,
    first: u64,
    last: u64,
    previous: Option<String>,
    next: Option<String>,
    is_bin: bool,
    bin_link: String,
    clear_link: String,
    may_edit: bool,
    may_administer: bool,
}

/// An entry of a selection.
struct Choice {
    id: String,
    name: String,
    is_chosen: bool,
}

/// A column that can be sorted by.
struct Column {
    key: &'static str,
    link: String,
    /// `ascending`, `descending` or `none`, as tables say it.
    sorted: &'static str,
}

/// A document in a list or on its page.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) file_type: String,
    pub(super) project: String,
    pub(super) head: String,
    pub(super) size: String,
    pub(super) changed_at: String,
    pub(super) changed: String,
    pub(super) editors: Vec<String>,
    pub(super) flags: Vec<String>,
    pub(super) kept: usize,
    pub(super) may_edit: bool,
    pub(super) may_comment: bool,
    pub(super) may_share: bool,
    pub(super) may_delete: bool,
    pub(super) may_restore: bool,
}

/// The page.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    Query(query): Query<ListQuery>,
) -> Response {
    visitor.answer(list_page(&app, &visitor, query).await)
}

async fn list_page(app: &App, visitor: &Visitor, query: ListQuery) -> Result<Response, Problem> {
    let caller = &visitor.session.0;
    let mut companies = app.ledger.companies().await?;
    companies.retain(|company| may(caller, Permission::View, &company.id));
    let asked = query.company.as_deref().filter(|id| !id.is_empty());
    let Some(company) = (match asked {
        // Also what is not listed: a foreign company looks exactly like a missing one.
        Some(asked) => Some(find_company(&companies, asked)?),
        None => companies.first().cloned(),
    }) else {
        return render(&nothing(visitor, &query));
    };
    let projects = app.ledger.projects(&company.id).await?;
    let found = search(app, &query, &company.id).await?;
    let mut rows = Vec::new();
    for document in found.documents {
        rows.push(row(app, visitor, document).await?);
    }
    let number = query.page.unwrap_or(1).clamp(1, PAGE_MAX);
    let before = u64::from(number - 1) * u64::from(SHOWN);
    let last = before + rows.len() as u64;
    let link_to = |page: u32| query.link(&[("page", &page.to_string())]);
    let bin = if query.is_bin() { "" } else { "yes" };
    render(&List {
        page: visitor.page("documents"),
        companies: company_choices(&companies, &company),
        projects: project_choices(&projects, query.project.as_deref()),
        project: query.project.clone().unwrap_or_default(),
        words: query.words.clone().unwrap_or_default(),
        columns: columns(&query),
        documents: rows,
        total: found.total,
        first: if found.total == 0 { 0 } else { before + 1 },
        last,
        previous: (number > 1).then(|| link_to(number - 1)),
        next: (last < found.total).then(|| link_to(number + 1)),
        is_bin: query.is_bin(),
        bin_link: query.link(&[("bin", bin), ("page", "")]),
        clear_link: query.link(&[("words", ""), ("page", ""), ("project", "")]),
        may_edit: may(caller, Permission::Edit, &company.id),
        may_administer: may(caller, Permission::Administer, &company.id),
        company: company.id.to_string(),
    })
}

fn find_company(companies: &[Company], asked: &str) -> Result<Company, Problem> {
    companies.iter().find(|company| company.id.as_str() == asked).cloned().ok_or_else(Problem::not_found)
}

async fn search(
    app: &App,
    query: &ListQuery,
    company: &CompanyId,
) -> Result<ledger::searching::FoundDocuments, Problem> {
    let project = query.project.as_deref().filter(|id| !id.is_empty()).map(ProjectId::parse).transpose();
    let (by, descending) = query.sorted_by();
    let search = DocumentSearch {
        company: company.clone(),
        project: project.map_err(|refused| Problem::id(&refused))?,
        deleted: query.is_bin(),
        words: query.words.clone().unwrap_or_default(),
        by,
        descending,
        skip: (query.page.unwrap_or(1).clamp(1, PAGE_MAX) - 1) * SHOWN,
        limit: SHOWN,
    };
    Ok(app.ledger.find_documents(&search).await?)
}

/// For somebody who may see no company.
fn nothing(visitor: &Visitor, query: &ListQuery) -> List {
    List {
        page: visitor.page("documents"),
        companies: Vec::new(),
        projects: Vec::new(),
        company: String::new(),
        project: String::new(),
        words: String::new(),
        columns: columns(query),
        documents: Vec::new(),
        total: 0,
        first: 0,
        last: 0,
        previous: None,
        next: None,
        is_bin: false,
        bin_link: String::new(),
        clear_link: "/".to_owned(),
        may_edit: false,
        may_administer: false,
    }
}

fn company_choices(companies: &[Company], chosen: &Company) -> Vec<Choice> {
    let choice = |company: &Company| Choice {
        id: company.id.to_string(),
        name: company.name.clone(),
        is_chosen: company.id == chosen.id,
    };
    companies.iter().map(choice).collect()
}

fn project_choices(projects: &[Project], chosen: Option<&str>) -> Vec<Choice> {
    let choice = |project: &Project| Choice {
        id: project.id.to_string(),
        name: project.name.clone(),
        is_chosen: chosen == Some(project.id.as_str()),
    };
    projects.iter().map(choice).collect()
}

fn columns(query: &ListQuery) -> Vec<Column> {
    let (sorted_by, descending) = query.sorted_by();
    let all = [("name", SortedBy::Name), ("changed", SortedBy::Changed), ("size", SortedBy::Size)];
    let column = |(key, by): (&'static str, SortedBy)| {
        let (sorted, order) = match (sorted_by == by, descending) {
            (true, true) => ("descending", "up"),
            (true, false) => ("ascending", "down"),
            (false, _) => ("none", ""),
        };
        Column { key, sorted, link: query.link(&[("sort", key), ("order", order), ("page", "")]) }
    };
    all.into_iter().map(column).collect()
}

/// A document with what people want to see of it at a glance.
pub(super) async fn row(app: &App, visitor: &Visitor, document: Document) -> Result<Row, Problem> {
    let head = app.ledger.content(&document.id, document.head).await?;
    let flags = head.map(|content| content.blob.flags).unwrap_or_default();
    let page = KeptPage { of: Whose::Document(document.id.clone()), before: None, limit: KEPT_COUNTED };
    let kept = app.ledger.kept_copies(&page).await?;
    let editors = if document.editors.is_empty() { Vec::new() } else { editors(app, &document).await? };
    let allowed = |permission| may(&visitor.session.0, permission, &document.company);
    Ok(Row {
        id: document.id.to_string(),
        name: document.name.to_string(),
        file_type: document.head_file_type.clone(),
        project: document.project.to_string(),
        head: document.head.to_string(),
        size: size(document.head_size_bytes),
        changed_at: document.head_moved_at.to_string(),
        changed: time(document.head_moved_at),
        editors,
        flags: flags.split(',').filter(|flag| !flag.is_empty()).map(str::to_owned).collect(),
        kept: kept.iter().filter(|copy| copy.settled.is_none()).count(),
        may_edit: allowed(Permission::Edit),
        may_comment: allowed(Permission::Comment),
        may_share: allowed(Permission::Share),
        may_delete: allowed(Permission::Delete),
        may_restore: allowed(Permission::Restore),
    })
}

/// The names of those inside; an id if no name is known.
async fn editors(app: &App, document: &Document) -> Result<Vec<String>, Problem> {
    let page = SessionPage { document: Some(document.id.clone()), after: None, limit: SESSIONS_SHOWN };
    let sessions = app.ledger.sessions(&page).await?;
    let mut names: Vec<String> =
        sessions.into_iter().flat_map(|session| session.people).map(|person| person.name).collect();
    if names.is_empty() {
        names.clone_from(&document.editors);
    }
    names.sort();
    names.dedup();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_what_is_asked_for_and_change_what_they_say() {
        let query = ListQuery {
            company: Some("acme".to_owned()),
            words: Some("a&b".to_owned()),
            page: Some(3),
            ..ListQuery::default()
        };

        assert_eq!(query.link(&[("page", "4")]), "/?company=acme&words=a%26b&page=4");
        assert_eq!(query.link(&[("words", ""), ("page", "")]), "/?company=acme");
    }

    #[test]
    fn the_newest_come_first_unless_somebody_says_otherwise() {
        assert_eq!(ListQuery::default().sorted_by(), (SortedBy::Changed, true));
        let by_name = ListQuery { sort: Some("name".to_owned()), ..ListQuery::default() };
        assert_eq!(by_name.sorted_by(), (SortedBy::Name, false));
    }
}
