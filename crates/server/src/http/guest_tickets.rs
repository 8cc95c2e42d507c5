//! Tickets: what a guest of a share link shows when they come back for a fresh configuration or a download.
//!
//! Guarantees: signed with a key of their own; good for one guest of one link, for half a day. The link is looked at each time all
//! the same, so that a ticket is worth nothing once the link is revoked.

use std::time::Duration;

use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use ledger::shares::Guest;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::opening::derive;

const PURPOSE: &str = "guest";
/// A working day.
const LIFE: Duration = Duration::from_secs(12 * 60 * 60);

#[derive(Serialize, Deserialize)]
struct Claims {
    purpose: String,
    share: u64,
    guest: u64,
    exp: i64,
}

/// Issues and verifies tickets.
pub(super) struct GuestTickets {
    keys: Vec<Vec<u8>>,
}

impl GuestTickets {
    /// Derives the keys.
    pub(super) fn new(config: &Config) -> Self {
        Self { keys: config.api.secrets.all().map(|secret| derive(secret.as_bytes(), PURPOSE)).collect() }
    }

    /// A ticket for a guest.
    pub(super) fn issue(&self, guest: &Guest, now: Timestamp) -> String {
        let exp = now.as_second().saturating_add(i64::try_from(LIFE.as_secs()).unwrap_or(0));
        let claims = Claims { purpose: PURPOSE.to_owned(), share: guest.share, guest: guest.number, exp };
        let key = EncodingKey::from_secret(self.keys.first().map(Vec::as_slice).unwrap_or_default());
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap_or_default()
    }

    /// The number of a link's guest whose ticket this is.
    pub(super) fn verify(&self, ticket: &str, share: u64, now: Timestamp) -> Option<u64> {
        let mut validation = Validation::new(Algorithm::HS256);
        // Time is judged below, by our own clock.
        validation.validate_exp = false;
        validation.validate_aud = false;
        let read = |key: &Vec<u8>| {
            jsonwebtoken::decode::<Claims>(ticket, &DecodingKey::from_secret(key), &validation).ok()
        };
        let claims = self.keys.iter().find_map(read)?.claims;
        let counts = claims.purpose == PURPOSE && claims.share == share && now.as_second() < claims.exp;
        counts.then_some(claims.guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_ticket_is_good_for_its_guest_and_link_until_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap().to_owned();
        let variables = BTreeMap::from([("SAVEGUARD_SERVER_DATA".to_owned(), data)]);
        let config = Config::from_sources(toml::Table::new(), variables).unwrap();
        let tickets = GuestTickets::new(&config);
        let at = |second: i64| Timestamp::from_second(1_794_770_000 + second).unwrap();

        let ticket = tickets.issue(&Guest { share: 7, number: 3, name: "Ann".to_owned() }, at(0));

        assert_eq!(tickets.verify(&ticket, 7, at(0)), Some(3));
        assert_eq!(tickets.verify(&ticket, 8, at(0)), None);
        assert_eq!(tickets.verify(&ticket, 7, at(43_200)), None);
        assert_eq!(tickets.verify("", 7, at(0)), None);
        assert_eq!(tickets.verify(&ticket[..ticket.len() - 2], 7, at(0)), None);
    }
}
