//! Keys and tokens of every kind, and the tricks that must not work.

use std::sync::Arc;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use model::access::{Companies, Organisations, Role};
use serde_json::{Value, json};

use super::host_keys::{HostKeys, Verdict, read_jwks};
use super::*;
use crate::config::{Config, JwksSource};
use crate::testing::Workbench;

const JWKS: &[u8] = include_bytes!("../../tests/keys/jwks.json");

fn private(kid: &str) -> (Algorithm, EncodingKey) {
    match kid {
        "rsa" => (Algorithm::RS256, EncodingKey::from_rsa_der(include_bytes!("../../tests/keys/rsa.der"))),
        "ec" => (Algorithm::ES256, EncodingKey::from_ec_der(include_bytes!("../../tests/keys/ec.der"))),
        _ => (Algorithm::EdDSA, EncodingKey::from_ed_der(include_bytes!("../../tests/keys/ed.der"))),
    }
}

fn claims() -> Value {
    json!({ "sub": "ann", "role": "editor", "companies": ["acme"], "exp": 2000 })
}

fn signed((algorithm, key): &(Algorithm, EncodingKey), kid: Option<&str>) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(*algorithm) };
    jsonwebtoken::encode(&header, &claims(), key).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_second(1000).unwrap()
}

/// Keys as an installation with a JWKS has them.
fn host_keys() -> (HostKeys, Config) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let settings = [("SAVEGUARD_SERVER_DATA", data), ("SAVEGUARD_API_JWKS", "/nowhere/jwks.json".to_owned())];
    let variables = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let config = Config::from_sources(toml::Table::new(), variables).unwrap();
    let keys = HostKeys::new(&config.api);
    keys.publish(read_jwks(JWKS).unwrap());
    (keys, config)
}

#[test]
fn each_kind_of_published_key_verifies_its_own_algorithm_with_and_without_kid() {
    let (keys, _) = host_keys();

    for kid in ["rsa", "ec", "ed"] {
        for named in [Some(kid), None] {
            let verdict = keys.verify(&signed(&private(kid), named), now());
            let Verdict::Counts(caller) = verdict else { panic!("{kid} {named:?}: {verdict:?}") };
            assert_eq!((caller.id.as_str(), caller.role), ("ann", Role::Editor));
        }
    }
}

#[test]
fn a_key_does_not_verify_what_another_signed() {
    let (keys, _) = host_keys();

    for (signer, named) in [("rsa", "ec"), ("ec", "ed"), ("ed", "rsa"), ("ec", "rsa")] {
        assert_eq!(keys.verify(&signed(&private(signer), Some(named)), now()), Verdict::Refused);
    }
}

#[test]
fn the_algorithm_of_the_token_chooses_nothing() {
    let (keys, config) = host_keys();
    let jwks: Value = serde_json::from_slice(JWKS).unwrap();
    let modulus = jwks["keys"][0]["n"].as_str().unwrap();

    // A public key, in every form somebody may hold it, taken for a secret.
    for public in [JWKS, modulus.as_bytes(), jwks["keys"][0].to_string().as_bytes()] {
        for kid in [Some("rsa"), Some("ec"), None] {
            let forged = signed(&(Algorithm::HS256, EncodingKey::from_secret(public)), kid);
            assert_eq!(keys.verify(&forged, now()), Verdict::Refused);
        }
    }
    // The same RSA key with other algorithms than its own.
    for algorithm in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256] {
        assert_eq!(
            keys.verify(&signed(&(algorithm, private("rsa").1), Some("rsa")), now()),
            Verdict::Refused
        );
    }
    // The right secret with other algorithms than HS256.
    let secret = config.api.secrets.current.as_bytes();
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        let other = signed(&(algorithm, EncodingKey::from_secret(secret)), None);
        assert_eq!(keys.verify(&other, now()), Verdict::Refused);
    }
    let right = signed(&(Algorithm::HS256, EncodingKey::from_secret(secret)), None);
    assert!(matches!(keys.verify(&right, now()), Verdict::Counts(_)));
}

#[test]
fn a_token_without_a_signature_counts_for_nothing() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    let (keys, _) = host_keys();
    let body = BASE64.encode(claims().to_string());

    for alg in ["none", "None", "NONE", "nOnE", "", "HS256", "RS256"] {
        let header = BASE64.encode(json!({ "alg": alg, "typ": "JWT" }).to_string());
        for token in [format!("{header}.{body}."), format!("{header}.{body}"), format!("{header}.{body}.AA")]
        {
            assert_eq!(keys.verify(&token, now()), Verdict::Refused, "{alg}");
        }
    }
}

#[test]
fn a_token_of_an_unknown_key_is_told_apart_only_where_keys_are_published() {
    let (keys, _) = host_keys();
    let (mut without, _) = host_keys();
    without.source = None;
    let token = signed(&private("rsa"), Some("next year's"));

    assert_eq!(keys.verify(&token, now()), Verdict::UnknownKey);
    assert_eq!(without.verify(&token, now()), Verdict::Refused);
}

#[test]
fn keys_that_cannot_be_pinned_are_left_out_and_the_others_count() {
    let mut jwks: Value = serde_json::from_slice(JWKS).unwrap();
    let rsa = jwks["keys"][0].clone();
    let with = |changes: Value| {
        let mut key = rsa.clone();
        for (name, value) in changes.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    };
    let strange = [
        json!({ "kty": "oct", "kid": "s", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA" }),
        json!({ "kty": "EC", "kid": "p384", "crv": "P-384", "x": "AA", "y": "AA" }),
        with(json!({ "kid": "rs512", "alg": "RS512" })),
        with(json!({ "kid": "hs256", "alg": "HS256" })),
        with(json!({ "kid": "encryption", "use": "enc" })),
        json!({ "kty": "future" }),
        json!(1),
    ];
    jwks["keys"].as_array_mut().unwrap().extend(strange.clone());

    assert_eq!(read_jwks(jwks.to_string().as_bytes()).unwrap().len(), 3);
    for useless in [json!({}), json!({ "keys": [] }), json!({ "keys": strange }), json!([])] {
        assert!(read_jwks(useless.to_string().as_bytes()).is_err(), "{useless}");
    }
    let many = json!({ "keys": vec![rsa; 65] });
    assert!(read_jwks(many.to_string().as_bytes()).unwrap_err().contains("65 keys"));
    assert!(read_jwks(b"<html>").is_err());
}

#[test]
fn a_jwks_is_an_address_or_a_path() {
    let source = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().display().to_string();
        let variables = [("SAVEGUARD_SERVER_DATA", data.as_str()), ("SAVEGUARD_API_JWKS", text)];
        let variables =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Config::from_sources(toml::Table::new(), variables).map(|config| config.api.jwks)
    };

    assert_eq!(source("").unwrap(), None);
    assert_eq!(source("/etc/jwks.json").unwrap(), Some(JwksSource::File("/etc/jwks.json".into())));
    assert!(matches!(source("https://id.example/keys?p=a").unwrap(), Some(JwksSource::Url(_))));
    for strange in ["ftp://id.example/keys", "https://", "file:///etc/passwd"] {
        assert!(source(strange).is_err(), "{strange}");
    }
}

#[tokio::test]
async fn an_api_token_counts_until_it_is_revoked_or_expires() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let wish = Wish {
        name: " export ".to_owned(),
        role: Role::Viewer,
        companies: Companies::All,
        organisations: Organisations::NONE,
        expires_days: Some(1),
    };

    let (text, token) = issue(&app, wish.clone(), ledger::documents::Author::saveguard()).await.unwrap();
    let (other, _) = issue(&app, wish, ledger::documents::Author::saveguard()).await.unwrap();

    assert!(text.starts_with("sg_") && text.len() == 46 && text != other, "{text}");
    let caller = bearer(&app, &text).await.unwrap().unwrap();
    assert_eq!((caller.name.as_str(), caller.role), ("export", Role::Viewer));
    assert_eq!(caller.id, format!("token:{}", token.number));
    for strange in
        ["sg_", &text[..45], &format!("{text}A"), &text.replace("sg_", "sg-"), &text.to_uppercase()]
    {
        assert_eq!(bearer(&app, strange).await.unwrap(), None, "{strange}");
    }
    let revocation = ledger::callers::Revocation {
        number: token.number,
        by: ledger::documents::Author::saveguard(),
        at: app.now(),
    };
    app.ledger.revoke_api_token(&revocation).await.unwrap();
    assert_eq!(bearer(&app, &text).await.unwrap(), None);
    assert!(bearer(&app, &other).await.unwrap().is_some());
    bench.clock.pass(24 * 60 * 60);
    assert_eq!(bearer(&app, &other).await.unwrap(), None);
}

#[tokio::test]
async fn new_keys_are_fetched_once_a_minute_and_a_failed_fetch_keeps_the_old_ones() {
    let bench = Workbench::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let mut app = Arc::into_inner(bench.process()).unwrap();
    app.config.api.jwks = Some(JwksSource::File(file.clone()));
    app.host_keys = HostKeys::new(&app.config.api);
    let app = Arc::new(app);
    let stop = tokio_util::sync::CancellationToken::new();
    let following = tokio::spawn(follow(Arc::clone(&app), stop.clone()));
    let token = |kid: &str| {
        let (algorithm, key) = private("ed");
        let mut claims = claims();
        claims["exp"] = json!(app.now().as_second() + 100_000);
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(algorithm) };
        jsonwebtoken::encode(&header, &claims, &key).unwrap()
    };
    let counts = async |kid: &str| bearer(&app, &token(kid)).await.unwrap().is_some();

    refresh(&app).await;
    assert!(!counts("ed").await, "there is no file yet");
    std::fs::write(&file, JWKS).unwrap();
    bench.clock.pass(59);
    assert!(!counts("ed").await, "asked less than a minute ago");
    bench.clock.pass(1);
    assert!(counts("ed").await, "the request that needs them waits for fresh keys");
    std::fs::write(&file, "damaged").unwrap();
    bench.clock.pass(60);
    assert!(!counts("made-up").await);
    assert!(counts("ed").await, "a failed fetch keeps the old keys");

    stop.cancel();
    following.await.unwrap();
}

#[tokio::test]
async fn trouble_with_the_ledger_is_no_wrong_token() {
    use steps::{Aftermath, Faults, Moment};
    let bench = Workbench::new().await;
    let wish = Wish {
        name: "export".to_owned(),
        role: Role::Viewer,
        companies: Companies::All,
        organisations: Organisations::NONE,
        expires_days: None,
    };
    let (text, _) = issue(&bench.process(), wish, ledger::documents::Author::saveguard()).await.unwrap();
    // The lookup is the first call of a request, the note of its use the second.
    let failing =
        |number| bench.process_with(&Arc::new(Faults::at_call(number, Moment::Before, Aftermath::GoesOn)));

    assert!(bearer(&failing(1), &text).await.is_err());
    assert!(bearer(&failing(2), &text).await.unwrap().is_some(), "a use that cannot be noted harms nobody");
}
