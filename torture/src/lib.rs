//! Kills the service at every step under load, then checks every promise from outside.
//!
//! `torture --help` tells how to use it. A *round* is a small world of its own ([`world`]): a data folder, the real
//! service as a process, and the understudy as its Document Server. People edit there ([`load`]), the service is killed
//! ([`killing`]) and so is the storage of a far vault ([`unplugging`], [`outage`]), others look over its shoulder ([`watching`]); then everything comes to rest ([`settling`]) and what
//! the service keeps is held against the understudy's journal ([`checking`]). A *run* is many rounds ([`run`]);
//! [`submissions`] is the same for workbooks that become records. [`mutants`] removes one guard of the service after the other to prove that the harness would notice.
//!
//! Guarantees: nothing is taken on the service's word. With several instances ([`cluster`]) they share a PostgreSQL and a
//! Redis that fail, too.

mod arguments;
mod checking;
mod chronicle;
mod cluster;
mod command;
mod dice;
mod killing;
mod load;
mod mutants;
mod outage;
pub mod power_loss;
mod program;
mod report;
mod round;
mod run;
mod settling;
mod submissions;
mod unplugging;
mod watching;
mod world;

pub use command::run as run_command;
