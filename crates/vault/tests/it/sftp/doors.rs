//! Who is let in, who is trusted, and what is said if not.

use std::error::Error as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Digest, Guards};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use vault::contract::sshd::{EXTENSIONS, SFTP_SERVER, Sshd};
use vault::sftp::{HostKey, Secret, Settings, Store, connect};
use vault::{Spool, Vault as _, VaultError};

/// What a person reads.
fn words(error: &VaultError) -> String {
    format!("{error}: {}", error.source().unwrap())
}

async fn refusal(settings: Settings) -> String {
    let store = match Store::open(settings, &Guards::ALL) {
        Ok(store) => store,
        Err(error) => return words(&error),
    };
    words(&store.vault().ready().await.unwrap_err())
}

fn known_hosts(sshd: &Sshd, key: &str) -> Settings {
    let public = std::fs::read_to_string(sshd.path(key)).unwrap();
    let file = sshd.path("known_hosts");
    std::fs::write(&file, format!("[127.0.0.1]:{} {public}", sshd.port())).unwrap();
    Settings { host_key: HostKey::KnownHosts(file), ..sshd.settings() }
}

#[tokio::test]
async fn a_server_that_stands_in_known_hosts_is_trusted_even_under_a_hashed_name() {
    let sshd = Sshd::start();
    let settings = known_hosts(&sshd, "host.pub");
    let hashed = Command::new("ssh-keygen").arg("-Hf").arg(sshd.path("known_hosts")).output().unwrap();
    assert!(hashed.status.success());
    assert!(std::fs::read_to_string(sshd.path("known_hosts")).unwrap().starts_with("|1|"));

    connect(settings, &Guards::ALL).await.unwrap();
}

/// What a login shell reads in a real home may take long, and wait for what a killed one left behind.
#[tokio::test]
async fn the_shell_of_the_server_has_a_home_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (script, home) = (folder.path().join("sftp"), folder.path().join("home"));
    let text = format!("#!/bin/sh\nprintf %s \"$HOME\" > {}\nexec {SFTP_SERVER}\n", home.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let sshd = Sshd::start_running(&script.display().to_string());

    connect(sshd.settings(), &Guards::ALL).await.unwrap();

    assert_eq!(
        std::fs::read_to_string(home).unwrap(),
        sshd.path("").display().to_string().trim_end_matches('/')
    );
}

#[tokio::test]
async fn a_server_with_another_key_gets_nothing() {
    let sshd = Sshd::start();

    let by_file = refusal(known_hosts(&sshd, "stranger.pub")).await;
    let wrong = HostKey::Fingerprint(format!("SHA256:{}", "A".repeat(43)));
    let by_pin = refusal(Settings { host_key: wrong, ..sshd.settings() }).await;

    assert!(by_file.contains(&sshd.fingerprint()) && by_file.contains("line 1 has SHA256:"), "{by_file}");
    assert!(by_pin.contains(&sshd.fingerprint()) && by_pin.contains("pins SHA256:AAA"), "{by_pin}");
}

#[tokio::test]
async fn any_host_key_of_the_server_may_be_pinned_or_known() {
    let sshd = Sshd::start();

    let pinned = HostKey::Fingerprint(sshd.fingerprint_of("second"));
    connect(Settings { host_key: pinned, ..sshd.settings() }, &Guards::ALL).await.unwrap();
    connect(known_hosts(&sshd, "second.pub"), &Guards::ALL).await.unwrap();
}

#[tokio::test]
async fn a_server_nobody_told_us_of_is_not_even_called() {
    let sshd = Sshd::start();
    let settings = Settings { host: "localhost".to_owned(), ..known_hosts(&sshd, "host.pub") };

    let refused = refusal(settings).await;

    assert!(refused.contains(&format!("has no key for [localhost]:{}", sshd.port())), "{refused}");
}

#[tokio::test]
async fn whoever_is_not_let_in_hears_what_the_server_would_take() {
    let sshd = Sshd::start();
    let key_file = Some(sshd.path("stranger"));
    let password = Some(Secret::new("not the password of root, surely"));

    let by_key = refusal(Settings { key_file: key_file.clone(), ..sshd.settings() }).await;
    let by_both = refusal(Settings { key_file, password, ..sshd.settings() }).await;
    let by_nothing = refusal(Settings { key_file: None, ..sshd.settings() }).await;

    assert!(
        by_key.contains("takes not the key of root; what it would take: publickey, password"),
        "{by_key}"
    );
    assert!(by_both.contains("neither the key nor the password of root"), "{by_both}");
    assert!(by_nothing.contains("neither a key file nor a password"), "{by_nothing}");
}

#[tokio::test]
async fn a_locked_key_opens_with_its_password_and_an_rsa_key_is_refused_in_words() {
    let sshd = Sshd::start();
    let (locked, rsa) = (sshd.path("user"), sshd.path("rsa"));
    let keygen =
        |arguments: &[&str]| assert!(Command::new("ssh-keygen").args(arguments).status().unwrap().success());
    keygen(&["-q", "-p", "-N", "open sesame", "-f", &locked.display().to_string()]);
    keygen(&["-q", "-t", "rsa", "-N", "", "-f", &rsa.display().to_string()]);
    let key_password = Some(Secret::new("open sesame"));

    let without = refusal(sshd.settings()).await;
    connect(Settings { key_password, ..sshd.settings() }, &Guards::ALL).await.unwrap();
    let by_rsa = refusal(Settings { key_file: Some(rsa), ..sshd.settings() }).await;

    assert!(without.contains("cannot be used: The key is encrypted"), "{without}");
    assert!(by_rsa.contains("it is an RSA key") && by_rsa.contains("ssh-keygen -t ed25519"), "{by_rsa}");
}

/// The library for RSA has a known weakness and is not built in.
#[tokio::test]
async fn an_rsa_key_is_named_in_whatever_form_it_is_and_an_rsa_host_key_by_what_the_server_has() {
    let sshd = Sshd::start();
    let keygen =
        |arguments: &[&str]| assert!(Command::new("ssh-keygen").args(arguments).status().unwrap().success());
    let (pem, locked) = (sshd.path("pem"), sshd.path("locked"));
    keygen(&["-q", "-t", "rsa", "-m", "PEM", "-N", "", "-f", &pem.display().to_string()]);
    keygen(&["-q", "-t", "rsa", "-N", "open sesame", "-f", &locked.display().to_string()]);

    let by_pem = refusal(Settings { key_file: Some(pem), ..sshd.settings() }).await;
    let key_password = Some(Secret::new("open sesame"));
    let by_locked = refusal(Settings { key_file: Some(locked), key_password, ..sshd.settings() }).await;
    let by_host = refusal(known_hosts(&sshd, "pem.pub")).await;

    for refused in [&by_pem, &by_locked] {
        assert!(refused.contains("RSA"), "{refused}");
    }
    assert!(by_host.contains("add the Ed25519 or ECDSA key"), "{by_host}");
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let mut sshd = Sshd::start();
    let settings = sshd.settings();
    sshd.kill();

    let refused = refusal(settings).await;

    assert!(refused.contains(&format!("127.0.0.1:{} cannot be reached", sshd.port())), "{refused}");
}

/// Of many that come at once, none waits for the attempts of those before it.
#[tokio::test]
async fn a_server_that_takes_calls_and_says_nothing_is_given_up_by_all_at_once() {
    let sshd = Sshd::start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (connect, callers) = (Duration::from_millis(500), 40);
    let mut settings = sshd.settings();
    settings.port = silent.local_addr().unwrap().port();
    settings.connections_max = callers;
    settings.timeouts.connect = connect;
    let vault = Store::open(settings, &Guards::ALL).unwrap().vault();
    let began = Instant::now();

    let looking: Vec<_> = (0..callers)
        .map(|_| {
            let vault = vault.clone();
            tokio::spawn(async move { vault.size_of(&Digest::of(b"x")).await.is_err() })
        })
        .collect();
    for each in looking {
        assert!(each.await.unwrap());
    }

    let one_by_one = connect * u32::try_from(callers).unwrap();
    assert!(began.elapsed() < one_by_one / 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_tree_without_replacing_renames_is_refused_in_words_and_blobs_are_stored() {
    let sshd = Sshd::start_without(&EXTENSIONS[..1]);

    let refused = connect(sshd.settings(), &Guards::ALL).await.err().unwrap();
    let store = Store::open(sshd.settings(), &Guards::ALL).unwrap();
    let spooled = Spool::hold(bytes::Bytes::from_static(b"bytes"));
    store.vault().put(&spooled, &super::sidecar()).await.unwrap();

    let refused = words(&refused);
    assert!(refused.starts_with("the vault could not open the published tree"), "{refused}");
    assert!(refused.contains("posix-rename@openssh.com") && refused.contains("would vanish"), "{refused}");
}

#[test]
fn passwords_are_not_printed() {
    let mut settings = Settings::new("h", "u", ("/", HostKey::Fingerprint(String::new())));
    settings.password = Some(Secret::new("open sesame"));

    assert!(!format!("{settings:?}").contains("sesame"));
}

/// A line whose connections of one moment say nothing any more, while new ones pass.
async fn freezable(to: u16) -> (u16, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, freeze) = (listener.local_addr().unwrap().port(), Arc::new(Notify::new()));
    let freezing = Arc::clone(&freeze);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let freezing = Arc::clone(&freezing);
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                    () = freezing.notified() => std::future::pending().await,
                }
            });
        }
    });
    (port, freeze)
}

#[tokio::test]
async fn of_many_connections_that_died_silently_only_one_is_asked() {
    let sshd = Sshd::start();
    let (port, freeze) = freezable(sshd.port()).await;
    let mut settings = sshd.settings();
    (settings.port, settings.connections_max) = (port, 6);
    let vault = Store::open(settings, &Guards::ALL).unwrap().vault();
    let putting: Vec<_> = (0..6)
        .map(|number| {
            let (vault, spooled) = (vault.clone(), super::blob(300_000 + number));
            tokio::spawn(async move { vault.put(&spooled, &super::sidecar()).await })
        })
        .collect();
    for each in putting {
        each.await.unwrap().unwrap();
    }
    freeze.notify_waiters();
    // waits on purpose: a connection is relied on for a second after it was used
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let began = Instant::now();

    vault.size_of(&Digest::of(b"x")).await.unwrap();

    assert!(
        began.elapsed() < Duration::from_secs(9),
        "three seconds for one, not for six: {:?}",
        began.elapsed()
    );
}
