//! Counts who tries what at the door: tokens nobody gave them, wrong passwords, too many visits.
//!
//! Everything is counted in windows of ten minutes and forgotten with them, or with the process.
//!
//! Guarantees: bounded memory; an attempt is counted before its outcome is known, so that many at once are not fewer; misses of
//! others never keep a good token from working. Wrong passwords do close a link for the rest of the window, first for the
//! address they come from, then for everybody: without that a password could be guessed from many addresses.
//! Does not do: remember anything across a restart, or know of other instances ([`super::limits`] does).

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Semaphore;

use super::passwords;

pub(super) const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// Visitors who come together look at the clock one after the other, and need not be counted in that order.
const DISORDER_MAX: SignedDuration = SignedDuration::from_mins(1);
/// More than anybody mistypes; nobody who guesses comes anywhere with so many.
pub(super) const MISSES_PER_ADDRESS: u32 = 100;
/// From many addresses.
pub(super) const MISSES_IN_TOTAL: u32 = 10_000;
pub(super) const PASSWORDS_PER_ADDRESS: u32 = 10;
/// From many addresses.
pub(super) const PASSWORDS_PER_LINK: u32 = 100;
/// Each is an entry in the audit trail.
pub(super) const VISITS_PER_LINK: u32 = 1000;
/// Links and addresses that are counted in one window; beyond it, a newcomer waits for the next one.
const COUNTED_MAX: usize = 50_000;

/// The window is full; it ends in so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) seconds: u32,
}

/// Counts at the door.
#[derive(Debug)]
pub(crate) struct Door {
    window: Mutex<Window>,
    /// Passwords that are hashed at once.
    pub(super) hashing: Arc<Semaphore>,
}

impl Default for Door {
    fn default() -> Self {
        Self { window: Mutex::default(), hashing: Arc::new(Semaphore::new(passwords::PARALLEL_MAX)) }
    }
}

#[derive(Debug, Default)]
struct Window {
    ends_at: Timestamp,
    misses: u32,
    counts: HashMap<Counted, u32>,
    told: HashSet<(u64, &'static str)>,
}

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Misses(Origin),
    PasswordsFrom(u64, Origin),
    Passwords(u64),
    Visits(u64),
}

/// Where somebody comes from. One customer has a whole IPv6 network of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    V4([u8; 4]),
    V6([u16; 4]),
    Unknown,
}

pub(super) fn origin(from: &str) -> Origin {
    match from.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => Origin::V4(address.octets()),
        Ok(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            Origin::V6([a, b, c, d])
        }
        Err(_) => Origin::Unknown,
    }
}

impl Door {
    /// Somebody came with a token that opens nothing.
    pub(super) fn miss(&self, from: &str, now: Timestamp) -> Result<(), Full> {
        let mut window = self.at(now);
        if window.misses >= MISSES_IN_TOTAL {
            return Err(window.full(now));
        }
        window.count(Counted::Misses(origin(from)), MISSES_PER_ADDRESS, now)?;
        window.misses += 1;
        Ok(())
    }

    /// Somebody is about to try a password.
    pub(super) fn try_password(&self, share: u64, from: &str, now: Timestamp) -> Result<(), Full> {
        let mut window = self.at(now);
        // First, so that a closed link costs no memory, however many addresses still try.
        if window.counts.get(&Counted::Passwords(share)).is_some_and(|count| *count >= PASSWORDS_PER_LINK) {
            return Err(window.full(now));
        }
        window.count(Counted::PasswordsFrom(share, origin(from)), PASSWORDS_PER_ADDRESS, now)?;
        window.count(Counted::Passwords(share), PASSWORDS_PER_LINK, now)
    }

    /// It was the right one, and does not count.
    pub(super) fn right_password(&self, share: u64, from: &str, now: Timestamp) {
        let mut window = self.at(now);
        window.take_back(&Counted::PasswordsFrom(share, origin(from)));
        window.take_back(&Counted::Passwords(share));
    }

    /// Somebody is about to use a link.
    pub(super) fn use_link(&self, share: u64, now: Timestamp) -> Result<(), Full> {
        self.at(now).count(Counted::Visits(share), VISITS_PER_LINK, now)
    }

    /// Whether this is the first refusal of its kind at a link in this window, and thus worth an entry.
    pub(super) fn is_news(&self, share: u64, why: &'static str, now: Timestamp) -> bool {
        let mut window = self.at(now);
        window.told.len() < COUNTED_MAX && window.told.insert((share, why))
    }

    fn at(&self, now: Timestamp) -> MutexGuard<'_, Window> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that went back must not keep a window open for ever.
        if now >= window.ends_at || window.ends_at.duration_since(now) > WINDOW + DISORDER_MAX {
            *window =
                Window { ends_at: now.checked_add(WINDOW).unwrap_or(Timestamp::MAX), ..Window::default() };
        }
        window
    }
}

impl Window {
    fn count(&mut self, what: Counted, most: u32, now: Timestamp) -> Result<(), Full> {
        let has_room = self.counts.len() < COUNTED_MAX || self.counts.contains_key(&what);
        if !has_room {
            return Err(self.full(now));
        }
        let count = self.counts.entry(what).or_default();
        if *count >= most {
            return Err(self.full(now));
        }
        *count += 1;
        Ok(())
    }

    fn take_back(&mut self, what: &Counted) {
        if let Some(count) = self.counts.get_mut(what) {
            *count = count.saturating_sub(1);
        }
    }

    fn full(&self, now: Timestamp) -> Full {
        Full { seconds: u32::try_from(self.ends_at.duration_since(now).as_secs()).unwrap_or(0) + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_794_770_000 + second).unwrap()
    }

    #[test]
    fn misses_are_counted_per_address_and_in_total_and_forgotten_with_the_window() {
        let door = Door::default();
        let from_one = |second| door.miss("192.0.2.1", at(second));

        for _ in 0..MISSES_PER_ADDRESS {
            assert_eq!(from_one(0), Ok(()));
        }
        assert_eq!(from_one(1), Err(Full { seconds: 600 }));
        assert_eq!(door.miss("192.0.2.2", at(1)), Ok(()));
        for number in 0..MISSES_IN_TOTAL {
            let _ = door.miss(&format!("10.{}.{}.1", number / 250, number % 250), at(1));
        }
        assert!(door.miss("192.0.2.3", at(2)).is_err(), "in total");
        assert_eq!(from_one(600), Ok(()), "the next window");
        assert_eq!(door.miss("192.0.2.1", at(-9000)), Ok(()), "a clock that went back");
    }

    #[test]
    fn who_looked_at_the_clock_first_and_is_counted_later_starts_no_new_window() {
        let door = Door::default();
        assert_eq!(door.miss("192.0.2.1", at(1)), Ok(()));

        for _ in 1..MISSES_PER_ADDRESS {
            assert_eq!(door.miss("192.0.2.1", at(0)), Ok(()));
        }
        assert_eq!(door.miss("192.0.2.1", at(1)), Err(Full { seconds: 601 }));
    }

    #[test]
    fn a_network_of_one_customer_counts_as_one() {
        assert_eq!(origin("2001:db8:1:2::5"), origin("2001:db8:1:2:ffff::7"));
        assert_ne!(origin("2001:db8:1:2::5"), origin("2001:db8:1:3::5"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        assert_eq!(origin(""), Origin::Unknown);
    }

    #[test]
    fn wrong_passwords_close_the_link_for_their_address_and_at_last_for_everybody() {
        let door = Door::default();
        let try_from = |number: u32| door.try_password(7, &format!("192.0.2.{number}"), at(0));

        for _ in 0..PASSWORDS_PER_ADDRESS {
            assert_eq!(try_from(1), Ok(()));
        }
        assert!(try_from(1).is_err() && try_from(2).is_ok());
        assert_eq!(door.try_password(8, "192.0.2.1", at(0)), Ok(()), "another link");
        for number in 3..200 {
            let _ = try_from(number);
        }
        assert!(try_from(201).is_err());
        assert_eq!(try_from(1).map_err(|full| full.seconds), Err(601));
        let counted = door.window.lock().unwrap().counts.len();
        assert!(try_from(202).is_err() && door.window.lock().unwrap().counts.len() == counted);
    }

    #[test]
    fn right_passwords_do_not_count() {
        let door = Door::default();
        for _ in 0..1000 {
            assert_eq!(door.try_password(7, "192.0.2.1", at(0)), Ok(()));
            door.right_password(7, "192.0.2.1", at(0));
        }
    }

    #[test]
    fn a_refusal_is_news_once_per_link_kind_and_window() {
        let door = Door::default();

        assert!(door.is_news(7, "expired", at(0)) && !door.is_news(7, "expired", at(1)));
        assert!(door.is_news(7, "revoked", at(1)) && door.is_news(8, "expired", at(1)));
        assert!(door.is_news(7, "expired", at(700)));
    }
}
