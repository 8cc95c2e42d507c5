//! The contract about templates.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use model::{TemplateId, TemplateVersion};

use super::desk::{Desk, author};
use crate::LedgerError;
use crate::templates::{Added, NewTemplate, TemplateRetirement};

fn loads() -> TemplateId {
    TemplateId::parse("loads").unwrap()
}

fn version(text: &str) -> TemplateVersion {
    TemplateVersion::parse(text).unwrap()
}

/// A version of the template `loads`.
pub(super) fn new_template(desk: &Desk, number: &str, text: &str) -> NewTemplate {
    NewTemplate {
        id: loads(),
        version: version(number),
        title: "Loads".to_owned(),
        text: text.to_owned(),
        by: author("ops"),
        at: desk.now(),
    }
}

pub(super) fn retirement(desk: &Desk, number: &str) -> TemplateRetirement {
    TemplateRetirement { id: loads(), version: version(number), by: author("ops"), at: desk.now() }
}

pub async fn a_version_of_a_template_is_added_once_and_never_changes(desk: &Desk) {
    let first = new_template(desk, "1.0", "text");

    let added = desk.ledger.add_template(&first).await.unwrap();
    let same = desk.ledger.add_template(&new_template(desk, "1.0", "text")).await.unwrap();
    let other = desk.ledger.add_template(&new_template(desk, "1.0", "other")).await.unwrap();

    assert_eq!((added, same, other), (Added::New, Added::Same, Added::OtherText));
    let found = desk.ledger.template(&loads(), &version("1.0")).await.unwrap().unwrap();
    assert_eq!((found.text.as_str(), found.entry.title.as_str()), ("text", "Loads"));
    assert_eq!((found.entry.added_at, found.entry.added_by.as_str()), (first.at, "ops"));
    assert_eq!(desk.ledger.template(&loads(), &version("1.1")).await.unwrap(), None);
    let trail = desk.ledger.audit("saveguard:installation", 0, 10).await.unwrap();
    assert_eq!(trail.iter().map(|(entry, _)| entry.action.as_str()).collect::<Vec<_>>(), ["template-added"]);
    desk.expect_consistent().await;
}

pub async fn versions_are_listed_newest_first_and_a_retired_one_stays(desk: &Desk) {
    for number in ["2.9", "2.10", "1"] {
        desk.ledger.add_template(&new_template(desk, number, number)).await.unwrap();
    }
    let another = NewTemplate { id: TemplateId::parse("a").unwrap(), ..new_template(desk, "1", "x") };
    desk.ledger.add_template(&another).await.unwrap();
    let retirement_of_2_9 = retirement(desk, "2.9");

    assert!(desk.ledger.retire_template(&retirement_of_2_9).await.unwrap());
    assert!(!desk.ledger.retire_template(&retirement(desk, "2.9")).await.unwrap());
    let missing = desk.ledger.retire_template(&retirement(desk, "3")).await;
    let same = desk.ledger.add_template(&new_template(desk, "2.9", "2.9")).await.unwrap();

    assert!(matches!(missing, Err(LedgerError::NotFound { .. })));
    assert_eq!(same, Added::Same, "adding it again does not bring it back");
    let listed = desk.ledger.templates(Some(&loads())).await.unwrap();
    let told: Vec<_> = listed.iter().map(|each| (each.version.to_string(), each.retired_at)).collect();
    let expected = [("2.10", None), ("2.9", Some(retirement_of_2_9.at)), ("1", None)];
    assert_eq!(told, expected.map(|(version, retired)| (version.to_owned(), retired)));
    let all = desk.ledger.templates(None).await.unwrap();
    assert_eq!(all.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["a", "loads", "loads", "loads"]);
    assert_eq!(desk.ledger.template(&loads(), &version("2.9")).await.unwrap().unwrap().text, "2.9");
    desk.expect_consistent().await;
}
