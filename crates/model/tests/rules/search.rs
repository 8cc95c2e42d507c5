//! Breadth first through every world that can be reached, until a promise breaks or nothing is left.
//!
//! Guarantees: no world is looked at twice, none is left out; a trace that is found is as short as any.
//! A world is compared as a whole, never by its hash alone. There are at most [`STATES_MAX`] of them.
//! Does not do: threads. The tests run several searches side by side.

use std::fmt;
use std::hash::{Hash, Hasher};

use model::Guards;

use crate::moves::{self, Move};
use crate::promises::{self, Promise};
use crate::telling::Told;
use crate::world::World;

/// How often the server repeats a final save before it forgets it. It does three times; once shows the same.
pub(crate) const REPEATS: u8 = 1;

/// A world that needs more is too large for a test: some 300 MB.
const STATES_MAX: usize = 2_500_000;

/// What stands in a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) guards: Guards,
    /// Whether recovery takes up rows that another process is working on.
    pub(crate) recovery_is_eager: bool,
    /// Whether a repeat of a final save survives that its key is opened again.
    pub(crate) repeats_linger: bool,
    /// Whether force saves of one second may overtake each other.
    pub(crate) seconds_are_swapped: bool,
}

/// What a search came to.
pub(crate) struct Outcome {
    /// How many different worlds were seen.
    pub(crate) states: usize,
    /// How many moves the farthest one is away.
    pub(crate) depth: usize,
    /// The promise that breaks first, and how.
    pub(crate) violation: Option<Violation>,
}

/// A promise that breaks, and the shortest way there.
pub(crate) struct Violation {
    pub(crate) promise: Promise,
    pub(crate) trace: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "broken after {} moves: {}", self.trace.len(), self.promise)?;
        (1..).zip(&self.trace).try_for_each(|(place, step): (usize, _)| writeln!(out, "{place:4}. {step}"))
    }
}

/// Walks through everything that can follow from a world.
pub(crate) fn search(start: World, setting: &Setting) -> Outcome {
    let mut seen = Seen::new(start);
    let mut moves = Vec::new();
    let (mut at, mut depth, mut level_end) = (0, 0, 1);
    while at < seen.worlds.len() {
        if at == level_end {
            (depth, level_end) = (depth + 1, seen.worlds.len());
        }
        let world = seen.worlds[at];
        moves.clear();
        moves::possible(&world, setting, &mut moves);
        for step in &moves {
            let mut next = world;
            moves::make(&mut next, setting, *step);
            if !seen.add(next, at) {
                continue;
            }
            if let Some(promise) = promises::broken_in(&next, setting) {
                let trace = seen.trace(setting);
                return Outcome {
                    states: seen.worlds.len(),
                    depth: depth + 1,
                    violation: Some(Violation { promise, trace }),
                };
            }
        }
        at += 1;
    }
    Outcome { states: seen.worlds.len(), depth, violation: None }
}

/// The worlds seen so far, in the order they were found, and an index over them.
struct Seen {
    worlds: Vec<World>,
    parents: Vec<u32>,
    /// Open addressing: a place plus one, or 0.
    index: Vec<u32>,
}

impl Seen {
    fn new(start: World) -> Self {
        let mut seen = Self { worlds: Vec::new(), parents: Vec::new(), index: vec![0; 1 << 12] };
        seen.add(start, 0);
        seen
    }

    /// Adds a world; `false` if it was there.
    fn add(&mut self, world: World, parent: usize) -> bool {
        if self.worlds.len() * 2 > self.index.len() {
            self.grow();
        }
        let slot = self.slot_of(&world);
        if self.index[slot] != 0 {
            return false;
        }
        assert!(self.worlds.len() < STATES_MAX, "this budget makes the world too large");
        self.worlds.push(world);
        self.parents.push(u32::try_from(parent).expect("fewer worlds than that"));
        self.index[slot] = u32::try_from(self.worlds.len()).expect("fewer worlds than that");
        true
    }

    /// Where the world is, or would be.
    fn slot_of(&self, world: &World) -> usize {
        let mask = self.index.len() - 1;
        let mut slot = first_slot(world, self.index.len());
        while let Some(place) = (self.index[slot] as usize).checked_sub(1) {
            if self.worlds[place] == *world {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let size = self.index.len() * 2;
        self.index = vec![0; size];
        for (place, world) in (1..).zip(&self.worlds) {
            let mut slot = first_slot(world, size);
            while self.index[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.index[slot] = place;
        }
    }

    /// The moves that led to the world added last.
    fn trace(&self, setting: &Setting) -> Vec<String> {
        let mut chain = vec![self.worlds.len() - 1];
        while let Some(at) = chain.last().copied().filter(|at| *at > 0) {
            chain.push(self.parents[at] as usize);
        }
        chain.reverse();
        chain.windows(2).map(|pair| self.told(setting, pair[0], pair[1])).collect()
    }

    /// Finds the move between two worlds again: cheaper than keeping it for each of them.
    fn told(&self, setting: &Setting, from: usize, to: usize) -> String {
        let mut moves: Vec<Move> = Vec::new();
        moves::possible(&self.worlds[from], setting, &mut moves);
        let leads_there = |step: &&Move| {
            let mut next = self.worlds[from];
            moves::make(&mut next, setting, **step);
            next == self.worlds[to]
        };
        let step = moves.iter().find(leads_there).expect("it was made once");
        Told(&self.worlds[from], *step).to_string()
    }
}

/// Multiply and rotate: the standard hasher is made against attackers, and slow without an optimiser.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

/// Where a world is looked for first in an index of this size, a power of two.
fn first_slot(world: &World, size: usize) -> usize {
    let mut hasher = Quick::default();
    world.hash(&mut hasher);
    let mask = size as u64 - 1;
    usize::try_from(hasher.finish() & mask).expect("less than the size")
}
