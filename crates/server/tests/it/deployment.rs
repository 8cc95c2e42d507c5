//! The deployment files in `ops/` are true: their settings are a configuration, and the example of nginx carries saves.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use reqwest::Method;
use saveguard::config::Config;
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::serving::until;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops").join(path)).unwrap()
}

/// A file of YAML documents as a list.
fn parsed(path: &str) -> Vec<Value> {
    let script = "import json, sys, yaml\nprint(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let file =
        std::fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops").join(path)).unwrap();
    let output = Command::new("python3").args(["-c", script]).stdin(file).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_settings_of_the_compose_file_are_a_configuration() {
    let compose = parsed("container/compose.yaml").remove(0);

    for instance in ["saveguard-1", "saveguard-2"] {
        let settings = compose["services"][instance]["environment"].as_object().unwrap();
        let settings: BTreeMap<String, String> = settings
            .iter()
            .map(|(name, value)| {
                let value = value.as_str().unwrap();
                // `${NAME:?why}` comes from `.env`.
                let value = match (value.split_once("${"), value.split_once('}')) {
                    (Some((before, _)), Some((_, after))) => format!("{before}{SECRET}{after}"),
                    _ => value.to_owned(),
                };
                (name.clone(), value)
            })
            .collect();
        Config::load(None, settings).unwrap();
    }
}

#[test]
fn the_settings_of_the_kubernetes_manifest_are_a_configuration() {
    let secrets = tempfile::tempdir().unwrap();
    for (name, secret) in [
        ("document-server", SECRET),
        ("api", SECRET),
        ("s3", SECRET),
        ("ledger-url", "postgresql://saveguard@db/saveguard"),
        ("redis-url", "redis://redis:6379"),
    ] {
        std::fs::write(secrets.path().join(name), secret).unwrap();
    }
    let manifests = parsed("kubernetes/saveguard.yaml");
    let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let place = secrets.path().to_str().unwrap();

    let settings: BTreeMap<String, String> = container["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| {
            let value = each["value"].as_str().unwrap().replace("/run/secrets/saveguard", place);
            (each["name"].as_str().unwrap().to_owned(), value)
        })
        .collect();
    Config::load(None, settings).unwrap();

    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert!(["/readyz", "/healthz"].contains(&container[probe]["httpGet"]["path"].as_str().unwrap()));
    }
}

/// nginx with the example, before two instances. Ends with the test.
struct Nginx {
    process: Child,
    base: String,
    _folder: tempfile::TempDir,
}

impl Nginx {
    fn start(instances: [&str; 2]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let [one, two] = instances.map(|base| base.trim_start_matches("http://").to_owned());
        let example = read("nginx/saveguard.conf")
            .replace("listen 8080;", &format!("listen 127.0.0.1:{port};"))
            .replace("saveguard-1:8080", &one)
            .replace("saveguard-2:8080", &two);
        let place = folder.path().display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|each| format!("{each}_temp_path {place}/{each};"))
            .concat();
        std::fs::write(folder.path().join("saveguard.conf"), example).unwrap();
        let wrapper = format!(
            "daemon off; master_process off; pid {place}/pid; error_log {place}/errors; events {{}}
             http {{ access_log off; {temporary} include {place}/saveguard.conf; }}"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, wrapper).unwrap();
        let process =
            Command::new("/usr/sbin/nginx").arg("-c").arg(file).stderr(Stdio::null()).spawn().unwrap();
        Self { process, base: format!("http://127.0.0.1:{port}"), _folder: folder }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_nginx_carries_saves_and_goes_round_an_instance_that_is_gone() {
    let mut cluster = Cluster::start().await;
    let nginx = Nginx::start([&cluster.bases[1], &cluster.bases[2]]);
    let ready = format!("{}/readyz", nginx.base);
    until(async || cluster.stage.http.get(&ready).send().await.ok().filter(|it| it.status().is_success()))
        .await;
    let front = std::mem::replace(&mut cluster.stage.base, nginx.base.clone());
    let key = cluster.opened("12345").await;
    // Larger than what nginx takes without being told.
    let large =
        cluster.stage.upload("67890", "notes.txt", "A line of notes.\n".repeat(200_000).as_bytes()).await;
    assert_eq!(large.status().as_u16(), 201);

    for round in 0..4 {
        let save = cluster.callback(&key, 6, &format!("before-{round}"));
        assert_eq!(cluster.deliver(&nginx.base, &save).await, json!(0), "round {round}");
    }
    // While one of them stops, and has a save to finish before it can.
    cluster.files.hold("slow");
    let slow = cluster.callback(&key, 6, "slow");
    let stopping = cluster.stage.others.remove(0);
    let delivering = cluster.deliver(&cluster.bases[1], &slow);
    let going_on = async {
        cluster.files.asked_for("slow").await;
        let stopped = tokio::spawn(async move { stopping.stop().await });
        for round in 0..12 {
            let save = cluster.callback(&key, 6, &format!("meanwhile-{round}"));
            assert_eq!(cluster.deliver(&nginx.base, &save).await, json!(0), "round {round} while one stops");
            let company = json!({ "id": format!("new-{round}"), "name": "New" });
            let made = cluster.stage.request(Method::POST, "/api/v1/companies").json(&company).send().await;
            assert_eq!(made.unwrap().status().as_u16(), 201, "round {round} while one stops");
        }
        assert!(!stopped.is_finished(), "it has something to finish");
        cluster.files.release("slow");
        stopped.await.unwrap()
    };
    assert_eq!(tokio::join!(delivering, going_on), (json!(0), 0));
    for round in 0..4 {
        let save = cluster.callback(&key, 6, &format!("after-{round}"));
        assert_eq!(cluster.deliver(&nginx.base, &save).await, json!(0), "round {round} without one of them");
    }

    assert_eq!(cluster.stage.versions("12345").await.len(), 22, "each save is there once");
    cluster.stage.base = front;
    drop(nginx);
    cluster.stop().await;
}
