//! From a link in a callback to the address it is fetched from.
//!
//! The host in a link is that of whichever browser last opened the document, so it may be unreachable from here or
//! chosen by an attacker. Only its path and query count: they are fetched from the configured server. Links into a
//! configured further origin (cloud storage) are fetched as they are.
//!
//! Guarantees: no address that is not configured is ever contacted.

use url::Url;

use crate::config::DocumentServer;

/// The address a link is fetched from.
pub(super) fn resolve(config: &DocumentServer, link: &str) -> Result<Url, String> {
    let url = Url::parse(link).map_err(|cause| cause.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return Err("it is no plain http or https link".to_owned());
    }
    if config.download_origins.iter().any(|origin| origin.origin() == url.origin()) {
        return Ok(url);
    }
    let mut target = config.internal_url.clone();
    let path = below(url.path(), config.public_url.path());
    target.set_path(&format!("{}{path}", config.internal_url.path().trim_end_matches('/')));
    target.set_query(url.query());
    Ok(target)
}

/// A server behind a path prefix puts that prefix into its links; it is not part of the internal address.
fn below<'a>(path: &'a str, prefix: &str) -> &'a str {
    let prefix = prefix.trim_end_matches('/');
    match path.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('/') => rest,
        _ => path,
    }
}

/// Whether a link named another host than the configured ones: worth a line in the log, never a reason to refuse.
pub(super) fn is_foreign(config: &DocumentServer, link: &str) -> bool {
    let Ok(url) = Url::parse(link) else { return true };
    let known = [&config.public_url, &config.internal_url];
    !known.into_iter().chain(&config.download_origins).any(|each| each.origin() == url.origin())
}

/// Refuses a link that leads anywhere but to a result of the configured server. Nobody signed it, so that its host is no
/// mistake of a browser but what somebody chose, and other paths of the server are none of their business.
pub(super) fn require_result(config: &DocumentServer, link: &str) -> Result<(), String> {
    if is_foreign(config, link) {
        return Err("it leads to another host than the Document Server".to_owned());
    }
    let target = resolve(config, link)?;
    let is_stored_elsewhere = config.download_origins.iter().any(|origin| origin.origin() == target.origin());
    let below = below(target.path(), config.internal_url.path());
    let is_plain = !below.contains("..") && !below.contains("//") && !below.contains('%');
    if is_stored_elsewhere || (below.starts_with("/cache/files/") && is_plain) {
        Ok(())
    } else {
        Err("it does not lead to a result of the Document Server".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Secret, Secrets};
    use std::time::Duration;

    fn config() -> DocumentServer {
        DocumentServer {
            public_url: Url::parse("https://office.example.org/ds").unwrap(),
            internal_url: Url::parse("http://ds:8000/").unwrap(),
            download_origins: vec![Url::parse("https://bucket.example.net").unwrap()],
            jwt_header: http::header::AUTHORIZATION,
            secrets: Secrets { current: Secret::parse(&"s".repeat(40)).unwrap(), previous: None },
            command_timeout: Duration::from_secs(1),
        }
    }

    fn resolved(link: &str) -> String {
        resolve(&config(), link).map_or_else(|mistake| format!("refused: {mistake}"), |url| url.to_string())
    }

    #[test]
    fn links_are_fetched_from_the_configured_server() {
        let link = "https://office.example.org/ds/cache/files/data/k_1/output.docx?md5=a%2Fb&expires=1";

        assert_eq!(resolved(link), "http://ds:8000/cache/files/data/k_1/output.docx?md5=a%2Fb&expires=1");
        assert!(!is_foreign(&config(), link));
    }

    #[test]
    fn a_foreign_host_is_never_contacted() {
        let hostile = [
            "http://169.254.169.254/latest/meta-data",
            "http://[::ffff:127.0.0.1]/x",
            "http://0x7f.1/x",
            "http://2130706433/x",
            "http://localhost./x",
            "http://evil.example/#@ds",
            "http://evil.example\\@ds/x",
            "http://ds:9999/x",
        ];
        for link in hostile {
            let target = resolve(&config(), link).unwrap();
            assert_eq!((target.host_str(), target.port()), (Some("ds"), Some(8000)), "{link}");
            assert!(is_foreign(&config(), link), "{link}");
        }
        for link in ["file:///etc/passwd", "gopher://x/y", "http://ds@evil/x", "not a link", "javascript:1"] {
            assert!(resolved(link).starts_with("refused"), "{link}");
        }
    }

    #[test]
    fn a_link_of_a_browser_must_lead_to_a_result() {
        let good = [
            "https://office.example.org/ds/cache/files/data/k_1/output.docx/output.docx?md5=a%2Fb",
            "http://ds:8000/cache/files/data/k_1/output.docx",
            "https://bucket.example.net/x?signature=1",
        ];
        let bad = [
            "https://office.example.org/ds/info/info.json",
            "https://office.example.org/ds/cache/files/../../info",
            "https://office.example.org/ds/cache/files/%2e%2e/%2e%2e/info",
            "https://office.example.org/ds/command",
            "http://evil.example/cache/files/x",
            "http://169.254.169.254/cache/files/x",
            "http://ds:9999/cache/files/x",
            "file:///cache/files/x",
            "http://user@ds:8000/cache/files/x",
            "nonsense",
        ];

        for link in good {
            assert_eq!(require_result(&config(), link), Ok(()), "{link}");
        }
        for link in bad {
            assert!(require_result(&config(), link).is_err(), "{link}");
        }
    }

    #[test]
    fn a_configured_storage_is_used_as_it_is() {
        let link = "https://bucket.example.net/x?signature=1";

        assert_eq!(resolved(link), link);
    }
}
