//! Migrations have the same numbers and names for every engine, without a gap.

use std::collections::{BTreeMap, BTreeSet};

use crate::Tree;

/// Every gap and every difference between engines.
pub fn violations(tree: &Tree) -> Vec<String> {
    let mut engines: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in tree.below("crates/ledger/migrations/") {
        let mut parts = source.path.trim_start_matches("crates/ledger/migrations/").split('/');
        if let (Some(engine), Some(name)) = (parts.next(), parts.next()) {
            engines.entry(engine).or_default().insert(name);
        }
    }
    let mut found = Vec::new();
    let all: BTreeSet<&str> = engines.values().flatten().copied().collect();
    for (engine, names) in &engines {
        found.extend(all.difference(names).map(|name| format!("migration {name} is missing for {engine}")));
        for (number, name) in (1..).zip(names) {
            if !name.starts_with(&format!("{number:04}_")) {
                found.push(format!("migration {name} of {engine} is not number {number}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn gaps_and_differences_are_found() {
        let file = |path: &str| Source::new(&format!("crates/ledger/migrations/{path}"), "");
        let tree = Tree {
            sources: vec![file("sqlite/0001_a.sql"), file("sqlite/0003_b.sql"), file("postgres/0001_a.sql")],
        };

        assert_eq!(violations(&tree).len(), 2);
    }
}
