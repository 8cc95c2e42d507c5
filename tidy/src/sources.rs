//! Rules about Rust files: how they open, how long they are, what they leave undone.

use crate::Source;

/// A file that is longer is two files.
const LINES_MAX: usize = 500;
/// Functions a reader looks for are found by these names and nothing else.
const FORBIDDEN_NAMES: [&str; 5] = ["util", "utils", "common", "helpers", "manager"];

/// Every file opens by saying what it is.
pub fn without_opening(source: &Source) -> Option<String> {
    let opens = source.text.trim_start();
    let is_said = opens.starts_with("//!") || opens.starts_with("#![doc = include_str!");
    (!is_said).then(|| format!("{}: does not open with `//!`", source.path))
}

/// No file grows past a few screens (tests aside).
pub fn too_long(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    (!source.is_test() && lines > LINES_MAX)
        .then(|| format!("{}: {lines} lines, at most {LINES_MAX}", source.path))
}

/// Names that say nothing.
pub fn nameless(source: &Source) -> Option<String> {
    let is_nameless =
        source.path.split('/').any(|part| FORBIDDEN_NAMES.contains(&part.trim_end_matches(".rs")));
    is_nameless.then(|| format!("{}: the name says nothing", source.path))
}

/// What is left undone has a number.
pub fn undone(source: &Source) -> Vec<String> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let lines = source.text.lines().enumerate();
    lines
        .filter(|(_, line)| marks.iter().any(|mark| line.contains(mark)))
        .filter(|(_, line)| !line.contains(concat!("TO", "DO(#")))
        .map(|(at, _)| format!("{}:{}: left undone without a number", source.path, at + 1))
        .collect()
}

/// Tests wait for events, never for a while; only a stage's `wait_until` looks again and again.
pub fn sleeping_tests(source: &Source) -> Vec<String> {
    let may_wait =
        source.path.contains("/support/") || source.path.ends_with("/testing.rs") || !source.is_test();
    if may_wait {
        return Vec::new();
    }
    let sleep = concat!("slee", "p(");
    let allowed = concat!("// waits on purpose", ":");
    let mut found = Vec::new();
    let mut before = "";
    for (at, line) in source.text.lines().enumerate() {
        if line.contains(sleep) && !before.contains(allowed) {
            found.push(format!("{}:{}: a test sleeps", source.path, at + 1));
        }
        before = line;
    }
    found
}

/// No test is switched off.
pub fn ignored_tests(source: &Source) -> Vec<String> {
    let attribute = concat!("#[ign", "ore");
    let lines = source.text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with(attribute));
    lines.map(|(at, _)| format!("{}:{}: a test is switched off", source.path, at + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_files_are_found() {
        let long = Source::new("crates/x/src/a.rs", &"line\n".repeat(501));
        assert!(too_long(&long).is_some() && without_opening(&long).is_some());
        assert!(too_long(&Source::new("crates/x/tests/it/a.rs", &"line\n".repeat(501))).is_none());
        assert!(nameless(&Source::new("crates/x/src/utils.rs", "")).is_some());
        assert!(nameless(&Source::new("crates/x/src/utilities.rs", "")).is_none());
        assert_eq!(
            undone(&Source::new("a.rs", concat!("// TO", "DO: later\n// TO", "DO(#7): then"))).len(),
            1
        );
        assert_eq!(sleeping_tests(&Source::new("crates/x/tests/it/a.rs", concat!("slee", "p(1)"))).len(), 1);
        assert_eq!(ignored_tests(&Source::new("a.rs", concat!("#[ign", "ore]"))).len(), 1);
    }
}
