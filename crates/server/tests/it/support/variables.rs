//! A configuration as variables, for a process that is to work on the same data: the same ledger, stores and secrets.

use saveguard::config::{Config, Engine, StoreKind};

/// The names lack `SAVEGUARD_`.
pub(crate) fn variables(config: &Config) -> Vec<(&'static str, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut all = vec![
        ("SERVER_LISTEN", config.server.listen.to_string()),
        ("SERVER_PUBLIC_URL", config.server.public_url.to_string()),
        ("SERVER_INTERNAL_URL", config.server.internal_url.to_string()),
        ("SERVER_DATA", config.server.data.display().to_string()),
        ("SERVER_ENVIRONMENT", config.server.environment.as_str().to_owned()),
        ("DOCUMENT_SERVER_PUBLIC_URL", config.document_server.public_url.to_string()),
        ("DOCUMENT_SERVER_INTERNAL_URL", config.document_server.internal_url.to_string()),
        ("DOCUMENT_SERVER_SECRET", text(config.document_server.secrets.current.as_bytes())),
        ("STOPPING_NOTICE_MS", "0".to_owned()),
        ("LOG_FILTER", "error".to_owned()),
    ];
    if let Engine::Postgres(postgres) = &config.ledger {
        // An embedded one makes its secret itself, in its data folder.
        all.push(("API_SECRET", text(config.api.secrets.current.as_bytes())));
        all.push(("LEDGER_ENGINE", "postgres".to_owned()));
        all.push(("LEDGER_URL", postgres.url.clone()));
    }
    if let Some(redis) = &config.signals {
        all.push(("SIGNALS_REDIS", redis.address.clone()));
    }
    if let Some(folder) = &config.stores.folder {
        all.push(("VAULT_FOLDER", folder.display().to_string()));
    }
    all.extend(far_stores(config));
    all
}

fn far_stores(config: &Config) -> Vec<(&'static str, String)> {
    let Some(sftp) = config.stores.sftp.as_ref().filter(|_| config.stores.vault == StoreKind::Sftp) else {
        return Vec::new();
    };
    let vault::sftp::HostKey::Fingerprint(fingerprint) = &sftp.host_key else { panic!("tests pin the key") };
    let root = sftp.vault_folder.strip_suffix("/vault").unwrap();
    vec![
        ("VAULT_KIND", "sftp".to_owned()),
        ("SFTP_HOST", sftp.host.clone()),
        ("SFTP_PORT", sftp.port.to_string()),
        ("SFTP_USER", sftp.user.clone()),
        ("SFTP_KEY_FILE", sftp.key_file.as_ref().unwrap().display().to_string()),
        ("SFTP_FINGERPRINT", fingerprint.clone()),
        ("SFTP_ROOT", root.to_owned()),
    ]
}
