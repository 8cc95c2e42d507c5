//! The words of the pages, in every language they are spoken in. `texts/en.toml` and `texts/de.toml` are the one place.
//!
//! Guarantees: both files have the same keys (a test says so); scripts get the very same words as a module. A key that is in no
//! file shows nothing rather than a wrong word. Does not do: translate what people wrote, or the details of problems.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use http::HeaderMap;

use super::cookies;

/// The cookie of the switch.
pub(super) const COOKIE: &str = "saveguard_language";

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    German,
}

type Words = BTreeMap<String, String>;

static ENGLISH: LazyLock<Words> = LazyLock::new(|| read(include_str!("../../texts/en.toml")));
static GERMAN: LazyLock<Words> = LazyLock::new(|| read(include_str!("../../texts/de.toml")));

impl Language {
    /// Every language with its code and its own name.
    pub(super) const ALL: [(Self, &'static str, &'static str); 2] =
        [(Self::English, "en", "English"), (Self::German, "de", "Deutsch")];

    /// As pages write it.
    pub(super) fn code(self) -> &'static str {
        Self::ALL.iter().find(|(language, ..)| *language == self).map_or("en", |(_, code, _)| code)
    }

    /// Reads a code.
    pub(super) fn parse(code: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == code).map(|(language, ..)| *language)
    }

    /// What the switch was set to, else what the browser prefers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let chosen = cookies::value(headers, COOKIE).and_then(Self::parse);
        let preferred = || headers.get(http::header::ACCEPT_LANGUAGE)?.to_str().ok().and_then(preferred);
        chosen.or_else(preferred).unwrap_or(Self::English)
    }

    /// The words under a key.
    pub(super) fn text(self, key: &str) -> &'static str {
        self.find(key).unwrap_or_default()
    }

    /// The words under a key, if there are any.
    pub(super) fn find(self, key: &str) -> Option<&'static str> {
        self.words().get(key).map(String::as_str)
    }

    /// All words of a group, by their keys within it.
    pub(super) fn group(self, group: &str) -> Vec<(&'static str, &'static str)> {
        let inside = |(key, words): (&'static String, &'static String)| {
            Some((key.strip_prefix(group)?.strip_prefix('.')?, words.as_str()))
        };
        self.words().iter().filter_map(inside).collect()
    }

    fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::German => &GERMAN,
        }
    }

    /// All words as a module for scripts.
    pub(super) fn module(self) -> String {
        let words = serde_json::to_string(self.words()).unwrap_or_else(|_| "{}".to_owned());
        format!("export default {words};\n")
    }
}

/// The first of ours in the browser's order.
fn preferred(accepted: &str) -> Option<Language> {
    let mut wishes: Vec<(f32, &str)> = accepted
        .split(',')
        .map(|wish| {
            let (tag, weight) = wish.split_once(";q=").unwrap_or((wish, "1"));
            (weight.trim().parse().unwrap_or(0.0), tag.trim())
        })
        .filter(|(weight, _)| *weight > 0.0)
        .collect();
    wishes.sort_by(|one, other| other.0.total_cmp(&one.0));
    wishes.iter().find_map(|(_, tag)| Language::parse(tag.split('-').next().unwrap_or_default()))
}

/// Tables become prefixes: `[documents] title` is `documents.title`.
fn read(text: &str) -> Words {
    let mut words = Words::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        for (group, entries) in table {
            for (key, value) in entries.as_table().into_iter().flatten() {
                words.insert(format!("{group}.{key}"), value.as_str().unwrap_or_default().to_owned());
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places such as `{version}` in a text.
    fn places(text: &str) -> Vec<&str> {
        let mut found: Vec<&str> =
            text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn every_language_says_the_same_things() {
        assert!(ENGLISH.len() > 100);
        let keys = |words: &'static Words| words.keys().collect::<Vec<_>>();
        assert_eq!(keys(&ENGLISH), keys(&GERMAN));
        for (key, text) in ENGLISH.iter() {
            assert!(!text.is_empty() && !GERMAN[key].is_empty(), "{key} is empty");
            assert_eq!(places(text), places(&GERMAN[key]), "{key}");
        }
    }

    /// Keys that a text asks for: `t("documents.title")`, and not the end of a longer word.
    fn keys_in(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for call in ["t(\"", "with(\""] {
            for (at, _) in text.match_indices(call) {
                let is_longer = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
                let key = text[at + call.len()..].split('"').next().unwrap_or_default();
                let is_key = key.contains('.') && key.starts_with(|c: char| c.is_ascii_lowercase());
                if is_key && !is_longer {
                    found.push(key);
                }
            }
        }
        found
    }

    #[test]
    fn every_key_that_pages_and_scripts_use_is_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut used = 0;
        for folder in ["templates", "assets", "src/console"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let file = entry.unwrap().path();
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                for key in keys_in(&text) {
                    assert!(ENGLISH.contains_key(key), "{}: {key} has no words", file.display());
                    used += 1;
                }
            }
        }
        assert!(used > 100, "only {used} keys were found to be used");
    }

    #[test]
    fn the_browsers_wish_is_followed_and_the_switch_counts_more() {
        let of = |accepted: &str, cookie: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::ACCEPT_LANGUAGE, accepted.parse().unwrap());
            headers.insert(http::header::COOKIE, cookie.parse().unwrap());
            Language::of(&headers)
        };

        assert_eq!(of("de-AT,de;q=0.9,en;q=0.8", ""), Language::German);
        assert_eq!(of("fr,en;q=0.5,de;q=0.4", ""), Language::English);
        assert_eq!(of("fr", ""), Language::English);
        assert_eq!(of("en", "saveguard_language=de"), Language::German);
        assert_eq!(of("de", "saveguard_language=tlh"), Language::German);
    }
}
