//! Making and revoking share links.
//!
//! Guarantees: the text of a token is in no other place than the answer that makes it. Does not do: say who may make one
//! (`model::sharing::may_share`).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use ledger::documents::Author;
use ledger::shares::{NewShare, Share, ShareRevocation};
use model::names::title;
use model::sharing::{Allows, DownloadSwitch};
use model::{Digest, DocumentId};
use signals::Signal;

use super::{ShareError, passwords};
use crate::app::App;
use crate::config::Config;

/// Lets people and secret scanners recognise one. No API token begins like this.
const PREFIX: &str = "sgl_";
/// Ten years.
const EXPIRES_HOURS_MAX: u32 = 87_600;
/// Fewer characters are guessed, however slowly they are hashed.
const PASSWORD_CHARACTERS_MIN: usize = 6;

/// A link somebody wants.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) document: DocumentId,
    pub(crate) allows: Allows,
    pub(crate) download: DownloadSwitch,
    pub(crate) label: String,
    pub(crate) password: Option<String>,
    pub(crate) expires_hours: Option<u32>,
}

/// Refuses what cannot be meant, with words for people.
fn check(wish: &Wish) -> Result<(), String> {
    if !wish.label.trim().is_empty() {
        title(&wish.label).map_err(|refused| refused.to_string())?;
    }
    if wish.expires_hours.is_some_and(|hours| !(1..=EXPIRES_HOURS_MAX).contains(&hours)) {
        return Err(format!("A share link expires after 1 to {EXPIRES_HOURS_MAX} hours, or never."));
    }
    let is_good = |password: &String| {
        password.chars().count() >= PASSWORD_CHARACTERS_MIN && password.len() <= passwords::BYTES_MAX
    };
    if !wish.password.as_ref().is_none_or(is_good) {
        let most = passwords::BYTES_MAX;
        return Err(format!(
            "A password needs {PASSWORD_CHARACTERS_MIN} characters and at most {most} bytes."
        ));
    }
    Ok(())
}

/// Makes a link; returns its token, this once.
pub(crate) async fn create(app: &App, wish: Wish, by: Author) -> Result<(String, Share), ShareError> {
    check(&wish).map_err(ShareError::Invalid)?;
    let password = match wish.password {
        Some(password) => Some(passwords::hash(app, password).await?),
        None => None,
    };
    let (token, at) = (make(app), app.now());
    let after = |hours: u32| at.checked_add(SignedDuration::from_hours(i64::from(hours)));
    let new = NewShare {
        hash: hash_of(&token),
        document: wish.document,
        label: wish.label.trim().to_owned(),
        allows: wish.allows,
        download: wish.download,
        password,
        expires_at: wish.expires_hours.and_then(|hours| after(hours).ok()),
        by,
        at,
    };
    let share = app.ledger.create_share(&new).await?;
    tracing::info!(share = share.number, document.id = %share.document, "share link {} was made", share.number);
    Ok((token, share))
}

fn make(app: &App) -> String {
    let bytes: Vec<u8> = (0..4).flat_map(|_| app.random.bits().to_be_bytes()).collect();
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

/// A fast hash: nobody guesses 256 random bits.
pub(super) fn hash_of(token: &str) -> Digest {
    Digest::of(token.as_bytes())
}

/// The address people open.
pub(crate) fn link_of(config: &Config, token: &str) -> String {
    format!("{}/s/{token}", config.server.public_url.as_str().trim_end_matches('/'))
}

/// Revokes a link; `false` if it was revoked before. Who is inside is asked to leave, in the background.
pub(crate) async fn revoke(app: &App, number: u64, by: Author) -> Result<bool, ShareError> {
    let is_new = app.ledger.revoke_share(&ShareRevocation { number, by, at: app.now() }).await?;
    if is_new {
        tracing::info!(share = number, "share link {number} was revoked");
    }
    app.signals.announce(Signal::GuestsLeave).await;
    Ok(is_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_have_a_label_a_life_and_a_password_that_can_be_meant() {
        let wish = Wish {
            document: DocumentId::parse("12345").unwrap(),
            allows: Allows::View,
            download: DownloadSwitch::On,
            label: String::new(),
            password: None,
            expires_hours: None,
        };

        assert_eq!(check(&wish), Ok(()));
        let password = |text: &str| Some(text.to_owned());
        assert_eq!(
            check(&Wish { password: password("ïïïïïï"), expires_hours: Some(1), ..wish.clone() }),
            Ok(())
        );
        for strange in [
            Wish { label: "a\nb".to_owned(), ..wish.clone() },
            Wish { label: "x".repeat(201), ..wish.clone() },
            Wish { expires_hours: Some(0), ..wish.clone() },
            Wish { expires_hours: Some(u32::MAX), ..wish.clone() },
            Wish { password: password("12345"), ..wish.clone() },
            Wish { password: password(&"x".repeat(257)), ..wish.clone() },
        ] {
            assert!(check(&strange).is_err(), "{strange:?}");
        }
    }
}
