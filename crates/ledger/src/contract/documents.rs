//! The contract about companies, projects and documents.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use model::names::FileName;
use model::saves::ConflictReason;
use model::versions::Origin;
use model::{CompanyId, Digest, DocumentId, Label, ProjectId};

use super::desk::{Desk, author, blob};
use crate::LedgerError;
use crate::documents::{Company, DocumentPage, Keeping, KeptPage, Project, UnnamedBlob, Whose};
use crate::searching::{DocumentSearch, SortedBy, walk};

pub async fn companies_and_projects_are_listed_and_unique(desk: &Desk) {
    let company = Company::new(CompanyId::parse("zeta").unwrap(), "Zeta".to_owned(), desk.now());
    let ops = author("ops");
    desk.ledger.create_company(&company, &ops).await.unwrap();

    let again = desk.ledger.create_company(&company, &ops).await;
    let project = |company: &str| Project {
        company: CompanyId::parse(company).unwrap(),
        id: ProjectId::parse("plans").unwrap(),
        name: "Plans".to_owned(),
        created_at: desk.now(),
    };
    let same_project = desk.ledger.create_project(&project("acme"), &ops).await;
    let no_company = desk.ledger.create_project(&project("nobody"), &ops).await;

    assert!(matches!(again, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(same_project, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(no_company, Err(LedgerError::NotFound { .. })));
    let ids: Vec<_> =
        desk.ledger.companies().await.unwrap().into_iter().map(|company| company.id.to_string()).collect();
    assert_eq!(ids, ["acme", "zeta"]);
    assert_eq!(desk.ledger.projects(&company.id).await.unwrap(), []);
    assert_eq!(desk.ledger.projects(&CompanyId::parse("acme").unwrap()).await.unwrap().len(), 1);
}

pub async fn a_document_appears_with_its_first_version(desk: &Desk) {
    let document = desk.document("12345").await;

    assert_eq!(document.head, Label::FIRST);
    assert_eq!(document.head_digest, Digest::of(b"base"));
    let contents = desk.ledger.contents(&document.id).await.unwrap();
    assert_eq!(contents.len(), 1);
    assert_eq!((contents[0].origin, contents[0].author.id.as_str()), (Origin::Upload, "u0"));
    assert_eq!(desk.ledger.content(&document.id, Label::FIRST).await.unwrap().as_ref(), Some(&contents[0]));
    assert_eq!(desk.ledger.content(&document.id, Label::version(2)).await.unwrap(), None);
    desk.expect_consistent().await;
}

pub async fn a_document_needs_its_project_and_a_free_id(desk: &Desk) {
    desk.document("12345").await;

    let taken = desk.ledger.create_document(&desk.new_document("12345", b"other")).await;
    let mut homeless = desk.new_document("67890", b"other");
    homeless.project = ProjectId::parse("nowhere").unwrap();
    let homeless = desk.ledger.create_document(&homeless).await;

    assert!(matches!(taken, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(homeless, Err(LedgerError::NotFound { .. })));
    desk.expect_head(&DocumentId::parse("12345").unwrap(), "1", b"base").await;
}

pub async fn documents_are_listed_page_by_page_within_their_company(desk: &Desk) {
    for id in ["a", "b", "c"] {
        desk.document(id).await;
    }
    let page = |company: &str, after: Option<&str>| DocumentPage {
        deleted: false,
        company: CompanyId::parse(company).unwrap(),
        project: ProjectId::parse("plans").ok(),
        after: after.map(|id| DocumentId::parse(id).unwrap()),
        limit: 2,
    };
    let ids = async |page: &DocumentPage| -> Vec<String> {
        desk.ledger
            .documents(page)
            .await
            .unwrap()
            .into_iter()
            .map(|document| document.id.to_string())
            .collect()
    };

    assert_eq!(ids(&page("acme", None)).await, ["a", "b"]);
    assert_eq!(ids(&page("acme", Some("b"))).await, ["c"]);
    assert_eq!(ids(&page("other", None)).await, [""; 0]);
}

pub async fn documents_are_found_by_words_and_sorted(desk: &Desk) {
    for (id, name, bytes) in
        [("a", "Zebra plan.docx", "1"), ("b", "apple PLAN.docx", "333"), ("c", "100%_other.docx", "22")]
    {
        let mut new = desk.new_document(id, bytes.as_bytes());
        new.name = FileName::parse(name).unwrap();
        desk.ledger.create_document(&new).await.unwrap();
    }
    let search = |words: &str, by: SortedBy| DocumentSearch {
        company: CompanyId::parse("acme").unwrap(),
        project: ProjectId::parse("plans").ok(),
        deleted: false,
        words: words.to_owned(),
        by,
        descending: false,
        skip: 0,
        limit: 10,
    };
    let found = async |search: &DocumentSearch| -> (Vec<String>, u64) {
        let found = desk.ledger.find_documents(search).await.unwrap();
        assert_eq!(walk(&*desk.ledger, search).await.unwrap(), found, "every engine finds the same");
        (found.documents.iter().map(|document| document.id.to_string()).collect(), found.total)
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();

    assert_eq!(found(&search("", SortedBy::Name)).await, (ids(&["c", "b", "a"]), 3));
    assert_eq!(found(&search("plan", SortedBy::Size)).await, (ids(&["a", "b"]), 2));
    assert_eq!(found(&search("Plan APPLE", SortedBy::Name)).await, (ids(&["b"]), 1));
    assert_eq!(found(&search("%_", SortedBy::Name)).await, (ids(&["c"]), 1), "no character is special");
    assert_eq!(found(&search("' OR 1=1", SortedBy::Name)).await, (ids(&[]), 0));
    let last = DocumentSearch { descending: true, skip: 1, limit: 1, ..search("", SortedBy::Changed) };
    assert_eq!(found(&last).await, (ids(&["b"]), 3));
    let binned = DocumentSearch { deleted: true, ..search("", SortedBy::Changed) };
    assert_eq!(found(&binned).await, (ids(&[]), 0));
}

pub async fn a_blob_no_row_names_is_adopted_once(desk: &Desk) {
    let document = desk.document("12345").await;
    let found = |id: &str, bytes: &[u8]| UnnamedBlob {
        is_record_of_changes: false,
        blob: blob(bytes),
        document: DocumentId::parse(id).ok(),
        key: None,
        at: desk.now(),
    };

    let first = desk.ledger.keep_unnamed(&found("12345", b"stray")).await.unwrap();
    let second = desk.ledger.keep_unnamed(&found("12345", b"stray")).await.unwrap();
    let named = desk.ledger.keep_unnamed(&found("12345", b"base")).await.unwrap();
    let orphan = desk.ledger.keep_unnamed(&found("unheard-of", b"orphan")).await.unwrap();

    assert!(first.is_some() && second.is_none() && named.is_none());
    let page = KeptPage { of: Whose::Document(document.id), before: None, limit: 10 };
    let kept = desk.ledger.kept_copies(&page).await.unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].keeping, Keeping::Conflict(ConflictReason::Unnamed));
    let orphan = desk.ledger.kept_copy(orphan.unwrap()).await.unwrap().unwrap();
    assert_eq!((&orphan.keeping, &orphan.document), (&Keeping::Orphan, &None));
    let orphans = KeptPage { of: Whose::Nobody, before: None, limit: 10 };
    let orphans = desk.ledger.kept_copies(&orphans).await.unwrap();
    assert_eq!(orphans.iter().map(|copy| copy.number).collect::<Vec<_>>(), [orphan.number]);
    let all = KeptPage { of: Whose::All, before: Some(u64::MAX), limit: 10 };
    assert_eq!(
        desk.ledger.kept_copies(&all).await.unwrap().len(),
        2,
        "a number no row can have is not an error"
    );
    desk.expect_consistent().await;
}
