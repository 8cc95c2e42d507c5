//! Counts of everything, for people and collectors. Counting takes longer the more there is, so it is not done at every look.
//!
//! Guarantees: at most a tenth of the time is spent counting, by one at a time; what is small is counted at every look.

use std::time::{Duration, Instant};

use ledger::LedgerError;
use ledger::trail::Totals;
use tokio::sync::Mutex;

use crate::app::App;

/// A count is good for so many times as long as it took.
const REST: u32 = 9;

/// The last count.
#[derive(Debug, Default)]
pub struct Counted {
    last: Mutex<Option<Last>>,
}

#[derive(Debug)]
struct Last {
    totals: Totals,
    took: Duration,
    counted_at: Instant,
}

impl Last {
    fn is_good(&self) -> bool {
        self.counted_at.elapsed() < self.took * REST
    }
}

/// How much there is, now or a little while ago.
pub(crate) async fn totals(app: &App) -> Result<Totals, LedgerError> {
    let mut last = app.counted.last.lock().await;
    if let Some(last) = last.as_ref().filter(|last| last.is_good()) {
        return Ok(last.totals);
    }
    let began = Instant::now();
    let totals = app.ledger.totals().await?;
    *last = Some(Last { totals, took: began.elapsed(), counted_at: Instant::now() });
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_good_for_nine_times_as_long_as_it_took() {
        let aged = |took: Duration, age: Duration| {
            let counted_at = Instant::now().checked_sub(age).unwrap();
            Last { totals: Totals::default(), took, counted_at }.is_good()
        };

        assert!(aged(Duration::from_secs(2), Duration::from_secs(17)));
        assert!(!aged(Duration::from_secs(2), Duration::from_secs(19)));
        assert!(!aged(Duration::from_millis(1), Duration::from_millis(20)));
    }
}
