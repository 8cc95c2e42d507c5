//! A stand-in ONLYOFFICE Document Server for demo, tests and load.

pub mod chance;
pub mod clock;
pub mod journal;
pub mod links;
pub mod machine;
pub mod office;
pub mod times;
pub mod timings;
pub mod tokens;
pub use timings::Timings;
