//! Documents in step with the code: a page for every error code, links that lead somewhere, proofs that exist.

use model::problems::Code;

use crate::Tree;

/// Every code without a page and every page without a code.
pub fn error_pages(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for code in Code::ALL {
        match tree.find(&format!("docs/errors/{code}.md")) {
            None => found.push(format!("docs/errors/{code}.md is missing")),
            Some(page) if !page.text.contains(code.name()) => {
                found.push(format!("{}: does not name {}", page.path, code.name()))
            }
            Some(_) => {}
        }
    }
    for page in tree.below("docs/errors/") {
        let name = page.path.trim_start_matches("docs/errors/").trim_end_matches(".md");
        let is_known = name == "README" || Code::ALL.iter().any(|code| code.as_str() == name);
        if !is_known {
            found.push(format!("{}: there is no such code", page.path));
        }
    }
    found
}

/// Every relative link of a document that leads nowhere.
pub fn dead_links(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for document in tree.sources.iter().filter(|source| source.path.ends_with(".md")) {
        for target in links(&document.text) {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let resolved = resolve(folder, path);
            let exists = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&resolved).exists();
            if !exists {
                found.push(format!("{}: the link {target} leads nowhere", document.path));
            }
        }
    }
    found
}

fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains(' '))
        .collect()
}

fn resolve(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Every row of `docs/seeds.md` whose proof is neither a test that exists nor a link.
pub fn unproven_rows(tree: &Tree) -> Vec<String> {
    let Some(page) = tree.find("docs/seeds.md") else { return vec!["docs/seeds.md is missing".to_owned()] };
    let mut found = Vec::new();
    let rows =
        page.text.lines().enumerate().filter(|(_, line)| line.starts_with('|') && !line.starts_with("|---"));
    for (at, line) in rows {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let Some(proof) = cells.get(2).map(|cell| cell.trim()).filter(|proof| *proof != "proof") else {
            continue;
        };
        let tests: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() && !proof.contains("](") {
            found.push(format!("docs/seeds.md:{}: no proof", at + 1));
        }
        for test in tests {
            if !is_test(tree, test) {
                found.push(format!("docs/seeds.md:{}: there is no test `{test}`", at + 1));
            }
        }
    }
    found
}

fn is_test(tree: &Tree, name: &str) -> bool {
    let function = format!("fn {}(", name.rsplit("::").next().unwrap_or(name));
    let check = format!("            {name},");
    tree.sources
        .iter()
        .filter(|source| source.is_rust())
        .any(|source| source.text.contains(&function) || source.text.contains(&check))
}

/// The README's commands, which CI and people rely on.
pub fn readme(tree: &Tree) -> Vec<String> {
    let Some(page) = tree.find("README.md") else { return vec!["README.md is missing".to_owned()] };
    let commands = ["cargo run --release -- demo", "cargo xtask test"];
    commands
        .iter()
        .filter(|command| !page.text.contains(**command))
        .map(|command| format!("README.md lacks `{command}`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn proofs_that_do_not_exist_are_found() {
        let seeds = "| seed | what it says | proof |\n|---|---|---|\n| 1 | a | `is_there` |\n| 1 | b | `is_not` |\n| 1 | c | none |\n| 1 | d | [0001](decisions/0001.md) |";
        let tree = Tree {
            sources: vec![Source::new("docs/seeds.md", seeds), Source::new("a.rs", "fn is_there() {}")],
        };

        assert_eq!(unproven_rows(&tree).len(), 2);
    }

    #[test]
    fn links_are_resolved_from_their_page() {
        assert_eq!(resolve("docs/errors", "../style.md"), "docs/style.md");
        assert_eq!(links("see [a](b.md) and [c](https://d)"), ["b.md", "https://d"]);
    }
}
