//! Progress bars on stderr, when that is a terminal.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use crate::progress::Progress;

/// A bar per part.
#[derive(Default)]
pub(super) struct Bar {
    current: Mutex<Option<ProgressBar>>,
}

impl Bar {
    fn replace(&self, next: Option<ProgressBar>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = std::mem::replace(&mut *current, next) {
            bar.finish_and_clear();
        }
    }

    /// The last part is done.
    pub(super) fn finish(&self) {
        self.replace(None);
    }
}

impl Progress for Bar {
    fn begin(&self, part: &'static str, count: u64) {
        let bar = if count > 0 { ProgressBar::new(count) } else { ProgressBar::new_spinner() };
        let template =
            if count > 0 { "{msg:16} {bar:40} {pos}/{len} {eta}" } else { "{msg:16} {spinner} {pos}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(part);
        self.replace(Some(bar));
    }

    fn advance(&self) {
        if let Some(bar) = &*self.current.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.inc(1);
        }
    }
}
