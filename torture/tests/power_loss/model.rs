//! Random steps of two processes, compared with a model of the disk that is nothing but two states per
//! file and folder: the present one, and the one at the last fsync. Steps that fail are taken too.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use torture::power_loss::Survivor;

use crate::stage::{Stage, render};

const RUNS: u64 = 100;
const SEQUENCES: usize = 20;
const STEPS: usize = 12;

#[test]
fn two_thousand_random_sequences_leave_what_the_model_foresees() {
    for seed in 0..RUNS {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut stage =
        if seed.is_multiple_of(10) { Stage::new().without_real_sync() } else { Stage::in_memory() };
    let mut model = Model::new();
    let mut taken = Vec::new();
    for _ in 0..2 {
        let mut processes = [stage.start(&["script"]), stage.start(&["script"])];
        for _ in 0..SEQUENCES / 2 {
            for _ in 0..STEPS {
                let step = model.random_step(&mut dice);
                let words: Vec<&str> = step.split(' ').collect();
                let process = dice.random_range(0..processes.len());
                let expected = model.take(process, &words);
                let answer = processes[process].step(&step);
                taken.push(format!("{process}: {step} -> {answer}"));
                assert_eq!(answer == "ok", expected.is_some(), "seed {seed}:\n{}", taken.join("\n"));
            }
            let survivors = render(&stage.disk.survivors().unwrap());
            assert_eq!(survivors, render(&model.survivors()), "seed {seed}:\n{}", taken.join("\n"));
        }
        processes.into_iter().for_each(|process| drop(process.kill()));
        stage.disk.crash().unwrap();
        model.crash();
        taken.push("crash".to_owned());
        let left = render(&stage.contents());
        assert_eq!(left, render(&model.survivors()), "seed {seed}:\n{}", taken.join("\n"));
    }
}

type Id = usize;
const ROOT: Id = 0;

#[derive(Clone)]
enum Node {
    File { now: Vec<u8>, synced: Vec<u8> },
    Folder { now: BTreeMap<String, Id>, synced: BTreeMap<String, Id> },
}

struct Model {
    nodes: Vec<Node>,
    /// By process and name of the open file, and whether it was opened for appending.
    open: HashMap<(usize, String), (Id, bool)>,
}

impl Model {
    fn new() -> Self {
        Self { nodes: vec![folder()], open: HashMap::new() }
    }

    fn random_step(&self, dice: &mut StdRng) -> String {
        let folders = self.folders();
        let path = |dice: &mut StdRng| {
            let folder = folders.choose(dice).expect("the root at least");
            format!("{folder}{}", ["a", "b", "c"].choose(dice).expect("three names"))
        };
        let (one, two) = (path(dice), path(dice));
        let file = ["1", "2"].choose(dice).expect("two files");
        let letter = char::from(dice.random_range(b'a'..=b'z'));
        let (offset, bytes) = (dice.random_range(0..12_000), dice.random_range(1..9_000));
        match dice.random_range(0..28) {
            0..3 => format!("open {file} new {one}"),
            3..5 => format!("open {file} old {one}"),
            5 => format!("open {file} append {one}"),
            6 => format!("open {file} emptied {one}"),
            7..11 => format!("write-at {file} {offset} {letter} {bytes}"),
            11 => format!("resize {file} {offset}"),
            12..14 => format!("sync {file}"),
            14 => format!("sync-data {file}"),
            15 => format!("sync-path {one}"),
            16 => "sync-path .".to_owned(),
            17 => format!("sync-path {}", one.rsplit_once('/').map_or(".", |(folder, _)| folder)),
            18..21 => format!("rename {one} {two}"),
            21 => format!("link {one} {two}"),
            22..24 => format!("remove {one}"),
            24..26 => format!("make-folder {one}"),
            26 => format!("remove-folder {one}"),
            _ => format!("copy {one} {two}"),
        }
    }

    /// Does a step, or nothing if it has to fail.
    fn take(&mut self, process: usize, words: &[&str]) -> Option<()> {
        let slot = |file: &str| self.open.get(&(process, file.to_owned())).copied();
        let open = |file: &str| Some(slot(file)?.0);
        match *words {
            ["open", file, how, path] => {
                let id = self.open_file(how, path)?;
                self.open.insert((process, file.to_owned()), (id, how == "append"));
            }
            ["write-at", file, offset, letter, bytes] => {
                let filling = letter.repeat(bytes.parse().ok()?).into_bytes();
                let (id, appends) = slot(file)?;
                // On Linux, O_APPEND goes before an offset.
                let offset = if appends { self.now(id).len() } else { offset.parse().ok()? };
                self.write(id, offset, &filling);
            }
            ["resize", file, bytes] => self.now(open(file)?).resize(bytes.parse().ok()?, 0),
            ["sync" | "sync-data", file] => self.sync(open(file)?),
            ["sync-path", path] => self.sync(self.find(path)?),
            ["rename", from, to] => self.rename(from, to)?,
            ["link", from, to] => {
                let id = self.find(from).filter(|id| !self.is_folder(*id))?;
                self.add(to, id)?;
            }
            ["remove", path] => {
                self.find(path).filter(|id| !self.is_folder(*id))?;
                self.take_away(path);
            }
            ["make-folder", path] => {
                self.nodes.push(folder());
                self.add(path, self.nodes.len() - 1)?;
            }
            ["remove-folder", path] => {
                self.find(path).filter(|id| self.is_empty_folder(*id))?;
                self.take_away(path);
            }
            ["copy", from, to] => self.copy(from, to)?,
            _ => panic!("no such step"),
        }
        Some(())
    }

    fn open_file(&mut self, how: &str, path: &str) -> Option<Id> {
        let found = self.find(path);
        if found.is_some_and(|id| self.is_folder(id) || how == "new") || (found.is_none() && how == "old") {
            return None;
        }
        let id = match found {
            Some(id) => id,
            None => {
                self.nodes.push(Node::File { now: Vec::new(), synced: Vec::new() });
                self.add(path, self.nodes.len() - 1)?;
                self.nodes.len() - 1
            }
        };
        if how == "emptied" {
            self.now(id).clear();
        }
        Some(id)
    }

    fn rename(&mut self, from: &str, to: &str) -> Option<()> {
        let moved = self.find(from)?;
        let replaced = self.find(to);
        if replaced == Some(moved) {
            return Some(());
        }
        let into_itself = self.is_folder(moved) && format!("{to}/").starts_with(&format!("{from}/"));
        let fits = replaced.is_none_or(|id| match (self.is_folder(moved), self.is_folder(id)) {
            (true, true) => self.is_empty_folder(id),
            (one, other) => one == other,
        });
        if into_itself || !fits {
            return None;
        }
        self.take_away(from);
        self.take_away(to);
        self.add(to, moved)
    }

    fn copy(&mut self, from: &str, to: &str) -> Option<()> {
        let is_file = |id: &Id| !self.is_folder(*id);
        let (from, to) = (self.find(from).filter(is_file)?, self.find(to).filter(is_file)?);
        let bytes = self.now(from).clone();
        self.write(to, 0, &bytes);
        Some(())
    }

    fn write(&mut self, id: Id, offset: usize, bytes: &[u8]) {
        let now = self.now(id);
        now.resize(now.len().max(offset + bytes.len()), 0);
        now[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn sync(&mut self, id: Id) {
        match &mut self.nodes[id] {
            Node::File { now, synced } => synced.clone_from(now),
            Node::Folder { now, synced } => synced.clone_from(now),
        }
    }

    fn now(&mut self, id: Id) -> &mut Vec<u8> {
        match &mut self.nodes[id] {
            Node::File { now, .. } => now,
            Node::Folder { .. } => panic!("not a file"),
        }
    }

    fn names(&mut self, id: Id) -> Option<&mut BTreeMap<String, Id>> {
        match &mut self.nodes[id] {
            Node::File { .. } => None,
            Node::Folder { now, .. } => Some(now),
        }
    }

    fn is_folder(&self, id: Id) -> bool {
        matches!(self.nodes[id], Node::Folder { .. })
    }

    fn is_empty_folder(&self, id: Id) -> bool {
        matches!(&self.nodes[id], Node::Folder { now, .. } if now.is_empty())
    }

    fn find(&self, path: &str) -> Option<Id> {
        path.split('/').filter(|name| *name != ".").try_fold(ROOT, |id, name| match &self.nodes[id] {
            Node::Folder { now, .. } => now.get(name).copied(),
            Node::File { .. } => None,
        })
    }

    fn add(&mut self, path: &str, id: Id) -> Option<()> {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folder = self.find(folder)?;
        let names = self.names(folder).filter(|names| !names.contains_key(name))?;
        names.insert(name.to_owned(), id);
        Some(())
    }

    fn take_away(&mut self, path: &str) {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folder = self.find(folder).expect("looked up before");
        self.names(folder).expect("a folder").remove(name);
    }

    /// The folders there are now, as beginnings of paths.
    fn folders(&self) -> Vec<String> {
        let mut folders = vec![(String::new(), ROOT)];
        let mut done = 0;
        while let Some((path, id)) = folders.get(done).cloned() {
            let Node::Folder { now, .. } = &self.nodes[id] else { panic!("not a folder") };
            let below = now.iter().filter(|(_, id)| self.is_folder(**id));
            folders.extend(below.map(|(name, id)| (format!("{path}{name}/"), *id)));
            done += 1;
        }
        folders.into_iter().map(|(path, _)| path).collect()
    }

    /// The folders that survive, with the names in each. One that has two durable names keeps the first.
    fn durable_folders(&self) -> Vec<(PathBuf, Id, BTreeMap<String, Id>)> {
        let mut folders = VecDeque::from([(PathBuf::new(), ROOT)]);
        let mut seen = HashSet::from([ROOT]);
        let mut durable = Vec::new();
        while let Some((path, id)) = folders.pop_front() {
            let Node::Folder { synced, .. } = &self.nodes[id] else { panic!("not a folder") };
            let mut names = synced.clone();
            names.retain(|_, id| !self.is_folder(*id) || seen.insert(*id));
            let below = names.iter().filter(|(_, id)| self.is_folder(**id));
            folders.extend(below.map(|(name, id)| (path.join(name), *id)));
            durable.push((path, id, names));
        }
        durable
    }

    fn survivors(&self) -> BTreeMap<PathBuf, Survivor> {
        let survivor = |id: Id| match &self.nodes[id] {
            Node::File { synced, .. } => Survivor::File(synced.clone()),
            Node::Folder { .. } => Survivor::Folder,
        };
        let folders = self.durable_folders();
        let names = folders
            .iter()
            .flat_map(|(path, _, names)| names.iter().map(|(name, id)| (path.join(name), survivor(*id))));
        names.collect()
    }

    fn crash(&mut self) {
        self.open.clear();
        for (_, id, names) in self.durable_folders() {
            self.nodes[id] = Node::Folder { now: names.clone(), synced: names };
        }
        for node in &mut self.nodes {
            if let Node::File { now, synced } = node {
                now.clone_from(synced);
            }
        }
    }
}

fn folder() -> Node {
    Node::Folder { now: BTreeMap::new(), synced: BTreeMap::new() }
}
