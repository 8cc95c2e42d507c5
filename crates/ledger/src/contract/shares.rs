//! The contract about share links and their guests.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::SignedDuration;
use model::sharing::{Allows, DownloadSwitch};
use model::{Digest, DocumentId, EditorKey};

use super::desk::{Desk, author};
use crate::LedgerError;
use crate::keys::ViewKey;
use crate::shares::{Guest, GuestSession, NewShare, RefusedVisit, Share, ShareRevocation, Visit};

const LIFE: SignedDuration = SignedDuration::from_secs(100);

fn new_share(desk: &Desk, secret: &[u8]) -> NewShare {
    NewShare {
        hash: Digest::of(secret),
        document: DocumentId::parse("12345").unwrap(),
        label: "for the auditors".to_owned(),
        allows: Allows::Edit,
        download: DownloadSwitch::Off,
        password: Some("$argon2id$…".to_owned()),
        expires_at: None,
        by: author("ann"),
        at: desk.now(),
    }
}

async fn share(desk: &Desk) -> Share {
    desk.document("12345").await;
    desk.ledger.create_share(&new_share(desk, b"secret")).await.unwrap()
}

async fn admit(desk: &Desk, share: &Share, name: Option<&str>) -> Option<Guest> {
    let said_name = name.map(str::to_owned);
    let visit = Visit { share: share.number, said_name, from: "192.0.2.7".to_owned(), at: desk.now() };
    desk.ledger.admit_guest(&visit).await.unwrap()
}

async fn seat(desk: &Desk, guest: &Guest, key: &EditorKey) -> Option<GuestSession> {
    let at = desk.now();
    let session =
        GuestSession { share: guest.share, guest: guest.number, key: key.clone(), until: at + LIFE };
    desk.ledger.seat_guest(&session, at).await.unwrap().then_some(session)
}

fn revocation(desk: &Desk, share: &Share) -> ShareRevocation {
    ShareRevocation { number: share.number, by: author("ann"), at: desk.now() }
}

async fn view_key(desk: &Desk, document: &DocumentId) -> EditorKey {
    let document = desk.current(document).await;
    let (key, base, base_digest) =
        (EditorKey::parse("prod_12345_view_1.k").unwrap(), document.head, document.head_digest);
    let view = ViewKey { key: key.clone(), document: document.id, base, base_digest, at: desk.now() };
    desk.ledger.note_view_key(&view).await.unwrap();
    key
}

pub async fn a_share_link_is_found_by_its_hash_and_listed_with_its_document(desk: &Desk) {
    let made = share(desk).await;
    let new = new_share(desk, b"secret");

    assert_eq!(desk.ledger.share_by_hash(&Digest::of(b"secret")).await.unwrap(), Some(made.clone()));
    assert_eq!(desk.ledger.share_by_hash(&Digest::of(b"other")).await.unwrap(), None);
    assert_eq!(desk.ledger.share(made.number).await.unwrap(), Some(made.clone()));
    assert_eq!((made.allows, made.download, &made.password), (new.allows, new.download, &new.password));
    assert_eq!((made.uses, made.last_used_at, made.created_by.as_str()), (0, None, "ann"));
    assert!(desk.ledger.create_share(&new).await.is_err(), "a hash stands for one link");
    let second = desk.ledger.create_share(&new_share(desk, b"second")).await.unwrap();
    assert_eq!(desk.ledger.shares(&made.document, 0, 10).await.unwrap(), [made.clone(), second.clone()]);
    assert_eq!(desk.ledger.shares(&made.document, made.number, 10).await.unwrap(), [second]);
    let other = DocumentId::parse("other").unwrap();
    assert_eq!(desk.ledger.shares(&other, 0, 10).await.unwrap(), []);
    let nowhere = NewShare { document: other, ..new_share(desk, b"third") };
    assert!(matches!(desk.ledger.create_share(&nowhere).await, Err(LedgerError::NotFound { .. })));
    desk.expect_consistent().await;
}

pub async fn a_use_is_counted_and_has_a_guest(desk: &Desk) {
    let share = share(desk).await;

    let ben = admit(desk, &share, Some("Ben\n")).await.unwrap();
    let nameless = admit(desk, &share, None).await.unwrap();

    assert_eq!((ben.name.as_str(), nameless.name.as_str()), ("Ben (guest)", "Guest 2"));
    assert_ne!(ben.id(), nameless.id());
    assert_eq!(desk.ledger.guest(share.number, ben.number).await.unwrap(), Some(ben));
    assert_eq!(desk.ledger.guest(share.number, 3).await.unwrap(), None);
    let used = desk.ledger.share(share.number).await.unwrap().unwrap();
    assert_eq!(used.uses, 2);
    assert!(used.last_used_at.is_some());
    desk.expect_consistent().await;
}

pub async fn a_share_link_that_ended_admits_and_seats_nobody(desk: &Desk) {
    let revoked = share(desk).await;
    let mut new = new_share(desk, b"expiring");
    new.expires_at = Some(new.at + SignedDuration::from_secs(10));
    let expiring = desk.ledger.create_share(&new).await.unwrap();
    let key = desk.key(&revoked.document).await;
    let guests = [admit(desk, &revoked, None).await.unwrap(), admit(desk, &expiring, None).await.unwrap()];

    assert!(desk.ledger.revoke_share(&revocation(desk, &revoked)).await.unwrap());
    assert!(!desk.ledger.revoke_share(&revocation(desk, &revoked)).await.unwrap());
    desk.pass(10);

    for (share, guest) in [&revoked, &expiring].into_iter().zip(&guests) {
        assert_eq!(admit(desk, share, None).await, None);
        assert_eq!(seat(desk, guest, &key).await, None);
        assert!(!desk.ledger.share(share.number).await.unwrap().unwrap().counts_at(desk.now()));
    }
    let unknown = ShareRevocation { number: 999, ..revocation(desk, &revoked) };
    assert!(matches!(desk.ledger.revoke_share(&unknown).await, Err(LedgerError::NotFound { .. })));
    desk.expect_consistent().await;
}

pub async fn a_revocation_lists_who_may_be_inside_until_they_were_asked_twice(desk: &Desk) {
    let share = share(desk).await;
    let spent = desk.key(&share.document).await;
    let early = admit(desk, &share, None).await.unwrap();
    seat(desk, &early, &spent).await.unwrap();
    desk.save(&spent, 2, b"saved").await;
    let live = desk.key(&share.document).await;
    let viewed = view_key(desk, &share.document).await;
    let guest = admit(desk, &share, None).await.unwrap();
    let inside = vec![seat(desk, &guest, &live).await.unwrap(), seat(desk, &guest, &viewed).await.unwrap()];
    let to_drop = async || desk.ledger.guests_to_drop(desk.now(), 100).await.unwrap();
    assert_eq!(to_drop().await, [], "nothing is revoked");

    desk.ledger.revoke_share(&revocation(desk, &share)).await.unwrap();

    assert_eq!(to_drop().await, inside, "those whose session may still be there");
    assert_eq!(desk.ledger.guests_to_drop(desk.now(), 1).await.unwrap(), inside[..1]);
    desk.ledger.note_dropped(&inside, desk.now()).await.unwrap();
    assert_eq!(to_drop().await, []);
    desk.pass(100);
    assert_eq!(to_drop().await, inside, "they may have come back with the configuration they had");
    desk.ledger.note_dropped(&inside, desk.now()).await.unwrap();
    assert_eq!(to_drop().await, []);
    desk.expect_consistent().await;
}

pub async fn guests_of_revoked_links_are_unwelcome_and_nobody_else_is(desk: &Desk) {
    let revoked = share(desk).await;
    let standing = desk.ledger.create_share(&new_share(desk, b"standing")).await.unwrap();
    let left = admit(desk, &revoked, None).await.unwrap().id();
    let welcome = admit(desk, &standing, None).await.unwrap().id();
    desk.ledger.revoke_share(&revocation(desk, &revoked)).await.unwrap();

    let users = ["ann".to_owned(), left.clone(), welcome, model::sharing::guest_id(revoked.number, 99)];
    let unwelcome = desk.ledger.unwelcome(&users).await.unwrap();

    assert_eq!(unwelcome, [left]);
}

pub async fn what_happens_to_share_links_is_written_down(desk: &Desk) {
    let share = share(desk).await;
    let guest = admit(desk, &share, None).await.unwrap();
    let refused = RefusedVisit {
        share: share.number,
        why: "wrong-password",
        from: "192.0.2.8".to_owned(),
        at: desk.now(),
    };
    desk.ledger.note_refused(&refused).await.unwrap();
    desk.ledger.revoke_share(&revocation(desk, &share)).await.unwrap();

    let entries = desk.ledger.audit("12345", 0, 100).await.unwrap();
    model::audit::verify(entries.iter().map(|(entry, hash)| (entry, *hash))).unwrap();
    let told: Vec<_> = entries
        .iter()
        .skip(1)
        .map(|(entry, _)| (entry.action.as_str(), entry.actor.as_str(), entry.outcome.as_str()))
        .collect();
    let expected = [
        ("share-created", "ann", "done"),
        ("share-used", &guest.id(), "done"),
        ("share-refused", "nobody", "wrong-password"),
        ("share-revoked", "ann", "done"),
    ];
    assert_eq!(told, expected);
    assert!(entries.iter().all(|(entry, _)| !entry.details.contains("argon2")), "no password");
    desk.expect_consistent().await;
}
