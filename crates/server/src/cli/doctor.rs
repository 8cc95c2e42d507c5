//! `saveguard doctor`: looks at everything a save needs, hop by hop, and names the one that is broken.
//!
//! If the service is not running, the doctor starts it for as long as the examination takes. What is looked at is in
//! [`crate::examining`]; operators have the same examination on the page of operations.
//!
//! Guarantees: exit 0 only if nothing failed.

use std::process::ExitCode;

use anyhow::Context as _;
use model::Guards;
use serde_json::json;

use super::lanes::operator_token;
use super::{print, tell};
use crate::app::App;
use crate::config::Config;
use crate::examining::{Chart, Health, Patient, client, examine_running, examine_secrets, examine_storage};
use crate::http::api_url_of;
use crate::service::Service;
use crate::telemetry::report;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(config: Config, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let patient = Patient {
        base: format!("http://{}", config.server.listen),
        token: operator_token(&config),
        script_url: api_url_of(&config),
        http: client().context("the HTTP client cannot be made")?,
        config,
    };
    let mut chart = Chart::default();
    examine(&patient, &mut chart).await;
    show(&chart, &arguments);
    Ok(if chart.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn examine(patient: &Patient, chart: &mut Chart) {
    examine_secrets(patient, chart);
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
    examine_storage(patient, &app, chart).await;
    let Some(service) = running_service(patient, chart).await else { return };
    examine_running(patient, &app, chart).await;
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
        print(&json!({ "healthy": !chart.has_failed(), "hops": chart.hops() }).to_string());
        return;
    }
    for hop in chart.hops() {
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
    match chart.hops().iter().find(|hop| hop.health == Health::Fail) {
        None => tell("Saves will arrive."),
        Some(hop) => tell(&format!("Broken: {}.", hop.name)),
    }
}
