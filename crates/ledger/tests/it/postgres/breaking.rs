//! Connections that break, a server that restarts, texts that PostgreSQL does not like.

use std::sync::Arc;
use std::time::Duration;

use ledger::contract::{Desk, environment};
use ledger::postgres::throwaway::{Database, Server};
use ledger::postgres::{Options, PostgresLedger};
use ledger::saves::{Arrival, Committed};
use ledger::{Ledger, LedgerError, Operations as _, Result};
use model::callbacks::Callback;
use model::saves::SaveKind;

/// Repeats a step until the ledger can do it, as a caller would that was told to try again.
async fn insistently<T, F: Future<Output = Result<T>>>(step: impl Fn() -> F) -> T {
    for _ in 0..2000 {
        match step().await {
            Err(LedgerError::Busy | LedgerError::Unavailable { .. }) => {
                // waits on purpose: a server that restarts needs a moment.
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
            done => return done.unwrap(),
        }
    }
    panic!("the ledger did not come back: {:?}", step().await.err());
}

async fn save(desk: &Desk, callback: &Callback, bytes: &[u8]) -> Committed {
    let arrival = Arrival {
        document: callback.key.parts().map(|parts| parts.document),
        callback: callback.clone(),
        at: desk.now(),
        identity_window: jiff::SignedDuration::from_mins(15),
    };
    let receipt = insistently(|| desk.ledger.receive(&arrival)).await;
    let save = desk.prepared(&receipt, SaveKind::Checkpoint, bytes);
    insistently(|| desk.ledger.commit_save(&save)).await
}

/// Work that is disturbed once, each time at another moment of it. What is repeated then is left in peace, so that it ends
/// however slow the machine is.
async fn disturbed<T>(
    work: impl Future<Output = T>,
    (round, step): (u32, Duration),
    disturbance: impl Future<Output = ()>,
) -> T {
    let disturbing = async {
        // waits on purpose: to come somewhere in the middle.
        tokio::time::sleep(step * (round % 12)).await;
        disturbance.await;
    };
    tokio::join!(work, disturbing).0
}

async fn every_save_is_kept_once(desk: &Desk, saves: usize) {
    let id = model::DocumentId::parse("12345").unwrap();
    let contents = insistently(|| desk.ledger.contents(&id)).await;
    assert_eq!(contents.len() - 1, saves, "{:?}", contents.iter().map(|each| each.label).collect::<Vec<_>>());
    assert_eq!(insistently(|| desk.ledger.inconsistencies()).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_lose_nothing_and_do_nothing_twice() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    for round in 0..60 {
        let bytes = format!("round {round}");
        let callback = desk.callback(&key, 6, &bytes);
        let cut = async { database.cut().await.unwrap() };
        disturbed(save(&desk, &callback, bytes.as_bytes()), (round, Duration::from_millis(3)), cut).await;
    }

    every_save_is_kept_once(&desk, 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_not_to_have_happened_did_not_happen() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;

    let mut outcomes = Vec::new();
    for round in 0..80 {
        let new = desk.new_document(&format!("d{round}"), b"base");
        let cut = async { database.cut().await.unwrap() };
        let created = desk.ledger.create_document(&new);
        let created = disturbed(created, (round, Duration::from_millis(2)), cut).await;
        outcomes.push((new.id.clone(), created.is_ok()));
    }

    for (id, was_done) in outcomes {
        let found = insistently(|| desk.ledger.document(&id)).await;
        assert_eq!(found.is_some(), was_done, "{id}");
    }
    assert_eq!(insistently(|| desk.ledger.inconsistencies()).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_and_starts_again_has_all_that_was_answered() {
    let server = Server::durable().await.unwrap();
    let database = server.database().await.unwrap();
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    for round in 0..3 {
        let crash = async {
            let server = server.clone();
            tokio::task::spawn_blocking(move || server.restart()).await.unwrap().unwrap();
        };
        let saving = async {
            for part in 0..6 {
                let bytes = format!("round {round}, {part}");
                save(&desk, &desk.callback(&key, 6, &bytes), bytes.as_bytes()).await;
            }
        };
        disturbed(saving, (round, Duration::from_millis(40)), crash).await;
    }

    every_save_is_kept_once(&desk, 18).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_takes_over_has_all_that_was_answered() {
    let primary = Server::alone().await.unwrap();
    let database = primary.database().await.unwrap();
    let standby = primary.standby().unwrap();
    primary.wait_for_standby().await.unwrap();
    let options = Options::new(environment(), database.url_with(&standby));
    let desk = Desk::new(Arc::new(PostgresLedger::open(&options).await.unwrap())).await;
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;

    let saving = async {
        for part in 0..30 {
            let bytes = format!("part {part}");
            save(&desk, &desk.callback(&key, 6, &bytes), bytes.as_bytes()).await;
        }
    };
    let take_over = async {
        let take_over = move || primary.crash().and_then(|()| standby.promote());
        tokio::task::spawn_blocking(take_over).await.unwrap().unwrap();
    };
    disturbed(saving, (5, Duration::from_millis(20)), take_over).await;

    every_save_is_kept_once(&desk, 30).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_primary_that_comes_back_beside_its_successor_is_not_used() {
    let former = Server::alone().await.unwrap();
    let database = former.database().await.unwrap();
    let successor = former.standby().unwrap();
    let options = Options { connections: 4, ..Options::new(environment(), database.url_with(&successor)) };
    let ledger: Arc<dyn Ledger> = Arc::new(PostgresLedger::open(&options).await.unwrap());
    let desk = Desk::new(Arc::clone(&ledger)).await;
    former.crash().unwrap();
    successor.promote().unwrap();
    insistently(|| desk.ledger.ping()).await;

    former.launch().unwrap();
    let mut creating = Vec::new();
    for number in 0..24 {
        let (ledger, new) = (Arc::clone(&ledger), desk.new_document(&format!("d{number}"), b"base"));
        creating.push(tokio::spawn(async move { insistently(|| ledger.create_document(&new)).await }));
    }
    for created in creating {
        created.await.unwrap();
    }

    let there = database.rows("SELECT count(*) FROM documents").await.unwrap();
    assert_eq!(there, [[Some("0".to_owned())]], "nothing went to the former one");
}

async fn impatient(database: &Database) -> Arc<dyn Ledger> {
    let options =
        Options { wait_max: Duration::from_millis(100), ..Options::new(environment(), database.url()) };
    Arc::new(PostgresLedger::open(&options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_had_in_time_is_busy_and_nothing_was_done() {
    let database = Arc::new(Server::shared().await.unwrap().database().await.unwrap());
    let desk = Desk::new(impatient(&database).await).await;
    let document = desk.document("12345").await;
    let holder = Arc::clone(&database);
    let holding = tokio::spawn(async move {
        // waits on purpose: somebody holds the lock longer than anybody waits for it.
        let text = "BEGIN; SELECT 1 FROM documents FOR UPDATE; SELECT pg_sleep(1.5); COMMIT";
        holder.execute(text).await.unwrap();
    });

    let refused = loop {
        match desk.try_to_open(&document.id).await {
            Ok(_) => assert!(!holding.is_finished(), "the lock was never waited for"),
            Err(refused) => break refused,
        }
    };

    assert!(matches!(refused, LedgerError::Busy), "{refused:?}");
    holding.await.unwrap();
    desk.key(&document.id).await;
    desk.expect_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_callback_costs_a_save() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let desk = Desk::new(Arc::new(database.ledger().await.unwrap())).await;
    let document = desk.document("12345").await;
    let key = desk.key(&document.id).await;
    // Not to be pressed into less than an entry of an index holds.
    let long: String =
        (0..400).map(|part| model::Digest::of(&[u8::try_from(part % 251).unwrap()]).to_string()).collect();
    let mut callback = desk.callback(&key, 6, &long);
    callback.users = vec![format!("u\0{long}"), "second".to_owned()];
    callback.author_name = Some("Zero\0Byte".to_owned());
    callback.history = Some("[{\"user\":{\"id\":\"\\u0000\"}}]".to_owned());
    callback.user_data = Some("\0".to_owned());

    save(&desk, &callback, b"first").await;
    let presence = ledger::keys::Presence {
        key: key.clone(),
        users: callback.users.clone(),
        is_idle: false,
        at: desk.now(),
    };
    desk.ledger.note_presence(&presence).await.unwrap();

    desk.expect_head(&document.id, "1.1", b"first").await;
    let content = &desk.ledger.contents(&document.id).await.unwrap()[0];
    assert_eq!(content.author.name, "Zero\u{fffd}Byte");
    assert_eq!(desk.ledger.sessions(&page()).await.unwrap()[0].people.len(), 2);
    desk.expect_consistent().await;
}

fn page() -> ledger::sessions::SessionPage {
    ledger::sessions::SessionPage { document: None, after: None, limit: 10 }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_holds_every_table() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let ledger = database.ledger().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy");

    ledger::Snapshots::write_snapshot(&ledger, &file).await.unwrap();

    let copied = std::fs::read_to_string(&file).unwrap();
    let tables: Vec<&str> =
        copied.lines().filter_map(|line| line.strip_prefix("{\"table\":\"")?.strip_suffix("\"}")).collect();
    let tables = format!("'{}'", tables.join("', '"));
    let check = format!(
        "DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'public'
         AND tablename NOT IN ('migrations', 'reports', {tables})); END $$"
    );
    database.execute(&check).await.unwrap();
}

/// A host that is switched off: nobody takes the connection, and nobody refuses it.
fn switched_off() -> (std::net::TcpListener, Vec<std::net::TcpStream>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    // When its queue is full the kernel says nothing to whoever else comes.
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
        queue.push(stream);
    }
    (listener, queue)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hosts_the_one_that_answers_is_found_although_the_other_is_switched_off() {
    let database = Server::shared().await.unwrap().database().await.unwrap();
    let (off, _queue) = switched_off();
    let off = format!("127.0.0.1:{}", off.local_addr().unwrap().port());
    let url = database.url();
    let (front, rest) = url.split_once('@').unwrap();
    let (host, database_name) = rest.split_once('/').unwrap();
    let both = format!("{front}@{off},{host}/{database_name}");

    let options = Options { connect_max: Duration::from_millis(300), ..Options::new(environment(), both) };
    for _ in 0..5 {
        let ledger = PostgresLedger::open(&options).await.unwrap();
        assert!(ledger.ping().await.unwrap().is_some());
    }
}
