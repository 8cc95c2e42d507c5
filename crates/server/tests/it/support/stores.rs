//! Which stores a test runs on. A module of tests that is included again under a name that ends in `_on_s3` or `_on_sftp` runs
//! unchanged on that store: a test knows its own name by its thread.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use test_stores::S3Server;
use test_stores::s3::{ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY};
use vault::contract::sshd::Sshd;

enum Far {
    S3(S3Server),
    Sftp(Sshd),
}

thread_local! {
    /// The server of this test; it ends with the test's thread.
    static FAR: RefCell<Option<Far>> = const { RefCell::new(None) };
}

/// Settings for the store that this test is to run on, the same for the same folder.
pub(crate) fn settings(folder: &Path) -> Vec<(&'static str, String)> {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let start: fn() -> Far = match name.split("::").next() {
        Some(module) if module.ends_with("_on_s3") => || Far::S3(S3Server::on_disk()),
        Some(module) if module.ends_with("_on_sftp") => || Far::Sftp(Sshd::start()),
        _ => return Vec::new(),
    };
    FAR.with_borrow_mut(|far| match far.get_or_insert_with(start) {
        Far::S3(server) => s3_settings(&server.endpoint(), folder),
        Far::Sftp(server) => sftp_settings(server),
    })
}

/// Where the far store of this test keeps what it has, on this machine's disk.
pub(crate) fn far_folder() -> Option<PathBuf> {
    FAR.with_borrow(|far| match far.as_ref()? {
        Far::S3(server) => server.folder(),
        Far::Sftp(server) => Some(server.root()),
    })
}

/// Settings for a bucket behind this address, with a place in it for this folder.
pub(crate) fn s3_settings(endpoint: &str, folder: &Path) -> Vec<(&'static str, String)> {
    let prefix = folder.file_name().unwrap().to_str().unwrap();
    vec![
        ("VAULT_KIND", "s3".to_owned()),
        ("S3_ENDPOINT", endpoint.to_owned()),
        ("S3_PLAIN_HTTP", "allowed".to_owned()),
        ("S3_BUCKET", BUCKET.to_owned()),
        ("S3_PREFIX", prefix.to_owned()),
        ("S3_ACCESS_KEY_ID", ACCESS_KEY_ID.to_owned()),
        ("S3_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY.to_owned()),
    ]
}

fn sftp_settings(server: &Sshd) -> Vec<(&'static str, String)> {
    let settings = server.settings();
    vec![
        ("VAULT_KIND", "sftp".to_owned()),
        ("SFTP_HOST", settings.host),
        ("SFTP_PORT", settings.port.to_string()),
        ("SFTP_USER", settings.user),
        ("SFTP_KEY_FILE", settings.key_file.unwrap().display().to_string()),
        ("SFTP_FINGERPRINT", server.fingerprint()),
        ("SFTP_ROOT", server.root().display().to_string()),
    ]
}
