//! The load driver, in real but shortened time.

use std::sync::Arc;
use std::time::Duration;

use understudy::clock::Clock;
use understudy::load::{self, Held, Hold, Invite, Mix, Plan, Report, Target};
use understudy::server::Running;
use understudy::settings::Settings;
use understudy::tokens::Secret;
use understudy::{EditorConfig, office};

use crate::host::Host;
use crate::stage::SECRET;

async fn set() -> (Arc<Running>, Arc<Host>) {
    let settings = Settings { clock: Clock::system(), ..Settings::default().with_secret(SECRET) };
    let server = understudy::start(settings.with_time_scale(100.0)).await.unwrap();
    (Arc::new(server), Host::start(office::blank("docx")).await)
}

/// A host that gives a document a new key after each final save.
fn rotating(host: &Arc<Host>) -> Invite {
    let host = host.clone();
    Arc::new(move |document, user| {
        let prefix = format!("load-{document}-");
        let saved = |callback: &crate::host::Callback| {
            callback.status() == 2 && callback.body["key"].as_str().unwrap().starts_with(&prefix)
        };
        let version = host.callbacks().iter().filter(|callback| saved(callback)).count();
        let (source, callback) = (host.url("/doc/x.docx"), host.url(&format!("/cb/load?u={user}")));
        let config = EditorConfig::new(&format!("{prefix}{version}"), &source, &callback, &user);
        let config = config.signed(&Secret::new(SECRET));
        Box::pin(async move { Ok(config) })
    })
}

fn plan() -> Plan {
    Plan {
        sessions: 8,
        documents: 3,
        saves_per_s: 200.0,
        duration: Duration::from_millis(700),
        changes_max: 3,
        mix: Mix { force_saves: 40, idlers: 20, polite: 50, returners: 30 },
        ..Plan::default()
    }
}

async fn check(server: &Running, report: &Report) {
    server.quiet().await;
    let sent = report.counts["changes"];
    let changes = server.journal().changes();

    assert_eq!(report.failures.len(), 0, "{report:?}");
    assert!(sent >= 8, "{report:?}");
    assert_eq!(changes.len() as u64, sent);
    let lost: Vec<_> = changes.iter().filter(|(_, change)| change.is_lost()).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(report.counts["force_saves"] > 0 && report.latencies_ms["open"].count > 0);
}

#[tokio::test]
async fn people_of_this_process_lose_nothing() {
    let (server, host) = set().await;

    let report = load::run(plan(), rotating(&host), Target::InProcess(server.clone())).await;

    check(&server, &report).await;
}

#[tokio::test]
async fn people_on_sockets_lose_nothing() {
    let (server, host) = set().await;

    let report = load::run(plan(), rotating(&host), Target::Socket(server.url())).await;

    check(&server, &report).await;
}

#[tokio::test]
async fn held_documents_keep_their_people_while_saves_go_on() {
    let (server, host) = set().await;
    let empty_for = Duration::from_millis(20);
    // As many as there are saves, so that one is free for each, however slow the machine is.
    let hold = Hold {
        documents: 60,
        openings_max: 3,
        closes: 20,
        visits: 20,
        empty_for,
        seed: 1,
        patience: Duration::from_secs(30),
    };

    let held = Held::sit_down(hold, rotating(&host), Target::InProcess(server.clone())).await;
    held.save_in_turn(3).await;
    held.keep(100.0, Duration::from_millis(500)).await;

    server.quiet().await;
    let report = held.report();
    assert_eq!(report.failures.len(), 0, "{report:?}");
    assert_eq!(held.people().await, 60);
    held.leave().await;
    server.quiet().await;
    assert!(report.counts["taken_by_host"] > 3 && report.counts["closed"] > 0, "{report:?}");
    let changes = server.journal().changes();
    assert_eq!(changes.len() as u64, report.counts["changes"]);
    let unsaved: Vec<_> = changes.values().filter(|change| change.acknowledged_by.is_empty()).collect();
    assert!(unsaved.is_empty(), "{unsaved:?}");
}
