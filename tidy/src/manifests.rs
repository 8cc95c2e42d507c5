//! Heavy dependencies stand in the manifests of their owners and nowhere else; versions stand at the root.

use crate::Tree;

/// A heavy dependency and the packages that own it.
const OWNERS: [(&str, &[&str]); 17] = [
    // The tests of the power-loss disk kill a program that writes as the service does.
    ("rusqlite", &["crates/ledger", "torture"]),
    ("axum", &["crates/server", "crates/understudy"]),
    ("reqwest", &["crates/server", "crates/understudy", "bench", "torture"]),
    (
        "zip",
        &[
            "crates/office-check",
            "crates/office-diff",
            "crates/sheets",
            "crates/understudy",
            "crates/server",
            "bench",
        ],
    ),
    ("calamine", &["crates/sheets", "bench"]),
    ("quick-xml", &["crates/office-check", "crates/office-diff", "crates/understudy"]),
    ("jsonwebtoken", &["crates/server", "crates/understudy", "bench", "torture"]),
    ("askama", &["crates/server"]),
    ("utoipa", &["crates/server"]),
    ("metrics", &["crates/server"]),
    ("argon2", &["crates/server"]),
    ("redis", &["crates/signals"]),
    ("object_store", &["crates/vault", "bench"]),
    ("russh", &["crates/vault"]),
    ("russh-sftp", &["crates/vault"]),
    ("tokio-postgres", &["crates/ledger"]),
    ("deadpool-postgres", &["crates/ledger"]),
];

/// Every dependency outside of its owners, and every version outside of the root.
pub fn violations(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for manifest in tree.sources.iter().filter(|source| source.path.ends_with("/Cargo.toml")) {
        let package = manifest.path.trim_end_matches("/Cargo.toml");
        for line in manifest.text.lines() {
            let Some((name, rest)) = line.split_once([' ', '.', '=']) else { continue };
            let is_elsewhere =
                OWNERS.iter().any(|(heavy, owners)| *heavy == name && !owners.contains(&package));
            if is_elsewhere {
                found.push(format!("{}: {name} has other owners", manifest.path));
            }
            let is_dependency = rest.contains("workspace = true") || rest.contains("version = \"");
            if is_dependency
                && rest.contains("version = \"")
                && !line.starts_with('[')
                && name != "rust-version"
            {
                found
                    .push(format!("{}: the version of {name} belongs into the root manifest", manifest.path));
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
    fn a_heavy_dependency_in_a_foreign_manifest_is_found() {
        let text = "rusqlite = { workspace = true }\nzip = { version = \"9\" }";
        let tree = Tree { sources: vec![Source::new("crates/model/Cargo.toml", text)] };

        assert_eq!(violations(&tree).len(), 3);
    }
}
