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
