//! The Document Server: what it does to its own state, as PROTOCOL.md sections 0, 2, 13 and 14 describe it.
//!
//! People join, change, force-save and leave; the last one's leaving starts the final save; the key is spent before the
//! callback leaves; the answer is acted on without looking at whose changes these are by now; what is not heard is
//! repeated and then forgotten; a crash forgets who was in and the saves still in their delay.
//!
//! Guarantees: every move is one the real server can make.
//! Does not do: status 1 (it carries nothing), viewers, several servers. Status 4 arrives at once.

use model::opening::ServerKnowledge;

use crate::search::{REPEATS, Setting};
use crate::world::{CHANGES, Force, History, Place, Post, Reply, Row, Stage, Task, World};
use crate::{host, ledger};

/// What the server hears of a callback it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Answer(Reply),
    /// Refused, cut off, or no answer in time.
    Nothing,
}

impl World {
    /// What `info` says, and the callback it causes.
    pub(crate) fn info(&self, key: u8) -> ServerKnowledge {
        let state = &self.server[usize::from(key)];
        match (state.row, state.users, state.log) {
            (Row::Absent, ..) => ServerKnowledge::Unknown,
            (_, 1.., _) => ServerKnowledge::UsersInside,
            (_, 0, 1..) => ServerKnowledge::ChangesHeld,
            (_, 0, 0) => ServerKnowledge::NothingHeld,
        }
    }

    fn draw_path(&mut self) -> u8 {
        self.paths += 1;
        self.paths
    }
}

/// Whether opening the key leads anywhere: a key just spent only tells people to ask for another.
pub(crate) fn can_join(world: &World, key: u8) -> bool {
    let state = &world.server[usize::from(key)];
    world.keys[usize::from(key)].is_handed_out && state.row != Row::Spent && state.users < 2
}

/// Somebody opens the key with the configuration they hold.
pub(crate) fn join(world: &mut World, setting: &Setting, key: u8) {
    let state = &mut world.server[usize::from(key)];
    match state.row {
        Row::Spent => return,
        Row::Ok => {}
        Row::Saving => {
            state.row = Row::Ok;
            // The timer of the save delay finds its tag gone.
            drop_tasks(&mut state.tasks, Stage::Delay);
            if !setting.repeats_linger {
                drop_tasks(&mut state.tasks, Stage::Pause);
            }
        }
        Row::Absent | Row::Blank | Row::SpentLong => {
            if !open_copy(world, setting, key) {
                return;
            }
        }
    }
    world.server[usize::from(key)].users += 1;
}

fn drop_tasks(tasks: &mut [Task; 2], stage: Stage) {
    for task in tasks.iter_mut().filter(|task| task.stage == stage) {
        *task = Task::default();
    }
    tasks.sort_unstable_by(|one, other| other.cmp(one));
}

/// The forgotten copy comes first; else the source is fetched from us. Unacknowledged changes are replayed on it.
fn open_copy(world: &mut World, setting: &Setting, key: u8) -> bool {
    let place = usize::from(key);
    let forgotten = world.server[place].forgotten;
    let Some(base) = forgotten.or_else(|| ledger::source(world, setting, key)) else {
        world.server[place].row = Row::Blank;
        return false;
    };
    let state = &mut world.server[place];
    state.row = Row::Ok;
    state.base = base;
    state.base_is_forgotten = forgotten.is_some();
    true
}

/// Whether somebody is in who can change something.
pub(crate) fn can_change(world: &World, key: u8) -> bool {
    let state = &world.server[usize::from(key)];
    state.users > 0 && state.row == Row::Ok && world.made_at[CHANGES - 1] == 0
}

/// Who changes something, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    ByTheSame,
    ByAnother,
    InTheSameSecond,
}

/// Somebody changes something.
pub(crate) fn change(world: &mut World, key: u8, kind: Changed) {
    if kind != Changed::InTheSameSecond {
        world.clock += 1;
    }
    let change = world.made_at.iter().filter(|at| **at > 0).count();
    world.made_at[change] = world.clock;
    if kind == Changed::ByAnother {
        world.author_changes |= 1 << change;
    }
    let state = &mut world.server[usize::from(key)];
    state.log |= 1 << change;
    state.force = Force::Possible;
}

/// Whether a force save has anything to send.
pub(crate) fn can_force_save(world: &World, key: u8) -> bool {
    let state = &world.server[usize::from(key)];
    let has_something = matches!(state.force, Force::Possible | Force::Cached(_));
    state.users > 0 && state.row == Row::Ok && has_something && !world.posts.is_full()
}

/// A force save: a new file, or the one we did not take.
pub(crate) fn force_save(world: &mut World, key: u8) {
    let path = match world.server[usize::from(key)].force {
        Force::Cached(path) => path,
        _ => world.draw_path(),
    };
    let post = Post { status: 6, path, is_heard: true, ..save_of(world, key) };
    world.posts.push(post);
    world.server[usize::from(key)].force = Force::Sent(path);
}

/// What a save of the key's present state says.
fn save_of(world: &World, key: u8) -> Post {
    let state = &world.server[usize::from(key)];
    let from_forgotten = state.base_is_forgotten && state.forgotten.is_some();
    Post {
        key,
        content: state.base.with(state.log),
        last_save: world.last_time(state.log),
        // Opened from its forgotten file, the server sends no history.
        history: if from_forgotten { History::default() } else { world.history_of(state.log) },
        from_forgotten,
        ..Post::default()
    }
}

/// Whether somebody can leave: the last one needs room for what follows.
pub(crate) fn can_leave(world: &World, key: u8) -> bool {
    let state = &world.server[usize::from(key)];
    let has_room = state.tasks.iter().any(|task| task.path == 0);
    state.users > 1 || (state.users == 1 && has_room)
}

/// Somebody leaves. The last one's leaving starts the final save, or is told as status 4.
pub(crate) fn leave(world: &mut World, setting: &Setting, key: u8) {
    let place = usize::from(key);
    world.server[place].users -= 1;
    if world.server[place].users > 0 {
        return;
    }
    if world.server[place].log == 0 && world.server[place].forgotten.is_none() {
        world.server[place].force = Force::None;
        return host::note_idle(world, setting, key);
    }
    let path = world.draw_path();
    let Post { content, history, .. } = save_of(world, key);
    let state = &mut world.server[place];
    state.row = Row::Saving;
    state.owner = path;
    add_task(&mut state.tasks, Task { path, content, history, ..Task::default() });
}

fn add_task(tasks: &mut [Task; 2], task: Task) {
    let free = tasks.iter_mut().find(|task| task.path == 0).expect("`can_leave` saw a free place");
    *free = task;
    tasks.sort_unstable_by(|one, other| other.cmp(one));
}

/// Whether a final save can be sent, now or again.
pub(crate) fn can_post(world: &World, key: u8, slot: usize) -> bool {
    let task = &world.server[usize::from(key)].tasks[slot];
    task.path > 0 && task.stage != Stage::Posted && !world.posts.is_full()
}

/// How the converter did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    AsBefore,
    Failed,
    Damaged,
}

/// Sends a final save, unless the key was opened again or another save took its place.
pub(crate) fn post(world: &mut World, (key, slot): (u8, usize), conversion: Conversion) {
    let place = usize::from(key);
    let state = &mut world.server[place];
    let task = &mut state.tasks[slot];
    let is_ours = state.row == Row::Saving && state.owner == task.path;
    let is_again = matches!(state.row, Row::Spent | Row::SpentLong);
    if state.users > 0 || !(is_ours || is_again) {
        *task = Task::default();
        return state.tasks.sort_unstable_by(|one, other| other.cmp(one));
    }
    match conversion {
        Conversion::AsBefore => {}
        Conversion::Failed => task.failed = true,
        Conversion::Damaged => task.content.is_damaged = true,
    }
    task.stage = Stage::Posted;
    let task = *task;
    state.tasks.sort_unstable_by(|one, other| other.cmp(one));
    if is_ours {
        state.row = Row::Spent;
    }
    let knows_time = state.force != Force::None;
    // The save delay and the conversion take seconds: what comes later has a later time.
    world.clock += 1;
    let mut post = save_of(world, key);
    (post.content, post.history) = (task.content, task.history);
    post.status = if task.failed { 3 } else { 2 };
    post.path = if task.failed { 0 } else { task.path };
    post.is_heard = true;
    if !knows_time {
        post.last_save = 0;
    }
    if task.failed {
        (post.content, post.history, post.from_forgotten) = Default::default();
    }
    world.posts.push(post);
}

/// The server hears an answer to a callback, or that there will be none.
pub(crate) fn hear(world: &mut World, post: Post, heard: Heard) {
    if !post.is_heard {
        return;
    }
    match post.status {
        6 => hear_force_save(world, post, heard),
        2 | 3 => hear_final_save(world, post, heard),
        _ => {}
    }
}

fn hear_force_save(world: &mut World, post: Post, heard: Heard) {
    let force = &mut world.server[usize::from(post.key)].force;
    // A change that came in between made the outcome old news.
    if *force == Force::Sent(post.path) || *force == Force::Cached(post.path) {
        let is_taken = heard == Heard::Answer(Reply::Saved);
        *force = if is_taken { Force::Done } else { Force::Cached(post.path) };
    }
}

fn hear_final_save(world: &mut World, post: Post, heard: Heard) {
    let state = &mut world.server[usize::from(post.key)];
    let is_posted = |task: &Task| task.stage == Stage::Posted && task.path > 0;
    let is_it =
        |task: &Task| is_posted(task) && if task.failed { post.path == 0 } else { task.path == post.path };
    let Some(slot) = state.tasks.iter().position(is_it) else { return };
    let task = state.tasks[slot];
    state.tasks[slot] = Task::default();
    if heard == Heard::Answer(Reply::Saved) {
        state.tasks.sort_unstable_by(|one, other| other.cmp(one));
        // Without looking whose changes these are by now.
        (state.log, state.forgotten, state.force) = (0, None, Force::None);
        if post.from_forgotten {
            forget_row(world, post.key);
        }
        return;
    }
    let is_ours = matches!(state.row, Row::Spent | Row::SpentLong) && state.owner == task.path;
    if is_ours {
        state.row = Row::Saving;
    }
    let is_worth_a_repeat = heard != Heard::Answer(Reply::NotSaved);
    if is_worth_a_repeat && task.attempt < REPEATS {
        state.tasks[slot] = Task { attempt: task.attempt + 1, stage: Stage::Pause, ..task };
    }
    state.tasks.sort_unstable_by(|one, other| other.cmp(one));
    if state.tasks.iter().any(|other| other.path == task.path) || task.failed {
        return;
    }
    state.forgotten = Some(task.content);
    state.force = Force::None;
    if is_ours {
        state.log = 0;
        forget_row(world, post.key);
    }
}

fn forget_row(world: &mut World, key: u8) {
    let state = &mut world.server[usize::from(key)];
    (state.row, state.owner, state.base, state.base_is_forgotten) = Default::default();
}

/// The server is killed and starts again.
pub(crate) fn die(world: &mut World) {
    for state in &mut world.server {
        state.users = 0;
        state.force = Force::None;
        drop_tasks(&mut state.tasks, Stage::Delay);
        for task in state.tasks.iter_mut().filter(|task| task.path > 0) {
            task.stage = Stage::Pause;
        }
    }
    for post in world.posts.as_mut_slice() {
        post.is_heard = false;
    }
    forget_unheard_replies(world);
}

/// An answer nobody listens for is as good as never given.
fn forget_unheard_replies(world: &mut World) {
    let is_for_nobody = |post: &Post| !post.is_heard && matches!(post.place, Place::ToServer(_));
    while let Some(at) = world.posts.as_slice().iter().position(is_for_nobody) {
        world.posts.remove(at);
    }
}

/// Whether the time can come when a spent key is revived: nothing stays on the wire for minutes.
pub(crate) fn can_grow_old(world: &World, key: u8) -> bool {
    let is_moving =
        |post: &Post| post.key == key && post.is_heard && !matches!(post.place, Place::Waiting(..));
    world.server[usize::from(key)].row == Row::Spent && !world.posts.as_slice().iter().any(is_moving)
}

/// The window after which a spent key can be revived is over; whoever still waits is late by then.
pub(crate) fn grow_old(world: &mut World, key: u8) {
    world.server[usize::from(key)].row = Row::SpentLong;
    for post in world.posts.as_mut_slice() {
        post.is_late |= post.key == key && matches!(post.place, Place::Waiting(..));
    }
}

/// Whether the row of a key can expire: nobody uses it and nothing is in its log.
pub(crate) fn can_expire(world: &World, key: u8) -> bool {
    let state = &world.server[usize::from(key)];
    let is_unused = state.users == 0 && state.log == 0 && state.tasks.iter().all(|task| task.path == 0);
    state.row != Row::Absent && is_unused
}

/// A day passed: the row and its cached copy go.
pub(crate) fn expire(world: &mut World, key: u8) {
    forget_row(world, key);
    world.server[usize::from(key)].force = Force::None;
}

/// Whether there is anything the server could lose.
pub(crate) fn can_lose(world: &World, key: u8) -> bool {
    world.server[usize::from(key)].row != Row::Absent
}

/// The server loses its database: everything under the key but its forgotten file.
pub(crate) fn lose(world: &mut World, key: u8) {
    world.lost_by_server |= world.server[usize::from(key)].log;
    forget_row(world, key);
    let state = &mut world.server[usize::from(key)];
    (state.log, state.users, state.force, state.tasks) = Default::default();
    for post in world.posts.as_mut_slice().iter_mut().filter(|post| post.key == key) {
        post.is_heard = false;
    }
    forget_unheard_replies(world);
}
