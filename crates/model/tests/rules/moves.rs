//! Every single thing that can happen next, who does it, and how often the budget allows it.
//!
//! Guarantees: whatever can happen is listed, unless another listed move leads to an equal world.
//! Does not do: the happening itself; that is with whoever it happens to.

use crate::search::Setting;
use crate::server::{Changed, Conversion, Heard};
use crate::world::{Bytes, Collecting, End, KEYS, PROCESSES, Place, Post, Stage, World};
use crate::{collecting, host, server};

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Join(u8),
    Change(u8, Changed),
    ForceSave(u8),
    Leave(u8),
    PostFinal(u8, usize, Conversion),
    ServerDies,
    WindowPasses(u8),
    RowExpires(u8),
    ServerLoses(u8),
    Arrive(usize, u8),
    LoseCallback(usize),
    Duplicate(usize),
    HangUp(usize, Noticed),
    HearAnswer(usize),
    LoseAnswer(usize),
    Work(u8, usize),
    StoreLate(usize),
    Recover(u8, usize),
    HostCrashes(u8),
    LinksDie,
    Collect(u8, u8),
    Settle(u8, u8),
    CollectorStep(u8),
    Open,
}

/// Whether we see that a caller hung up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noticed {
    Yes,
    No,
}

/// Lists all that can happen in this world.
pub(crate) fn possible(world: &World, setting: &Setting, moves: &mut Vec<Move>) {
    for key in 0..3 {
        of_people(world, key, moves);
        of_server(world, key, moves);
    }
    if world.budget.server_crashes > 0 && world.paths + world.made_at[0] > 0 {
        moves.push(Move::ServerDies);
    }
    for at in 0..world.posts.len() {
        of_network(world, setting, at, moves);
    }
    for process in 0..2 {
        of_process(world, setting, process, moves);
    }
    if world.budget.expiries > 0 && host::can_links_die(world) {
        moves.push(Move::LinksDie);
    }
    moves.push(Move::Open);
}

fn of_people(world: &World, key: u8, moves: &mut Vec<Move>) {
    let budget = &world.budget;
    if budget.joins > 0 && server::can_join(world, key) {
        moves.push(Move::Join(key));
    }
    if budget.changes > 0 && server::can_change(world, key) {
        moves.push(Move::Change(key, Changed::ByTheSame));
        if budget.authors > 0 && world.made_at[0] > 0 {
            moves.push(Move::Change(key, Changed::ByAnother));
        }
        if budget.ties > 0 && world.made_at.contains(&world.clock) {
            moves.push(Move::Change(key, Changed::InTheSameSecond));
        }
    }
    if budget.force_saves > 0 && server::can_force_save(world, key) {
        moves.push(Move::ForceSave(key));
    }
    if server::can_leave(world, key) {
        moves.push(Move::Leave(key));
    }
}

fn of_server(world: &World, key: u8, moves: &mut Vec<Move>) {
    let budget = &world.budget;
    for slot in 0..2 {
        if !server::can_post(world, key, slot) {
            continue;
        }
        moves.push(Move::PostFinal(key, slot, Conversion::AsBefore));
        let is_first = world.server[usize::from(key)].tasks[slot].stage == Stage::Delay;
        if is_first && budget.failures > 0 {
            moves.push(Move::PostFinal(key, slot, Conversion::Failed));
        }
        if is_first && budget.damages > 0 {
            moves.push(Move::PostFinal(key, slot, Conversion::Damaged));
        }
    }
    if budget.windows > 0 && server::can_grow_old(world, key) {
        moves.push(Move::WindowPasses(key));
    }
    if budget.sweeps > 0 && server::can_expire(world, key) {
        moves.push(Move::RowExpires(key));
    }
    if budget.amnesias > 0 && server::can_lose(world, key) {
        moves.push(Move::ServerLoses(key));
    }
}

fn of_network(world: &World, setting: &Setting, at: usize, moves: &mut Vec<Move>) {
    let budget = &world.budget;
    let post = world.posts.as_slice()[at];
    match post.place {
        Place::ToHost if !setting.seconds_are_swapped && is_overtaking(world, &post) => {}
        Place::ToHost => {
            moves.push(Move::Arrive(at, 0));
            let is_same =
                |other: &Post| other.path == post.path && matches!(other.place, Place::Waiting(0, _));
            // Otherwise it makes no difference which process takes it.
            if budget.host_crashes > 0 || world.posts.as_slice().iter().any(is_same) {
                moves.push(Move::Arrive(at, 1));
            }
            if budget.losses > 0 {
                moves.push(Move::LoseCallback(at));
            }
            if budget.duplicates > 0 && post.is_heard && !world.posts.is_full() {
                moves.push(Move::Duplicate(at));
            }
        }
        Place::Waiting(..) => {
            if budget.timeouts > 0 && post.is_heard {
                moves.extend([Noticed::Yes, Noticed::No].map(|noticed| Move::HangUp(at, noticed)));
            }
        }
        Place::ToServer(_) => {
            moves.push(Move::HearAnswer(at));
            if budget.losses > 0 || budget.host_crashes > 0 {
                moves.push(Move::LoseAnswer(at));
            }
        }
    }
}

/// Force saves of one second cannot be told apart by their times. They come one by one, or nobody knows their order.
fn is_overtaking(world: &World, post: &Post) -> bool {
    let is_before = |other: &Post| {
        let is_same_second = (other.key, other.status, other.last_save) == (post.key, 6, post.last_save);
        is_same_second && post.status == 6 && other.path < post.path && other.place == Place::ToHost
    };
    world.posts.as_slice().iter().any(is_before)
}

fn of_process(world: &World, setting: &Setting, process: u8, moves: &mut Vec<Move>) {
    for row in 0..world.rows.len() {
        let written = world.rows.as_slice()[row];
        if world.posts.as_slice().iter().any(|post| host::waits_for(post, process, row)) {
            moves.push(Move::Work(process, row));
        }
        let is_wanted = |post: &Post| matches!(post.place, Place::Waiting(_, at) if usize::from(at) == row);
        let is_in_work = world.posts.as_slice().iter().any(is_wanted);
        let may_recover = process == 0 && (setting.recovery_is_eager || !is_in_work);
        if written.end == End::Open && may_recover {
            moves.push(Move::Recover(process, row));
        }
        if written.bytes == Bytes::Coming(process) {
            moves.push(Move::StoreLate(row));
        }
    }
    if world.budget.host_crashes > 0 && host::is_busy(world, process) {
        moves.push(Move::HostCrashes(process));
    }
    if world.collecting[usize::from(process)] != Collecting::Idle {
        moves.push(Move::CollectorStep(process));
    }
    for key in 0..3 {
        if collecting::can_collect(world, setting, process, key) {
            moves.push(Move::Collect(process, key));
        }
        if collecting::can_settle(world, setting, process, key) {
            moves.push(Move::Settle(process, key));
        }
    }
}

/// Makes a move. The caller compares: some moves change nothing.
pub(crate) fn make(world: &mut World, setting: &Setting, step: Move) {
    pay(world, step);
    match step {
        Move::Join(key) => server::join(world, setting, key),
        Move::Change(key, kind) => server::change(world, key, kind),
        Move::ForceSave(key) => server::force_save(world, key),
        Move::Leave(key) => server::leave(world, setting, key),
        Move::PostFinal(key, slot, conversion) => server::post(world, (key, slot), conversion),
        Move::ServerDies => server::die(world),
        Move::WindowPasses(key) => server::grow_old(world, key),
        Move::RowExpires(key) => server::expire(world, key),
        Move::ServerLoses(key) => server::lose(world, key),
        Move::Work(process, row) => host::work(world, setting, process, row),
        Move::StoreLate(row) => host::store_late(world, row),
        Move::Recover(process, row) => host::recover(world, setting, process, row),
        Move::HostCrashes(process) => host::crash(world, process),
        Move::LinksDie => host::let_links_die(world),
        Move::Collect(process, key) => collecting::begin_collecting(world, process, key),
        Move::Settle(process, key) => collecting::finish(world, process, key),
        Move::CollectorStep(process) => collecting::step(world, setting, process),
        Move::Open => drop(host::open(world, setting)),
        _ => on_the_wire(world, setting, step),
    }
    world.tidy();
}

fn on_the_wire(world: &mut World, setting: &Setting, step: Move) {
    match step {
        Move::Arrive(at, process) => host::arrive(world, setting, at, process),
        Move::Duplicate(at) => {
            let mut copy = world.posts.as_slice()[at];
            copy.is_heard = false;
            world.posts.push(copy);
        }
        Move::HangUp(at, Noticed::No) => {
            let post = world.posts.as_slice()[at];
            world.posts.as_mut_slice()[at].is_heard = false;
            server::hear(world, post, Heard::Nothing);
        }
        Move::LoseCallback(at) | Move::LoseAnswer(at) | Move::HangUp(at, Noticed::Yes) => {
            let post = world.posts.remove(at);
            server::hear(world, post, Heard::Nothing);
        }
        Move::HearAnswer(at) => {
            let post = world.posts.remove(at);
            if let Place::ToServer(reply) = post.place {
                server::hear(world, post, Heard::Answer(reply));
            }
        }
        _ => {}
    }
}

/// Takes what a move costs from the budget.
fn pay(world: &mut World, step: Move) {
    let budget = &mut world.budget;
    let price = match step {
        Move::Join(_) => &mut budget.joins,
        Move::Change(_, kind) => {
            budget.ties -= u8::from(kind == Changed::InTheSameSecond);
            budget.authors -= u8::from(kind == Changed::ByAnother);
            &mut budget.changes
        }
        Move::ForceSave(_) => &mut budget.force_saves,
        Move::PostFinal(_, _, Conversion::Failed) => &mut budget.failures,
        Move::PostFinal(_, _, Conversion::Damaged) => &mut budget.damages,
        Move::ServerDies => &mut budget.server_crashes,
        Move::WindowPasses(_) => &mut budget.windows,
        Move::RowExpires(_) => &mut budget.sweeps,
        Move::ServerLoses(_) => &mut budget.amnesias,
        // A process that ends between the commit and the answer.
        Move::LoseAnswer(_) if budget.losses == 0 => &mut budget.host_crashes,
        Move::LoseCallback(_) | Move::LoseAnswer(_) => &mut budget.losses,
        Move::Duplicate(_) => &mut budget.duplicates,
        Move::HangUp(..) => &mut budget.timeouts,
        Move::HostCrashes(_) => &mut budget.host_crashes,
        Move::LinksDie => &mut budget.expiries,
        _ => return,
    };
    *price -= 1;
}

const _: () = assert!(KEYS == 3 && PROCESSES == 2, "`possible` counts them");
