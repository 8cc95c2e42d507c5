//! Where AWS programs find their credentials.
//!
//! In this order: the environment, the shared credentials file, and what object_store finds by itself (a web identity, the
//! container's or the machine's own service). Where the bucket is comes from the settings alone.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

/// What the environment may say about who we are; where to go is for the settings.
const KEYS: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_ENDPOINT_URL_STS",
];

/// A builder that knows who we are, as far as that can be told without asking anybody.
pub(super) fn look(environment: &BTreeMap<String, String>) -> io::Result<AmazonS3Builder> {
    let mut builder = AmazonS3Builder::new();
    for name in KEYS {
        let Some(value) = environment.get(name) else { continue };
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId).is_some() {
        return Ok(builder);
    }
    let Some(file) = shared_file(environment).filter(|file| file.exists()) else { return Ok(builder) };
    let profile = environment.get("AWS_PROFILE").map_or("default", String::as_str);
    for (name, value) in entries(&std::fs::read_to_string(&file)?, profile) {
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(builder)
}

fn shared_file(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let file = environment.get("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
    file.or_else(|| environment.get("HOME").map(|home| PathBuf::from(home).join(".aws/credentials")))
}

/// The credentials of one profile.
fn entries<'a>(text: &'a str, profile: &str) -> Vec<(&'a str, &'a str)> {
    let mut is_ours = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(section) = line.strip_prefix('[') {
            is_ours = section.trim_end_matches(']').trim() == profile;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_ours) {
            let name = name.trim();
            if matches!(name, "aws_access_key_id" | "aws_secret_access_key" | "aws_session_token") {
                found.push((name, value.trim()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_of_the_shared_file_is_read_and_no_other() {
        let text = "[default]\naws_access_key_id = one\n# no\n[ work ]\naws_access_key_id=two\n\
                    aws_secret_access_key = a=b\nregion = mars\n";

        assert_eq!(entries(text, "default"), [("aws_access_key_id", "one")]);
        assert_eq!(
            entries(text, "work"),
            [("aws_access_key_id", "two"), ("aws_secret_access_key", "a=b")],
            "and where the bucket is comes from elsewhere"
        );
    }

    #[test]
    fn the_environment_comes_before_the_shared_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[default]\naws_access_key_id = shared\naws_secret_access_key = s\n")
            .unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let mut environment = BTreeMap::from([("AWS_SHARED_CREDENTIALS_FILE".to_owned(), path)]);
        let id = |environment: &BTreeMap<String, String>| {
            look(environment).unwrap().get_config_value(&AmazonS3ConfigKey::AccessKeyId)
        };
        assert_eq!(id(&environment).as_deref(), Some("shared"));

        environment.insert("AWS_ACCESS_KEY_ID".to_owned(), "own".to_owned());

        assert_eq!(id(&environment).as_deref(), Some("own"));
        for name in KEYS {
            assert!(name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().is_ok(), "{name}");
        }
    }
}
