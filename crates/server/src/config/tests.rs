//! The configuration file is held against the code, and mistakes are all reported at once.

use super::*;

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, Mistakes> {
    let environment =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Config::from_sources(text.parse().unwrap(), environment)
}

fn in_folder(folder: &tempfile::TempDir) -> [(&'static str, String); 1] {
    [("SAVEGUARD_SERVER_DATA", folder.path().to_str().unwrap().to_owned())]
}

fn load_in(folder: &tempfile::TempDir, text: &str) -> Result<Config, Mistakes> {
    let [(name, value)] = in_folder(folder);
    load(text, &[(name, &value)])
}

#[test]
fn the_documented_file_is_the_default() {
    let folder = tempfile::tempdir().unwrap();

    let documented = load_in(&folder, DOCUMENTED).unwrap();
    let default = load_in(&folder, "").unwrap();

    assert_eq!(format!("{documented:?}"), format!("{default:?}"));
}

#[test]
fn every_setting_is_documented() {
    let mut reader = Reader::new(toml::Table::new(), BTreeMap::new());
    Partial::read(&mut reader);

    for (section, name) in reader.known_names() {
        let mentioned = DOCUMENTED.contains(&format!("[{section}]")) && DOCUMENTED.contains(&name);
        assert!(mentioned, "documented.toml does not document {section}.{name}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let mistakes = load(
        "stray = 1
         [server]
         listen = \"nowhere\"
         environment = \"has_underscore\"
         lisen = \"x\"
         [document_server]
         secret = \"secret\"
         public_url = \"ftp://x\"
         [saving]
         answer_seconds = 100000
         [log]
         format = \"xml\"
         filter = \"saveguard=loud\"",
        &[("SAVEGUARD_SERVER_UNHEARD", "1"), ("SAVEGUARD_API_SECRET", "short")],
    )
    .unwrap_err()
    .to_string();

    for expected in [
        "`stray` stands outside",
        "`server.listen` is `nowhere`",
        "`server.environment`",
        "no setting `server.lisen`; did you mean `server.listen`?",
        "`document_server.secret` is 6 bytes long",
        "`document_server.public_url`",
        "`saving.answer_seconds`",
        "`log.format` is `xml`; it can be text or json",
        "`log.filter` is `saveguard=loud`",
        "SAVEGUARD_SERVER_UNHEARD is no setting",
        "`api.secret`",
    ] {
        assert!(mistakes.contains(expected), "missing: {expected}\nin: {mistakes}");
    }
}

#[test]
fn the_environment_wins_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();

    let config = load(
        "[server]\nlisten = \"127.0.0.1:1\"",
        &[("SAVEGUARD_SERVER_LISTEN", "127.0.0.1:2"), ("SAVEGUARD_SERVER_DATA", data)],
    )
    .unwrap();

    assert_eq!(config.server.listen.port(), 2);
    assert_eq!(config.server.public_url.as_str(), "http://localhost:2/");
}

#[test]
fn a_missing_secret_is_made_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();

    let first = load_in(&folder, "").unwrap();
    let second = load_in(&folder, "").unwrap();

    assert_eq!(first.api.secrets, second.api.secrets);
    assert_ne!(first.api.secrets, first.document_server.secrets);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(folder.path().join("secrets/api")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn secrets_come_from_files_too_and_two_count_during_a_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret.txt");
    std::fs::write(&file, format!("{}\n", "n".repeat(40))).unwrap();

    let config =
        load_in(&folder, &format!("[api]\nsecret_file = {file:?}\nprevious_secret = \"{}\"", "o".repeat(32)))
            .unwrap();

    assert_eq!(config.api.secrets.all().count(), 2);
    assert_eq!(config.api.secrets.current.as_bytes(), "n".repeat(40).as_bytes());
}

#[test]
fn far_stores_are_read_and_what_they_lack_is_said() {
    let folder = tempfile::tempdir().unwrap();

    let config = load_in(
        &folder,
        "[vault]
         kind = \"s3\"
         tree = \"sftp\"
         depot = \"allowed\"
         depot_mib_max = 10
         [s3]
         bucket = \"papers\"
         prefix = \"/some/where\"
         endpoint = \"https://s3.example.org\"
         access_key_id = \"id\"
         secret_access_key = \"hush\"
         [sftp]
         host = \"files.example.org\"
         user = \"ann\"
         password = \"quiet\"
         fingerprint = \"SHA256:x\"
         root = \"/srv/\"",
    )
    .unwrap();

    let shown = format!("{config:?}");
    assert!(!shown.contains("hush") && !shown.contains("quiet"));
    assert_eq!(config.stores.depot, vault::depot::Room::Bytes(10 * MIB));
    assert_eq!(config.stores.s3.as_ref().unwrap().prefix, "some/where/");
    assert_eq!(config.stores.sftp.as_ref().unwrap().tree_folder, "/srv/published");
    assert_eq!(config.stores.place(), "the bucket papers of https://s3.example.org");

    let mistakes = load_in(
        &folder,
        "[vault]
         kind = \"sftp\"
         tree = \"s3\"
         [s3]
         endpoint = \"http://s3.example.org\"
         access_key_id = \"id\"
         [sftp]
         user = \"ann\"",
    )
    .unwrap_err()
    .to_string();
    for expected in [
        "`s3.bucket` is not set",
        "`s3.endpoint` is not encrypted",
        "`s3.access_key_id` and `s3.secret_access_key` belong together",
        "`sftp.host` is not set",
        "`sftp.root` is not set",
        "`sftp.key_file` is not set",
        "`sftp.known_hosts` or `sftp.fingerprint` must be set",
    ] {
        assert!(mistakes.contains(expected), "missing: {expected}\nin: {mistakes}");
    }
}
