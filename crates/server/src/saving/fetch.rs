//! Step 3: the result comes into the spool, whole.
//!
//! Guarantees: several attempts, spread over some seconds, because after a restart the server delivers callbacks
//! before it can serve their files; all within one deadline.

use std::time::Duration;

use ledger::saves::OpenSave;
use tokio::time::Instant;
use vault::Spooled;

use crate::app::App;
use crate::editors::FetchError;
use crate::telemetry;

/// Fetches a link, trying again while that makes sense.
pub(super) async fn fetch(app: &App, save: &OpenSave, link: &str) -> Result<Spooled, FetchError> {
    let settings = &app.config.saving;
    let deadline = Instant::now() + settings.fetch_within;
    let mut attempt = 1;
    loop {
        let fetched = tokio::time::timeout_at(deadline, app.editor.fetch(link, &app.spool)).await;
        let error = match fetched {
            Ok(Ok(spooled)) => {
                telemetry::fetch_ended("fetched");
                return Ok(spooled);
            }
            Ok(Err(error)) => error,
            Err(_) => FetchError::Broken { cause: "it took too long".into() },
        };
        telemetry::fetch_ended(word_for(&error));
        let pause = pause_after(attempt, settings.fetch_attempts, settings.fetch_spread);
        let may_help = !matches!(error, FetchError::TooLarge { .. } | FetchError::BadLink { .. });
        match pause {
            Some(pause) if may_help && Instant::now() + pause < deadline => {
                tracing::info!(inbox = save.number.0, attempt, error = %telemetry::report(&error), "a download is tried again");
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
            _ => return Err(error),
        }
    }
}

fn word_for(error: &FetchError) -> &'static str {
    match error {
        FetchError::Gone { .. } => "gone",
        FetchError::NotTheFile { .. } => "not-the-file",
        FetchError::Broken { .. } => "broken",
        FetchError::TooLarge { .. } => "too-large",
        FetchError::BadLink { .. } => "bad-link",
        FetchError::Spool(_) => "spool",
    }
}

/// The pauses grow: a third of the spread after the first attempt, the rest after the second, and so on.
fn pause_after(attempt: u32, attempts: u32, spread: Duration) -> Option<Duration> {
    let shares: u32 = (1..attempts).sum();
    (attempt < attempts).then(|| spread * attempt / shares.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempts_are_spread_over_the_whole_time() {
        for attempts in 1..6 {
            let pauses: Vec<_> =
                (1..).map_while(|attempt| pause_after(attempt, attempts, Duration::from_secs(10))).collect();
            assert_eq!(pauses.len(), attempts as usize - 1);
            let total: Duration = pauses.iter().sum();
            assert!(attempts == 1 || total > Duration::from_millis(9990), "{attempts}: {total:?}");
        }
    }
}
