//! The contract about API tokens and limits, and what the audit trail says of them.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::SignedDuration;
use model::access::{Companies, Organisations, Role};
use model::quotas::{Exceeded, Quota, Usage};
use model::{CompanyId, Digest, OrganisationId, ProjectId};

use super::desk::{Desk, author};
use crate::LedgerError;
use crate::callers::{NewApiToken, Revocation};
use crate::documents::{Company, CompanyChange, ProjectRenaming};

fn acme() -> CompanyId {
    CompanyId::parse("acme").unwrap()
}

fn new_token(desk: &Desk, secret: &[u8], companies: Companies) -> NewApiToken {
    NewApiToken {
        hash: Digest::of(secret),
        name: "nightly export".to_owned(),
        role: Role::Editor,
        companies,
        organisations: Organisations::Only(vec![OrganisationId::parse("o1").unwrap()]),
        expires_at: None,
        by: author("ops"),
        at: desk.now(),
    }
}

/// The words of a chain.
async fn actions(desk: &Desk, chain: &str) -> Vec<String> {
    let entries = desk.ledger.audit(chain, 0, 100).await.unwrap();
    model::audit::verify(entries.iter().map(|(entry, hash)| (entry, *hash))).unwrap();
    entries.into_iter().map(|(entry, _)| entry.action).collect()
}

async fn limit(desk: &Desk, documents: Option<u64>, bytes: Option<u64>) -> Company {
    let change = CompanyChange {
        id: acme(),
        name: None,
        quota: Some(Quota { documents, bytes }),
        by: author("ops"),
        at: desk.now(),
    };
    desk.ledger.change_company(&change).await.unwrap()
}

pub async fn a_token_is_found_by_its_hash_and_by_nothing_else(desk: &Desk) {
    let new = new_token(desk, b"first", Companies::Only(vec![acme()]));

    let made = desk.ledger.create_api_token(&new).await.unwrap();

    let found = desk.ledger.api_token_by_hash(&Digest::of(b"first")).await.unwrap().unwrap();
    assert_eq!(found, made);
    assert_eq!((found.role, &found.companies, found.created_at), (new.role, &new.companies, new.at));
    assert_eq!((&found.organisations, found.created_by.as_str()), (&new.organisations, "ops"));
    assert_eq!(desk.ledger.api_token(made.number).await.unwrap(), Some(made.clone()));
    assert_eq!(desk.ledger.api_token_by_hash(&Digest::of(b"other")).await.unwrap(), None);
    assert_eq!(desk.ledger.api_token(made.number + 1).await.unwrap(), None);
    assert!(found.counts_at(desk.now()));
    assert!(desk.ledger.create_api_token(&new).await.is_err(), "a hash stands for one token");
    desk.expect_consistent().await;
}

pub async fn a_token_needs_companies_that_exist(desk: &Desk) {
    let nobody = Companies::Only(vec![acme(), CompanyId::parse("nobody").unwrap()]);

    let refused = desk.ledger.create_api_token(&new_token(desk, b"x", nobody)).await;

    assert!(matches!(refused, Err(LedgerError::NotFound { .. })));
    assert_eq!(desk.ledger.api_tokens(0, 10).await.unwrap(), []);
}

pub async fn a_revoked_token_counts_for_nothing_and_stays_listed(desk: &Desk) {
    let all = desk.ledger.create_api_token(&new_token(desk, b"all", Companies::All)).await.unwrap();
    let mut new = new_token(desk, b"some", Companies::Only(vec![acme()]));
    new.expires_at = Some(new.at + SignedDuration::from_secs(100));
    let some = desk.ledger.create_api_token(&new).await.unwrap();
    let revocation = Revocation { number: all.number, by: author("ops"), at: desk.now() };

    assert!(desk.ledger.revoke_api_token(&revocation).await.unwrap());
    assert!(!desk.ledger.revoke_api_token(&revocation).await.unwrap());

    let missing = desk.ledger.revoke_api_token(&Revocation { number: 999, ..revocation.clone() }).await;
    assert!(matches!(missing, Err(LedgerError::NotFound { .. })));
    let listed = desk.ledger.api_tokens(0, 10).await.unwrap();
    assert_eq!(listed.iter().map(|token| token.number).collect::<Vec<_>>(), [all.number, some.number]);
    assert_eq!(listed[0].revoked_at, Some(revocation.at));
    assert!(!listed[0].counts_at(revocation.at));
    assert!(listed[1].counts_at(new.at) && !listed[1].counts_at(new.expires_at.unwrap()));
    assert_eq!(desk.ledger.api_tokens(all.number, 1).await.unwrap(), [some]);
    assert_eq!(actions(desk, "saveguard:installation").await, ["token-created", "token-revoked"]);
    assert_eq!(actions(desk, "company:acme").await, ["company-created", "project-created", "token-created"]);
    desk.expect_consistent().await;
}

pub async fn the_last_use_of_a_token_only_moves_on(desk: &Desk) {
    let token = desk.ledger.create_api_token(&new_token(desk, b"x", Companies::All)).await.unwrap();
    let (earlier, later) = (desk.now(), desk.now());

    desk.ledger.note_api_token_used(token.number, later).await.unwrap();
    desk.ledger.note_api_token_used(token.number, earlier).await.unwrap();

    let token = desk.ledger.api_token(token.number).await.unwrap().unwrap();
    assert_eq!(token.last_used_at, Some(later));
}

pub async fn companies_and_projects_are_renamed_and_that_is_written_down(desk: &Desk) {
    let rename = |id: &str, name: &str| CompanyChange {
        id: CompanyId::parse(id).unwrap(),
        name: Some(name.to_owned()),
        quota: None,
        by: author("ann"),
        at: desk.now(),
    };
    let rename_project = |id: &str, name: &str| ProjectRenaming {
        company: acme(),
        id: ProjectId::parse(id).unwrap(),
        name: name.to_owned(),
        by: author("ann"),
        at: desk.now(),
    };

    let company = desk.ledger.change_company(&rename("acme", "Acme & Sons")).await.unwrap();
    desk.ledger.change_company(&rename("acme", "Acme & Sons")).await.unwrap();
    let project = desk.ledger.rename_project(&rename_project("plans", "Old plans")).await.unwrap();
    let nobody = desk.ledger.change_company(&rename("nobody", "X")).await;
    let nowhere = desk.ledger.rename_project(&rename_project("nowhere", "X")).await;

    assert!(matches!(nobody, Err(LedgerError::NotFound { .. })));
    assert!(matches!(nowhere, Err(LedgerError::NotFound { .. })));
    assert_eq!(company.name, "Acme & Sons");
    assert_eq!(desk.ledger.company(&acme()).await.unwrap(), Some(company));
    assert_eq!(desk.ledger.projects(&acme()).await.unwrap(), [project]);
    let expected = ["company-created", "project-created", "company-renamed", "project-renamed"];
    assert_eq!(actions(desk, "company:acme").await, expected);
    desk.expect_consistent().await;
}

pub async fn a_document_beyond_a_limit_is_refused_and_nothing_is_written(desk: &Desk) {
    desk.document("first").await;
    limit(desk, Some(1), None).await;

    let second = desk.ledger.create_document(&desk.new_document("second", b"base")).await;
    limit(desk, None, Some(10)).await;
    let large = desk.ledger.create_document(&desk.new_document("large", b"1234567")).await;
    let small = desk.ledger.create_document(&desk.new_document("small", b"123456")).await;

    assert!(matches!(second, Err(LedgerError::OverQuota(Exceeded::Documents { limit: 1 }))));
    assert!(matches!(large, Err(LedgerError::OverQuota(Exceeded::Bytes { limit: 10 }))));
    assert!(small.is_ok(), "up to the limit");
    let company = desk.ledger.company(&acme()).await.unwrap().unwrap();
    assert_eq!(company.usage, Usage { documents: 2, bytes: 10 });
    assert_eq!(company.quota, Quota { documents: None, bytes: Some(10) });
    desk.expect_consistent().await;
}

pub async fn a_save_beyond_a_limit_is_taken_and_told(desk: &Desk) {
    let document = desk.document("12345").await;
    limit(desk, None, Some(4)).await;
    let key = desk.key(&document.id).await;

    let checkpoint = desk.save(&key, 6, b"much longer").await;
    let back = desk.save(&key, 2, b"tiny").await;

    assert_eq!(checkpoint.over_quota, Some(Exceeded::Bytes { limit: 4 }));
    assert_eq!(back.over_quota, None);
    desk.expect_head(&document.id, "2", b"tiny").await;
    let company = desk.ledger.company(&acme()).await.unwrap().unwrap();
    assert_eq!(company.usage, Usage { documents: 1, bytes: 4 });
    desk.expect_consistent().await;
}
