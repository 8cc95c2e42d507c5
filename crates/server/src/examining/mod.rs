//! Examining: everything a save needs is looked at, hop by hop, and the one that is broken is named.
//!
//! 1. *Places*: secrets, storage, our addresses, the Document Server, the clocks.
//! 2. *Session*: a whole editing session is played through the configured Document Server: open, be seen, change, force-save, close.
//!    On a real server only its own editor can change a document, so there the session is opened and closed and those two hops
//!    are skipped.
//!
//! [`engines`] says at any moment how ledger, vault and Document Server are.
//!
//! Guarantees: every hop has a deadline; what fails says what to do; one examination at a time, whichever instance looks, and whoever asks
//! again joins it. Does not do: start the service (`saveguard doctor` does), mend anything.

mod engines;
mod places;
mod session;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ledger::LedgerError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::config::Config;
use crate::instances::{self, Own, Subject, Undertaking};
pub use engines::Engines;
pub(crate) use engines::{EngineView, seen as engines_seen};
pub(crate) use places::{secrets as examine_secrets, storage as examine_storage};

/// Who an examination works as.
pub(crate) const CALLER: &str = "saveguard-cli";
/// How long one request of the examination may take.
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// How a hop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Hop {
    /// Which.
    #[schema(value_type = String)]
    pub(crate) name: Cow<'static, str>,
    /// How it is.
    pub(crate) health: Health,
    /// What was seen.
    pub(crate) detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) next: String,
}

impl Hop {
    fn new(name: &'static str, health: Health, detail: impl Into<String>) -> Self {
        Self { name: Cow::Borrowed(name), health, detail: detail.into(), next: String::new() }
    }

    fn with_next(self, next: &str) -> Self {
        Self { next: next.to_owned(), ..self }
    }
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
        self.add(Hop::new(name, Health::Ok, detail));
    }

    fn skip(&mut self, name: &'static str, detail: impl Into<String>) {
        self.add(Hop::new(name, Health::Skipped, detail));
    }

    fn warn(&mut self, name: &'static str, detail: impl Into<String>, next: &str) {
        self.add(Hop::new(name, Health::Warn, detail).with_next(next));
    }

    pub(crate) fn fail(&mut self, name: &'static str, detail: impl Into<String>, next: &str) {
        self.add(Hop::new(name, Health::Fail, detail).with_next(next));
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

/// How far an examination is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
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

impl Undertaking for ExaminationView {
    const SUBJECT: Subject = Subject::Examination;

    fn own(app: &App) -> &Own<Self> {
        &app.examinations
    }

    fn is_running(&self) -> bool {
        self.is_running
    }

    fn begun_at(&self) -> Option<Timestamp> {
        self.begun_at
    }

    fn stop(&mut self) {
        self.is_running = false;
    }

    fn break_off(&mut self) {
        let detail = "the instance that looked ended before it was done";
        let hop = Hop::new("the examination", Health::Fail, detail);
        self.hops.push(hop.with_next("Look again, and see why that instance is gone."));
        self.is_running = false;
    }
}

/// Begins an examination of the running service, or joins the one that is under way on any instance.
pub(crate) async fn begin(app: &Arc<App>, patient: Patient) -> Result<ExaminationView, LedgerError> {
    let begun = ExaminationView { is_running: true, begun_at: Some(app.now()), ..ExaminationView::default() };
    let looking = {
        let app = Arc::clone(app);
        async move { look(&app, &patient).await }
    };
    instances::begin_or_join(app, begun, looking).await
}

async fn look(app: &Arc<App>, patient: &Patient) {
    let told = Arc::clone(app);
    let mut chart = Chart::telling(move |hop| {
        told.examinations.change(|state| state.hops.push(hop.clone()));
    });
    examine_secrets(patient, &mut chart);
    examine_storage(patient, app, &mut chart).await;
    examine_running(patient, app, &mut chart).await;
    app.examinations.change(|state| state.is_healthy = !chart.has_failed());
}
