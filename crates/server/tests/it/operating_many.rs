//! What operators see of several instances: the same, whichever of them answers.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::admin;
use crate::support::cluster::{Cluster, INSTANCES};
use crate::support::serving::Serving;

/// Asks one instance.
async fn ask(cluster: &Cluster, (method, base): (Method, &str), path: &str) -> Value {
    let (stage, url) = (&cluster.stage, format!("{base}/api/v1/operations/{path}"));
    let response =
        stage.http.request(method, url).bearer_auth(stage.token(&admin())).json(&json!({})).send().await;
    response.unwrap().error_for_status().unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_on_its_way_at_one_instance_is_seen_at_another() {
    let cluster = Cluster::start().await;
    let key = cluster.opened("12345").await;
    cluster.files.hold("final");
    let save = cluster.callback(&key, 2, "final");
    let delivering = cluster.deliver(&cluster.bases[0], &save);
    let seeing = async {
        cluster.files.asked_for("final").await;
        let name = cluster.stage.app().instance.name.clone();
        cluster
            .stage
            .wait_until("the lane is seen elsewhere", async || {
                let lanes = ask(&cluster, (Method::GET, &cluster.bases[1]), "lanes").await;
                let all = lanes["lanes"].as_array().unwrap();
                all.iter().any(|lane| lane["document"] == "12345" && lane["instance"] == name.as_str())
            })
            .await;
        let lanes = ask(&cluster, (Method::GET, &cluster.bases[2]), "lanes").await;
        assert_eq!((&lanes["count"], &lanes["is_empty"]), (&json!(1), &json!(false)), "{lanes}");
        cluster.files.release("final");
    };

    assert_eq!(tokio::join!(delivering, seeing).0, json!(0));

    cluster
        .stage
        .wait_until("the lane is gone everywhere", async || {
            ask(&cluster, (Method::GET, &cluster.bases[1]), "lanes").await["is_empty"] == true
        })
        .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_listed_and_one_that_was_killed_is_shown_as_silent() {
    let cluster = Cluster::start().await;
    let config = cluster.another("victim");
    let victim = Serving::start(&config, &[], &[]);
    let states = async |base: &str| {
        let all = ask(&cluster, (Method::GET, base), "instances").await;
        let all = all.as_array().unwrap();
        let here = all.iter().filter(|each| each["is_this"] == true);
        assert_eq!(here.count(), 1, "{all:?}");
        let mut states: Vec<_> = all.iter().map(|each| each["state"].as_str().unwrap().to_owned()).collect();
        states.sort();
        states
    };
    let wait_for = async |expected: &[&str]| {
        cluster
            .stage
            .wait_until("all instances are listed", async || states(&cluster.bases[1]).await == expected)
            .await;
    };
    wait_for(&["ready"; INSTANCES + 1]).await;

    drop(victim);
    let later = "UPDATE reports SET told_at = told_at - interval '11 seconds'";
    cluster.stage.site.engines.as_ref().unwrap().database.execute(later).await.unwrap();

    wait_for(&["ready", "ready", "ready", "silent"]).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_examination_is_joined_and_seen_at_every_instance() {
    let cluster = Cluster::start().await;
    // The health check of the Document Server.
    cluster.files.hold("");

    let begun = ask(&cluster, (Method::POST, &cluster.bases[0]), "examination").await;
    let joined = ask(&cluster, (Method::POST, &cluster.bases[1]), "examination").await;

    assert_eq!((&begun["is_running"], &joined["is_running"]), (&json!(true), &json!(true)));
    assert_eq!(begun["begun_at"], joined["begun_at"]);
    cluster.files.release("");
    let mut seen = Vec::new();
    for base in &cluster.bases {
        cluster
            .stage
            .wait_until("the examination ends", async || {
                ask(&cluster, (Method::GET, base), "examination").await["is_running"] == false
            })
            .await;
        seen.push(ask(&cluster, (Method::GET, base), "examination").await);
    }
    assert_eq!(seen[0]["begun_at"], begun["begun_at"]);
    assert!(seen[0]["hops"].as_array().unwrap().len() > 3, "{seen:?}");
    assert!(seen.iter().all(|each| *each == seen[0]), "{seen:?}");
    let again = ask(&cluster, (Method::POST, &cluster.bases[2]), "examination").await;
    assert_ne!(again["begun_at"], begun["begun_at"], "the place is free again");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_seen_at_every_instance() {
    let cluster = Cluster::start().await;

    let begun = ask(&cluster, (Method::POST, &cluster.bases[0]), "drain").await;

    for base in &cluster.bases {
        cluster
            .stage
            .wait_until("the drain ends", async || {
                let drain = ask(&cluster, (Method::GET, base), "drain").await;
                assert_eq!(drain["begun_at"], begun["begun_at"], "never another one, and never none");
                drain["is_safe"] == true
            })
            .await;
    }
    cluster.stop().await;
}
