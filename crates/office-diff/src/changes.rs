//! From what two files say to what changed between them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::cells::{Cell, Position, Sheet, address};
use crate::package::Said;
use crate::paragraphs::Paragraph;
use crate::sequence::differences;
use crate::{Change, Comparison, Counts, Cut, Kind, Limits, Place, Shown, Subject};

pub(crate) fn between(from: &Said, to: &Said, limits: &Limits) -> Comparison {
    let mut found = Found { limits, counts: Counts::default(), changes: Vec::new(), cut: BTreeSet::new() };
    found.cut.extend(from.cut.into_iter().chain(to.cut));
    match from.subject {
        Subject::Workbook => compare_sheets(from, to, &mut found),
        Subject::Document => {
            for part in parts_of(from, to) {
                compare_paragraphs((&in_part(from, &part), &in_part(to, &part)), &mut found);
            }
        }
        Subject::Presentation | Subject::Text => {
            let (from, to) =
                (from.paragraphs.iter().collect::<Vec<_>>(), to.paragraphs.iter().collect::<Vec<_>>());
            compare_paragraphs((&from, &to), &mut found);
        }
    }
    let Found { counts, changes, cut, .. } = found;
    Comparison { subject: from.subject, counts, changes, cut: cut.into_iter().collect() }
}

/// What was found so far.
struct Found<'a> {
    limits: &'a Limits,
    counts: Counts,
    changes: Vec<Change>,
    cut: BTreeSet<Cut>,
}

impl Found<'_> {
    fn add(&mut self, kind: Kind, place: impl FnOnce() -> Place, (old, new): (Option<Shown>, Option<Shown>)) {
        match kind {
            Kind::Added => self.counts.added += 1,
            Kind::Removed => self.counts.removed += 1,
            Kind::Changed => self.counts.changed += 1,
        }
        if self.changes.len() >= self.limits.changes_max {
            self.cut.insert(Cut::Changes);
            return;
        }
        let (old, new) = (old.map(|shown| self.cut_off(shown)), new.map(|shown| self.cut_off(shown)));
        self.changes.push(Change { kind, place: place(), old, new });
    }

    fn cut_off(&mut self, mut shown: Shown) -> Shown {
        for text in std::iter::once(&mut shown.text).chain(&mut shown.formula) {
            if let Some((end, _)) = text.char_indices().nth(self.limits.shown_characters_max) {
                text.truncate(end);
                self.cut.insert(Cut::Shown);
            }
        }
        shown
    }

    /// Whether not all of a file was read, so that what lacks at its end may well be there.
    fn is_read_cut(&self) -> bool {
        self.cut.contains(&Cut::Read) || self.cut.contains(&Cut::Damaged)
    }
}

fn part_of(paragraph: &Paragraph) -> &str {
    match &paragraph.place {
        Place::Paragraph { part, .. } => part,
        _ => "",
    }
}

/// The parts of both documents, in the order of the first, then of the second.
fn parts_of(from: &Said, to: &Said) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for paragraph in from.paragraphs.iter().chain(&to.paragraphs) {
        let part = part_of(paragraph);
        if parts.last().is_none_or(|last| last != part) && !parts.iter().any(|known| known == part) {
            parts.push(part.to_owned());
        }
    }
    parts
}

fn in_part<'a>(said: &'a Said, part: &str) -> Vec<&'a Paragraph> {
    said.paragraphs.iter().filter(|paragraph| part_of(paragraph) == part).collect()
}

fn compare_paragraphs<'a>((from, to): (&[&'a Paragraph], &[&'a Paragraph]), found: &mut Found<'_>) {
    let mut numbers: HashMap<&'a str, u32> = HashMap::new();
    let mut number = |paragraph: &&'a Paragraph| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(&paragraph.text).or_insert(next)
    };
    let here: Vec<u32> = from.iter().map(&mut number).collect();
    let there: Vec<u32> = to.iter().map(&mut number).collect();
    let differences = differences(&here, &there, found.limits.effort_max);
    if differences.is_rough {
        found.cut.insert(Cut::Rough);
    }
    for (old, new) in differences.hunks {
        if found.is_read_cut() && old.end == from.len() && new.end == to.len() {
            // Nobody knows what comes behind the cut.
            return;
        }
        let (old, new) = (&from[old], &to[new]);
        let changed = old.len().min(new.len());
        for (old, new) in old.iter().zip(new) {
            found.add(Kind::Changed, || new.place.clone(), (Some(shown(old)), Some(shown(new))));
        }
        for old in &old[changed..] {
            found.add(Kind::Removed, || old.place.clone(), (Some(shown(old)), None));
        }
        for new in &new[changed..] {
            found.add(Kind::Added, || new.place.clone(), (None, Some(shown(new))));
        }
    }
}

fn shown(paragraph: &Paragraph) -> Shown {
    Shown { text: paragraph.text.clone(), formula: None }
}

fn compare_sheets(from: &Said, to: &Said, found: &mut Found<'_>) {
    let there: HashMap<&str, &Sheet> = to.sheets.iter().map(|sheet| (sheet.name.as_str(), sheet)).collect();
    let here: BTreeSet<&str> = from.sheets.iter().map(|sheet| sheet.name.as_str()).collect();
    for sheet in &from.sheets {
        let place = || Place::Sheet { sheet: sheet.name.clone() };
        match there.get(sheet.name.as_str()) {
            Some(other) => compare_cells(sheet, other, found),
            None => found.add(Kind::Removed, place, (None, None)),
        }
    }
    for sheet in to.sheets.iter().filter(|sheet| !here.contains(sheet.name.as_str())) {
        found.add(Kind::Added, || Place::Sheet { sheet: sheet.name.clone() }, (None, None));
        let nothing = Sheet { name: String::new(), cells: BTreeMap::new(), is_whole: true };
        compare_cells(&nothing, sheet, found);
    }
}

fn compare_cells(from: &Sheet, to: &Sheet, found: &mut Found<'_>) {
    // A sheet that was not read to its end is compared as far as it was read.
    let ends = [from, to].into_iter().filter(|sheet| !sheet.is_whole);
    let end = ends.map(|sheet| sheet.cells.last_key_value().map_or((0, 0), |(at, _)| *at)).min();
    let is_read = |at: &Position| end.is_none_or(|end| *at <= end);
    let (mut here, mut there) = (from.cells.iter().peekable(), to.cells.iter().peekable());
    while let Some(at) = here.peek().into_iter().chain(there.peek()).map(|(at, _)| **at).min() {
        let old = here.next_if(|(position, _)| **position == at).map(|(_, cell)| cell);
        let new = there.next_if(|(position, _)| **position == at).map(|(_, cell)| cell);
        let kind = match (old, new) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(_), Some(_)) => Kind::Changed,
            (Some(_), None) => Kind::Removed,
            (None, _) => Kind::Added,
        };
        if !is_read(&at) {
            return;
        }
        let place = || Place::Cell { sheet: to.name.clone(), address: address(at.0, at.1) };
        found.add(kind, place, (old.map(cell_shown), new.map(cell_shown)));
    }
}

fn cell_shown(cell: &Cell) -> Shown {
    Shown { text: cell.value.clone(), formula: cell.formula.clone() }
}
