//! The contract about the audit trail: who, what, when, from where; anchors; receipts.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::{SignedDuration, Timestamp};
use model::audit::Entry;
use model::trail::{ANCHOR, Anchor, Checker, chain_of, is_company_chain};
use model::{CompanyId, Digest, DocumentId, Label};

use super::desk::{Desk, author};
use crate::LedgerError;
use crate::changes::ChangeRequest;
use crate::documents::Document;
use crate::keys::OpenRequest;
use crate::trail::{ActPlace, ActsOf, ActsOrder, ActsPage, Anchoring, ReadBack};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

fn acme() -> CompanyId {
    CompanyId::parse("acme").unwrap()
}

fn page(of: ActsOf) -> ActsPage {
    let order = ActsOrder::OldestFirst;
    ActsPage { of, actor: None, action: None, since: None, until: None, after: None, order, limit: 1000 }
}

/// The anchors of the company, as the documents they name and how far.
async fn anchors(desk: &Desk) -> Vec<Vec<(String, u64)>> {
    let entries = desk.ledger.audit(&chain_of(&acme()), 0, 1000).await.unwrap();
    let anchors = entries.iter().filter(|(entry, _)| entry.action == ANCHOR);
    let heads = anchors.map(|(entry, _)| serde_json::from_str::<Anchor>(&entry.details).unwrap().heads);
    heads.map(|heads| heads.into_iter().map(|(chain, head)| (chain, head.sequence)).collect()).collect()
}

async fn anchor(desk: &Desk, at: Timestamp) -> usize {
    desk.ledger.anchor(&Anchoring { at, spacing: MINUTE }).await.unwrap().len()
}

pub async fn acts_tell_who_did_what_from_where_and_what_came_of_it(desk: &Desk) {
    let mut new = desk.new_document("12345", b"base");
    new.author.from = "192.0.2.7".to_owned();
    desk.ledger.create_document(&new).await.unwrap();
    let request = OpenRequest {
        document: new.id.clone(),
        random: 1,
        knowledge: None,
        user: author("u1").calling_from("192.0.2.8"),
        quiet_after: SignedDuration::ZERO,
        listening_since: desk.now(),
        at: desk.now(),
    };
    desk.ledger.open_for_editing(&request).await.unwrap();
    let key = desk.key(&new.id).await;
    desk.save(&key, 2, b"edited").await;

    let entries = desk.ledger.audit("12345", 0, 1000).await.unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|(entry, _)| {
            (entry.actor.as_str(), entry.from.as_str(), entry.action.as_str(), entry.outcome.as_str())
        })
        .collect();

    assert_eq!(
        told,
        [
            ("u0", "192.0.2.7", "document-uploaded", "done"),
            ("u1", "192.0.2.8", "key-issued", "done"),
            ("u1", "document-server", "save-committed", "version"),
            ("saveguard", "saveguard", "key-retired", "done"),
        ]
    );
    desk.expect_consistent().await;
}

pub async fn a_new_document_is_anchored_at_once(desk: &Desk) {
    desk.document("one").await;
    desk.document("two").await;

    assert_eq!(anchors(desk).await, [[("one".to_owned(), 1)], [("two".to_owned(), 1)]]);
    desk.expect_consistent().await;
}

pub async fn a_deleted_document_is_anchored_at_once(desk: &Desk) {
    let document = desk.document("one").await.id;
    let (who, at, quiet_after) = (author("u7").calling_from("192.0.2.7"), desk.now(), SignedDuration::ZERO);
    let request = ChangeRequest { document, who, knowledge: None, quiet_after, at };

    desk.ledger.delete_document(&request).await.unwrap();

    assert_eq!(anchors(desk).await, [[("one".to_owned(), 1)], [("one".to_owned(), 2)]]);
    let (entry, _) = desk.ledger.audit("one", 1, 1).await.unwrap().remove(0);
    let told = (entry.actor.as_str(), entry.from.as_str(), entry.action.as_str());
    assert_eq!(told, ("u7", "192.0.2.7", "document-deleted"));
    desk.expect_consistent().await;
}

pub async fn chains_that_moved_are_anchored_once_a_minute(desk: &Desk) {
    let (one, two) = (desk.document("one").await, desk.document("two").await);
    let key = desk.key(&one.id).await;
    assert_eq!(anchor(desk, desk.now()).await, 0, "less than a minute ago it was anchored");

    desk.pass(60);
    assert_eq!(anchor(desk, desk.now()).await, 1);
    assert_eq!(anchor(desk, desk.now()).await, 0, "nothing moved since");
    desk.save(&key, 6, b"edited").await;
    desk.key(&two.id).await;
    assert_eq!(anchor(desk, desk.now()).await, 0);
    desk.pass(60);
    assert_eq!(anchor(desk, desk.now()).await, 1);

    let both = vec![("one".to_owned(), 3), ("two".to_owned(), 2)];
    assert_eq!(anchors(desk).await[2..], [vec![("one".to_owned(), 2)], both]);
    desk.expect_consistent().await;
}

pub async fn more_chains_than_one_anchor_holds_take_several(desk: &Desk) {
    let mut documents = Vec::new();
    for number in 0..501 {
        documents.push(desk.document(&format!("d{number}")).await);
    }
    for document in &documents {
        desk.key(&document.id).await;
    }
    desk.pass(60);
    let at = desk.now();

    let rounds = [anchor(desk, at).await, anchor(desk, at).await, anchor(desk, at).await];

    assert_eq!(rounds, [1, 1, 0]);
    let counts: Vec<usize> = anchors(desk).await.iter().map(Vec::len).collect();
    assert_eq!(counts[501..], [500, 1]);
    desk.expect_consistent().await;
}

pub async fn acts_are_found_by_document_person_time_and_kind(desk: &Desk) {
    let documents = [desk.document("one").await, desk.document("two").await];
    for document in &documents {
        let key = desk.key(&document.id).await;
        desk.save(&key, 2, document.id.as_str().as_bytes()).await;
    }
    let found = async |page: ActsPage| {
        let found = desk.ledger.find_acts(&page).await.unwrap();
        found.into_iter().map(|(entry, _)| (entry.chain, entry.sequence)).collect::<Vec<_>>()
    };
    let all = found(page(ActsOf::Company(acme()))).await;
    let of_one = found(page(ActsOf::Document(documents[0].id.clone()))).await;

    assert_eq!(all.len(), 2 + 2 + 2 * 4, "company and project, two anchors, four entries of each document");
    assert_eq!(of_one, (1..=4).map(|sequence| ("one".to_owned(), sequence)).collect::<Vec<_>>());
    let by_u0 = ActsPage { actor: Some("u0".to_owned()), ..page(ActsOf::Company(acme())) };
    assert_eq!(found(by_u0).await, [("one".to_owned(), 1), ("two".to_owned(), 1)]);
    let action = Some("save-committed".to_owned());
    let saves = ActsPage { action: action.clone(), ..page(ActsOf::Company(acme())) };
    assert_eq!(found(saves).await, [("one".to_owned(), 3), ("two".to_owned(), 3)]);
    let saves_of_two = ActsPage { action, ..page(ActsOf::Document(documents[1].id.clone())) };
    assert_eq!(found(saves_of_two).await, [("two".to_owned(), 3)]);
    let nobody = ActsOf::Company(CompanyId::parse("other").unwrap());
    assert_eq!(found(page(nobody)).await, []);
    for of in [ActsOf::Company(acme()), ActsOf::Document(documents[0].id.clone())] {
        let words = ActsPage { actor: Some("\0".to_owned()), ..page(of.clone()) };
        assert_eq!(found(words).await, [], "no such person");
        let place = ActPlace { at: Timestamp::UNIX_EPOCH, chain: "\0".to_owned(), sequence: 0 };
        let words = ActsPage { action: Some("\0".to_owned()), after: Some(place), ..page(of) };
        assert_eq!(found(words).await, [], "no such kind");
    }

    let uploads = documents[1].created_at;
    let before = found(ActsPage { until: Some(uploads), ..page(ActsOf::Company(acme())) }).await;
    let after = found(ActsPage { since: Some(uploads), ..page(ActsOf::Company(acme())) }).await;
    assert_eq!((before.len(), after.len()), (4, 8), "the end of a range is not in it, its beginning is");
}

pub async fn pages_of_acts_join_without_gap_or_repeat(desk: &Desk) {
    for id in ["one", "two", "three"] {
        let document: Document = desk.document(id).await;
        desk.key(&document.id).await;
    }
    for of in [ActsOf::Company(acme()), ActsOf::Document(DocumentId::parse("one").unwrap())] {
        let mut whole = desk.ledger.find_acts(&page(of.clone())).await.unwrap();
        assert!(whole.len() > 1);

        assert_eq!(joined(desk, &page(of.clone())).await, whole);
        let back = ActsPage { order: ActsOrder::NewestFirst, ..page(of.clone()) };
        whole.reverse();
        assert_eq!(joined(desk, &back).await, whole);
        // A span of time is the same, whichever way it is walked.
        let (until, since) = (Some(whole[0].0.at), Some(whole[whole.len() - 2].0.at));
        let mut span = joined(desk, &ActsPage { since, until, ..page(of) }).await;
        span.reverse();
        assert_eq!(joined(desk, &ActsPage { since, until, ..back }).await, span);
        assert!(span.len() < whole.len());
    }
}

/// All entries, in pages of two.
async fn joined(desk: &Desk, wish: &ActsPage) -> Vec<(Entry, Digest)> {
    let mut joined: Vec<(Entry, Digest)> = Vec::new();
    loop {
        let after = joined.last().map(|(entry, _)| ActPlace {
            at: entry.at,
            chain: entry.chain.clone(),
            sequence: entry.sequence,
        });
        let found = desk.ledger.find_acts(&ActsPage { after, limit: 2, ..wish.clone() }).await.unwrap();
        if found.is_empty() {
            return joined;
        }
        joined.extend(found);
    }
}

/// Callers choose numbers as they like; the largest one is not a failure of the store.
pub async fn a_number_that_nothing_can_have_finds_nothing(desk: &Desk) {
    let document = desk.document("one").await;
    let after = Some(ActPlace { at: desk.now(), chain: "one".to_owned(), sequence: u64::MAX });

    let ledger = &desk.ledger;
    assert_eq!(ledger.kept_copy(u64::MAX).await.unwrap(), None);
    let dismissed = ledger.dismiss_kept(u64::MAX, &author("u7"), desk.now()).await;
    assert!(matches!(dismissed, Err(LedgerError::NotFound { .. })));
    assert_eq!(ledger.share(u64::MAX).await.unwrap(), None);
    assert_eq!(ledger.shares(&document.id, u64::MAX, 10).await.unwrap(), []);
    assert_eq!(ledger.api_token(u64::MAX).await.unwrap(), None);
    assert_eq!(ledger.api_tokens(u64::MAX, 10).await.unwrap(), []);
    for of in [ActsOf::Company(acme()), ActsOf::Document(document.id)] {
        let found = ledger.find_acts(&ActsPage { after: after.clone(), ..page(of) }).await.unwrap();
        assert_eq!(found, []);
    }
}

pub async fn all_chains_of_a_company_are_listed_and_check(desk: &Desk) {
    for id in ["one", "two"] {
        let document = desk.document(id).await;
        desk.key(&document.id).await;
    }
    let mut chains = desk.ledger.chains(Some(&acme()), "", 1000).await.unwrap();
    assert_eq!(chains, ["company:acme", "one", "two"]);
    assert_eq!(desk.ledger.chains(None, "company:acme", 1).await.unwrap(), ["one"]);
    let other = CompanyId::parse("other").unwrap();
    assert_eq!(desk.ledger.chains(Some(&other), "", 1000).await.unwrap(), [""; 0]);

    chains.sort_by_key(|chain| !is_company_chain(chain));
    let mut checker = Checker::default();
    for chain in &chains {
        let entries = desk.ledger.audit(chain, 0, 1000).await.unwrap();
        entries.iter().for_each(|(entry, hash)| checker.read(entry, *hash));
    }
    let verdict = checker.finish(|_| true);

    assert_eq!((verdict.flaws, verdict.unanchored), (vec![], 1), "the newest key is not anchored yet");
}

pub async fn a_save_has_a_receipt(desk: &Desk) {
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 6, b"checkpoint").await;
    desk.save(&key, 2, b"final").await;
    let receipt = async |label: &str| {
        desk.ledger.receipt(&document.id, Label::parse(label).unwrap()).await.unwrap().unwrap()
    };

    for (label, action, sequence, bytes) in [
        ("1", "document-uploaded", 1, b"base".as_slice()),
        ("1.1", "save-committed", 3, b"checkpoint"),
        ("2", "save-committed", 4, b"final"),
    ] {
        let receipt = receipt(label).await;
        let (entry, hash) = receipt.act.unwrap();
        assert_eq!((entry.action.as_str(), entry.sequence), (action, sequence), "{label}");
        assert_eq!(receipt.content.blob.digest, Digest::of(bytes));
        assert_eq!(desk.ledger.audit("12345", sequence - 1, 1).await.unwrap(), [(entry, hash)]);
        assert_eq!(receipt.read_back_at, None);
    }
    assert_eq!(desk.ledger.receipt(&document.id, Label::version(3)).await.unwrap(), None);
    let nobody = DocumentId::parse("nobody").unwrap();
    assert_eq!(desk.ledger.receipt(&nobody, Label::FIRST).await.unwrap(), None);
}

pub async fn a_blob_remembers_when_it_was_last_read_back(desk: &Desk) {
    let document = desk.document("12345").await;
    let day = SignedDuration::from_hours(24);
    let note = async |at: Timestamp, spacing: SignedDuration| {
        let digests = vec![Digest::of(b"base"), Digest::of(b"nothing we have")];
        desk.ledger.note_read_back(&ReadBack { digests, at, spacing }).await.unwrap();
        desk.ledger.receipt(&document.id, Label::FIRST).await.unwrap().unwrap().read_back_at.unwrap()
    };
    let (first, soon, later) = (desk.now(), desk.now(), desk.now() + day);

    assert_eq!(note(first, day).await, first);
    assert_eq!(note(soon, day).await, first, "once a day is enough");
    assert_eq!(note(soon, SignedDuration::ZERO).await, soon);
    assert_eq!(note(later, day).await, later);
}
