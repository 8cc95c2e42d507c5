//! Collecting forgotten files and finishing keys, as `server/src/recovering/{forgotten,keys}.rs` do it.
//!
//! Ask the server, fetch, store, commit, delete there, ask again, retire: other people's moves fit between any two of these.
//!
//! Guarantees: a save that came after the question stops the commit; what is deleted at the server is what was committed.
//! Does not do: keys of other installations or of documents we do not have.

use model::opening::may_retire;

use crate::ledger;
use crate::search::Setting;
use crate::world::{Aim, Asked, Collecting, Content, Standing, Stored, World};

/// Whether the collector would find something under this key.
pub(crate) fn can_collect(world: &World, setting: &Setting, process: u8, key: u8) -> bool {
    let is_idle = world.collecting[usize::from(process)] == Collecting::Idle;
    let is_known = world.keys[usize::from(key)].standing != Standing::NotIssued;
    let is_there =
        world.server[usize::from(key)].forgotten.is_some_and(|content| is_news(world, key, content));
    setting.guards.collector && is_idle && is_known && is_there && may_retire(world.info(key))
}

/// A damaged file stays with the server; looking at it once more changes nothing.
fn is_news(world: &World, key: u8, content: Content) -> bool {
    let is_it = |stored: &Stored| (stored.key, stored.content) == (key + 1, content);
    !(content.is_damaged && world.stored.as_slice().iter().any(is_it))
}

/// Asks about a forgotten file and fetches it.
pub(crate) fn begin_collecting(world: &mut World, process: u8, key: u8) {
    fetch(world, process, key, Aim::Collect);
}

fn fetch(world: &mut World, process: u8, key: u8, aim: Aim) {
    let saves_received = world.keys[usize::from(key)].saves_received;
    let asked = Asked { key, saves_received, aim };
    world.collecting[usize::from(process)] = match world.server[usize::from(key)].forgotten {
        Some(content) => Collecting::Fetched(asked, content),
        None if aim == Aim::Finish => Collecting::Retire(asked),
        None => Collecting::Idle,
    };
}

/// Whether the timer would look after this key: live, with a final save committed or a forgotten file collected.
pub(crate) fn can_settle(world: &World, setting: &Setting, process: u8, key: u8) -> bool {
    let row = &world.keys[usize::from(key)];
    let is_idle = world.collecting[usize::from(process)] == Collecting::Idle;
    let is_due = row.standing == Standing::Live && (row.newest_final.number > 0 || row.is_settled);
    setting.guards.collector && is_idle && is_due && may_retire(world.info(key))
}

/// Somebody waits for a finished key: an idle process finishes it.
pub(crate) fn begin_finishing(world: &mut World, key: u8) {
    let idle = (0..).zip(&world.collecting).find(|(_, collecting)| **collecting == Collecting::Idle);
    if let Some((process, _)) = idle {
        finish(world, process, key);
    }
}

/// Collects what a finished key left behind and retires it, unless the server still holds something.
pub(crate) fn finish(world: &mut World, process: u8, key: u8) {
    let row = &world.keys[usize::from(key)];
    if row.standing == Standing::Live && may_retire(world.info(key)) {
        fetch(world, process, key, Aim::Finish);
    }
}

/// The next step of a process that collects.
pub(crate) fn step(world: &mut World, setting: &Setting, process: u8) {
    let next = match world.collecting[usize::from(process)] {
        Collecting::Idle => return,
        Collecting::Fetched(asked, content) => {
            let has_moved_on = world.keys[usize::from(asked.key)].saves_received != asked.saves_received;
            if has_moved_on {
                Collecting::Idle
            } else {
                ledger::collect_forgotten(world, setting, asked.key, content);
                Collecting::Committed(asked, content)
            }
        }
        Collecting::Committed(asked, content) => {
            delete(world, asked.key, content);
            let is_empty = may_retire(world.info(asked.key));
            if asked.aim == Aim::Finish && is_empty { Collecting::Retire(asked) } else { Collecting::Idle }
        }
        Collecting::Retire(asked) => {
            ledger::retire_key(world, asked.key, asked.saves_received);
            Collecting::Idle
        }
    };
    world.collecting[usize::from(process)] = next;
}

/// `deleteForgotten` deletes whatever lies there by now, so it is looked at once more. A damaged file stays: it may be
/// whole on the server.
fn delete(world: &mut World, key: u8, content: Content) {
    let forgotten = &mut world.server[usize::from(key)].forgotten;
    if *forgotten == Some(content) && !content.is_damaged {
        *forgotten = None;
    }
}
