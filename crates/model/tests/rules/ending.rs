//! Letting a quiet world come to rest, to see whether everything arrives where it belongs.
//!
//! Once nothing is on its way and nobody is in, no further trouble happens: recovery finishes open rows, forgotten files
//! are collected, finished keys retired, and somebody opens the document and closes it again, which brings back what
//! a crash of the server left behind. Then nothing may be open, and every change must be in sight.
//!
//! Guarantees: ends, or says that recovery never does. Does not do: change the world that is searched; it works on a copy.

use crate::collecting;
use crate::host;
use crate::ledger::Grant;
use crate::promises::{Promise, in_sight};
use crate::search::Setting;
use crate::server::{self, Conversion, Heard};
use crate::world::{Collecting, End, Place, Row, World};

/// Longer than any road to rest in worlds of this size.
const STEPS_MAX: usize = 400;

/// Whether nothing is on its way, nobody works and nobody is in.
pub(crate) fn is_quiet(world: &World) -> bool {
    world.posts.len() == 0
        && (0..2).all(|process| !host::is_busy(world, process))
        && world.server.iter().all(|state| state.users == 0 && state.tasks.iter().all(|task| task.path == 0))
}

/// The promise that is broken when this world comes to rest.
pub(crate) fn broken_at_rest(world: &World, setting: &Setting) -> Option<Promise> {
    let mut world = *world;
    recover(&mut world, setting);
    let recovered = world;
    recover(&mut world, setting);
    if world != recovered {
        return Some(Promise::RecoveryChangesNothingTwice);
    }
    bring_back(&mut world, setting);
    let is_open = world.rows.as_slice().iter().any(|row| row.end == End::Open);
    let is_forgotten = (0..3).any(|key| collecting::can_collect(&world, setting, 0, key));
    let missing = world.accepted() & !(in_sight(&world) | world.lost_by_server);
    if world.broken.is_some() {
        world.broken
    } else if missing != 0 {
        Some(Promise::EverythingArrives)
    } else if is_open || is_forgotten {
        Some(Promise::NothingStaysOpen)
    } else {
        None
    }
}

/// Rounds of recovery, until a round finds nothing to do.
fn recover(world: &mut World, setting: &Setting) {
    let comes_to_rest = (0..STEPS_MAX).any(|_| !recover_once(world, setting));
    assert!(comes_to_rest, "recovery never comes to rest: {world:#?}");
}

fn recover_once(world: &mut World, setting: &Setting) -> bool {
    for row in 0..world.rows.len() {
        if world.rows.as_slice()[row].end == End::Open {
            host::recover(world, setting, 0, row);
            host::store_late(world, row);
            return true;
        }
    }
    if world.collecting[0] != Collecting::Idle {
        collecting::step(world, setting, 0);
        return true;
    }
    for key in 0..3 {
        if collecting::can_collect(world, setting, 0, key) {
            collecting::begin_collecting(world, 0, key);
            return true;
        }
        if collecting::can_settle(world, setting, 0, key) {
            collecting::finish(world, 0, key);
            return true;
        }
    }
    false
}

/// People open and close the document until the server holds nothing any more.
fn bring_back(world: &mut World, setting: &Setting) {
    // Somebody new, who asks the server now.
    world.knowledge = None;
    for _ in 0..STEPS_MAX {
        if world.server.iter().all(|state| state.log == 0) {
            return;
        }
        world.budget.keys = 0;
        match host::open(world, setting) {
            Grant::Granted(key) if world.server[usize::from(key)].log > 0 => {
                open_and_close(world, setting, key);
            }
            Grant::Granted(_) | Grant::Refused | Grant::OutOfKeys => return,
            Grant::Ask(_) => {}
            Grant::Finish(_) => recover(world, setting),
        }
    }
}

/// Somebody joins under this key and leaves again; all that follows goes well.
fn open_and_close(world: &mut World, setting: &Setting, key: u8) {
    let state = &mut world.server[usize::from(key)];
    if state.row == Row::Spent {
        state.row = Row::SpentLong;
    }
    if server::can_join(world, key) {
        server::join(world, setting, key);
    }
    if world.server[usize::from(key)].users > 0 {
        server::leave(world, setting, key);
    }
    if server::can_post(world, key, 0) {
        server::post(world, (key, 0), Conversion::AsBefore);
    }
    deliver(world, setting);
    recover(world, setting);
}

/// Every callback on its way is worked on and answered.
fn deliver(world: &mut World, setting: &Setting) {
    while world.posts.len() > 0 {
        let post = world.posts.as_slice()[0];
        match post.place {
            Place::ToHost => host::arrive(world, setting, 0, 0),
            Place::Waiting(process, row) => host::work(world, setting, process, usize::from(row)),
            Place::ToServer(reply) => {
                world.posts.remove(0);
                server::hear(world, post, Heard::Answer(reply));
            }
        }
    }
}
