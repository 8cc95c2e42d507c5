//! Moves in words, so that a broken promise can be read as a story.
//!
//! Guarantees: every move is told in the world it is made in, with what it is about: status, key, changes, row.
//! Does not do: decide or change anything.

use std::fmt;

use crate::ledger::number_of;
use crate::moves::{Move, Noticed};
use crate::server::{Changed, Conversion};
use crate::world::{Collecting, Content, Place, World};

/// A move in the world it is made in, for people.
pub(crate) struct Told<'a>(pub(crate) &'a World, pub(crate) Move);

impl fmt::Display for Told<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(world, step) = *self;
        match step {
            Move::Join(key) => write!(out, "somebody opens key {key}"),
            Move::Change(key, Changed::ByTheSame) => {
                write!(out, "somebody under key {key} changes something")
            }
            Move::Change(key, Changed::ByAnother) => {
                write!(out, "another one under key {key} changes something")
            }
            Move::Change(key, Changed::InTheSameSecond) => {
                write!(out, "somebody under key {key} changes something in the same second")
            }
            Move::ForceSave(key) => write!(out, "somebody force-saves key {key}"),
            Move::Leave(key) => write!(out, "somebody leaves key {key}"),
            Move::PostFinal(key, slot, conversion) => tell_final(out, world, (key, slot), conversion),
            Move::ServerDies => write!(out, "the server is killed and starts again"),
            Move::WindowPasses(key) => write!(out, "spent key {key} gets old enough to be revived"),
            Move::RowExpires(key) => write!(out, "the server's copy of key {key} expires"),
            Move::ServerLoses(key) => write!(out, "the server loses all it had under key {key}"),
            _ => tell_ours(out, world, step),
        }
    }
}

fn tell_final(
    out: &mut fmt::Formatter<'_>,
    world: &World,
    (key, slot): (u8, usize),
    conversion: Conversion,
) -> fmt::Result {
    let content = world.server[usize::from(key)].tasks[slot].content;
    write!(out, "the server sends the final save of key {key}, {}", Changes(content))?;
    match conversion {
        Conversion::AsBefore => Ok(()),
        Conversion::Failed => write!(out, ", which it cannot assemble"),
        Conversion::Damaged => write!(out, ", which comes out damaged"),
    }
}

/// What happens on the wire and in our processes.
fn tell_ours(out: &mut fmt::Formatter<'_>, world: &World, step: Move) -> fmt::Result {
    match step {
        Move::Arrive(at, process) => write!(out, "{} arrives at process {process}", Posted(world, at)),
        Move::LoseCallback(at) => write!(out, "{} gets lost", Posted(world, at)),
        Move::Duplicate(at) => write!(out, "{} is doubled on the way", Posted(world, at)),
        Move::HangUp(at, Noticed::Yes) => write!(out, "the caller of {} hangs up", Posted(world, at)),
        Move::HangUp(at, Noticed::No) => write!(out, "the caller of {} is gone unnoticed", Posted(world, at)),
        Move::HearAnswer(at) => write!(out, "the server hears the answer to {}", Posted(world, at)),
        Move::LoseAnswer(at) => write!(out, "the answer to {} gets lost", Posted(world, at)),
        Move::Work(process, row) => write!(out, "process {process} finishes {}", InRow(world, row)),
        Move::Recover(process, row) => {
            write!(out, "recovery in process {process} finishes {}", InRow(world, row))
        }
        Move::StoreLate(row) => write!(out, "the bytes of {} are stored", InRow(world, row)),
        Move::HostCrashes(process) => write!(out, "process {process} crashes"),
        Move::LinksDie => write!(out, "the links of all callbacks die"),
        Move::Collect(process, key) => {
            write!(out, "process {process} fetches the forgotten file of key {key}")
        }
        Move::Settle(process, key) => write!(out, "process {process} begins to finish key {key}"),
        Move::CollectorStep(process) => tell_collecting(out, world, process),
        _ => write!(out, "somebody asks us for a key"),
    }
}

fn tell_collecting(out: &mut fmt::Formatter<'_>, world: &World, process: u8) -> fmt::Result {
    match world.collecting[usize::from(process)] {
        Collecting::Idle => Ok(()),
        Collecting::Fetched(asked, content) => {
            let key = asked.key;
            write!(out, "process {process} commits the forgotten file of key {key}, {}", Changes(content))
        }
        Collecting::Committed(asked, _) => {
            write!(out, "process {process} has the forgotten file of key {} deleted", asked.key)
        }
        Collecting::Retire(asked) => write!(out, "process {process} retires key {}", asked.key),
    }
}

/// The changes in a file, numbered from 1.
struct Changes(Content);

impl fmt::Display for Changes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = (0..8).filter(|change| self.0.holds & (1 << change) != 0);
        let names: Vec<String> = names.map(|change| (change + 1).to_string()).collect();
        write!(out, "changes {{{}}}", names.join(" "))
    }
}

/// A callback on its way.
struct Posted<'a>(&'a World, usize);

impl fmt::Display for Posted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let post = self.0.posts.as_slice()[self.1];
        write!(out, "{} of key {}, {}", post.status, post.key, Changes(post.content))?;
        if let Place::ToServer(reply) = post.place {
            write!(out, " ({reply:?})")?;
        }
        Ok(())
    }
}

/// A callback written down.
struct InRow<'a>(&'a World, usize);

impl fmt::Display for InRow<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.0.rows.as_slice()[self.1];
        let Self(_, row) = *self;
        write!(
            out,
            "row {}, {} of key {}, {}",
            number_of(row),
            written.status,
            written.key,
            Changes(written.content)
        )
    }
}
