//! Where bytes are kept: `[vault]`, `[s3]` and `[sftp]`.
//!
//! Guarantees: what the chosen kind needs is there, or its absence is a mistake; passwords never show.
//! Does not do: talk to a store.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use vault::depot::Room;
use vault::s3::{Addressing, Credentials, PlainHttp};
use vault::{s3, sftp};

use super::MIB;
use super::reader::{Reader, Section};

/// Where bytes are kept.
#[derive(Debug, Clone)]
pub struct Stores {
    /// Where blobs are.
    pub vault: StoreKind,
    /// Where the published tree is.
    pub tree: StoreKind,
    /// A folder of its own for local blobs and the local tree, which several instances may share; none: the data folder.
    pub folder: Option<PathBuf>,
    /// What may wait on the local disk while a far vault is away.
    pub depot: Room,
    /// The bucket, if one is set.
    pub s3: Option<s3::Settings>,
    /// The SFTP server, if one is set.
    pub sftp: Option<sftp::Settings>,
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The data folder.
    Local,
    /// A bucket.
    S3,
    /// An SFTP server.
    Sftp,
}

const KINDS: [(&str, StoreKind); 3] =
    [("local", StoreKind::Local), ("s3", StoreKind::S3), ("sftp", StoreKind::Sftp)];

/// Whether anything is to go to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Wanted,
    None,
}

impl Stores {
    /// Where blobs are, in words.
    pub fn place(&self) -> String {
        match (self.vault, &self.s3, &self.sftp) {
            (StoreKind::S3, Some(s3), _) => {
                let store = s3.endpoint.as_deref().unwrap_or("AWS");
                format!("the bucket {} of {store}", s3.bucket)
            }
            (StoreKind::Sftp, _, Some(sftp)) => {
                format!("{} of the SFTP server {}:{}", sftp.vault_folder, sftp.host, sftp.port)
            }
            _ => match &self.folder {
                Some(folder) => format!("the folder {}", folder.display()),
                None => "the data folder".to_owned(),
            },
        }
    }
}

pub(super) fn read(reader: &mut Reader) -> Stores {
    let mut section = reader.section("vault");
    let vault = section.choice("kind", StoreKind::Local, &KINDS);
    let tree = section.choice("tree", vault, &KINDS);
    let shared_folder = path(&mut section, "folder");
    let bytes_max = section.whole("depot_mib_max", 1024, (1, MIB)) * MIB;
    let choices = [("forbidden", Room::None), ("allowed", Room::Bytes(bytes_max))];
    let depot = section.choice("depot", Room::None, &choices);
    let use_of = |kind| if vault == kind || tree == kind { Use::Wanted } else { Use::None };
    Stores {
        vault,
        tree,
        folder: shared_folder,
        depot,
        s3: read_s3(&mut reader.section("s3"), use_of(StoreKind::S3)),
        sftp: read_sftp(&mut reader.section("sftp"), use_of(StoreKind::Sftp)),
    }
}

/// Every setting is read even if it is not used, so that a wrong one is found.
fn read_s3(section: &mut Section<'_>, wanted: Use) -> Option<s3::Settings> {
    let settings = s3::Settings {
        bucket: section.text("bucket", ""),
        prefix: folder(&section.text("prefix", "")),
        region: section.text("region", "us-east-1"),
        endpoint: section.parse("endpoint", None, parse_endpoint),
        addressing: section.choice(
            "addressing",
            Addressing::Path,
            &[("path", Addressing::Path), ("virtual-host", Addressing::VirtualHost)],
        ),
        plain_http: section.choice(
            "plain_http",
            PlainHttp::Forbidden,
            &[("forbidden", PlainHttp::Forbidden), ("allowed", PlainHttp::Allowed)],
        ),
        ca_file: path(section, "ca_file"),
        credentials: read_credentials(section),
        silence_max: section.duration("silence_seconds", Duration::from_secs(30), (1, 600)),
    };
    if wanted == Use::Wanted && settings.bucket.is_empty() {
        section.mistake("bucket", "is not set; blobs or the published tree are to go there");
    }
    if settings.endpoint.as_ref().is_some_and(|url| url.starts_with("http://"))
        && settings.plain_http == PlainHttp::Forbidden
    {
        section.mistake("endpoint", "is not encrypted; use https, or allow it with `s3.plain_http`");
    }
    (!settings.bucket.is_empty()).then_some(settings)
}

fn read_credentials(section: &mut Section<'_>) -> Credentials {
    let id = section.text("access_key_id", "");
    match (id.is_empty(), section.hidden("secret_access_key")) {
        (false, Some(secret_access_key)) => Credentials::Given { access_key_id: id, secret_access_key },
        (true, None) => {
            let names = |name: &str| name.starts_with("AWS_") || name == "HOME";
            Credentials::UsualPlaces {
                environment: std::env::vars().filter(|(name, _)| names(name)).collect(),
            }
        }
        _ => {
            section.mistake("access_key_id", "and `s3.secret_access_key` belong together");
            Credentials::UsualPlaces { environment: Default::default() }
        }
    }
}

fn read_sftp(section: &mut Section<'_>, wanted: Use) -> Option<sftp::Settings> {
    let (host, user, root) = (section.text("host", ""), section.text("user", ""), section.text("root", ""));
    let (known_hosts, fingerprint) = (path(section, "known_hosts"), section.text("fingerprint", ""));
    let host_key = match known_hosts {
        Some(file) if fingerprint.is_empty() => Some(sftp::HostKey::KnownHosts(file)),
        None if !fingerprint.is_empty() => Some(sftp::HostKey::Fingerprint(fingerprint)),
        _ => None,
    };
    let port = u16::try_from(section.whole("port", 22, (1, 65_535))).unwrap_or(22);
    let key_file = path(section, "key_file");
    let mut secret = |name| section.hidden(name).map(sftp::Secret::new);
    let (key_password, password) = (secret("key_password"), secret("password"));
    let connections_max = usize::try_from(section.whole("connections_max", 8, (1, 64))).unwrap_or(8);
    if wanted == Use::None && host.is_empty() {
        return None;
    }
    for (name, value) in [("host", &host), ("user", &user), ("root", &root)] {
        if value.is_empty() {
            section.mistake(name, "is not set; blobs or the published tree are to go there");
        }
    }
    if key_file.is_none() && password.is_none() {
        section.mistake(
            "key_file",
            "is not set, and neither is `sftp.password`; one of them is needed to log in",
        );
    }
    let Some(host_key) = host_key else {
        section.mistake("known_hosts", "or `sftp.fingerprint` must be set, and only one of them: no server is trusted because it answers");
        return None;
    };
    let settings = sftp::Settings::new(&host, &user, (&root, host_key));
    Some(sftp::Settings { port, key_file, key_password, password, connections_max, ..settings })
}

fn path(section: &mut Section<'_>, name: &str) -> Option<PathBuf> {
    Some(section.text(name, "")).filter(|text| !text.is_empty()).map(PathBuf::from)
}

fn parse_endpoint(text: &str) -> Result<Option<String>, String> {
    match Url::parse(text) {
        _ if text.is_empty() => Ok(None),
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(Some(text.to_owned())),
        _ => Err(format!("is `{text}`; it must be an https URL, like https://s3.example.org")),
    }
}

/// A prefix of keys ends like a folder, or is empty.
fn folder(prefix: &str) -> String {
    match prefix.trim_matches('/') {
        "" => String::new(),
        inner => format!("{inner}/"),
    }
}
