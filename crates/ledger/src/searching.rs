//! Finding documents by what people know of them: words of the name, sorted as they wish, page by page with a total.
//!
//! Guarantees: case does not count (ASCII letters), every word must be in the name, and equal documents are in the order of their
//! ids, so that pages do not overlap. [`walk`] is right for every engine and looks at every document of the company; an engine that
//! can do better does so. Does not do: look into contents.

use model::{CompanyId, ProjectId};

use crate::documents::{Document, DocumentPage, Documents};
use crate::{LedgerError, Result};

/// Documents read at once.
const CHUNK: u32 = 1000;
/// Words beyond these are not looked at.
pub(crate) const WORDS_MAX: usize = 8;

/// Which documents to find, and in which order.
#[derive(Debug, Clone)]
pub struct DocumentSearch {
    /// Of this company.
    pub company: CompanyId,
    /// Of this project only.
    pub project: Option<ProjectId>,
    /// The deleted ones instead of those that are there.
    pub deleted: bool,
    /// Words that must all be in the name; empty finds all.
    pub words: String,
    /// By what they are sorted.
    pub by: SortedBy,
    /// The other way round.
    pub descending: bool,
    /// So many are left out at the beginning.
    pub skip: u32,
    /// At most so many.
    pub limit: u32,
}

impl DocumentSearch {
    /// The words, in small letters.
    pub(crate) fn lower_words(&self) -> Vec<String> {
        self.words.split_whitespace().take(WORDS_MAX).map(str::to_ascii_lowercase).collect()
    }
}

/// By what found documents are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortedBy {
    /// The name, whatever its case.
    Name,
    /// When the head last moved.
    Changed,
    /// The length of the head.
    Size,
}

/// A page of found documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDocuments {
    /// Those of the page.
    pub documents: Vec<Document>,
    /// How many there are on all pages.
    pub total: u64,
}

/// Finds by looking at every document.
pub(crate) async fn walk<L: Documents + ?Sized>(
    ledger: &L,
    search: &DocumentSearch,
) -> Result<FoundDocuments> {
    let words = search.lower_words();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = DocumentPage {
            company: search.company.clone(),
            project: search.project.clone(),
            deleted: search.deleted,
            after: after.take(),
            limit: CHUNK,
        };
        let documents = ledger.documents(&page).await?;
        after = documents.last().map(|last| last.id.clone());
        found.extend(documents.into_iter().filter(|document| matches(document, &words)));
        if after.is_none() {
            break;
        }
    }
    let total =
        u64::try_from(found.len()).map_err(|_| LedgerError::damaged("more documents than numbers"))?;
    sort(&mut found, search);
    let skip = usize::try_from(search.skip).unwrap_or(usize::MAX);
    let limit = usize::try_from(search.limit).unwrap_or(usize::MAX);
    Ok(FoundDocuments { documents: found.into_iter().skip(skip).take(limit).collect(), total })
}

fn matches(document: &Document, words: &[String]) -> bool {
    let name = document.name.as_str().to_ascii_lowercase();
    words.iter().all(|word| name.contains(word.as_str()))
}

fn sort(found: &mut [Document], search: &DocumentSearch) {
    found.sort_by(|one, other| {
        let order = match search.by {
            SortedBy::Name => {
                one.name.as_str().to_ascii_lowercase().cmp(&other.name.as_str().to_ascii_lowercase())
            }
            SortedBy::Changed => one.head_moved_at.cmp(&other.head_moved_at),
            SortedBy::Size => one.head_size_bytes.cmp(&other.head_size_bytes),
        };
        let order = if search.descending { order.reverse() } else { order };
        order.then_with(|| one.id.as_str().cmp(other.id.as_str()))
    });
}
