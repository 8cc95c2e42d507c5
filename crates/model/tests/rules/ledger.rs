//! Our ledger: each function is one transaction, step by step as `ledger/src/sqlite/{inbox,commit,keys,facts}.rs` do it.
//!
//! Guarantees: facts are read here, decisions are asked of the real rules of `model`, and what they say is written down.
//! Promises about a single step (the head keeps its content, one content per save …) are watched here.
//! Does not do: labels, audit, SQL. What a transaction sees and writes is all that matters to the rules.

use std::sync::OnceLock;

use jiff::Timestamp;
use model::callbacks::{AsideReason, answer_to_failure};
use model::opening::{
    KeySpent, LeftKeyFacts, LiveKeyFacts, OpenFacts, OpenRuling, Quiet, SourceRuling, rule_on_open,
    rule_on_source,
};
use model::saves::{
    ConflictReason, ForgottenFacts, HeadFacts, IncomingSave, KeyAfterFinal, KeyFacts, KeyStanding, Ruling,
    SaveKind, SaveMark, SomeoneWaits, becomes_newest, is_known_forgotten, key_after_final, rule_on_forgotten,
    rule_on_save,
};
use model::{Digest, InboxNumber};

use crate::promises::Promise;
use crate::search::Setting;
use crate::world::{
    Content, End, Head, KeyRow, Knowledge, Mark, Post, Reply, Standing, Stored, World, Written,
};

/// What the inbox says of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receipt {
    New(usize),
    Unfinished(usize),
    Finished(usize, Reply),
}

/// Recognises a repeat, or writes the callback down.
pub(crate) fn receive(world: &mut World, setting: &Setting, post: &Post) -> Receipt {
    if setting.guards.inbox
        && let Some(row) = find_repeat(world, post)
    {
        // What the first delivery said of its save stays: a repeat may carry the time of a newer change.
        return match world.rows.as_slice()[row].end {
            End::Answered(answer) => Receipt::Finished(row, answer),
            End::Open | End::Expired => Receipt::Unfinished(row),
        };
    }
    let number = write_down(world, post);
    let key = &mut world.keys[usize::from(post.key)];
    key.saves_received += 1;
    if post.status == 2 {
        key.last_received_final = number;
    }
    Receipt::New(world.rows.len() - 1)
}

fn find_repeat(world: &World, post: &Post) -> Option<usize> {
    world.rows.as_slice().iter().rposition(|row| {
        row.key == post.key
            && row.status == post.status
            && row.path == post.path
            && (row.status != 6 || row.last_save == post.last_save)
            && !row.is_old
            && row.end != End::Expired
    })
}

fn write_down(world: &mut World, post: &Post) -> u8 {
    world.rows.push(Written {
        key: post.key,
        status: post.status,
        path: post.path,
        content: post.content,
        last_save: post.last_save,
        history: post.history,
        ..Written::default()
    });
    number_of(world.rows.len() - 1)
}

/// The inbox number of a row.
pub(crate) fn number_of(row: usize) -> u8 {
    u8::try_from(row + 1).expect("few rows")
}

/// Commits a save: order guard, version or kept copy, head, key, answer.
pub(crate) fn commit_save(
    world: &mut World,
    setting: &Setting,
    (row, kind): (usize, SaveKind),
    waits: SomeoneWaits,
) {
    let written = world.rows.as_slice()[row];
    let mark = Mark {
        number: number_of(row),
        last_save: written.last_save,
        history: written.history,
        content: written.content,
    };
    let key = key_facts(world, written.key, written.content);
    let incoming = IncomingSave { kind, mark: save_mark(mark) };
    let ruling = rule_on_save(&setting.guards, &key, &head_facts(world, written.key), &incoming);
    watch_for_needless_conflict(world, row, ruling);
    place(world, (written.key, written.path), ruling, mark);
    if becomes_newest(&setting.guards, &key, &incoming) {
        note_newest(world, written.key, kind, mark);
    }
    if kind == SaveKind::Final && key_after_final(waits) == KeyAfterFinal::Retire {
        settle(world, written.key);
    }
    finish(world, row, Reply::Saved);
}

/// A final save that was here before another key was issued must not become a conflict because of that key.
fn watch_for_needless_conflict(world: &mut World, row: usize, ruling: Ruling) {
    let reasons = [ConflictReason::KeyRetired, ConflictReason::BaseMoved];
    let is_conflict = reasons.iter().any(|reason| ruling == Ruling::KeepAside(*reason));
    let written = world.rows.as_slice()[row];
    let came_later = |key: &KeyRow| key.standing == Standing::Live && key.issued_after >= number_of(row);
    let is_other_live = (0..).zip(&world.keys).any(|(key, facts)| key != written.key && came_later(facts));
    if is_conflict && written.status == 2 && is_other_live {
        world.breaks(Promise::AnOpenedKeyHidesNoSave);
    }
}

fn finish(world: &mut World, row: usize, answer: Reply) {
    world.rows.as_mut_slice()[row].end = End::Answered(answer);
}

/// Ends a callback whose content must not touch the head, or that brought none.
pub(crate) fn keep_aside(world: &mut World, setting: &Setting, row: usize, reason: AsideReason) {
    let written = world.rows.as_slice()[row];
    if written.path > 0 {
        keep(world, Stored { key: written.key + 1, content: written.content, is_aside: true });
    }
    finish(world, row, answer_to_failure(&setting.guards, reason).into());
}

/// A later delivery of a committed final save is about to be answered 0: the key retires now.
pub(crate) fn acknowledge(world: &mut World, row: usize) {
    let written = world.rows.as_slice()[row];
    if written.status == 2 && written.end == End::Answered(Reply::Saved) {
        settle(world, written.key);
    }
}

/// The link is dead and the bytes never came.
pub(crate) fn give_up(world: &mut World, row: usize) {
    let written = &mut world.rows.as_mut_slice()[row];
    if written.end == End::Open {
        written.end = End::Expired;
    }
}

/// Commits a forgotten file; the key is settled with it.
pub(crate) fn collect_forgotten(world: &mut World, setting: &Setting, key: u8, content: Content) {
    let facts = key_facts(world, key, content);
    let is_known = match content.is_damaged {
        true => facts.bytes_kept_before,
        false => is_known_forgotten(&facts, &head_facts(world, key), &digest(content)),
    };
    if !is_known {
        let last = world.rows.as_slice().iter().rfind(|row| row.key == key).copied().unwrap_or_default();
        let number = write_down(
            world,
            &Post {
                key,
                status: 2,
                content,
                last_save: last.last_save,
                history: last.history,
                ..Post::default()
            },
        );
        let row = world.rows.len() - 1;
        if content.is_damaged {
            keep(world, Stored { key: key + 1, content, is_aside: true });
            finish(world, row, Reply::NotSaved);
        } else {
            commit_forgotten(world, setting, (key, number), content);
            finish(world, row, Reply::Saved);
        }
    }
    if !content.is_damaged {
        // Spent, and not retired: somebody may be entering it from that very file.
        world.keys[usize::from(key)].is_over = true;
        world.keys[usize::from(key)].is_settled = true;
    }
}

fn commit_forgotten(world: &mut World, setting: &Setting, (key, number): (u8, u8), content: Content) {
    let row = world.keys[usize::from(key)];
    let newest = row.newest_final.number.max(row.newest_checkpoint.number);
    let found = ForgottenFacts {
        digest: digest(content),
        own_number: InboxNumber(number.into()),
        last_received_final: some(row.last_received_final),
        newest_save: some(newest),
    };
    let facts = key_facts(world, key, content);
    let ruling = rule_on_forgotten(&setting.guards, &facts, &head_facts(world, key), &found);
    // The history shows it with the times of the key's last callback; the order guard knows none.
    let last = *world.rows.as_slice().last().expect("just written down");
    let mark = Mark { number, last_save: last.last_save, history: last.history, content };
    place(world, (key, 0), ruling, mark);
    if ruling == Ruling::NewVersion {
        note_newest(world, key, SaveKind::Final, Mark { number, content, ..Mark::default() });
    }
}

fn some(number: u8) -> Option<InboxNumber> {
    (number > 0).then_some(InboxNumber(number.into()))
}

/// Writes what the rule says: a version, a checkpoint, a filed content, a conflict copy, or nothing.
fn place(world: &mut World, (key, path): (u8, u8), ruling: Ruling, mark: Mark) {
    if ruling == Ruling::NothingNew {
        return;
    }
    let is_aside = matches!(ruling, Ruling::KeepAside(_));
    keep(world, Stored { key: key + 1, content: mark.content, is_aside });
    if path > 0 && world.placed & (1 << path) != 0 {
        world.breaks(Promise::OneContentPerSave);
    }
    if path > 0 {
        world.placed |= 1 << path;
    }
    if matches!(ruling, Ruling::NewVersion | Ruling::NewCheckpoint) {
        if !mark.content.contains(world.head.mark.content) {
            world.breaks(Promise::TheHeadKeepsItsContent);
        }
        world.head = Head { is_version: ruling == Ruling::NewVersion, key: key + 1, mark };
    }
}

fn keep(world: &mut World, stored: Stored) {
    if !world.stored.as_slice().contains(&stored) {
        world.stored.push(stored);
    }
}

fn note_newest(world: &mut World, key: u8, kind: SaveKind, mark: Mark) {
    let row = &mut world.keys[usize::from(key)];
    match kind {
        SaveKind::Final => row.newest_final = mark,
        SaveKind::Checkpoint => row.newest_checkpoint = mark,
    }
    row.has_first_save = true;
}

/// The server has nothing left under this key that we do not have.
pub(crate) fn settle(world: &mut World, key: u8) {
    let row = &mut world.keys[usize::from(key)];
    row.is_settled = true;
    row.standing = Standing::Retired;
}

/// Retires a key if no save of it came since the server was asked.
pub(crate) fn retire_key(world: &mut World, key: u8, saves_received: u8) {
    let row = &world.keys[usize::from(key)];
    if row.saves_received == saves_received && row.standing == Standing::Live {
        settle(world, key);
        world.keys[usize::from(key)].is_confirmed = true;
    }
}

/// `document.url`: the key's base while its session may be alive.
pub(crate) fn source(world: &mut World, setting: &Setting, key: u8) -> Option<Content> {
    let head = world.head.mark.content;
    let row = &mut world.keys[usize::from(key)];
    let spent = match row.standing {
        Standing::Live if row.is_settled => KeySpent::Collected,
        Standing::Retired => KeySpent::Yes,
        _ if row.is_settled => KeySpent::Yes,
        _ => KeySpent::No,
    };
    match rule_on_source(spent) {
        SourceRuling::Spent => return None,
        SourceRuling::Newest => return (world.head.key == key + 1).then_some(head),
        SourceRuling::Base => {}
    }
    row.base_fetched_again |= row.has_first_save;
    let content = if setting.guards.pinned_base { row.base } else { head };
    if row.is_over {
        world.breaks(Promise::ASpentKeyHasNoSource);
    }
    Some(content)
}

/// What became of a wish to edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    Granted(u8),
    Ask(u8),
    Finish(u8),
    Refused,
    /// A new key is due, and the budget has none left.
    OutOfKeys,
}

/// Rules on a wish to edit, under the document's lock.
pub(crate) fn open_for_editing(world: &mut World, setting: &Setting) -> Grant {
    let live = world.live_key();
    let left = left_key(world).filter(|_| live.is_none());
    let facts = OpenFacts {
        head: digest(world.head.mark.content),
        final_save_is_being_stored: final_save_is_being_stored(world),
        live: live.map(|key| live_facts(world, key)),
        left: left.map(|key| left_facts(world, key)),
    };
    world.knowledge = None;
    let ruling = rule_on_open(&setting.guards, &facts);
    if let (OpenRuling::Issue, Some(key)) = (ruling, left) {
        world.keys[usize::from(key)].is_confirmed = true;
    }
    match (ruling, live.or(left)) {
        (OpenRuling::WaitForSave | OpenRuling::ServerAway, _) => Grant::Refused,
        (OpenRuling::AskServer, Some(key)) => Grant::Ask(key),
        (OpenRuling::RetireThenIssue, Some(key)) => Grant::Finish(key),
        (OpenRuling::Reuse | OpenRuling::BringBackStranded, Some(key)) => Grant::Granted(key),
        (OpenRuling::Revive, Some(key)) => {
            let row = &mut world.keys[usize::from(key)];
            (row.standing, row.is_settled) = (Standing::Live, false);
            Grant::Granted(key)
        }
        _ if world.budget.keys == 0 => Grant::OutOfKeys,
        _ => Grant::Granted(issue(world)),
    }
}

fn final_save_is_being_stored(world: &World) -> bool {
    (0..).zip(world.rows.as_slice()).any(|(row, written)| {
        let newest_final = world.keys[usize::from(written.key)].newest_final.number;
        written.end == End::Open && written.status == 2 && number_of(row) > newest_final
    })
}

/// The newest key that retired with its final save and of which the server was not yet heard to be done.
fn left_key(world: &World) -> Option<u8> {
    let is_left = |key: &KeyRow| key.standing == Standing::Retired && !key.is_confirmed;
    (0..).zip(&world.keys).filter(|(_, key)| is_left(key)).map(|(number, _)| number).last()
}

fn left_facts(world: &World, key: u8) -> LeftKeyFacts {
    let known = knowledge_of(world, key);
    LeftKeyFacts {
        server: known.map(|known| known.server),
        quiet: known.map_or(Quiet::No, |known| known.quiet),
    }
}

fn knowledge_of(world: &World, key: u8) -> Option<Knowledge> {
    let saves_received = world.keys[usize::from(key)].saves_received;
    world.knowledge.filter(|known| known.key == key && known.saves_received == saves_received)
}

/// Whether neither a save of the key nor our answer to one is on its way.
pub(crate) fn quiet(world: &World, key: u8) -> Quiet {
    let is_posted = world.posts.as_slice().iter().any(|post| post.key == key);
    let is_repeated = world.server[usize::from(key)].tasks.iter().any(|task| task.path > 0);
    if is_posted || is_repeated { Quiet::No } else { Quiet::Yes }
}

fn live_facts(world: &World, key: u8) -> LiveKeyFacts {
    let row = &world.keys[usize::from(key)];
    LiveKeyFacts {
        base: digest(row.base),
        has_received_saves: row.saves_received > 0 || row.is_settled,
        server: knowledge_of(world, key).map(|known| known.server),
        quiet: knowledge_of(world, key).map_or(Quiet::No, |known| known.quiet),
    }
}

/// Issues the next key on the head.
pub(crate) fn issue(world: &mut World) -> u8 {
    world.budget.keys -= 1;
    let issued = world.keys.iter().filter(|key| key.standing != Standing::NotIssued).count();
    world.keys[issued] = KeyRow {
        standing: Standing::Live,
        base: world.head.mark.content,
        issued_after: u8::try_from(world.rows.len()).expect("few rows"),
        ..KeyRow::default()
    };
    u8::try_from(issued).expect("few keys")
}

fn key_facts(world: &World, key: u8, content: Content) -> KeyFacts {
    let row = &world.keys[usize::from(key)];
    let is_live = |(other, facts): (u8, &KeyRow)| other != key && facts.standing == Standing::Live;
    let is_same = |stored: &Stored| stored.key == key + 1 && stored.content == content;
    KeyFacts {
        standing: if row.standing == Standing::Live { KeyStanding::Live } else { KeyStanding::Retired },
        another_key_is_live: (0..).zip(&world.keys).any(is_live),
        base: Some(digest(row.base)),
        newest_final: known(row.newest_final),
        newest_checkpoint: known(row.newest_checkpoint),
        base_fetched_again: row.base_fetched_again,
        bytes_kept_before: world.stored.as_slice().iter().any(is_same),
        // The model does not repeat an older final save after a newer one was stored.
        opened_on: None,
    }
}

fn head_facts(world: &World, key: u8) -> HeadFacts {
    let head = &world.head;
    HeadFacts {
        digest: digest(head.mark.content),
        is_version: head.is_version,
        made_by_this_key: (head.key == key + 1).then(|| save_mark(head.mark)),
        extent: None,
    }
}

fn known(mark: Mark) -> Option<SaveMark> {
    (mark.number > 0).then(|| save_mark(mark))
}

fn save_mark(mark: Mark) -> SaveMark {
    SaveMark {
        inbox: InboxNumber(mark.number.into()),
        last_save: moment(mark.last_save),
        digest: digest(mark.content),
        session_start: moment(mark.history.start),
        runs: (mark.history.runs > 0).then(|| mark.history.runs.into()),
    }
}

fn digest(content: Content) -> Digest {
    let mut bytes = [0; 32];
    bytes[..3].copy_from_slice(&[content.holds, content.twice, u8::from(content.is_damaged)]);
    Digest::new(bytes)
}

/// Seconds as points in time; made once, because the search asks millions of times.
fn moment(second: u8) -> Option<Timestamp> {
    static MOMENTS: OnceLock<Vec<Timestamp>> = OnceLock::new();
    let at = |second: u8| Timestamp::from_second(1_794_770_000 + i64::from(second)).expect("in range");
    let moments = MOMENTS.get_or_init(|| (0..=u8::MAX).map(at).collect());
    (second > 0).then(|| moments[usize::from(second)])
}
