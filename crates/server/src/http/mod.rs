//! HTTP: the only part that knows axum. Handlers translate; flows decide.
//!
//! Every route stands in [`routes`] on one screen; every status is chosen in [`answer`]. A handler never runs a flow
//! that changes something inside its own future: the client may hang up, and the future is dropped.

mod address;
mod answer;
mod answer_records;
mod answer_submissions;
mod audit;
mod bytes;
mod callbacks;
mod caller;
mod changes;
mod companies;
mod comparisons;
mod compression;
mod cross_origin;
mod deadlines;
mod description;
mod documents;
mod drains;
mod erasures;
mod events;
mod examinations;
mod extract;
mod guest_tickets;
mod guests;
mod health;
mod history;
mod kept;
mod listen;
mod log_contents;
mod log_events;
mod notices;
mod operations;
mod organisations;
mod people;
mod pulse;
mod receipts;
mod record_exports;
mod records;
mod registrations;
mod routes;
mod sessions;
mod shares;
mod signatures;
mod standings;
mod stream;
mod submissions;
mod summary_logs;
mod templates;
mod tokens;
mod webhooks;
mod workbooks;

pub(crate) use address::ClientAddress;
pub use answer::Problem;
pub(crate) use caller::comes_from_our_pages;
pub use caller::{PageTokens, Session, sign_api_token};
pub(crate) use documents::api_url_of;
pub use listen::{Listening, listen};
pub(crate) use operations::{LanesView, PruneView};
pub(crate) use receipts::Receipts;
pub use routes::{openapi, router};
pub(crate) use sessions::SessionsView;
pub(crate) use submissions::{OnItsWayView, active_states};
