//! Were rows shifted? A row that is known by a number beside it gets the values of its neighbour when somebody inserts, deletes or
//! sorts rows and leaves the numbers where they were. Then nearly every record changes, and nobody meant it.
//!
//! Guarantees: no value of a row is taken for that of two others. Pure.
//! Does not do: deciding that rows were shifted. It finds enough to ask somebody who knows.

use std::collections::BTreeMap;

use crate::Digest;

/// What became of one record, told by digests of its values without those it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowMove {
    /// Its key.
    pub key: String,
    /// What it said; nothing if it is new.
    pub before: Option<Digest>,
    /// What it would say; nothing if it ends.
    pub after: Option<Digest>,
}

/// Rows that got the values of another row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// How many of those that were looked at.
    pub moved: u64,
    /// The first of them: its key, and the key of the row that had its values.
    pub first: (String, String),
}

/// Whether so many changed rows are worth a question: those that were looked at hold the values of other rows, at least half of them.
pub fn rule_on_shift(moves: &[RowMove]) -> Option<Shift> {
    let updated = moves.iter().filter(|row| row.before.is_some() && row.after.is_some()).count();
    let mut former: BTreeMap<Digest, Vec<&str>> = BTreeMap::new();
    for row in moves.iter().rev() {
        if let Some(before) = row.before {
            former.entry(before).or_default().push(&row.key);
        }
    }
    let (mut moved, mut first) = (0, None);
    for row in moves {
        let Some(owners) = row.after.and_then(|after| former.get_mut(&after)) else { continue };
        let Some(owner) = owners.pop_if(|owner| *owner != row.key) else { continue };
        moved += 1;
        first.get_or_insert_with(|| (row.key.clone(), owner.to_owned()));
    }
    // One row alone was rather corrected than moved.
    first.filter(|_| updated > 1 && moved * 2 >= updated).map(|first| Shift { moved: moved as u64, first })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, before: &str, after: &str) -> RowMove {
        let digest = |text: &str| (!text.is_empty()).then(|| Digest::of(text.as_bytes()));
        RowMove { key: key.to_owned(), before: digest(before), after: digest(after) }
    }

    #[test]
    fn an_inserted_a_deleted_and_sorted_rows_are_seen() {
        let inserted = [row("1", "a", "new"), row("2", "b", "a"), row("3", "c", "b"), row("4", "", "c")];
        let shift = rule_on_shift(&inserted).unwrap();
        assert_eq!((shift.moved, shift.first), (3, ("2".to_owned(), "1".to_owned())));

        let deleted = [row("1", "a", "b"), row("2", "b", "c"), row("3", "c", "")];
        assert_eq!(rule_on_shift(&deleted).unwrap().moved, 2);

        let sorted = [row("1", "c", "a"), row("2", "a", "b"), row("3", "b", "c")];
        assert_eq!(rule_on_shift(&sorted).unwrap().moved, 3);
    }

    #[test]
    fn rows_that_were_corrected_are_not() {
        assert_eq!(rule_on_shift(&[]), None);
        assert_eq!(rule_on_shift(&[row("1", "a", "x"), row("2", "b", "y"), row("3", "c", "z")]), None);
        assert_eq!(rule_on_shift(&[row("1", "a", "b")]), None, "one row");
        // One that has another's values by chance.
        assert_eq!(rule_on_shift(&[row("1", "a", "b"), row("2", "b", "x"), row("3", "c", "y")]), None);
    }

    #[test]
    fn values_that_all_rows_have_count_once_for_each_that_had_them() {
        // The same correction everywhere, and one row that said it before.
        let rows = [row("1", "kg", "t"), row("2", "kg", "t"), row("3", "kg", "t"), row("4", "t", "kg")];
        assert_eq!(rule_on_shift(&rows).unwrap().moved, 2);
        let rows = [row("1", "kg", "t"), row("2", "kg", "t"), row("3", "kg", "t"), row("4", "kg", "t")];
        assert_eq!(rule_on_shift(&rows), None);
    }
}
