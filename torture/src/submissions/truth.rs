//! What the records of a registration must be after each of its submissions, told by what the clients handed in.
//!
//! Guarantees: nothing here was read from the service but the order of its submissions, which it alone decides. A row that says what is
//! known makes no version.

use std::collections::BTreeMap;

use super::book::{Book, Removal, Source};
use super::workbook::{Row, Rows};
use crate::chronicle::{Class, Violation};

/// A submission as the service lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) number: u64,
    pub(crate) log: String,
    pub(crate) undoes: Option<u64>,
}

/// A record and the submission that gave it its values.
pub(crate) type Records = BTreeMap<String, (u64, Row)>;

/// All that the records of a registration were.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    commits: Vec<Commit>,
    /// The versions of each record, the oldest first; none: it ended.
    versions: BTreeMap<String, Vec<(u64, Option<Row>)>>,
}

impl Truth {
    /// Takes in the list of submissions, the oldest first. An older list than the last one adds nothing.
    pub(crate) fn follow(
        &mut self,
        listed: &[Commit],
        (book, scope): (&Book, usize),
    ) -> Result<(), Violation> {
        for (place, commit) in listed.iter().enumerate() {
            if commit.number != place as u64 + 1 {
                let what = format!("submission {} stands at place {}", commit.number, place + 1);
                return Err(Violation::new(Class::Damaged, what));
            }
            match self.commits.get(place) {
                Some(known) if known == commit => continue,
                Some(known) => {
                    let what = format!("submission {} was of {known:?} and is of {commit:?}", commit.number);
                    return Err(Violation::new(Class::Damaged, what));
                }
                None => self.add(commit, (book, scope))?,
            }
        }
        Ok(())
    }

    fn add(&mut self, commit: &Commit, (book, scope): (&Book, usize)) -> Result<(), Violation> {
        let Commit { number, log, undoes } = commit;
        if self.commits.iter().any(|known| known.log == *log) {
            let what = format!("summary log {log} was submitted twice, the second time as {number}");
            return Err(Violation::new(Class::Duplicated, what));
        }
        self.commits.push(commit.clone());
        match (book.source(log), undoes) {
            (_, Some(undone)) => {
                self.undo(*number, *undone);
                Ok(())
            }
            (Some((of, Source::Workbook { rows, wrong: 0 })), None) if of == scope => {
                self.submit(*number, &rows, book.scopes[scope].removal)
            }
            (source, None) => {
                let source = source.map(|(of, _)| book.scopes[of].name());
                let what =
                    format!("submission {number} is of {log}, which never was one here, but in {source:?}");
                Err(Violation::new(Class::Damaged, what))
            }
        }
    }

    fn submit(&mut self, number: u64, rows: &Rows, removal: Removal) -> Result<(), Violation> {
        let missing: Vec<String> = self
            .versions
            .iter()
            .filter(|(key, versions)| {
                versions.last().is_some_and(|(_, row)| row.is_some()) && !rows.contains_key(*key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for (key, row) in rows {
            self.write(number, key, Some(row.clone()));
        }
        match removal {
            Removal::Tombstone => missing.iter().for_each(|key| self.write(number, key, None)),
            Removal::Ignore => {}
            Removal::Fatal if missing.is_empty() => {}
            Removal::Fatal => {
                let some: Vec<&String> = missing.iter().take(3).collect();
                let what = format!(
                    "submission {number} lacks {} records that may not go, such as {some:?}",
                    missing.len()
                );
                return Err(Violation::new(Class::Damaged, what));
            }
        }
        Ok(())
    }

    /// Records that nobody changed since get back what they were.
    fn undo(&mut self, number: u64, undone: u64) {
        let mut changes = Vec::new();
        for (key, versions) in &self.versions {
            let Some(((at, _), before)) = versions.split_last() else { continue };
            if *at == undone {
                changes.push((key.clone(), before.last().and_then(|(_, row)| row.clone())));
            }
        }
        for (key, row) in changes {
            self.write(number, &key, row);
        }
    }

    fn write(&mut self, number: u64, key: &str, row: Option<Row>) {
        let versions = self.versions.entry(key.to_owned()).or_default();
        let now = versions.last().and_then(|(_, row)| row.as_ref());
        if now != row.as_ref() {
            versions.push((number, row));
        }
    }

    /// How many submissions are known.
    pub(crate) fn head(&self) -> u64 {
        self.commits.len() as u64
    }

    /// The number of a log's submission.
    pub(crate) fn number_of(&self, log: &str) -> Option<u64> {
        self.commits.iter().find(|commit| commit.log == log).map(|commit| commit.number)
    }

    /// The records after a submission.
    pub(crate) fn at(&self, number: u64) -> Records {
        let current = self.versions.iter().filter_map(|(key, versions)| {
            let (at, row) = versions.iter().rev().find(|(at, _)| *at <= number)?;
            row.clone().map(|row| (key.clone(), (*at, row)))
        });
        current.collect()
    }

    /// What is wrong with records that were read as of a submission.
    pub(crate) fn judge(&self, number: u64, read: &Records) -> Option<Violation> {
        if number > self.head() {
            let what = format!("records are shown as of submission {number}, which is not listed");
            return Some(Violation::new(Class::Damaged, what));
        }
        let expected = self.at(number);
        if expected == *read {
            return None;
        }
        let missing: Vec<&String> = expected.keys().filter(|key| !read.contains_key(*key)).collect();
        let other = read.iter().filter(|(key, row)| expected.get(*key) != Some(*row));
        let other: Vec<_> = other.take(3).map(|(key, row)| (key, row, expected.get(key))).collect();
        let class = if other.is_empty() { Class::Lost } else { Class::Damaged };
        let what = format!(
            "as of submission {number} there are {} records instead of {}; {} are missing, such as {:?}; others than submitted, \
             such as (key, read, submitted): {other:?}",
            read.len(),
            expected.len(),
            missing.len(),
            missing.iter().take(3).collect::<Vec<_>>(),
        );
        Some(Violation::new(class, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &str)]) -> Rows {
        let row = |(key, site): &(&str, &str)| {
            ((*key).to_owned(), Row { site: (*site).to_owned(), tonnes: "1".to_owned() })
        };
        rows.iter().map(row).collect()
    }

    fn sites(truth: &Truth, number: u64) -> Vec<(String, u64, String)> {
        truth.at(number).into_iter().map(|(key, (at, row))| (key, at, row.site)).collect()
    }

    #[test]
    fn rows_that_go_end_their_records_and_an_undoing_brings_them_back() {
        let mut truth = Truth::default();
        truth.submit(1, &rows(&[("1", "a"), ("2", "b")]), Removal::Tombstone).unwrap();
        truth.submit(2, &rows(&[("1", "c")]), Removal::Tombstone).unwrap();
        truth.undo(3, 2);

        let three = [("1".to_owned(), 3, "a".to_owned()), ("2".to_owned(), 3, "b".to_owned())];
        assert_eq!(sites(&truth, 2), [("1".to_owned(), 2, "c".to_owned())]);
        assert_eq!(sites(&truth, 3), three);
    }

    #[test]
    fn what_changed_since_is_left_by_an_undoing() {
        let mut truth = Truth::default();
        truth.submit(1, &rows(&[("1", "a"), ("2", "b")]), Removal::Ignore).unwrap();
        truth.submit(2, &rows(&[("2", "c")]), Removal::Ignore).unwrap();
        truth.undo(3, 1);

        assert_eq!(sites(&truth, 3), [("2".to_owned(), 2, "c".to_owned())]);
    }

    #[test]
    fn a_row_that_is_not_there_is_lost_and_another_one_is_damage() {
        let mut truth = Truth::default();
        truth.submit(1, &rows(&[("1", "a"), ("2", "b")]), Removal::Ignore).unwrap();
        truth.commits.push(Commit { number: 1, log: "log".to_owned(), undoes: None });
        let mut read = truth.at(1);
        assert!(truth.judge(1, &read).is_none());

        read.remove("2");
        assert_eq!(truth.judge(1, &read).unwrap().class, Class::Lost);
        read.insert("3".to_owned(), (1, Row { site: "x".to_owned(), tonnes: "1".to_owned() }));
        assert_eq!(truth.judge(1, &read).unwrap().class, Class::Damaged);
    }
}
