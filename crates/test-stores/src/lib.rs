//! Real storage servers that tests start and stop, and a proxy that fails between them and us.
//!
//! Guarantees: a server listens on a free port of the loopback, keeps what it has in a temporary folder, and ends with whoever
//! started it, also if that panics or is killed. Nothing that happens to run on the machine is used.
//! Does not do: pretend. Each server is somebody else's program.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "for tests only: what cannot be started must stop the test"
)]

mod installing;
mod ports;
pub mod proxy;
pub mod redis;
pub mod s3;

pub use ports::free_port;
pub use proxy::{Mode, Proxy};
pub use s3::S3Server;

/// Installs every program there is, so that no test has to wait for it.
pub fn install() {
    installing::moto();
    installing::s3s_fs(installing::Build::Debug);
}
