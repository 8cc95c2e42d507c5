//! The shortest way from one sequence to another, as far as a bounded effort finds it.
//!
//! Equal ends are taken off; pieces that occur once on both sides hold the sequences together; between them Myers' algorithm
//! looks for the shortest way. A stretch that would take more than the effort left counts as replaced.
//! Guarantees: what is returned always leads from the one to the other, in order.

use std::collections::HashMap;
use std::ops::Range;

/// Differences within one stretch; their square is memory.
const DIFFERENCES_MAX: usize = 2_000;

/// A stretch that differs: what stood there, and what stands there.
pub(crate) type Hunk = (Range<usize>, Range<usize>);

/// The stretches that differ, and whether they are the shortest.
pub(crate) struct Differences {
    pub(crate) hunks: Vec<Hunk>,
    pub(crate) is_rough: bool,
}

pub(crate) fn differences(from: &[u32], to: &[u32], effort_max: usize) -> Differences {
    let mut search = Search { from, to, effort: effort_max, hunks: Vec::new(), is_rough: false };
    let mut done = (0, 0);
    for (a, b) in common_once(from, to) {
        search.stretch(done.0..a, done.1..b);
        done = (a + 1, b + 1);
    }
    search.stretch(done.0..from.len(), done.1..to.len());
    Differences { hunks: search.hunks, is_rough: search.is_rough }
}

/// Pieces that occur once on both sides, as many as stand in the same order.
fn common_once(from: &[u32], to: &[u32]) -> Vec<(usize, usize)> {
    let once = |pieces: &[u32]| {
        let mut places: HashMap<u32, Option<usize>> = HashMap::new();
        for (at, piece) in pieces.iter().enumerate() {
            places.entry(*piece).and_modify(|place| *place = None).or_insert(Some(at));
        }
        places
    };
    let there = once(to);
    let here = once(from);
    let pairs = from.iter().enumerate().filter(|(_, piece)| here.get(*piece).is_some_and(Option::is_some));
    let pairs: Vec<_> = pairs.filter_map(|(at, piece)| Some((at, (*there.get(piece)?)?))).collect();
    longest_increasing(&pairs)
}

/// The longest run of pairs whose second numbers grow.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let length = tails.partition_point(|tail| pairs[*tail].1 < pair.1);
        before[at] = length.checked_sub(1).map(|shorter| tails[shorter]);
        match tails.get_mut(length) {
            Some(tail) => *tail = at,
            None => tails.push(at),
        }
    }
    let mut run = Vec::with_capacity(tails.len());
    let mut at = tails.last().copied();
    while let Some(place) = at {
        run.push(pairs[place]);
        at = before[place];
    }
    run.reverse();
    run
}

struct Search<'a> {
    from: &'a [u32],
    to: &'a [u32],
    effort: usize,
    hunks: Vec<Hunk>,
    is_rough: bool,
}

impl Search<'_> {
    fn stretch(&mut self, from: Range<usize>, to: Range<usize>) {
        let (a, b) = (&self.from[from.clone()], &self.to[to.clone()]);
        let start = a.iter().zip(b).take_while(|(one, other)| one == other).count();
        let (a, b) = (&a[start..], &b[start..]);
        let end = a.iter().rev().zip(b.iter().rev()).take_while(|(one, other)| one == other).count();
        let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
        let (from, to) = (from.start + start, to.start + start);
        if a.is_empty() || b.is_empty() {
            return self.push(from..from + a.len(), to..to + b.len());
        }
        match shortest(a, b, &mut self.effort) {
            Some(hunks) => {
                for (old, new) in hunks {
                    self.push(from + old.start..from + old.end, to + new.start..to + new.end);
                }
            }
            None => {
                self.is_rough = true;
                self.push(from..from + a.len(), to..to + b.len());
            }
        }
    }

    fn push(&mut self, from: Range<usize>, to: Range<usize>) {
        if from.is_empty() && to.is_empty() {
            return;
        }
        match self.hunks.last_mut() {
            Some((old, new)) if old.end == from.start && new.end == to.start => {
                (old.end, new.end) = (from.end, to.end);
            }
            _ => self.hunks.push((from, to)),
        }
    }
}

/// Myers' algorithm. Keeps how far each diagonal got with each number of differences, to find the way back.
fn shortest(a: &[u32], b: &[u32], effort: &mut usize) -> Option<Vec<Hunk>> {
    let mut reached: Vec<Vec<usize>> = Vec::new();
    for differences in 0..=(a.len() + b.len()).min(DIFFERENCES_MAX) {
        // Diagonal `k` runs from `-differences` to `differences` in steps of two; it is kept at `(k + differences) / 2`.
        let mut row = Vec::with_capacity(differences + 1);
        for place in 0..=differences {
            let mut x = first_reached(reached.last(), place);
            let mut y = (x + differences).checked_sub(2 * place)?;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
                *effort = effort.checked_sub(1)?;
            }
            *effort = effort.checked_sub(1)?;
            row.push(x);
            if x >= a.len() && y >= b.len() {
                reached.push(row);
                return Some(way_back(&reached, (a.len(), b.len())));
            }
        }
        reached.push(row);
    }
    None
}

/// Where a diagonal begins with one difference more: below its upper or beside its lower neighbour, whichever is further.
fn first_reached(before: Option<&Vec<usize>>, place: usize) -> usize {
    let Some(before) = before else { return 0 };
    let inserted = before.get(place).copied();
    let removed = place.checked_sub(1).and_then(|place| before.get(place)).map(|x| x + 1);
    match (inserted, removed) {
        (Some(inserted), Some(removed)) => inserted.max(removed),
        (inserted, removed) => inserted.or(removed).unwrap_or(0),
    }
}

fn way_back(reached: &[Vec<usize>], end: (usize, usize)) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut x, mut y) = end;
    for differences in (1..reached.len()).rev() {
        let place = (x + differences - y) / 2;
        let before = &reached[differences - 1];
        let inserted = before.get(place).copied();
        let removed = place.checked_sub(1).and_then(|place| before.get(place)).map(|x| x + 1);
        let is_removed = removed >= inserted;
        let begin = if is_removed { removed } else { inserted }.unwrap_or(0);
        let begin_y = begin + differences - 2 * place;
        let step = if is_removed {
            (begin - 1..begin, begin_y..begin_y)
        } else {
            (begin..begin, begin_y - 1..begin_y)
        };
        (x, y) = (step.0.start, step.1.start);
        match hunks.last_mut() {
            Some((old, new)) if old.start == step.0.end && new.start == step.1.end => {
                (old.start, new.start) = (step.0.start, step.1.start);
            }
            _ => hunks.push(step),
        }
    }
    hunks.reverse();
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies the differences, which must lead from the one to the other.
    fn applied(from: &[u32], to: &[u32], differences: &Differences) -> Vec<u32> {
        let (mut out, mut at) = (Vec::new(), 0);
        for (old, new) in &differences.hunks {
            out.extend(&from[at..old.start]);
            out.extend(&to[new.clone()]);
            at = old.end;
        }
        out.extend(&from[at..]);
        out
    }

    fn cost(differences: &Differences) -> usize {
        differences.hunks.iter().map(|(old, new)| old.len() + new.len()).sum()
    }

    /// The length of the shortest way, by the table everybody knows.
    fn shortest_cost(a: &[u32], b: &[u32]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut corner = std::mem::replace(&mut row[0], i + 1);
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { corner } else { 1 + above.min(row[j]) };
                corner = above;
            }
        }
        row[b.len()]
    }

    #[test]
    fn a_piece_put_in_the_middle_is_one_difference() {
        let found = differences(&[1, 2, 3, 4], &[1, 2, 9, 3, 4], 1000);

        assert_eq!((found.hunks, found.is_rough), (vec![(2..2, 2..3)], false));
    }

    #[test]
    fn without_effort_a_stretch_counts_as_replaced() {
        let (a, b) = ([1, 1, 2, 2, 1, 2], [2, 2, 1, 1, 2, 1]);

        let found = differences(&a, &b, 1);

        assert!(found.is_rough);
        assert_eq!(applied(&a, &b, &found), b);
    }

    #[test]
    fn two_long_strangers_cost_a_bounded_amount() {
        let a: Vec<u32> = (0..200_000).map(|at| at % 7).collect();
        let b: Vec<u32> = (0..200_000).map(|at| 100 + at % 5).collect();

        let found = differences(&a, &b, 20_000_000);

        assert!(found.is_rough);
        assert_eq!(found.hunks, [(0..a.len(), 0..b.len())]);
    }

    proptest! {
        #[test]
        fn the_way_always_leads_there(
            a in prop::collection::vec(0_u32..6, 0..40), b in prop::collection::vec(0_u32..6, 0..40), effort in 0_usize..400
        ) {
            for effort in [effort, 1_000_000] {
                let found = differences(&a, &b, effort);
                prop_assert_eq!(&applied(&a, &b, &found), &b);
            }
        }

        #[test]
        fn the_way_between_is_the_shortest(
            a in prop::collection::vec(0_u32..4, 1..25), b in prop::collection::vec(0_u32..4, 1..25)
        ) {
            let mut effort = 1_000_000;
            let hunks = shortest(&a, &b, &mut effort).unwrap();
            let found = Differences { hunks, is_rough: false };
            prop_assert_eq!(&applied(&a, &b, &found), &b);
            prop_assert_eq!(cost(&found), shortest_cost(&a, &b));
        }
    }
}
