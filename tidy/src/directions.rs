//! Who may know whom inside the server: edges call flows, flows call ports and rules, only `app` names adapters.

use crate::Tree;

/// What a folder of the server may not mention, with the reason.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "saving/",
        &["crate::opening", "crate::recovering", "crate::verifying", "crate::http", "crate::cli"],
        FLOWS,
    ),
    (
        "opening/",
        &["crate::saving", "crate::recovering", "crate::verifying", "crate::http", "crate::cli"],
        FLOWS,
    ),
    // Recovery runs the very recipe of a save: there is no second path for the rare case.
    ("recovering/", &["crate::opening", "crate::verifying", "crate::http", "crate::cli"], FLOWS),
    ("verifying/", &["crate::opening", "crate::saving", "crate::http", "crate::cli"], FLOWS),
    ("comparing/", APART, FLOWS),
    ("auditing/", APART, FLOWS),
    ("sharing/", APART, FLOWS),
    ("submitting/", APART, FLOWS),
    ("recording/", APART, FLOWS),
    ("announcing/", APART, FLOWS),
    (
        "watching/",
        &[
            "crate::opening",
            "crate::saving",
            "crate::changing",
            "crate::recovering",
            "crate::verifying",
            "crate::http",
            "crate::cli",
        ],
        FLOWS,
    ),
    ("draining/", APART, FLOWS),
    ("examining/", APART, FLOWS),
    ("preserving/", APART, FLOWS),
    ("pruning/", APART, FLOWS),
    ("registering/", APART, FLOWS),
    (
        "editors/",
        &["crate::opening", "crate::saving", "crate::recovering", "crate::http"],
        "an outward client knows no flow",
    ),
    (
        "callers/",
        &["crate::opening", "crate::saving", "crate::recovering", "crate::http", "crate::cli"],
        "who is calling is told before any flow begins",
    ),
    ("http/", &["crate::cli", "crate::recovering"], "an edge calls flows, not other edges or the background"),
    (
        "console/",
        &["crate::cli", "crate::recovering"],
        "an edge calls flows, not other edges or the background",
    ),
];
/// What most flows leave alone.
const APART: &[&str] = &[
    "crate::opening",
    "crate::saving",
    "crate::recovering",
    "crate::verifying",
    "crate::http",
    "crate::cli",
];
const FLOWS: &str = "flows never call each other and know no edge";

/// Adapters, which only `app.rs` and what is below it may name.
const ADAPTERS: [&str; 11] = [
    "SqliteLedger",
    "PostgresLedger",
    "LocalVault",
    "LocalTree",
    "SftpVault",
    "SftpTree",
    "S3Vault",
    "S3Tree",
    "LocalSignals",
    "RedisSignals",
    "OnlyOffice::new",
];

/// Every forbidden mention.
pub fn violations(tree: &Tree) -> Vec<String> {
    let root = "crates/server/src/";
    let mut found = Vec::new();
    for source in tree.below(root).filter(|source| source.is_rust() && !source.is_test()) {
        let below = source.path.trim_start_matches(root);
        for &(folder, words, reason) in FORBIDDEN {
            let mentioned =
                words.iter().filter(|word| below.starts_with(folder) && source.text.contains(**word));
            found.extend(mentioned.map(|word| format!("{}: mentions {word}: {reason}", source.path)));
        }
        let names = ADAPTERS
            .iter()
            .filter(|name| below != "app.rs" && !below.starts_with("app/") && source.text.contains(**name));
        found.extend(names.map(|name| format!("{}: names the adapter {name}; only app.rs may", source.path)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_flow_that_calls_a_flow_is_found() {
        let tree = Tree {
            sources: vec![Source::new("crates/server/src/saving/x.rs", "use crate::opening::y; LocalVault")],
        };

        assert_eq!(violations(&tree).len(), 2);
    }
}
