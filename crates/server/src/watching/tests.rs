//! Watchers, with a clock that moves when told and stores in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use model::DocumentId;
use model::callbacks::Callback;
use tokio_util::sync::CancellationToken;

use super::{Event, Place, Until, follow, watch};
use crate::app::App;
use crate::changing::delete;
use crate::testing::{Workbench, author, deliver, docx};

type Told = Pin<Box<dyn Stream<Item = (Place, Event)> + Send>>;

fn document() -> DocumentId {
    DocumentId::parse("12345").unwrap()
}

fn watched(app: &Arc<App>, since: Option<Place>) -> Told {
    Box::pin(watch(app, document(), (since, Until::Later)).unwrap())
}

/// What was told, in a word each.
fn word(event: &Event) -> String {
    match event {
        Event::Version(news) => format!("version {}", news.label),
        Event::Conflict(news) => format!("conflict {}", news.number),
        Event::Quarantined(news) => format!("quarantined {}", news.number),
        Event::Sessions(sessions) => {
            let people = sessions.iter().flat_map(|session| &session.people);
            format!("sessions {}", people.map(|person| person.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Event::Renamed(name) => format!("renamed {name}"),
        Event::Deleted => "deleted".to_owned(),
    }
}

async fn told(stream: &mut Told, count: usize) -> (Place, Vec<String>) {
    let events: Vec<(Place, Event)> = stream.take(count).collect().await;
    assert_eq!(events.len(), count, "{events:?}");
    (events.last().unwrap().0, events.iter().map(|(_, event)| word(event)).collect())
}

async fn followed(bench: &Workbench) -> Arc<App> {
    let app = bench.process();
    tokio::spawn(follow(Arc::clone(&app), CancellationToken::new()));
    app
}

#[tokio::test]
async fn a_watcher_hears_how_things_stand_and_then_what_happens() {
    let bench = Workbench::new().await;
    let app = followed(&bench).await;
    let mut stream = watched(&app, None);

    assert_eq!(told(&mut stream, 2).await.1, ["version 1", "sessions "]);
    let key = bench.open(&app).await;
    let entered = Callback { users: vec!["u1".to_owned()], ..Callback::bare(key.clone(), 1) };
    deliver(&app, &entered).await;
    assert_eq!(told(&mut stream, 1).await.1, ["sessions u1"]);
    deliver(&app, &bench.callback(&key, 6, &docx("checkpoint"))).await;
    assert_eq!(told(&mut stream, 1).await.1, ["version 1.1"]);
    deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    assert_eq!(told(&mut stream, 2).await.1, ["version 2", "sessions "]);
}

#[tokio::test]
async fn a_watcher_who_comes_back_hears_of_kept_copies_since_then() {
    let bench = Workbench::new().await;
    let app = followed(&bench).await;
    let key = bench.open(&app).await;
    deliver(&app, &bench.callback(&key, 2, &docx("edited"))).await;
    let (place, _) = told(&mut watched(&app, None), 2).await;

    let other = bench.callback(&key, 2, &docx("by somebody on the old key"));
    let late = Callback { session_start: None, ..other };
    bench.open(&app).await;
    deliver(&app, &late).await;
    deliver(&app, &bench.callback(&key, 3, &docx("could not be assembled"))).await;
    let kept: Vec<u64> = bench.kept_numbers().await;
    assert_eq!(kept.len(), 2);

    let (_, events) = told(&mut watched(&app, Some(place)), 4).await;
    let expected =
        ["version 2".to_owned(), format!("conflict {}", kept[0]), format!("quarantined {}", kept[1])];
    assert_eq!(events[..3], expected);
    let (_, events) = told(&mut watched(&app, None), 2).await;
    assert_eq!(events, ["version 2", "sessions "], "without a place only how things stand");
}

#[tokio::test]
async fn a_stream_ends_with_the_document_and_with_the_service() {
    let bench = Workbench::new().await;
    let app = followed(&bench).await;
    let (mut stream, mut other) = (watched(&app, None), watched(&app, None));
    told(&mut stream, 2).await;

    delete(&app, &document(), &author("u1")).await.unwrap();
    assert_eq!(told(&mut stream, 1).await.1, ["deleted"]);
    assert!(stream.next().await.is_none());

    app.ledger.undelete_document(&document(), &author("u1"), app.now()).await.unwrap();
    told(&mut other, 2).await;
    app.stop_being_ready();
    assert!(other.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_looks_by_itself_if_signals_are_lost_and_ends_after_a_while() {
    let bench = Workbench::new().await;
    // Nobody rings the bells.
    let app = bench.process();
    let mut stream = watched(&app, None);
    told(&mut stream, 2).await;
    let key = bench.open(&app).await;
    let begun = tokio::time::Instant::now();
    deliver(&app, &bench.callback(&key, 6, &docx("checkpoint"))).await;

    assert_eq!(told(&mut stream, 1).await.1, ["version 1.1"]);
    assert!(stream.next().await.is_none());
    assert!(begun.elapsed() >= super::LIFE / 2, "it lived for a while");
}

#[test]
fn a_place_is_read_back_and_nonsense_is_not() {
    let place = Place { head: model::Label::parse("14.2").unwrap(), kept: 7 };

    assert_eq!(place.to_string(), "14.2-7");
    assert_eq!(Place::parse("14.2-7"), Some(place));
    for text in ["", "14", "-", "x-1", "14-", "14--1"] {
        assert_eq!(Place::parse(text), None, "{text}");
    }
}
