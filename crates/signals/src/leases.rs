//! Leases within one process.
//!
//! Guarantees: bounded memory; a lease ends by itself. Does not do: know of other instances.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use model::DocumentId;
use tokio::time::Instant;

use crate::{LEASE_LIFE, Lease};

/// More transitions than this do not run side by side; the lease of one more is not known.
const LEASES_MAX: usize = 10_000;

#[derive(Debug)]
struct Held {
    holder: String,
    until: Instant,
}

/// Who holds what.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<HashMap<DocumentId, Held>>);

impl Leases {
    pub(crate) fn take(&self, document: &DocumentId, holder: &str) -> Lease {
        let now = Instant::now();
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if leases.get(document).is_some_and(|held| held.until > now) {
            return Lease::Elsewhere;
        }
        if leases.len() >= LEASES_MAX {
            leases.retain(|_, held| held.until > now);
        }
        if leases.len() >= LEASES_MAX {
            return Lease::Unknown;
        }
        leases.insert(document.clone(), Held { holder: holder.to_owned(), until: now + LEASE_LIFE });
        Lease::Ours
    }

    pub(crate) fn renew(&self, document: &DocumentId, holder: &str) -> Lease {
        let now = Instant::now();
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match leases.get_mut(document) {
            Some(held) if held.holder == holder && held.until > now => {
                held.until = now + LEASE_LIFE;
                Lease::Ours
            }
            _ => Lease::Elsewhere,
        }
    }

    pub(crate) fn release(&self, document: &DocumentId, holder: &str) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if leases.get(document).is_some_and(|held| held.holder == holder) {
            leases.remove(document);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_nobody_renews_ends() {
        let leases = Leases::default();
        let document = DocumentId::parse("report").unwrap();
        assert_eq!(leases.take(&document, "a"), Lease::Ours);

        tokio::time::advance(LEASE_LIFE).await;

        assert_eq!(leases.renew(&document, "a"), Lease::Elsewhere);
        assert_eq!(leases.take(&document, "b"), Lease::Ours);
    }

    #[test]
    fn leases_have_a_bound() {
        let leases = Leases::default();
        for number in 0..LEASES_MAX {
            leases.take(&DocumentId::parse(&number.to_string()).unwrap(), "a");
        }

        assert_eq!(leases.take(&DocumentId::parse("more").unwrap(), "a"), Lease::Unknown);
    }
}
