//! Where the bucket is, and how to get in.
//!
//! Guarantees: nothing goes over plain HTTP unless it was said; the secret is not shown.
//! Does not do: talk to the store.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, Certificate, ClientOptions, RetryConfig};

use super::places;
use super::signing::Signing;

/// A request is repeated at most this often: whoever waits for a save is better off with an answer that is repeated.
const RETRIES_MAX: usize = 2;
const RETRIES_WITHIN: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Where the bucket is, and how to get in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The bucket; it must be there.
    pub bucket: String,
    /// Put before every key; may be empty.
    pub prefix: String,
    /// The region that requests are signed for.
    pub region: String,
    /// The store's address, if it is not AWS: `https://s3.example.com`.
    pub endpoint: Option<String>,
    /// Where the bucket's name stands in an address.
    pub addressing: Addressing,
    /// Whether an endpoint may be `http://`.
    pub plain_http: PlainHttp,
    /// A PEM file of certificates to trust beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Who we are.
    pub credentials: Credentials,
    /// How long the store may be silent in the middle of an answer.
    pub silence_max: Duration,
}

/// Where the bucket's name stands in an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/key`.
    Path,
    /// `https://bucket.host/key`.
    VirtualHost,
}

/// Whether bytes and signatures may travel unencrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only TLS.
    Forbidden,
    /// For a store on the same machine or in tests.
    Allowed,
}

/// Who we are.
#[derive(Clone)]
pub enum Credentials {
    /// These.
    Given {
        /// The name of the key.
        access_key_id: String,
        /// The key.
        secret_access_key: String,
    },
    /// From where AWS programs find them: the environment, the shared credentials file, a web identity, the container, the machine.
    UsualPlaces {
        /// The environment.
        environment: BTreeMap<String, String>,
    },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Given { access_key_id, .. } => write!(out, "Given({access_key_id})"),
            Self::UsualPlaces { .. } => out.write_str("UsualPlaces"),
        }
    }
}

impl Settings {
    /// A client whose every request carries these headers.
    pub(super) fn client(&self, headers: HeaderMap) -> io::Result<AmazonS3> {
        let mut builder = self.with_credentials()?;
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(self.address_of(endpoint)?);
        }
        let is_virtual = self.addressing == Addressing::VirtualHost;
        let built = builder
            .with_bucket_name(&self.bucket)
            .with_region(&self.region)
            .with_virtual_hosted_style_request(is_virtual)
            .with_crypto_provider(Arc::new(Signing))
            // One request a key: every store knows it, and conditions hold for it.
            .with_disable_bulk_delete(true)
            .with_retry(retries())
            .with_client_options(self.options(headers)?)
            .build();
        built.map_err(io::Error::other)
    }

    fn with_credentials(&self) -> io::Result<AmazonS3Builder> {
        match &self.credentials {
            Credentials::Given { access_key_id, secret_access_key } => Ok(AmazonS3Builder::new()
                .with_access_key_id(access_key_id)
                .with_secret_access_key(secret_access_key)),
            Credentials::UsualPlaces { environment } => places::look(environment),
        }
    }

    /// In virtual-host style the address that object_store wants has the bucket in it.
    fn address_of(&self, endpoint: &str) -> io::Result<String> {
        let Some((scheme, host)) = endpoint.trim_end_matches('/').split_once("://") else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the endpoint begins with https://"));
        };
        if scheme != "https" && self.plain_http == PlainHttp::Forbidden {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{endpoint} is not encrypted, and plain HTTP is not allowed by the settings"),
            ));
        }
        Ok(match self.addressing {
            Addressing::Path => format!("{scheme}://{host}"),
            Addressing::VirtualHost => format!("{scheme}://{}.{host}", self.bucket),
        })
    }

    fn options(&self, headers: HeaderMap) -> io::Result<ClientOptions> {
        let mut options = ClientOptions::new()
            .with_allow_http(self.plain_http == PlainHttp::Allowed)
            .with_connect_timeout(CONNECT_WITHIN)
            .with_timeout_disabled()
            .with_read_timeout(self.silence_max)
            .with_default_headers(headers);
        if let Some(file) = &self.ca_file {
            let unreadable = |cause: &dyn std::fmt::Display| {
                io::Error::other(format!("the CA file {} cannot be used: {cause}", file.display()))
            };
            let text = std::fs::read(file).map_err(|cause| unreadable(&cause))?;
            for certificate in Certificate::from_pem_bundle(&text).map_err(|cause| unreadable(&cause))? {
                options = options.with_root_certificate(certificate);
            }
        }
        Ok(options)
    }
}

fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: FIRST_PAUSE, ..BackoffConfig::default() },
        max_retries: RETRIES_MAX,
        retry_timeout: RETRIES_WITHIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(endpoint: &str, addressing: Addressing) -> Settings {
        Settings {
            bucket: "papers".to_owned(),
            prefix: String::new(),
            region: "us-east-1".to_owned(),
            endpoint: Some(endpoint.to_owned()),
            addressing,
            plain_http: PlainHttp::Forbidden,
            ca_file: None,
            credentials: Credentials::Given {
                access_key_id: "id".to_owned(),
                secret_access_key: "hush".to_owned(),
            },
            silence_max: Duration::from_secs(30),
        }
    }

    #[test]
    fn the_bucket_stands_in_the_path_or_in_the_host() {
        let path = settings("https://s3.example.com:9000/", Addressing::Path);
        let host = settings("https://s3.example.com:9000", Addressing::VirtualHost);

        assert_eq!(
            path.address_of(path.endpoint.as_ref().unwrap()).unwrap(),
            "https://s3.example.com:9000",
            "object_store appends the bucket"
        );
        assert_eq!(
            host.address_of(host.endpoint.as_ref().unwrap()).unwrap(),
            "https://papers.s3.example.com:9000"
        );
    }

    #[test]
    fn plain_http_is_refused_in_words_unless_it_was_said() {
        let mut settings = settings("http://127.0.0.1:9000", Addressing::Path);
        assert!(
            settings.client(HeaderMap::new()).unwrap_err().to_string().contains("plain HTTP is not allowed")
        );

        settings.plain_http = PlainHttp::Allowed;

        assert!(settings.client(HeaderMap::new()).is_ok());
    }

    #[test]
    fn the_secret_is_not_shown_and_a_missing_ca_file_is_named() {
        let mut settings = settings("https://s3.example.com", Addressing::Path);
        settings.ca_file = Some("/nowhere/ca.pem".into());

        assert!(!format!("{settings:?}").contains("hush"));
        assert!(settings.client(HeaderMap::new()).unwrap_err().to_string().contains("/nowhere/ca.pem"));
    }
}
