//! Our processes: taking callbacks, working on them, answering, opening; as `server/src/{saving,opening,recovering}` do it.
//!
//! A callback is written down (or recognised), joins or starts the work on its row in its process, and is answered when
//! that work ends. A crash between any two steps forgets the work and cuts the callers off; the rows stay.
//!
//! Guarantees: what must hold when an answer leaves is watched here, in [`answer`].
//! Does not do: decide. Plans, rulings and answers are asked of `model`; fetching, checking and storing are one step.

use model::callbacks::{AsideReason, HasUrl, Plan, plan_for};
use model::saves::SomeoneWaits;

use crate::ledger::{self, Grant, Receipt};
use crate::promises::Promise;
use crate::search::Setting;
use crate::server::{self, Heard};
use crate::world::{Bytes, Collecting, End, Knowledge, Place, Post, Reply, Standing, World, Written};

/// A callback reaches a process: it is written down, or recognised.
pub(crate) fn arrive(world: &mut World, setting: &Setting, at: usize, process: u8) {
    let post = world.posts.as_slice()[at];
    let guards = &setting.guards;
    match ledger::receive(world, setting, &post) {
        Receipt::New(row) | Receipt::Unfinished(row) if !guards.answer_after_commit => {
            answer(world, setting, (at, row), Reply::Saved);
        }
        Receipt::Unfinished(row) if !guards.busy_is_not_done => {
            answer(world, setting, (at, row), Reply::Saved);
        }
        Receipt::Finished(row, reply) => answer(world, setting, (at, row), reply),
        Receipt::New(row) | Receipt::Unfinished(row) => {
            let row = u8::try_from(row).expect("few rows");
            world.posts.as_mut_slice()[at].place = Place::Waiting(process, row);
        }
    }
}

/// Status 4: nobody is editing and nothing changed. The key stays.
pub(crate) fn note_idle(world: &mut World, setting: &Setting, key: u8) {
    if plan_of(4, 0) == Plan::NoteIdle && !setting.guards.key_survives_status_4 {
        ledger::settle(world, key);
    }
}

fn plan_of(status: u8, path: u8) -> Plan {
    plan_for(status, if path > 0 { HasUrl::Yes } else { HasUrl::No })
}

/// Sends an answer, unless a 0 would come too late. If it is 0, the server is about to forget the session: the key
/// retires before it hears.
fn answer(world: &mut World, setting: &Setting, (at, row): (usize, usize), reply: Reply) {
    let post = world.posts.as_slice()[at];
    let is_too_late = post.is_late && setting.guards.late_answer_closes;
    if reply == Reply::TryAgain || is_too_late {
        world.posts.remove(at);
        return server::hear(world, post, Heard::Nothing);
    }
    if reply == Reply::Saved {
        ledger::acknowledge(world, row);
        watch_what_a_zero_promises(world, &post);
    }
    // Nothing depends on when exactly the server hears about a force save.
    if post.is_heard && post.status != 6 {
        world.posts.as_mut_slice()[at].place = Place::ToServer(reply);
    } else {
        world.posts.remove(at);
        server::hear(world, post, Heard::Answer(reply));
    }
}

fn watch_what_a_zero_promises(world: &mut World, post: &Post) {
    if post.status == 3 {
        return world.breaks(Promise::AFailedSaveIsNeverConfirmed);
    }
    if !world.stored.as_slice().iter().any(|stored| stored.content == post.content) {
        world.breaks(Promise::AnAnsweredSaveIsKept);
    }
    let key = &mut world.keys[usize::from(post.key)];
    if post.status == 2 && key.standing == Standing::Live {
        world.breaks(Promise::AnAnsweredKeyIsRetired);
    } else if post.status == 2 {
        key.is_over = true;
    }
}

/// A process that callers wait in fetches, stores, commits and answers.
///
/// What it does before the commit nobody sees, and a crash between the commit and the answer is an answer that gets
/// lost, so this is one step.
pub(crate) fn work(world: &mut World, setting: &Setting, process: u8, row: usize) {
    let waits = someone_waits(world, process, row);
    run(world, setting, (process, row), waits);
    let reply = match world.rows.as_slice()[row].end {
        End::Answered(reply) => reply,
        End::Open | End::Expired => Reply::TryAgain,
    };
    while let Some(at) = world.posts.as_slice().iter().position(|post| waits_for(post, process, row)) {
        answer(world, setting, (at, row), reply);
    }
}

/// Recovery takes up a row for which nobody waits.
pub(crate) fn recover(world: &mut World, setting: &Setting, process: u8, row: usize) {
    run(world, setting, (process, row), SomeoneWaits::No);
}

fn run(world: &mut World, setting: &Setting, (process, row): (u8, usize), waits: SomeoneWaits) {
    let written = world.rows.as_slice()[row];
    if written.end != End::Open {
        return;
    }
    if written.path > 0 && written.is_old {
        return ledger::give_up(world, row);
    }
    match plan_of(written.status, written.path) {
        Plan::Store(kind) if !(written.content.is_damaged && setting.guards.quarantine) => {
            ledger::commit_save(world, setting, (row, kind), waits);
        }
        Plan::Store(_) => ledger::keep_aside(world, setting, row, AsideReason::Damaged),
        Plan::KeepAside(reason) | Plan::Alert(reason) => ledger::keep_aside(world, setting, row, reason),
        Plan::NotePresence | Plan::NoteIdle | Plan::Ignore => {}
    }
    if written.path > 0 && !setting.guards.blob_before_row {
        world.rows.as_mut_slice()[row].bytes = Bytes::Coming(process);
    }
}

/// A guard is gone: the bytes are stored after the row that names them.
pub(crate) fn store_late(world: &mut World, row: usize) {
    world.rows.as_mut_slice()[row].bytes = Bytes::Safe;
}

/// Whether a caller waits in this process who is young enough to be answered 0.
fn someone_waits(world: &World, process: u8, row: usize) -> SomeoneWaits {
    let is_young = |post: &Post| waits_for(post, process, row) && !post.is_late;
    if world.posts.as_slice().iter().any(is_young) { SomeoneWaits::Yes } else { SomeoneWaits::No }
}

/// Whether this caller waits in this process for this row.
pub(crate) fn waits_for(post: &Post, process: u8, row: usize) -> bool {
    matches!(post.place, Place::Waiting(at, number) if at == process && usize::from(number) == row)
}

/// A process ends, whatever it was doing, and starts again with nothing.
pub(crate) fn crash(world: &mut World, process: u8) {
    world.collecting[usize::from(process)] = Collecting::Idle;
    for row in world.rows.as_mut_slice() {
        if row.bytes == Bytes::Coming(process) {
            row.bytes = Bytes::Missing;
        }
    }
    let is_there = |post: &Post| matches!(post.place, Place::Waiting(at, _) if at == process);
    while let Some(at) = world.posts.as_slice().iter().position(is_there) {
        let post = world.posts.remove(at);
        server::hear(world, post, Heard::Nothing);
    }
}

/// Whether there is anything a crash of this process would cut short.
pub(crate) fn is_busy(world: &World, process: u8) -> bool {
    let is_there = |post: &Post| matches!(post.place, Place::Waiting(at, _) if at == process);
    world.collecting[usize::from(process)] != Collecting::Idle
        || world.posts.as_slice().iter().any(is_there)
        || world.rows.as_slice().iter().any(|row| row.bytes == Bytes::Coming(process))
}

/// Fifteen minutes pass: links die, and paths may be drawn again.
pub(crate) fn let_links_die(world: &mut World) {
    for row in world.rows.as_mut_slice() {
        row.is_old = true;
    }
}

/// Whether links can die now: the server waits for nothing, and nothing is on the wire.
pub(crate) fn can_links_die(world: &World) -> bool {
    let is_young = |row: &Written| !row.is_old;
    world.posts.len() == 0 && world.rows.as_slice().iter().any(is_young)
}

/// Somebody wants to edit; what that led to.
pub(crate) fn open(world: &mut World, setting: &Setting) -> Grant {
    let grant = ledger::open_for_editing(world, setting);
    match grant {
        Grant::Granted(key) => world.keys[usize::from(key)].is_handed_out = true,
        Grant::Ask(key) => {
            let saves_received = world.keys[usize::from(key)].saves_received;
            let quiet = ledger::quiet(world, key);
            world.knowledge = Some(Knowledge { key, saves_received, server: world.info(key), quiet });
        }
        Grant::Finish(key) => crate::collecting::begin_finishing(world, key),
        Grant::Refused | Grant::OutOfKeys => {}
    }
    grant
}
