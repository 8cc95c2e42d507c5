//! Is there one order of everything that clients did to a document, as if one machine had done it?
//!
//! A document is a register: each save that moves the head is a write, each reader that was told the head is a read. Both took a
//! while, and took effect at one instant in between. The history is linearizable if instants can be chosen such that every
//! reader saw the last write before its own. That is the search of Wing and Gong; here it never has to go back, because the
//! labels of the contents already say in which order the writes took effect, and a read changes nothing.
//!
//! Guarantees: a history is accepted if and only if there is such an order. Times of one millisecond count as overlapping. Does not
//! read anything: pure, over plain values; `history` brings them.

use std::fmt;

/// A version or checkpoint, in the order of labels.
pub(crate) type Label = (u32, u32);

/// One content that became the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) label: Label,
    pub(crate) sha256: String,
    /// Not before this.
    pub(crate) invoked_ms: u64,
    /// Not after this; none: nobody was told.
    pub(crate) returned_ms: Option<u64>,
}

/// Something that somebody was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) invoked_ms: u64,
    pub(crate) returned_ms: u64,
    pub(crate) saw: Saw,
}

/// What it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Saw {
    /// The head: its label and its hash.
    Head(Label, String),
    /// A key of a session that started from this content, which must have been the head by then.
    Base(Label),
}

/// Why there is no order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disorder(pub(crate) String);

impl fmt::Display for Disorder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Looks for an order. The first write is what was there from the beginning.
pub(crate) fn find_order(writes: &[Write], looks: &[Look]) -> Result<(), Disorder> {
    check_labels(writes)?;
    check_bases(looks)?;
    let mut left: Vec<&Look> = looks.iter().collect();
    left.sort_by_key(|look| look.invoked_ms);
    for (place, head) in writes.iter().enumerate() {
        let later = &writes[place + 1..];
        let next = later.first();
        // Whatever returned before something else began comes before it.
        loop {
            let first_end = first_end(&left, later);
            let before = left.len();
            left.retain(|look| look.invoked_ms > first_end || !fits(look, head));
            if left.len() == before {
                break;
            }
        }
        match next {
            Some(next) if next.invoked_ms > first_end(&left, later) => {
                return Err(too_early(next, &left, head));
            }
            _ => {}
        }
    }
    match left.first() {
        None => Ok(()),
        Some(look) => Err(Disorder(format!("{} fits nowhere", in_words(look)))),
    }
}

/// When the first of those that have no place yet had returned.
fn first_end(left: &[&Look], later: &[Write]) -> u64 {
    let looks = left.iter().map(|look| look.returned_ms);
    looks.chain(later.iter().filter_map(|write| write.returned_ms)).min().unwrap_or(u64::MAX)
}

fn fits(look: &Look, head: &Write) -> bool {
    match &look.saw {
        Saw::Head(label, sha256) => *label == head.label && *sha256 == head.sha256,
        Saw::Base(label) => *label <= head.label,
    }
}

/// Somebody was told something that only a write that had not even begun could have made true, or missed one that was over.
fn too_early(next: &Write, left: &[&Look], head: &Write) -> Disorder {
    let blamed = left.iter().min_by_key(|look| look.returned_ms);
    let next_in_words = format!("content {} (begun at {})", label_in_words(next.label), next.invoked_ms);
    Disorder(match blamed {
        Some(look) => format!(
            "{} fits neither the head {} of then nor any before {next_in_words}",
            in_words(look),
            label_in_words(head.label)
        ),
        None => format!("a later content was acknowledged before {next_in_words}"),
    })
}

/// Versions are dense. Checkpoints are so only together with those that were filed beside, which never were the head.
fn check_labels(writes: &[Write]) -> Result<(), Disorder> {
    for pair in writes.windows(2) {
        let [older, newer] = pair else { continue };
        if newer.label <= older.label || newer.label.0 > older.label.0 + 1 {
            return Err(Disorder(format!(
                "content {} comes right after {}",
                label_in_words(newer.label),
                label_in_words(older.label)
            )));
        }
    }
    Ok(())
}

/// Whoever asks after somebody else was handed a key gets none of an older base.
fn check_bases(looks: &[Look]) -> Result<(), Disorder> {
    let bases = || {
        looks.iter().filter_map(|look| match look.saw {
            Saw::Base(label) => Some((look, label)),
            Saw::Head(..) => None,
        })
    };
    for (look, label) in bases() {
        let older = bases().find(|(other, base)| other.returned_ms < look.invoked_ms && *base > label);
        if let Some((other, _)) = older {
            return Err(Disorder(format!("{} comes after {}", in_words(look), in_words(other))));
        }
    }
    Ok(())
}

fn in_words(look: &Look) -> String {
    let times = format!("from {} to {}", look.invoked_ms, look.returned_ms);
    match &look.saw {
        Saw::Head(label, sha256) => {
            format!(
                "the head {} ({}) as it was read {times}",
                label_in_words(*label),
                &sha256[..sha256.len().min(12)]
            )
        }
        Saw::Base(label) => format!("a key on {} that was handed out {times}", label_in_words(*label)),
    }
}

fn label_in_words((version, checkpoint): Label) -> String {
    if checkpoint == 0 { version.to_string() } else { format!("{version}.{checkpoint}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(label: Label, times: (u64, Option<u64>)) -> Write {
        Write { label, sha256: format!("{label:?}"), invoked_ms: times.0, returned_ms: times.1 }
    }

    fn read(label: Label, (invoked_ms, returned_ms): (u64, u64)) -> Look {
        Look { invoked_ms, returned_ms, saw: Saw::Head(label, format!("{label:?}")) }
    }

    fn open(label: Label, (invoked_ms, returned_ms): (u64, u64)) -> Look {
        Look { invoked_ms, returned_ms, saw: Saw::Base(label) }
    }

    /// 1 from the beginning, 1.1 between 10 and 20, 2 between 30 and 40.
    fn three() -> [Write; 3] {
        [write((1, 0), (0, Some(0))), write((1, 1), (10, Some(20))), write((2, 0), (30, Some(40)))]
    }

    #[test]
    fn a_history_of_one_after_the_other_has_an_order() {
        let looks =
            [read((1, 0), (1, 5)), read((1, 1), (21, 25)), open((1, 0), (22, 24)), read((2, 0), (41, 50))];

        assert_eq!(find_order(&three(), &looks), Ok(()));
    }

    #[test]
    fn whoever_reads_while_a_save_is_on_its_way_may_see_either() {
        for label in [(1, 0), (1, 1)] {
            assert_eq!(find_order(&three(), &[read(label, (12, 18))]), Ok(()), "{label:?}");
        }
    }

    #[test]
    fn a_read_that_begins_after_a_save_was_acknowledged_never_shows_an_older_head() {
        assert!(find_order(&three(), &[read((1, 0), (21, 25))]).is_err());
        assert!(find_order(&three(), &[read((1, 1), (41, 45))]).is_err());
    }

    #[test]
    fn two_reads_never_go_backwards() {
        let looks = [read((1, 1), (11, 13)), read((1, 0), (14, 16))];
        assert!(find_order(&three(), &looks).is_err(), "the save was still on its way, and had been seen");

        let overlapping = [read((1, 1), (11, 14)), read((1, 0), (13, 16))];
        assert_eq!(find_order(&three(), &overlapping), Ok(()));
    }

    #[test]
    fn nobody_sees_a_save_before_it_was_begun() {
        assert!(find_order(&three(), &[read((1, 1), (2, 5))]).is_err());
        assert!(find_order(&three(), &[open((2, 0), (21, 25))]).is_err());
    }

    #[test]
    fn nobody_sees_what_was_never_written() {
        let mut foreign = read((1, 1), (21, 25));
        foreign.saw = Saw::Head((1, 1), "other bytes".to_owned());

        assert!(find_order(&three(), &[foreign]).is_err());
        assert!(find_order(&three(), &[read((3, 0), (50, 55))]).is_err());
    }

    #[test]
    fn a_save_that_was_never_answered_takes_effect_at_any_time_or_after_everything() {
        let writes = [write((1, 0), (0, Some(0))), write((2, 0), (10, None))];

        assert_eq!(find_order(&writes, &[read((1, 0), (900, 901))]), Ok(()));
        assert_eq!(find_order(&writes, &[read((1, 0), (900, 901)), read((2, 0), (902, 903))]), Ok(()));
        assert!(find_order(&writes, &[read((2, 0), (900, 901)), read((1, 0), (902, 903))]).is_err());
    }

    #[test]
    fn two_saves_that_did_not_overlap_are_numbered_in_their_order() {
        let writes =
            [write((1, 0), (0, Some(0))), write((2, 0), (30, Some(40))), write((3, 0), (10, Some(20)))];

        assert!(find_order(&writes, &[]).is_err(), "3 was acknowledged before 2 was begun");
    }

    #[test]
    fn a_number_that_is_missing_or_there_twice_is_refused() {
        let gap = [write((1, 0), (0, Some(0))), write((3, 0), (10, Some(20)))];
        let double = [write((1, 0), (0, Some(0))), write((1, 0), (10, Some(20)))];

        assert!(find_order(&gap, &[]).is_err());
        assert!(find_order(&double, &[]).is_err());
    }

    #[test]
    fn keys_are_handed_out_on_newer_and_newer_bases() {
        let looks = [open((2, 0), (35, 45)), open((1, 0), (46, 47))];
        assert!(find_order(&three(), &looks).is_err());

        let joined = [open((1, 0), (5, 6)), open((1, 0), (25, 26)), open((2, 0), (45, 46))];
        assert_eq!(find_order(&three(), &joined), Ok(()));
    }

    #[test]
    fn what_happens_in_one_millisecond_overlaps() {
        let looks = [read((1, 0), (20, 20)), read((1, 1), (10, 10))];

        assert!(find_order(&three(), &looks).is_err(), "10 is before 20");
        assert_eq!(find_order(&three(), &[read((1, 0), (20, 20)), read((1, 1), (20, 20))]), Ok(()));
    }

    /// Every way of laying three writes and two reads on a short line of time: the answer is that of trying all orders.
    #[test]
    fn it_agrees_with_trying_every_order() {
        let spans: Vec<(u64, u64)> = (0..4).flat_map(|from| (from..4).map(move |to| (from, to))).collect();
        let mut seen = [0_u32; 2];
        for one in &spans {
            for two in &spans {
                for first in &spans {
                    for second in &spans {
                        for labels in [[1, 2], [2, 1], [2, 3], [3, 2], [3, 1], [2, 2]] {
                            let writes = [
                                write((1, 0), (0, Some(0))),
                                write((2, 0), (one.0, Some(one.1))),
                                write((3, 0), (two.0, Some(two.1))),
                            ];
                            let looks = [read((labels[0], 0), *first), read((labels[1], 0), *second)];
                            let found = find_order(&writes, &looks).is_ok();
                            assert_eq!(found, some_order(&writes, &looks), "{writes:?} {looks:?}");
                            seen[usize::from(found)] += 1;
                        }
                    }
                }
            }
        }
        assert!(seen.iter().all(|count| *count > 1000), "{seen:?}");
    }

    /// The definition itself: tries all orders of all operations.
    fn some_order(writes: &[Write], looks: &[Look]) -> bool {
        #[derive(Clone, Copy)]
        enum Step {
            Write(usize),
            Look(usize),
        }
        fn span(step: Step, writes: &[Write], looks: &[Look]) -> (u64, u64) {
            match step {
                Step::Write(at) => (writes[at].invoked_ms, writes[at].returned_ms.unwrap_or(u64::MAX)),
                Step::Look(at) => (looks[at].invoked_ms, looks[at].returned_ms),
            }
        }
        fn search(left: &[Step], head: usize, (writes, looks): (&[Write], &[Look])) -> bool {
            if left.is_empty() {
                return true;
            }
            (0..left.len()).any(|chosen| {
                let step = left[chosen];
                let begins = span(step, writes, looks).0;
                let may_be_next = left.iter().all(|other| begins <= span(*other, writes, looks).1);
                let rest: Vec<Step> =
                    left.iter().enumerate().filter(|(at, _)| *at != chosen).map(|(_, step)| *step).collect();
                may_be_next
                    && match step {
                        Step::Write(at) => at == head + 1 && search(&rest, at, (writes, looks)),
                        Step::Look(at) => {
                            fits(&looks[at], &writes[head]) && search(&rest, head, (writes, looks))
                        }
                    }
            })
        }
        let steps = (1..writes.len()).map(Step::Write).chain((0..looks.len()).map(Step::Look));
        search(&steps.collect::<Vec<_>>(), 0, (writes, looks))
    }
}
