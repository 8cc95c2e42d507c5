//! One call of a webhook, signed as <https://www.standardwebhooks.com> describes it.
//!
//! Guarantees: only the configured address is called: no redirect, no proxy; bounded time; nothing of the answer is read but
//! its status. Does not do: try again.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use ledger::outbox::Delivery;
use sha2::Sha256;

use crate::config::Webhook;
use crate::telemetry::report;

/// A receiver that needs longer should answer first and work after.
const TIME_MAX: Duration = Duration::from_secs(15);
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// What came of a call.
pub(super) enum Sent {
    /// The target has it.
    Heard,
    /// It may work later.
    Failed(String),
    /// The target says that it never wants to hear of it.
    Unwanted(String),
}

/// Calls one target.
pub(super) struct Sender {
    hook: Webhook,
    client: reqwest::Client,
}

impl Sender {
    pub(super) fn new(hook: &Webhook) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(TIME_MAX)
            .connect_timeout(CONNECT_MAX)
            .user_agent(concat!("saveguard/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { hook: hook.clone(), client })
    }

    pub(super) fn name(&self) -> &str {
        &self.hook.name
    }

    pub(super) async fn send(&self, delivery: &Delivery, now: Timestamp) -> Sent {
        let at = now.as_second();
        let signature = signature(self.hook.secret.as_bytes(), (&delivery.id, at), &delivery.payload);
        let request = self
            .client
            .post(self.hook.url.clone())
            .header("webhook-id", &delivery.id)
            .header("webhook-timestamp", at)
            .header("webhook-signature", signature)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(delivery.payload.clone());
        match request.send().await.map(|response| response.status().as_u16()) {
            Ok(200..=299) => Sent::Heard,
            Ok(410) => Sent::Unwanted("it answered 410".to_owned()),
            Ok(status) => Sent::Failed(format!("it answered {status}")),
            // The address may hold a secret.
            Err(cause) => Sent::Failed(report(&cause.without_url())),
        }
    }
}

/// `v1,` and the HMAC of id, time and body. A secret that begins with `whsec_` is base64, any other is taken as it is.
fn signature(secret: &[u8], (id, at): (&str, i64), body: &str) -> String {
    let decoded = secret.strip_prefix(b"whsec_").and_then(|rest| STANDARD.decode(rest).ok());
    let key = decoded.as_deref().unwrap_or(secret);
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC takes a key of any length");
    mac.update(format!("{id}.{at}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_one_of_the_published_example() {
        let secret = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let (id, at) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);

        let signed = signature(secret, (id, at), "{\"test\": 2432232314}");

        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_ne!(signed, signature(b"another secret", (id, at), "{\"test\": 2432232314}"));
    }
}
