//! Finds changes that were made without a note, because they went past the preloaded library.
//!
//! Without this, such changes would count as durable, and a program that forgets an fsync would pass.
//! Finds every name; bytes only if they changed the size or the time of change of a file, and left some.
//! A file whose time was set without a write is taken for changed.
use std::path::PathBuf;

use super::replay::Replay;
use super::tree::Tree;

pub(super) fn unseen_changes(settled: &Tree, now: &Tree, replay: &Replay) -> Vec<PathBuf> {
    let mut unseen = Vec::new();
    unseen.extend(names_that_differ(now, settled, replay));
    unseen.extend(names_that_differ(settled, now, replay));
    for (inode, stamp) in &now.stamps {
        let is_new = replay.was_born(*inode) || !settled.stamps.contains_key(inode);
        let is_changed = is_new || settled.stamps.get(inode) != Some(stamp);
        if is_changed && stamp.bytes > 0 && !replay.bytes_were_noted(*inode) {
            unseen.extend(now.paths.get(inode).cloned());
        }
    }
    unseen.sort();
    unseen.dedup();
    unseen
}

/// Names of the one tree that stand for nothing or something else in the other, and were never noted.
fn names_that_differ<'a>(
    one: &'a Tree,
    other: &'a Tree,
    replay: &'a Replay,
) -> impl Iterator<Item = PathBuf> + 'a {
    one.folders.iter().flat_map(move |(folder, names)| {
        let others = other.folders.get(folder);
        names
            .iter()
            .filter(move |(name, entry)| others.and_then(|others| others.get(*name)) != Some(entry))
            .filter(|(name, _)| !replay.name_was_noted(*folder, name))
            .filter_map(|(name, _)| Some(one.paths.get(folder)?.join(name)))
    })
}
