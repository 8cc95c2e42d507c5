//! A stand-in ONLYOFFICE Document Server: for the demo, for tests, for crash harnesses, and as a load driver.
//!
//! It does to a host what the real server (9.3) does: asks for documents, reports who is in, offers saves, repeats
//! them or not, puts them aside as forgotten, answers commands, serves results over signed links. It edits real
//! files, has an editor for browsers, and writes down everything it accepted, made, sent and was answered, so that
//! a harness has an outside witness.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use understudy::{EditorConfig, Settings, tokens::Secret};
//!
//! let server = understudy::start(Settings::default().with_secret("secret").with_time_scale(50.0)).await?;
//! let config = EditorConfig::new("key-1", "http://host/document", "http://host/callback", "uma");
//! let session = server.open(&config.signed(&Secret::new("secret"))).await?;
//! session.opened().await;
//! let change = session.write("hello").await?;
//! session.hang_up().await?;
//! server.quiet().await;
//! assert!(!server.journal().change(&change).expect("was accepted").is_lost());
//! # Ok(()) }
//! ```
//!
//! # How the parts work together
//!
//! - [`machine`]: every decision, as a pure state machine. Its module text tells the life of a key.
//! - [`server`]: one task owns the machine, keeps its durable steps ([`store`]), writes its notes ([`journal`]) and
//!   runs its errands (callbacks, downloads, builds). In-process [`server::Session`]s go straight to it; faults
//!   for harnesses strike there.
//! - `http`: the real server's addresses, sockets for editors ([`wire`]), the browser editor, and `/understudy/…`
//!   for harnesses in other processes.
//! - [`admission`], [`tokens`], [`links`]: who may open, signatures in both directions, signed addresses.
//! - [`office`]: files to text and back.
//! - [`client`] and [`load`]: an editor without a screen, and many of them.
//! - [`clock`] and [`timings`]: real, shortened, or hand-moved time.
//!
//! # What differs from the real server
//!
//! - The content of changes is our own ([`office::Edit`]), as is the form in which the browser gets a document.
//!   Changes in any other form are kept and counted, without effect on the text.
//! - Results are the source with touched paragraphs or cells, not a conversion; with nothing to apply they are the
//!   source itself. `documentSha256` in `history` is the hash of the source.
//! - No long polling, no element locks, no pause for the first editor when a second one joins (`waitAuth`), no
//!   idle timeout, no limit on editors, no mail merge (5), no `/converter`, no WOPI, no tenants.
//! - A queue without priorities: a conversion takes [`Timings::conversion_ms`], however many there are.
//! - Redelivery after a crash also covers a force save in flight (from the code; only final saves were observed).
//! - The browser editor sends what was typed while the connection was lost; the real one loses it.
//!
//! Guarantees: the same seed and the same order of events give the same choices; nothing is logged that opens
//! anything. Does not listen on anything but loopback.

pub mod admission;
pub mod chance;
pub mod client;
pub mod clock;
pub mod config;
mod http;
pub mod journal;
pub mod links;
pub mod load;
pub mod machine;
pub mod office;
pub mod server;
pub mod settings;
pub mod store;
pub mod times;
pub mod timings;
pub mod tokens;
pub mod wire;

pub use config::EditorConfig;
pub use server::{Running, Session, StartError, start};
pub use settings::Settings;
pub use timings::Timings;
