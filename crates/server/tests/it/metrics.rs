//! The dashboard and the alert rules in `ops/` speak of metrics that exist, with words that exist.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use crate::support::Stage;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops").join(path)).unwrap()
}

/// Every expression of the dashboard and of the rules.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("grafana/saveguard.json")).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter();
    let targets = targets.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    let mut found: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let rules = read("prometheus/alerts.yml");
    found.extend(rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).map(str::to_owned));
    found
}

/// The metrics an expression names.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.filter(|word| word.starts_with("saveguard_")).map(str::to_owned).collect()
}

/// Label values an expression asks for: `kind=~"a|b"` is `kind="a"` and `kind="b"`.
fn labels_in(expression: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in expression.split(['{', ',']).filter(|part| part.contains('"')) {
        let (name, rest) = part.split_once('=').unwrap();
        if name.ends_with('!') {
            continue;
        }
        let words = rest.split('"').nth(1).unwrap();
        found.extend(words.split('|').map(|word| format!("{}=\"{word}\"", name.trim())));
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_the_dashboard_and_of_the_rules_exists_after_a_short_session() {
    let stage = Stage::start().await;
    stage.docx("12345").await;
    let session = stage.edit("12345", "ann").await;
    session.write("Measured.").await.unwrap();
    let text = async || stage.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    stage.wait_until("presence is told", async || text().await.contains("saveguard_people 1")).await;
    session.close().await.unwrap();
    stage.wait_for_head("12345", "2").await;
    let marked = understudy::office::docx_of("<w:document/>");
    let _ = stage.upload("67890", "strange.docx", &marked).await;
    stage
        .wait_until("the callback is counted", async || text().await.contains("answer_seconds_bucket"))
        .await;
    let text = text().await;

    let expressions = expressions();
    assert!(expressions.len() > 30, "{}", expressions.len());
    for expression in &expressions {
        let named = metrics_in(expression);
        assert!(!named.is_empty(), "{expression}");
        for metric in named {
            let is_there = text.lines().any(|line| {
                line.starts_with(&format!("{metric}{{")) || line.starts_with(&format!("{metric} "))
            });
            assert!(is_there, "{metric} of `{expression}` is not in /metrics:\n{text}");
            let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&metric)).collect();
            for label in labels_in(expression) {
                assert!(
                    own.iter().any(|line| line.contains(&label)),
                    "{metric} has no {label}: `{expression}`"
                );
            }
        }
    }
    stage.stop().await;
}

#[test]
fn expressions_are_taken_apart() {
    let expression =
        "increase(saveguard_alerts_total{kind=~\"a|b\",x!=\"y\"}[1h]) > 0 or absent(saveguard_ready)";

    let metrics: Vec<String> = metrics_in(expression).into_iter().collect();
    assert_eq!(metrics, ["saveguard_alerts_total", "saveguard_ready"]);
    assert_eq!(labels_in(expression), ["kind=\"a\"", "kind=\"b\""]);
}
