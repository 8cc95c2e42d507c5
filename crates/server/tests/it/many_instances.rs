//! Several instances on one PostgreSQL: what arrives anywhere counts everywhere, once and in order.

use std::time::Duration;

use serde_json::json;

use crate::support::Stage;
use crate::support::cluster::{Cluster, INSTANCES};
use crate::support::engines::Choice;
use crate::support::serving::Serving;
use crate::support::site::Site;

/// Chances to get it wrong.
const ROUNDS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_arrives_elsewhere_waits_for_the_same_answer_and_fetches_nothing() {
    let cluster = Cluster::start().await;
    let key = cluster.opened("12345").await;
    cluster.files.hold("final");
    let save = cluster.callback(&key, 2, "final");
    let delivering = cluster.deliver(&cluster.bases[0], &save);
    let repeats = async {
        cluster.files.asked_for("final").await;
        let both = async {
            tokio::join!(cluster.deliver(&cluster.bases[1], &save), cluster.deliver(&cluster.bases[2], &save))
        };
        let letting_go = async {
            cluster
                .stage
                .wait_until("both repeats to be written down", async || {
                    let record = cluster.stage.app().ledger.save(model::InboxNumber(1)).await.unwrap();
                    record.is_some_and(|record| record.deliveries == 3)
                })
                .await;
            cluster.files.release("final");
        };
        tokio::join!(both, letting_go).0
    };

    let (first, (second, third)) = tokio::join!(delivering, repeats);

    assert_eq!((first, second, third), (json!(0), json!(0), json!(0)));
    assert_eq!(cluster.files.times("final"), 1);
    assert_eq!(cluster.stage.versions("12345").await, ["2", "1"]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_and_a_force_save_at_the_same_moment_leave_the_newest_as_head() {
    let cluster = Cluster::start().await;
    for round in 0..ROUNDS {
        let id = format!("doc-{round}");
        let key = cluster.opened(&id).await;
        let (typed, closed) = (format!("typed-{round}"), format!("closed-{round}"));
        let checkpoint = cluster.callback(&key, 6, &typed);
        let last = cluster.callback(&key, 2, &closed);
        let (one, other) = (&cluster.bases[round % INSTANCES], &cluster.bases[(round + 1) % INSTANCES]);
        // waits on purpose: the two arrive in every order
        let late = |ms: usize| tokio::time::sleep(Duration::from_millis(u64::try_from(ms).unwrap()));

        let (first, second) = tokio::join!(
            async {
                late(round % 7).await;
                cluster.deliver(one, &checkpoint).await
            },
            async {
                late(round * 3 % 7).await;
                cluster.deliver(other, &last).await
            },
        );

        assert_eq!((first, second), (json!(0), json!(0)), "round {round}");
        let (text, kept) = (cluster.stage.text(&id).await, cluster.stage.kept(&id).await);
        assert!(
            text.contains(&closed),
            "round {round}: the head is the newest, and not {text} beside {kept:?}"
        );
        let document = cluster.stage.document(&id).await;
        assert_eq!(document["head"], "2", "round {round}: versions are dense");
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_instance_began_is_finished_by_another() {
    let cluster = Cluster::start().await;
    let key = cluster.opened("12345").await;
    let config = cluster.another("victim");
    let victim = Serving::start(&config, &[], &[]);
    let base = format!("http://{}", config.server.listen);
    let ready = format!("{base}/readyz");
    cluster
        .stage
        .wait_until("the victim to be ready", async || {
            cluster.stage.http.get(&ready).send().await.is_ok_and(|response| response.status().is_success())
        })
        .await;
    cluster.files.hold("final");
    let save = cluster.callback(&key, 2, "final");
    let token = cluster.stage.signed(&save);
    let (http, url) = (cluster.stage.http.clone(), format!("{base}/callback/12345"));
    let hanging = tokio::spawn(async move { http.post(url).json(&json!({ "token": token })).send().await });
    cluster.files.asked_for("final").await;

    drop(victim);
    cluster.files.release("final");

    assert!(hanging.await.unwrap().is_err(), "nobody answers any more");
    cluster.stage.wait_for_head("12345", "2").await;
    assert_eq!(cluster.deliver(&cluster.bases[1], &save).await, json!(0), "and the repeat hears of it");
    assert_eq!(cluster.stage.versions("12345").await, ["2", "1"]);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_open_at_one_instance_hears_of_a_commit_at_another() {
    use futures_util::StreamExt as _;
    use saveguard::watching::{Event, Until, watch};

    let cluster = Cluster::start().await;
    let key = cluster.opened("12345").await;
    let id = model::DocumentId::parse("12345").unwrap();
    let stream = watch(&cluster.stage.others[0].app, id, (None, Until::Later)).unwrap();
    let mut stream = std::pin::pin!(stream);
    assert!(matches!(stream.next().await.unwrap().1, Event::Version(_)));

    let save = cluster.callback(&key, 2, "final");
    assert_eq!(cluster.deliver(&cluster.bases[2], &save).await, json!(0));

    // Without a signal it would look after 20 s.
    let heard = async {
        while let Some((_, event)) = stream.next().await {
            if matches!(&event, Event::Version(news) if news.label.to_string() == "2") {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(Duration::from_secs(15), heard).await.unwrap());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_redis_flushed_killed_and_back_every_save_is_taken() {
    let mut cluster = Cluster::start().await;
    for round in 0..12 {
        match round {
            2 => cluster.engines().redis.flush().await,
            5 => cluster.engines().redis.kill().await,
            9 => cluster.engines().redis.restart().await,
            _ => {}
        }
        let id = format!("doc-{round}");
        let key = cluster.opened(&id).await;
        let (typed, closed) = (format!("typed-{round}"), format!("closed-{round}"));
        let (checkpoint, last) = (cluster.callback(&key, 6, &typed), cluster.callback(&key, 2, &closed));
        let base = |step: usize| &cluster.bases[(round + step) % INSTANCES];

        assert_eq!(cluster.deliver(base(0), &checkpoint).await, json!(0), "round {round}");
        let (first, repeat) = tokio::join!(cluster.deliver(base(1), &last), cluster.deliver(base(2), &last));

        assert_eq!((first, repeat), (json!(0), json!(0)), "round {round}");
        assert!(cluster.stage.text(&id).await.contains(&closed));
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_programs_see_in_redis_who_is_inside_and_that_a_session_is_being_saved() {
    let cluster = Cluster::start().await;
    let key = cluster.opened("12345").await;
    let redis = &cluster.stage.site.engines.as_ref().unwrap().redis;
    let wait_for = async |words: &str, expected: &str| {
        let what = format!("Redis says {expected} to {words}");
        cluster.stage.wait_until(&what, async || redis.ask(words).await == expected).await;
    };
    let users = json!(["ann", "ben"]);
    let actions = json!([{ "type": 1, "userid": "ben" }]);
    let entered = json!({ "key": key, "status": 1, "users": users, "actions": actions });
    assert_eq!(cluster.deliver(&cluster.bases[0], &entered).await, json!(0));
    wait_for("SCARD session:12345:users", ":2").await;

    redis.flush().await;
    wait_for("SCARD session:12345:users", ":2").await;

    cluster.files.hold("final");
    let save = cluster.callback(&key, 2, "final");
    let delivering = cluster.deliver(&cluster.bases[1], &save);
    let looking = async {
        cluster.files.asked_for("final").await;
        wait_for("EXISTS lock:transition:12345", ":1").await;
        cluster.files.release("final");
    };
    assert_eq!(tokio::join!(delivering, looking).0, json!(0));

    wait_for("EXISTS lock:transition:12345", ":0").await;
    wait_for("EXISTS session:12345:users", ":0").await;
    wait_for("EXISTS save_done:12345", ":1").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_an_answer_of_the_document_server_finds_whoever_asked() {
    let site = Site::on(Choice::Cluster).await;
    let shared = site.path().join("shared").display().to_string();
    let changes = [("SIGNALS_REDIS", ""), ("VAULT_KIND", "local"), ("VAULT_FOLDER", shared.as_str())];
    let editor = understudy::Settings::default().with_time_scale(20.0);
    let stage = Stage::start_on(site, &changes, editor).await;
    stage.docx("12345").await;

    // Each opening asks what the server holds under the key of the one before; its answer goes to the balancer.
    for round in 0..6 {
        let session = stage.edit("12345", "ann").await;
        session.close().await.unwrap();
        stage.editor.quiet().await;
        assert_eq!(stage.document("12345").await["head"], "1", "round {round}: nothing was changed");
    }
    stage.stop().await;
}
