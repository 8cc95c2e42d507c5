//! Signatures of an outside uploader: `saveguard-signature: t=TIME,v1=HEX`.
//!
//! `TIME` is in seconds since 1970, `HEX` the HMAC-SHA256 of `TIME.TEXT` with `submitting.notice_secret`. The text of a notice is its body. The
//! text of an upload is the SHA-256 in its path, so that nobody has to be trusted with a megabyte before they are known.
//!
//! Guarantees: compared in constant time; older or younger than five minutes counts for nothing; without a secret nothing counts.
//! Does not do: remember signatures. What they are for may be repeated.

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use jiff::Timestamp;
use sha2::Sha256;

use super::answer::Problem;
use super::answer_records::untrusted;
use crate::app::App;

const HEADER: &str = "saveguard-signature";
/// How far the clocks may be apart.
const TOLERANCE_SECONDS: i64 = 300;

/// Refuses whoever does not know the secret.
pub(super) fn require_signature(app: &App, headers: &HeaderMap, text: &[u8]) -> Result<(), Problem> {
    let Some(secret) = &app.config.submitting.notice_secret else {
        return Err(untrusted("Notices are not taken here: no secret is configured for them."));
    };
    let header = headers.get(HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if is_signed(secret.as_bytes(), (header, app.now()), text) {
        Ok(())
    } else {
        Err(untrusted("The signature is missing, does not fit, or is older than five minutes."))
    }
}

fn is_signed(secret: &[u8], (header, now): (&str, Timestamp), text: &[u8]) -> bool {
    let part = |name: &str| {
        let parts = header.split(',').filter_map(|part| part.trim().split_once('='));
        parts.filter(|(known, _)| *known == name).map(|(_, value)| value).collect::<Vec<_>>()
    };
    let &[at] = part("t").as_slice() else { return false };
    let Ok(seconds) = at.parse::<i64>() else { return false };
    if now.as_second().abs_diff(seconds) > TOLERANCE_SECONDS.unsigned_abs() {
        return false;
    }
    // A secret that is being replaced signs twice.
    part("v1").iter().any(|signature| {
        let Some(signature) = from_hex(signature) else { return false };
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return false };
        mac.update(at.as_bytes());
        mac.update(b".");
        mac.update(text);
        mac.verify_slice(&signature).is_ok()
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let is_plain = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok());
    if is_plain { pairs.collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"the secret of the uploader, 32 bytes";

    fn sign(secret: &[u8], at: i64, text: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
        mac.update(format!("{at}.").as_bytes());
        mac.update(text);
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn only_a_fresh_signature_of_these_very_bytes_counts() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let at = now.as_second();
        let good = sign(SECRET, at, b"text");
        let counts = |header: &str| is_signed(SECRET, (header, now), b"text");

        assert!(counts(&format!("t={at},v1={good}")));
        assert!(counts(&format!("t={at}, v1={}, v1={good}", sign(b"an older secret", at, b"text"))));
        for off in [-300, 300] {
            assert!(counts(&format!("t={},v1={}", at + off, sign(SECRET, at + off, b"text"))));
        }
        for off in [-301, 301] {
            assert!(!counts(&format!("t={},v1={}", at + off, sign(SECRET, at + off, b"text"))));
        }
        let other_text = sign(SECRET, at, b"text ");
        let other_secret = sign(b"another secret", at, b"text");
        for strange in [
            String::new(),
            good.clone(),
            format!("v1={good}"),
            format!("t={at}"),
            format!("t={at},v1="),
            format!("t={at},v1={other_text}"),
            format!("t={at},v1={other_secret}"),
            format!("t={},v1={good}", at + 1),
            format!("t={at},t={at},v1={good}"),
            format!("t={at},v1={}", &good[..62]),
            format!("t={at},v1=+{}", &good[1..]),
            format!("t={at},v2={good}"),
        ] {
            assert!(!counts(&strange), "{strange}");
        }
    }
}
