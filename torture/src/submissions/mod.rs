//! The torture of submissions: organisations hand in workbooks while the service is killed at every step of their way to records.
//!
//! Four clients play [`scenes`] on several registrations, under both policies and all three ways removed rows are taken; an operator
//! interferes; readers look on ([`reading`]). Clients write down what they hand in and what they are promised ([`book`]); from that, and the order
//! of submissions that the service lists, follows what the records must be after each one ([`truth`]). After every kill the ledger is
//! looked at as it lies ([`checking`]).
//!
//! Guarantees: nothing is taken on the service's word but the order of its submissions. Does not test notices of outside uploaders,
//! documents as sources, or erasing.

mod book;
mod checking;
mod client;
mod reading;
mod round;
mod scenes;
mod truth;
mod workbook;

pub(crate) use round::play;
