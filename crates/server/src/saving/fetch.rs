//! Steps 3 and 4: the result comes into the spool, whole, and is checked there.
//!
//! Guarantees: several attempts, spread over some seconds, all within one deadline: after a restart the server delivers
//! callbacks before it can serve their files, and a file may be damaged on its way only. What the last attempt brought
//! decides.

use std::time::{Duration, Instant};

use ledger::saves::OpenSave;
use model::Digest;
use model::checking::Source;
use office_check::Hint;
use vault::Spooled;

use super::SaveError;
use crate::app::App;
use crate::editors::FetchError;
use crate::incoming::{Checked, check};
use crate::telemetry::{self, timed};

/// Fetches a link and checks what came, trying again while that makes sense.
pub(super) async fn fetch(app: &App, save: &OpenSave, link: &str) -> Result<(Spooled, Checked), SaveError> {
    let settings = &app.config.saving;
    let deadline = Instant::now() + settings.fetch_within;
    let mut attempt = 1;
    loop {
        let brought = attempt_once(app, save, link, deadline).await;
        let Some(trouble) = trouble_with(&brought) else { return brought };
        match pause_after(attempt, settings.fetch_attempts, settings.fetch_spread) {
            Some(pause) if Instant::now() + pause < deadline => {
                tracing::info!(inbox = save.number.0, attempt, error = trouble, "a download is tried again");
                tokio::time::sleep(pause).await;
                attempt += 1;
            }
            _ => return brought,
        }
    }
}

async fn attempt_once(
    app: &App,
    save: &OpenSave,
    link: &str,
    deadline: Instant,
) -> Result<(Spooled, Checked), SaveError> {
    let fetching = tokio::time::timeout_at(deadline.into(), app.editor.fetch(link, &app.spool));
    let fetched = timed("fetch", fetching).await;
    let fetched = fetched.unwrap_or_else(|_| Err(FetchError::Broken { cause: "it took too long".into() }));
    telemetry::fetch_ended(fetched.as_ref().map_or_else(word_for, |_| "fetched"));
    let spooled = fetched.map_err(SaveError::Fetch)?;
    steps::reached("save.fetched");
    let hint = Hint::from_extension(save.callback.file_type.as_deref().unwrap_or_default());
    let checked = timed("check", check(app, &spooled, (hint, Source::DocumentServer))).await?;
    steps::reached("save.checked");
    Ok((spooled, checked))
}

/// What was wrong, if another attempt may help.
fn trouble_with(brought: &Result<(Spooled, Checked), SaveError>) -> Option<String> {
    match brought {
        Ok((_, checked)) if checked.is_refused() => Some("the file is damaged".to_owned()),
        Ok(_) | Err(SaveError::Fetch(FetchError::TooLarge { .. } | FetchError::BadLink { .. })) => None,
        Err(error) => Some(telemetry::report(error)),
    }
}

/// The forgotten file under the key of a save without history: what its session was opened on. Unknown if the server does
/// not say: then the session is taken to hold what came before, as it does but for a refused repeat of an older save.
pub(super) async fn opened_on(app: &App, save: &OpenSave) -> Option<Digest> {
    if save.callback.session_start.is_some() {
        return None;
    }
    let link = app.editor.forgotten_link(&save.callback.key).await.ok()??;
    let spooled = app.editor.fetch(&link, &app.spool).await.ok()?;
    Some(spooled.digest)
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
