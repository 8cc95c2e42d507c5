//! Examining: everything a save needs is looked at, hop by hop, and the one that is broken is named.
//!
//! 1. *Places*: secrets, storage, our addresses, the Document Server, the clocks.
//! 2. *Session*: a whole editing session is played through the configured Document Server: open, be seen, change, force-save, close.
//!    On a real server only its own editor can change a document, so there the session is opened and closed and those two hops
//!    are skipped.
//!
//! [`engines`] says at any moment how ledger, vault and Document Server are.
//!
//! Guarantees: every hop has a deadline; what fails says what to do; in a running service one examination at a time, whoever asks
//! again joins it. Does not do: start the service (`saveguard doctor` does), mend anything.

mod engines;
mod places;
mod session;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::config::Config;
pub use engines::Engines;
pub(crate) use engines::{EngineView, seen as engines_seen};
pub(crate) use places::{secrets as examine_secrets, storage as examine_storage};

/// Who an examination works as.
pub(crate) const CALLER: &str = "saveguard-cli";
/// How long one request of the examination may take.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// How a hop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Health {
    /// As it should be.
    Ok,
    /// Saves arrive, but somebody should look.
    Warn,
    /// Broken: saves do not arrive.
    Fail,
    /// Could not be looked at.
    Skipped,
}

/// One hop.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Hop {
    /// Which.
    #[schema(value_type = String)]
    pub(crate) name: &'static str,
    /// How it is.
    pub(crate) health: Health,
    /// What was seen.
    pub(crate) detail: String,
    /// What to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) next: String,
}

/// Hears of a hop as soon as it was looked at.
type Teller = Box<dyn Fn(&Hop) + Send + Sync>;

/// All hops looked at so far.
#[derive(Default)]
pub(crate) struct Chart {
    hops: Vec<Hop>,
    told: Option<Teller>,
}

impl Chart {
    /// One whose hops are told as they are found.
    fn telling(told: impl Fn(&Hop) + Send + Sync + 'static) -> Self {
        Self { hops: Vec::new(), told: Some(Box::new(told)) }
    }

    pub(crate) fn ok(&mut self, name: &'static str, detail: impl Into<String>) {
        self.add(Hop { name, health: Health::Ok, detail: detail.into(), next: String::new() });
    }

    fn skip(&mut self, name: &'static str, detail: impl Into<String>) {
        self.add(Hop { name, health: Health::Skipped, detail: detail.into(), next: String::new() });
    }

    fn warn(&mut self, name: &'static str, detail: impl Into<String>, next: &str) {
        self.add(Hop { name, health: Health::Warn, detail: detail.into(), next: next.to_owned() });
    }

    pub(crate) fn fail(&mut self, name: &'static str, detail: impl Into<String>, next: &str) {
        self.add(Hop { name, health: Health::Fail, detail: detail.into(), next: next.to_owned() });
    }

    fn add(&mut self, hop: Hop) {
        if let Some(told) = &self.told {
            told(&hop);
        }
        self.hops.push(hop);
    }

    pub(crate) fn hops(&self) -> &[Hop] {
        &self.hops
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.hops.iter().any(|hop| hop.health == Health::Fail)
    }
}

/// What the examination works with.
pub(crate) struct Patient {
    /// What was set.
    pub(crate) config: Config,
    /// Where the service is asked.
    pub(crate) base: String,
    /// A token of an operator.
    pub(crate) token: String,
    /// Where browsers get the editor.
    pub(crate) script_url: String,
    /// For all requests.
    pub(crate) http: reqwest::Client,
}

/// A client that waits for nobody for long, and goes nowhere else than it is sent.
pub(crate) fn client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(REQUEST_MAX)
        .build()
}

/// Looks at everything else, with the service running.
pub(crate) async fn examine_running(patient: &Patient, app: &App, chart: &mut Chart) {
    places::addresses(patient, chart).await;
    places::document_server(patient, app, chart).await;
    if !chart.has_failed() {
        session::play(patient, chart).await;
    }
}

/// The examination of this process: the one that runs, or the last one.
#[derive(Debug, Default)]
pub struct Examinations {
    state: Mutex<ExaminationView>,
}

/// How far an examination is.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct ExaminationView {
    /// Whether it is under way.
    pub(crate) is_running: bool,
    /// Whether it ended and nothing was broken: saves will arrive.
    pub(crate) is_healthy: bool,
    /// When it began. None yet: nobody asked.
    #[schema(value_type = Option<String>)]
    pub(crate) begun_at: Option<Timestamp>,
    /// What it has looked at so far.
    pub(crate) hops: Vec<Hop>,
}

impl Examinations {
    /// How far it is.
    pub(crate) fn view(&self) -> ExaminationView {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut ExaminationView)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether it was us who began.
    fn begin(&self, now: Timestamp) -> bool {
        let mut is_ours = false;
        self.change(|state| {
            is_ours = !state.is_running;
            if is_ours {
                *state = ExaminationView { is_running: true, begun_at: Some(now), ..Default::default() };
            }
        });
        is_ours
    }
}

/// An examination that is under way. However it ends, the next one can begin.
struct UnderWay(Arc<App>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.examinations.change(|state| state.is_running = false);
    }
}

/// Begins an examination of the running service, or joins the one that is under way.
pub(crate) fn begin(app: &Arc<App>, patient: Patient) -> ExaminationView {
    if app.examinations.begin(app.now()) {
        let app = Arc::clone(app);
        tokio::spawn(async move {
            let _under_way = UnderWay(Arc::clone(&app));
            let told = Arc::clone(&app);
            let mut chart = Chart::telling(move |hop| {
                told.examinations.change(|state| state.hops.push(hop.clone()));
            });
            examine_secrets(&patient, &mut chart);
            examine_storage(&patient, &app, &mut chart).await;
            examine_running(&patient, &app, &mut chart).await;
            app.examinations.change(|state| state.is_healthy = !chart.has_failed());
        });
    }
    app.examinations.view()
}
