//! The places a save passes: secrets, storage, our addresses, the Document Server, the clocks.

use std::path::Path;

use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use model::Digest;

use super::{Chart, Patient};
use crate::app::App;
use crate::clock::{Clock as _, SystemClock};
use crate::config::StoreKind;
use crate::delivering::fill;
use crate::editors::CommandError;
use crate::telemetry::report;

/// Below this, the next large documents may not fit.
const FREE_BYTES_LOW: u64 = 1024 * 1024 * 1024;
/// Tokens are valid for five minutes and a minute of tolerance; clocks should not even come near.
const CLOCK_FAIL_SECONDS: i64 = 60;
const CLOCK_WARN_SECONDS: i64 = 5;

/// Whether each side has a secret of its own.
pub(crate) fn secrets(patient: &Patient, chart: &mut Chart) {
    let name = "secrets";
    if patient.config.api.secrets.current == patient.config.document_server.secrets.current {
        let next = "Give the api a secret of its own: whoever can sign for the Document Server could sign for people.";
        chart.warn(name, "the api and the Document Server share one secret", next);
    } else {
        chart.ok(name, "long enough, one for each side");
    }
}

/// Whether everything that is written down stays.
pub(crate) async fn storage(patient: &Patient, app: &App, chart: &mut Chart) {
    let name = "storage";
    let data = &patient.config.server.data;
    if patient.config.ledger.is_shared() {
        ledger(patient, app, chart).await;
    }
    match probe(app).await {
        Err(detail) => {
            let next = match patient.config.stores.vault {
                StoreKind::Local => {
                    "Make the data folder writable and see that its disk is not full.".to_owned()
                }
                StoreKind::S3 => format!(
                    "See that {} is there, and correct the settings under [s3].",
                    patient.config.stores.place()
                ),
                StoreKind::Sftp => format!(
                    "See that {} is there, and correct the settings under [sftp].",
                    patient.config.stores.place()
                ),
            };
            chart.fail(name, detail, &next);
        }
        Ok(()) => match free_bytes(data) {
            Some(free) if free < FREE_BYTES_LOW => {
                let detail =
                    format!("{} is writable, but only {} MiB are free", data.display(), free / (1024 * 1024));
                chart.warn(name, detail, "Free some room: a full disk answers saves with 503.");
            }
            _ => chart.ok(name, format!("{} takes durable writes", data.display())),
        },
    }
    far_vault(patient, app, chart).await;
}

/// The ledger on a server of its own.
async fn ledger(patient: &Patient, app: &App, chart: &mut Chart) {
    let (name, place) = ("the ledger", patient.config.ledger.place());
    match app.ledger.ping().await {
        Ok(_) => chart.ok(name, format!("{place} answers, and its schema is up to date")),
        Err(cause) => chart.fail(
            name,
            format!("{place} does not answer: {}", report(&cause)),
            "Start it, or correct the settings under [ledger].",
        ),
    }
}

/// The probe above is satisfied with the depot; here the far side itself is asked for.
async fn far_vault(patient: &Patient, app: &App, chart: &mut Chart) {
    let (name, stores) = ("the far vault", &patient.config.stores);
    if stores.vault == StoreKind::Local {
        return;
    }
    let fill = fill(app).await;
    match app.vault.size_of(&Digest::of(b"nothing has this content")).await {
        Ok(_) if fill.blobs == 0 => chart.ok(name, format!("{} answers", stores.place())),
        Ok(_) => {
            let detail =
                format!("{} answers, and {} contents wait to be delivered", stores.place(), fill.blobs);
            chart.warn(name, detail, "Start the service, which delivers them, and look at its log.");
        }
        Err(cause) => {
            let detail = format!("{} does not answer: {}", stores.place(), report(&cause));
            chart.fail(name, detail, "Start it, or correct its settings (docs/how-to/store-elsewhere.md).");
        }
    }
}

async fn probe(app: &App) -> Result<(), String> {
    app.ledger.ping().await.map_err(|cause| report(&cause))?;
    app.vault.probe().await.map_err(|cause| report(&cause))
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

pub(super) async fn addresses(patient: &Patient, chart: &mut Chart) {
    let server = &patient.config.server;
    let places = [
        ("our address for browsers", &server.public_url, "server.public_url"),
        ("our address for the Document Server", &server.internal_url, "server.internal_url"),
    ];
    for (name, url, setting) in places {
        let address = format!("{}/healthz", url.as_str().trim_end_matches('/'));
        match patient.http.get(&address).send().await {
            Ok(response) if response.status().is_success() => chart.ok(name, url.to_string()),
            Ok(response) => {
                let detail = format!("{address} answers {}", response.status());
                chart.fail(name, detail, &format!("Something else answers there: correct `{setting}`."));
            }
            Err(cause) => {
                let detail = format!("{address} does not answer: {}", report(&cause));
                let next =
                    format!("Correct `{setting}`. If only other machines can reach it, try it from there.");
                chart.warn(name, detail, &next);
            }
        }
    }
}

pub(super) async fn document_server(patient: &Patient, app: &App, chart: &mut Chart) {
    let settings = &patient.config.document_server;
    let name = "the Document Server";
    let address = format!("{}/healthcheck", settings.internal_url.as_str().trim_end_matches('/'));
    let asked_at = SystemClock.now();
    let response = match patient.http.get(&address).send().await {
        Ok(response) => response,
        Err(cause) => {
            let detail = format!("{address} does not answer: {}", report(&cause));
            return chart.fail(name, detail, "Start it, or correct `document_server.internal_url`.");
        }
    };
    clock(&response, asked_at, chart);
    match response.text().await.as_deref().map(str::trim) {
        Ok("true") => chart.ok(name, "answers and says that it is well"),
        Ok(other) => {
            let shown: String = other.chars().take(80).collect();
            let next =
                "Look at its database, its queue and its logs, or correct `document_server.internal_url`.";
            chart.fail(name, format!("its health check says: {shown}"), next);
        }
        Err(cause) => chart.fail(name, cause.to_string(), "Look at its logs."),
    }
    command(app, chart).await;
    script(patient, chart).await;
}

fn clock(response: &reqwest::Response, asked_at: Timestamp, chart: &mut Chart) {
    let name = "the clocks";
    let theirs = response
        .headers()
        .get(DATE)
        .and_then(|date| date.to_str().ok())
        .and_then(|date| rfc2822::parse(date).ok());
    let Some(theirs) = theirs else {
        return chart.skip(name, "the Document Server does not tell the time");
    };
    let apart = theirs.timestamp().duration_since(asked_at).as_secs().abs();
    let detail = format!("{apart} s apart");
    match apart {
        CLOCK_FAIL_SECONDS.. => {
            chart.fail(name, detail, "Set both clocks by NTP: tokens are valid for minutes only.")
        }
        CLOCK_WARN_SECONDS.. => chart.warn(name, detail, "Set both clocks by NTP."),
        _ => chart.ok(name, "agree"),
    }
}

/// A command is signed, so its answer proves the secret in one direction.
async fn command(app: &App, chart: &mut Chart) {
    let name = "commands to the Document Server";
    match app.editor.version().await {
        Ok(version) => chart.ok(name, format!("version {version}; it accepts our signature")),
        Err(CommandError::Refused { code: 6 | 7, .. }) => chart.fail(
            name,
            "it refuses our signature",
            "Give both sides the same secret: `document_server.secret` here, `services.CoAuthoring.secret.inbox` there.",
        ),
        Err(cause) => chart.fail(name, report(&cause), "Look at its logs."),
    }
}

async fn script(patient: &Patient, chart: &mut Chart) {
    let name = "the editor's script";
    let address = patient.script_url.clone();
    match patient.http.get(&address).send().await {
        Ok(response) if response.status().is_success() => chart.ok(name, address),
        Ok(response) => {
            let detail = format!("{address} answers {}", response.status());
            chart.fail(name, detail, "Correct `document_server.public_url`.");
        }
        Err(cause) => {
            let detail = format!("{address} does not answer: {}", report(&cause));
            chart.warn(
                name,
                detail,
                "Correct `document_server.public_url`, if browsers cannot reach it either.",
            );
        }
    }
}
