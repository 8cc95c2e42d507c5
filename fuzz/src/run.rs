//! One target: takes an input, changes it, asks, and keeps what led somewhere new.
//!
//! Guarantees: with a number of executions, a seed means the same run. Memory is bounded, however long it runs.
//! Does not do: know which code was reached. The combinations of findings, and the sentences that explain them, stand
//! for that: they cost nothing, and each is a way through the layer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::dice::Dice;
use crate::judge::{Broken, judge};
use crate::kept::Findings;
use crate::mutate::{bytes, markup, package};
use crate::report::{Figures, tell};
use crate::targets::{Seed, Shape, Target};
use crate::watch::Watch;

/// Seeds beyond this are not kept: 200 KiB each would be too much for a small machine.
const SEEDS_MAX: usize = 4_000;
/// How often a mutated input is mutated again before it is let go.
const GENERATIONS_MAX: usize = 3;

/// When a run ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Executions(u64),
    Passed(Duration),
}

/// A run of one target.
pub(crate) struct Run {
    target: Target,
    dice: Dice,
    seeds: Vec<Seed>,
    combinations: HashSet<String>,
    sentences: HashSet<String>,
    figures: Figures,
}

impl Run {
    pub(crate) fn of(target: Target, seed: u64) -> Result<Self> {
        let seeds = target.seeds()?;
        // Each target has a row of its own, so that it plays the same with and without the others.
        let dice = Dice::of(Dice::of(seed).throw() ^ u64::from(crc32fast::hash(target.as_str().as_bytes())));
        let figures = Figures { target: target.as_str(), seeds: seeds.len(), ..Figures::default() };
        let (combinations, sentences) = (HashSet::new(), HashSet::new());
        Ok(Self { target, dice, seeds, combinations, sentences, figures })
    }

    /// Runs until it is time, or until a promise is broken.
    pub(crate) fn run(mut self, until: Until, findings: &Findings) -> Figures {
        let watch = Watch::begin(findings.clone());
        let began = Instant::now();
        for at in 0..self.seeds.len() {
            let seed = self.seeds[at].clone();
            if self.ask(seed, &watch, findings).is_err() {
                break;
            }
        }
        while self.figures.findings == 0 && !is_over(until, &self.figures, began) {
            let chosen = self.choose();
            let mut seed = self.seeds[chosen].clone();
            for _ in 0..1 + self.dice.below(GENERATIONS_MAX) {
                self.mutate(&mut seed);
                if self.ask(seed.clone(), &watch, findings).is_err() {
                    break;
                }
            }
        }
        self.figures.took = began.elapsed();
        self.figures.combinations = self.combinations.len();
        self.figures.kept = self.seeds.len() - self.figures.seeds;
        self.figures
    }

    /// The smaller of two: it is quicker, and each change counts for more.
    fn choose(&mut self) -> usize {
        let (one, other) = (self.dice.below(self.seeds.len()), self.dice.below(self.seeds.len()));
        if self.seeds[one].bytes.len() <= self.seeds[other].bytes.len() { one } else { other }
    }

    fn mutate(&mut self, seed: &mut Seed) {
        let other = self.dice.below(self.seeds.len());
        let (other, dice) = (&self.seeds[other], &mut self.dice);
        match self.target.shape() {
            Shape::Package if !seed.parts.is_empty() => {
                package::mutate(&mut seed.parts, &other.parts, dice);
                seed.bytes = package::packed(&seed.parts, dice);
            }
            Shape::Markup => markup::mutate(&mut seed.bytes, &other.bytes, dice),
            Shape::Bytes | Shape::Package => bytes::mutate(&mut seed.bytes, &other.bytes, dice),
        }
    }

    fn ask(&mut self, seed: Seed, watch: &Watch, findings: &Findings) -> Result<(), Broken> {
        let input: Arc<[u8]> = seed.bytes.as_slice().into();
        watch.asks(self.target, &input);
        let judged = judge(|reading| self.target.ask(&input, reading), &mut self.dice);
        watch.rests();
        self.figures.executions += 1;
        let judged = judged.inspect_err(|broken| {
            tell(&findings.keep(self.target, &input, &broken.to_string()));
            self.figures.findings += 1;
        })?;
        self.figures.slowest = self.figures.slowest.max(judged.took);
        let known = self.combinations.len() + self.sentences.len();
        self.combinations.insert(judged.outcome.combination);
        self.sentences.extend(judged.outcome.sentences);
        let is_new = self.combinations.len() + self.sentences.len() > known;
        let is_seed = self.figures.executions <= self.figures.seeds as u64;
        if is_new && !is_seed && self.seeds.len() < SEEDS_MAX {
            self.seeds.push(seed);
        }
        Ok(())
    }
}

fn is_over(until: Until, figures: &Figures, began: Instant) -> bool {
    match until {
        Until::Executions(executions) => figures.executions >= executions,
        Until::Passed(time) => began.elapsed() >= time,
    }
}
