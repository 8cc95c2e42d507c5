//! The sections of the configuration, one function each: names, defaults, and what is allowed.
//!
//! Guarantees: every mistake is noted with its section and name, and reading goes on. Does not do: look at files.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use model::Environment;
use model::checking::{OnVanished, Policy, Vanished};
use model::disk::Marks;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::reader::Section;
use super::{
    JwksSource, Log, LogFormat, MIB, Opening, Provider, Saving, Secret, Server, Sessions, Stopping,
    Submitting, Traces,
};
use crate::callers::Checks;

pub(super) fn read_server(section: &mut Section<'_>) -> Option<Server> {
    let listen = section.parse("listen", SocketAddr::from(([127, 0, 0, 1], 8080)), |text| {
        text.parse().map_err(|_| format!("is `{text}`; it must be an address and a port, like 0.0.0.0:8080"))
    });
    let here = format!("http://localhost:{}", listen.port());
    let environment = section.text("environment", "prod");
    let Some(environment) = Environment::parse(&environment) else {
        section.mistake(
            "environment",
            &format!("is `{environment}`; it must be 1 to 16 letters, digits or `-`"),
        );
        return None;
    };
    Some(Server {
        listen,
        public_url: section.url("public_url", &here)?,
        internal_url: section.url("internal_url", &here)?,
        data: PathBuf::from(section.text("data", "saveguard-data")),
        environment,
        upload_bytes_max: section.whole("upload_mib_max", 100, (1, 10_240)) * MIB,
        connections_max: usize::try_from(section.whole("connections_max", 4096, (16, 1_000_000))).ok()?,
        allowed_origins: section
            .urls("allowed_origins")
            .iter()
            .map(|url| url.origin().ascii_serialization())
            .collect(),
        embedded_by: section
            .urls("embedded_by")
            .iter()
            .map(|url| url.origin().ascii_serialization())
            .collect(),
        client_address_header: section.parse("client_address_header", None, |text| match text {
            "" => Ok(None),
            name => name.parse().map(Some).map_err(|_| format!("is `{name}`, which is no header name")),
        }),
    })
}

pub(super) fn read_document_server(
    section: &mut Section<'_>,
) -> Option<(Url, Url, Vec<Url>, http::HeaderName, Duration)> {
    let public_url = section.url("public_url", "http://localhost:8000");
    let internal_default =
        public_url.as_ref().map_or_else(|| "http://localhost:8000".to_owned(), Url::to_string);
    let internal_url = section.url("internal_url", &internal_default);
    let origins = section.urls("download_origins");
    let header = section.parse("jwt_header", http::header::AUTHORIZATION, |text| {
        text.parse().map_err(|_| format!("is `{text}`, which is no header name"))
    });
    let timeout = section.duration("command_seconds", Duration::from_secs(20), (1, 600));
    Some((public_url?, internal_url?, origins, header, timeout))
}

pub(super) fn read_secrets(section: &mut Section<'_>) -> (Option<Secret>, Option<Secret>) {
    (section.secret("secret"), section.secret("previous_secret"))
}

pub(super) fn read_api(section: &mut Section<'_>) -> (Option<JwksSource>, Checks, Option<Provider>) {
    let jwks = section.parse("jwks", None, |text| match text {
        "" => Ok(None),
        url if url.contains("://") => match Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(JwksSource::Url(url))),
            _ => Err(format!("is `{url}`; it must be an http or https URL, or a path")),
        },
        path => Ok(Some(JwksSource::File(PathBuf::from(path)))),
    });
    let mut optional = |name| Some(section.text(name, "")).filter(|text| !text.is_empty());
    let (issuer, audience, client_id) = (optional("issuer"), optional("audience"), optional("client_id"));
    let client_secret = section.secret("client_secret");
    let provider = match (client_id, &issuer, &jwks) {
        (None, ..) => None,
        (Some(client_id), Some(issuer), Some(_)) if audience.as_ref() == Some(&client_id) => {
            Some(Provider { issuer: issuer.clone(), client_id, client_secret })
        }
        (Some(client_id), ..) => {
            let needed = format!("needs `jwks`, `issuer`, and `audience = \"{client_id}\"`");
            section.mistake("client_id", &needed);
            None
        }
    };
    (jwks, Checks { issuer, audience }, provider)
}

pub(super) fn read_opening(section: &mut Section<'_>) -> Opening {
    Opening {
        wait: section.duration("wait_seconds", Duration::from_secs(20), (0, 60)),
        config_token: section.duration("config_token_seconds", Duration::from_secs(300), (30, 86_400)),
        stream_token: section.duration("stream_token_seconds", Duration::from_secs(900), (60, 86_400)),
    }
}

pub(super) fn read_saving(section: &mut Section<'_>) -> Saving {
    let minutes = |count: u64| Duration::from_secs(count * 60);
    Saving {
        answer_within: section.duration("answer_seconds", Duration::from_secs(50), (1, 200)),
        answer_zero_within: section.duration("answer_zero_seconds", minutes(3), (1, 230)),
        pass_after: section.duration("pass_after_ms", Duration::from_secs(5), (0, 60_000)),
        lane_depth_max: usize::try_from(section.whole("lane_depth_max", 256, (1, 100_000))).unwrap_or(256),
        fetch_attempts: u32::try_from(section.whole("fetch_attempts", 3, (1, 10))).unwrap_or(3),
        fetch_spread: section.duration("fetch_spread_ms", Duration::from_secs(10), (0, 60_000)),
        fetch_within: section.duration("fetch_seconds", Duration::from_secs(120), (1, 800)),
        fetch_bytes_max: section.whole("fetch_mib_max", 1024, (1, 10_240)) * MIB,
        fetch_parallel_max: usize::try_from(section.whole("fetch_parallel_max", 64, (1, 10_000)))
            .unwrap_or(64),
        download_within: section.duration("download_seconds", Duration::from_secs(30), (0, 300)),
        identity_window: SignedDuration::try_from(section.duration(
            "identity_window_seconds",
            minutes(15),
            (1, 86_400),
        ))
        .unwrap_or(SignedDuration::from_mins(15)),
    }
}

pub(super) fn read_sessions(section: &mut Section<'_>) -> Sessions {
    Sessions {
        look_every: section.duration("look_seconds", Duration::from_secs(900), (1, 86_400)),
        streams_max: usize::try_from(section.whole("streams_max", 1000, (0, 500_000))).unwrap_or(1000),
    }
}

pub(super) fn read_submitting(section: &mut Section<'_>) -> Submitting {
    Submitting {
        parallel_max: usize::try_from(section.whole("parallel_max", 2, (1, 64))).unwrap_or(2),
        lease: section.duration("lease_seconds", Duration::from_secs(10), (1, 3600)),
        scanner: section.list("scanner"),
        notice_secret: section.secret("notice_secret"),
    }
}

pub(super) fn read_checking(section: &mut Section<'_>) -> Policy {
    let shadow: BTreeSet<String> = section.list("shadow").into_iter().collect();
    let known = office_check::Code::ALL.iter().map(|code| code.as_str());
    let known: BTreeSet<&str> = known.chain(Vanished::ALL.map(Vanished::as_str)).collect();
    for code in shadow.iter().filter(|code| !known.contains(code.as_str())) {
        section
            .mistake("shadow", &format!("has `{code}`, which is no code of a finding; see docs/findings.md"));
    }
    let choices = [("flag", OnVanished::Flag), ("hold", OnVanished::Hold)];
    Policy { shadow, on_vanished: section.choice("vanished", OnVanished::Flag, &choices) }
}

pub(super) fn read_stopping(section: &mut Section<'_>) -> Stopping {
    Stopping {
        notice: section.duration("notice_ms", Duration::from_millis(200), (0, 600_000)),
        drain: section.duration("drain_seconds", Duration::from_secs(30), (0, 600)),
    }
}

pub(super) fn read_disk(section: &mut Section<'_>) -> Marks {
    let marks = Marks {
        warn_bytes: section.whole("warn_free_mib", 2048, (0, MIB)) * MIB,
        warn_percent: section.whole("warn_free_percent", 5, (0, 99)),
        uploads_bytes: section.whole("uploads_free_mib", 512, (0, MIB)) * MIB,
        saves_bytes: section.whole("saves_free_mib", 128, (0, MIB)) * MIB,
    };
    if marks.saves_bytes > marks.uploads_bytes {
        section.mistake("saves_free_mib", "is more than `uploads_free_mib`; saves are what is refused last");
    }
    marks
}

pub(super) fn read_traces(section: &mut Section<'_>) -> Traces {
    let endpoint = section.parse("endpoint", None, |text| match Url::parse(text) {
        _ if text.is_empty() => Ok(None),
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
        _ => {
            Err(format!("is `{text}`; it must be an http or https URL, like http://localhost:4318/v1/traces"))
        }
    });
    Traces { endpoint, service: section.text("service", "saveguard") }
}

pub(super) fn read_log(section: &mut Section<'_>) -> Log {
    let filter = section.text("filter", "info");
    if let Err(cause) = EnvFilter::try_new(&filter) {
        section.mistake("filter", &format!("is `{filter}`, which is no filter: {cause}"));
    }
    Log {
        format: section.choice(
            "format",
            LogFormat::Text,
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        ),
        filter,
    }
}
