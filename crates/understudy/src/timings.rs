//! Every delay of the real server, with its default, and how they shrink together.
//!
//! Guarantees: [`Timings::default`] is the real server's configuration (PROTOCOL 11); [`Timings::scaled`]
//! divides all of them by one number and touches nothing else. Values that travel as whole seconds (token and
//! link life) never shrink below [`WHOLE_SECONDS_MIN`], or rounding alone would make them expire at once.
//!
//! Does not make the wall clock run faster: `iat`, `exp`, `lastsave` and `expires` stay true times.

/// The least life of a token or link after scaling: both are compared in whole seconds.
pub const WHOLE_SECONDS_MIN: u64 = 5;

/// The delays, all in milliseconds unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timings {
    /// From the loss of the last editor's connection to the final save; an explicit close skips it.
    pub save_delay_ms: u64,
    /// Pauses before the repeats of a final save; their number is the number of repeats.
    pub retry_delays_ms: Vec<u64>,
    /// How long the host may take to answer a callback.
    pub callback_timeout_ms: u64,
    /// How long a link to a result is valid.
    pub link_life_s: u64,
    /// How long a token to the host is valid.
    pub token_life_s: u64,
    /// How long a spent key stays closed to editors.
    pub spent_window_ms: u64,
    /// What the server calls a minute when it notes when a key was spent (the note is rounded down to it).
    pub minute_ms: u64,
    /// How long an unused row with its cached files is kept.
    pub cache_life_ms: u64,
    /// How often expired rows are looked for.
    pub sweep_step_ms: u64,
    /// How often a socket is pinged.
    pub ping_interval_ms: u64,
    /// How long the answer to a ping may take; together with the interval, the worst case of noticing a loss.
    pub ping_timeout_ms: u64,
    /// Pause between attempts to fetch a source.
    pub fetch_retry_ms: u64,
    /// Attempts to fetch a source.
    pub fetch_attempts: u32,
    /// How long fetching a source may take.
    pub fetch_timeout_ms: u64,
    /// How long a conversion takes (opening, force save and final save alike).
    pub conversion_ms: u64,
    /// How long a join or leave takes to become a request to the host; who is present is read at its end.
    pub status_lag_ms: u64,
    /// How long a graceful shutdown waits at least.
    pub shutdown_wait_ms: u64,
    /// How often a graceful shutdown looks whether all saves are done.
    pub shutdown_step_ms: u64,
    /// After how long a graceful shutdown gives up.
    pub shutdown_timeout_ms: u64,
    /// Timer force saves: how long after the first change.
    pub autosave_interval_ms: u64,
    /// Timer force saves: how often the timers are looked at.
    pub autosave_step_ms: u64,
    /// How long a save lock is held for one editor.
    pub save_lock_ms: u64,
}

/// There is no delay of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no delay of that name")]
pub struct UnknownTiming;

impl Default for Timings {
    fn default() -> Timings {
        Timings {
            save_delay_ms: 5_000,
            retry_delays_ms: vec![1_000, 2_000, 4_000],
            callback_timeout_ms: 600_000,
            link_life_s: 900,
            token_life_s: 300,
            spent_window_ms: 300_000,
            minute_ms: 60_000,
            cache_life_ms: 86_400_000,
            sweep_step_ms: 3_600_000,
            ping_interval_ms: 25_000,
            ping_timeout_ms: 20_000,
            fetch_retry_ms: 1_000,
            fetch_attempts: 3,
            fetch_timeout_ms: 120_000,
            conversion_ms: 400,
            status_lag_ms: 20,
            shutdown_wait_ms: 30_000,
            shutdown_step_ms: 1_000,
            shutdown_timeout_ms: 360_000,
            autosave_interval_ms: 300_000,
            autosave_step_ms: 60_000,
            save_lock_ms: 60_000,
        }
    }
}

impl Timings {
    /// The real server's delays, each divided by `time_scale`.
    pub fn scaled(time_scale: f64) -> Timings {
        let real = Timings::default();
        let ms = |value: u64| shrink(value, time_scale);
        let seconds = |value: u64| shrink(value, time_scale).max(WHOLE_SECONDS_MIN.min(value));
        Timings {
            save_delay_ms: ms(real.save_delay_ms),
            retry_delays_ms: real.retry_delays_ms.iter().map(|&delay| ms(delay)).collect(),
            callback_timeout_ms: ms(real.callback_timeout_ms),
            link_life_s: seconds(real.link_life_s),
            token_life_s: seconds(real.token_life_s),
            spent_window_ms: ms(real.spent_window_ms),
            minute_ms: ms(real.minute_ms),
            cache_life_ms: ms(real.cache_life_ms),
            sweep_step_ms: ms(real.sweep_step_ms),
            ping_interval_ms: ms(real.ping_interval_ms),
            ping_timeout_ms: ms(real.ping_timeout_ms),
            fetch_retry_ms: ms(real.fetch_retry_ms),
            fetch_attempts: real.fetch_attempts,
            fetch_timeout_ms: ms(real.fetch_timeout_ms),
            conversion_ms: ms(real.conversion_ms),
            status_lag_ms: ms(real.status_lag_ms),
            shutdown_wait_ms: ms(real.shutdown_wait_ms),
            shutdown_step_ms: ms(real.shutdown_step_ms),
            shutdown_timeout_ms: ms(real.shutdown_timeout_ms),
            autosave_interval_ms: ms(real.autosave_interval_ms),
            autosave_step_ms: ms(real.autosave_step_ms),
            save_lock_ms: ms(real.save_lock_ms),
        }
    }

    /// The delays that [`Timings::set`] knows.
    pub const NAMES: [&str; 23] = [
        "retry_1_ms",
        "retry_2_ms",
        "retry_3_ms",
        "save_delay_ms",
        "callback_timeout_ms",
        "link_life_s",
        "token_life_s",
        "spent_window_ms",
        "minute_ms",
        "cache_life_ms",
        "sweep_step_ms",
        "ping_interval_ms",
        "ping_timeout_ms",
        "fetch_retry_ms",
        "fetch_timeout_ms",
        "conversion_ms",
        "status_lag_ms",
        "shutdown_wait_ms",
        "shutdown_step_ms",
        "shutdown_timeout_ms",
        "autosave_interval_ms",
        "autosave_step_ms",
        "save_lock_ms",
    ];

    /// Sets one delay by its name. `Err` if there is none of that name.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), UnknownTiming> {
        let timing = match name {
            "retry_1_ms" => self.retry_delays_ms.get_mut(0).ok_or(UnknownTiming)?,
            "retry_2_ms" => self.retry_delays_ms.get_mut(1).ok_or(UnknownTiming)?,
            "retry_3_ms" => self.retry_delays_ms.get_mut(2).ok_or(UnknownTiming)?,
            "save_delay_ms" => &mut self.save_delay_ms,
            "callback_timeout_ms" => &mut self.callback_timeout_ms,
            "link_life_s" => &mut self.link_life_s,
            "token_life_s" => &mut self.token_life_s,
            "spent_window_ms" => &mut self.spent_window_ms,
            "minute_ms" => &mut self.minute_ms,
            "cache_life_ms" => &mut self.cache_life_ms,
            "sweep_step_ms" => &mut self.sweep_step_ms,
            "ping_interval_ms" => &mut self.ping_interval_ms,
            "ping_timeout_ms" => &mut self.ping_timeout_ms,
            "fetch_retry_ms" => &mut self.fetch_retry_ms,
            "fetch_timeout_ms" => &mut self.fetch_timeout_ms,
            "conversion_ms" => &mut self.conversion_ms,
            "status_lag_ms" => &mut self.status_lag_ms,
            "shutdown_wait_ms" => &mut self.shutdown_wait_ms,
            "shutdown_step_ms" => &mut self.shutdown_step_ms,
            "shutdown_timeout_ms" => &mut self.shutdown_timeout_ms,
            "autosave_interval_ms" => &mut self.autosave_interval_ms,
            "autosave_step_ms" => &mut self.autosave_step_ms,
            "save_lock_ms" => &mut self.save_lock_ms,
            _ => return Err(UnknownTiming),
        };
        *timing = value;
        Ok(())
    }

    /// How long after it froze a connection is found dead: a ping is missed and then its timeout passes.
    pub fn ping_loss_ms(&self) -> u64 {
        self.ping_interval_ms + self.ping_timeout_ms
    }
}

/// Divides, rounding up, so that no delay becomes nothing.
fn shrink(value: u64, time_scale: f64) -> u64 {
    if !time_scale.is_finite() || time_scale <= 0.0 {
        return value;
    }
    #[expect(clippy::cast_precision_loss, reason = "delays are far below 2^52")]
    let divided = (value as f64 / time_scale).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and far below 2^52"
    )]
    let whole = divided as u64;
    whole.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_one_is_the_real_server() {
        assert_eq!(Timings::scaled(1.0), Timings::default());
    }

    #[test]
    fn every_named_delay_can_be_set() {
        let mut timings = Timings::default();
        for name in Timings::NAMES {
            assert_eq!(timings.set(name, 7), Ok(()));
        }
        assert_eq!(timings.set("nothing", 7), Err(UnknownTiming));
        assert_eq!((timings.save_delay_ms, timings.save_lock_ms), (7, 7));
        assert_eq!(timings.retry_delays_ms, [7, 7, 7]);
    }

    #[test]
    fn a_large_scale_divides_delays_but_keeps_whole_second_lives_usable() {
        let timings = Timings::scaled(1_000.0);

        assert_eq!(timings.save_delay_ms, 5);
        assert_eq!(timings.retry_delays_ms, [1, 2, 4]);
        assert_eq!(timings.ping_loss_ms(), 45);
        assert_eq!(timings.token_life_s, WHOLE_SECONDS_MIN);
        assert_eq!(timings.link_life_s, WHOLE_SECONDS_MIN);
    }
}
