//! `saveguard doctor`: looks at everything a save needs, hop by hop, and names the one that is broken.
//!
//! It plays a whole editing session through the configured Document Server: open, be seen, change, force-save, close.
//! On a real server only its own editor can change a document, so there the session is opened and closed and those two
//! hops are skipped. If the service is not running, the doctor starts it for as long as the examination takes.
//!
//! Guarantees: every hop has a deadline; what fails says what to do. Exit 0 only if nothing failed.

mod places;
mod session;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use model::Guards;
use serde::Serialize;
use serde_json::json;

use super::lanes::operator_token;
use super::{print, tell};
use crate::app::App;
use crate::config::Config;
use crate::service::Service;
use crate::telemetry::report;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// How a hop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// One hop.
#[derive(Debug, Serialize)]
struct Hop {
    name: &'static str,
    health: Health,
    detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

/// All hops looked at so far.
#[derive(Debug, Default)]
struct Chart {
    hops: Vec<Hop>,
}

impl Chart {
    fn ok(&mut self, name: &'static str, detail: impl Into<String>) {
        self.hops.push(Hop { name, health: Health::Ok, detail: detail.into(), next: String::new() });
    }

    fn skip(&mut self, name: &'static str, detail: impl Into<String>) {
        self.hops.push(Hop { name, health: Health::Skipped, detail: detail.into(), next: String::new() });
    }

    fn warn(&mut self, name: &'static str, detail: impl Into<String>, next: &str) {
        self.hops.push(Hop { name, health: Health::Warn, detail: detail.into(), next: next.to_owned() });
    }

    fn fail(&mut self, name: &'static str, detail: impl Into<String>, next: &str) {
        self.hops.push(Hop { name, health: Health::Fail, detail: detail.into(), next: next.to_owned() });
    }

    fn has_failed(&self) -> bool {
        self.hops.iter().any(|hop| hop.health == Health::Fail)
    }
}

/// What the examination works with.
struct Patient {
    config: Config,
    http: reqwest::Client,
    token: String,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(10))
        .build()
        .context("the HTTP client cannot be made")?;
    let token = operator_token(&config);
    let patient = Patient { config, http, token };
    let mut chart = Chart::default();
    examine(&patient, &mut chart).await;
    show(&chart, &arguments);
    Ok(if chart.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn examine(patient: &Patient, chart: &mut Chart) {
    places::secrets(patient, chart);
    let app = match App::inspecting(patient.config.clone()).await {
        Ok(app) => app,
        Err(cause) => {
            return chart.fail(
                "storage",
                report(&cause),
                "Mend what it says; nothing else can be looked at before.",
            );
        }
    };
    places::storage(patient, &app, chart).await;
    let Some(service) = running_service(patient, chart).await else { return };
    places::addresses(patient, chart).await;
    places::document_server(patient, &app, chart).await;
    if !chart.has_failed() {
        session::play(patient, chart).await;
    }
    if let Some(service) = service {
        service.stop().await;
    }
}

/// The service that runs, or one for the time of the examination: `Some(None)` if it runs by itself.
async fn running_service(patient: &Patient, chart: &mut Chart) -> Option<Option<Service>> {
    let name = "the service";
    let address = patient.config.server.listen;
    if patient.http.get(format!("http://{address}/healthz")).send().await.is_ok() {
        chart.ok(name, format!("runs on {address}"));
        return Some(None);
    }
    match Service::start(patient.config.clone(), Guards::ALL).await {
        Ok(service) => {
            chart.ok(name, format!("was not running and was started on {address} for this examination"));
            Some(Some(service))
        }
        Err(cause) => {
            chart.fail(name, report(&cause), "Mend what it says; nothing else can be looked at before.");
            None
        }
    }
}

fn show(chart: &Chart, arguments: &Arguments) {
    if arguments.json {
        print(&json!({ "healthy": !chart.has_failed(), "hops": chart.hops }).to_string());
        return;
    }
    for hop in &chart.hops {
        let mark = match hop.health {
            Health::Ok => "ok     ",
            Health::Warn => "warning",
            Health::Fail => "BROKEN ",
            Health::Skipped => "skipped",
        };
        print(&format!("{mark}  {:<34}  {}", hop.name, hop.detail));
        if !hop.next.is_empty() {
            print(&format!("         → {}", hop.next));
        }
    }
    match chart.hops.iter().find(|hop| hop.health == Health::Fail) {
        None => tell("Saves will arrive."),
        Some(hop) => tell(&format!("Broken: {}.", hop.name)),
    }
}
