//! What others are told: with the act, in order, until it is heard or given up.
#![allow(clippy::unwrap_used, reason = "a broken contract must stop the test that found it")]

use jiff::SignedDuration;
use model::webhooks::Event;

use super::Desk;
use super::desk::author;
use crate::outbox::{Delivery, DeliveryEnd, Subscription};

async fn subscribe(desk: &Desk, target: &str, events: &[Event]) {
    let subscription = Subscription { target: target.to_owned(), events: events.to_vec() };
    desk.ledger.set_webhooks(&[subscription], desk.now()).await.unwrap();
}

async fn due(desk: &Desk, target: &str) -> Vec<Delivery> {
    desk.ledger.due_deliveries(target, desk.now(), 100).await.unwrap()
}

pub async fn an_act_is_told_to_whoever_wants_to_hear_of_it(desk: &Desk) {
    desk.document("before").await;
    subscribe(desk, "crm", &[Event::Conflict, Event::Saved]).await;
    let document = desk.document("12345").await;

    let told = due(desk, "crm").await;

    assert_eq!(told.len(), 1, "what happened before is not told");
    assert_eq!((told[0].document.as_str(), told[0].event.as_str()), ("12345", "saved"));
    assert!(told[0].id.starts_with("evt_"), "{}", told[0].id);
    assert!(told[0].payload.contains("\"type\":\"document.saved\"") && told[0].payload.contains("\"acme\""));
    assert!(due(desk, "erp").await.is_empty());
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"two").await;
    assert!(
        !desk.ledger.due_deliveries("crm", desk.now(), 9).await.unwrap()[0].payload.contains(key.as_str())
    );
    desk.expect_consistent().await;
}

pub async fn deliveries_about_one_document_are_told_in_order(desk: &Desk) {
    subscribe(desk, "crm", &[Event::Saved]).await;
    let (one, two) = (desk.document("1").await, desk.document("2").await);
    let key = desk.key(&one.id).await;
    desk.save(&key, 6, b"more").await;
    desk.save(&key, 2, b"most").await;

    let first = due(desk, "crm").await;
    let documents: Vec<_> = first.iter().map(|delivery| delivery.document.as_str()).collect();
    assert_eq!(documents, ["1", "2"], "one of each document");
    let later = desk.now() + SignedDuration::from_secs(60);
    let failed = DeliveryEnd::Failed { next_at: later, why: "it answered 500".to_owned() };
    desk.ledger.delivery_ended(first[0].number, &failed, desk.now()).await.unwrap();
    desk.ledger.delivery_ended(first[1].number, &DeliveryEnd::Delivered, desk.now()).await.unwrap();
    assert!(due(desk, "crm").await.is_empty(), "what failed keeps what follows from being told");
    assert_eq!(desk.ledger.next_delivery_at("crm").await.unwrap(), Some(later));
    desk.pass(100);
    let again = due(desk, "crm").await;
    assert_eq!((again.len(), &again[0].id, again[0].attempts), (1, &first[0].id, 1));
    let mut told = vec![again[0].number];
    desk.ledger.delivery_ended(again[0].number, &DeliveryEnd::Delivered, desk.now()).await.unwrap();
    while let [next] = &due(desk, "crm").await[..] {
        told.push(next.number);
        desk.ledger.delivery_ended(next.number, &DeliveryEnd::Delivered, desk.now()).await.unwrap();
    }

    assert_eq!(told.len(), 3);
    assert!(told.is_sorted());
    assert_eq!(desk.ledger.next_delivery_at("crm").await.unwrap(), None);
    drop(two);
}

pub async fn what_was_given_up_is_listed_lets_others_pass_and_can_be_tried_again(desk: &Desk) {
    subscribe(desk, "crm", &[Event::Saved]).await;
    let document = desk.document("1").await;
    let key = desk.key(&document.id).await;
    desk.save(&key, 2, b"two").await;
    let first = due(desk, "crm").await.remove(0);

    let gone = DeliveryEnd::GivenUp { why: "it answered 410".to_owned() };
    desk.ledger.delivery_ended(first.number, &gone, desk.now()).await.unwrap();

    let dead = desk.ledger.dead_deliveries(None, 10).await.unwrap();
    assert_eq!((dead.len(), dead[0].last_error.as_deref()), (1, Some("it answered 410")));
    assert_eq!(desk.ledger.dead_deliveries(Some(u64::MAX), 10).await.unwrap().len(), 1);
    assert!(!desk.ledger.retry_delivery(u64::MAX, &author("ops"), desk.now()).await.unwrap());
    let second = due(desk, "crm").await.remove(0);
    assert!(second.number > first.number);
    assert_eq!(second.waiting_since, second.created_at, "its day began when it happened");
    assert!(desk.ledger.retry_delivery(first.number, &author("ops"), desk.now()).await.unwrap());
    assert!(!desk.ledger.retry_delivery(first.number, &author("ops"), desk.now()).await.unwrap());
    assert_eq!(due(desk, "crm").await.len(), 1, "still one at a time");
    desk.ledger.delivery_ended(second.number, &DeliveryEnd::Delivered, desk.now()).await.unwrap();
    assert_eq!(due(desk, "crm").await[0].id, first.id);
    let standing = desk.ledger.webhooks().await.unwrap().remove(0);
    assert_eq!((standing.waiting, standing.dead, standing.delivered), (1, 0, 1));
    desk.expect_consistent().await;
}

pub async fn a_target_that_is_gone_is_not_waited_for(desk: &Desk) {
    subscribe(desk, "crm", &[Event::Saved]).await;
    desk.document("1").await;

    subscribe(desk, "erp", &[Event::Saved]).await;

    assert!(due(desk, "crm").await.is_empty());
    let dead = desk.ledger.dead_deliveries(None, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert!(!desk.ledger.retry_delivery(dead[0].number, &author("ops"), desk.now()).await.unwrap());
    let now = desk.now();
    assert_eq!(desk.ledger.forget_deliveries(now, now).await.unwrap(), 1);
}
