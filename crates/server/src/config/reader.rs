//! Reads settings one by one and collects every mistake, instead of stopping at the first.
//!
//! A setting comes from the environment (`SAVEGUARD_SECTION_NAME`) or else from the file (`[section] name`) or else
//! has a default. A secret may also come from a file (`name_file`).
//!
//! Guarantees: a name that no setting has is a mistake, with the nearest known name; nothing is silently ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toml::Value;
use url::Url;

use super::secret::Secret;

/// Variables that are no settings.
const OTHER_VARIABLES: [&str; 3] = ["SAVEGUARD_CONFIG", "SAVEGUARD_TOKEN", "SAVEGUARD_URL"];
const TORTURE_PREFIX: &str = "SAVEGUARD_TORTURE_";

/// The sources of settings, and the mistakes found so far.
pub(super) struct Reader {
    file: toml::Table,
    environment: BTreeMap<String, String>,
    known: BTreeSet<(String, String)>,
    pub(super) mistakes: Vec<String>,
}

/// One section of settings.
pub(super) struct Section<'a> {
    reader: &'a mut Reader,
    name: &'static str,
}

impl Reader {
    pub(super) fn new(file: toml::Table, environment: BTreeMap<String, String>) -> Self {
        Self { file, environment, known: BTreeSet::new(), mistakes: Vec::new() }
    }

    pub(super) fn section(&mut self, name: &'static str) -> Section<'_> {
        Section { reader: self, name }
    }

    /// Every setting that was asked for.
    #[cfg(test)]
    pub(super) fn known_names(&self) -> Vec<(String, String)> {
        self.known.iter().cloned().collect()
    }

    /// Names in the file or the environment that no setting has.
    pub(super) fn report_unknown(&mut self) {
        let mut unknown = Vec::new();
        for (section, value) in &self.file {
            match value {
                Value::Table(table) => unknown.extend(
                    table
                        .keys()
                        .filter(|name| !self.is_known(section, name))
                        .map(|name| (section.clone(), name.clone())),
                ),
                _ => self.mistakes.push(format!("`{section}` stands outside of a section")),
            }
        }
        for (section, name) in unknown {
            let hint = self.nearest(&section, &name);
            self.mistakes.push(format!("there is no setting `{section}.{name}`{hint}"));
        }
        let variables: Vec<_> =
            self.environment.keys().filter(|name| !self.is_known_variable(name)).cloned().collect();
        for variable in variables {
            self.mistakes.push(format!("the variable {variable} is no setting"));
        }
    }

    fn is_known(&self, section: &str, name: &str) -> bool {
        self.known.contains(&(section.to_owned(), name.to_owned()))
    }

    fn is_known_variable(&self, variable: &str) -> bool {
        OTHER_VARIABLES.contains(&variable)
            || variable.starts_with(TORTURE_PREFIX)
            || self.known.iter().any(|(section, name)| variable == variable_of(section, name))
    }

    fn nearest(&self, section: &str, name: &str) -> String {
        let best = self.known.iter().min_by_key(|(known_section, known_name)| {
            distance(known_name, name) + if known_section == section { 0 } else { 2 }
        });
        match best {
            Some((section, known)) if distance(known, name) <= 3 => {
                format!("; did you mean `{section}.{known}`?")
            }
            _ => String::new(),
        }
    }
}

fn variable_of(section: &str, name: &str) -> String {
    format!("SAVEGUARD_{section}_{name}").to_uppercase()
}

/// How many letters differ (Levenshtein), for the hint.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

impl Section<'_> {
    /// Reads a setting that can be parsed from text; a mistake yields the default and is remembered.
    pub(super) fn parse<T>(
        &mut self,
        name: &str,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        match self.raw(name) {
            None => default,
            Some(text) => match parse(&text) {
                Ok(value) => value,
                Err(mistake) => {
                    self.mistake(name, &mistake);
                    default
                }
            },
        }
    }

    pub(super) fn text(&mut self, name: &str, default: &str) -> String {
        self.raw(name).unwrap_or_else(|| default.to_owned())
    }

    pub(super) fn url(&mut self, name: &str, default: &str) -> Option<Url> {
        let text = self.raw(name).unwrap_or_else(|| default.to_owned());
        match parse_url(&text) {
            Ok(url) => Some(url),
            Err(mistake) => {
                self.mistake(name, &mistake);
                None
            }
        }
    }

    pub(super) fn urls(&mut self, name: &str) -> Vec<Url> {
        let texts = self.list(name);
        let mut urls = Vec::new();
        for text in texts {
            match parse_url(&text) {
                Ok(url) => urls.push(url),
                Err(mistake) => self.mistake(name, &mistake),
            }
        }
        urls
    }

    /// A whole number of seconds or milliseconds between two bounds; the name ends in its unit.
    pub(super) fn duration(&mut self, name: &str, default: Duration, (least, most): (u64, u64)) -> Duration {
        let unit = if name.ends_with("_ms") { Duration::from_millis(1) } else { Duration::from_secs(1) };
        self.parse(name, default, |text| {
            let count = parse_whole(text, (least, most))?;
            unit.checked_mul(u32::try_from(count).map_err(|_| "is too large".to_owned())?)
                .ok_or_else(|| "is too large".to_owned())
        })
    }

    pub(super) fn whole(&mut self, name: &str, default: u64, bounds: (u64, u64)) -> u64 {
        self.parse(name, default, |text| parse_whole(text, bounds))
    }

    pub(super) fn choice<T: Copy>(&mut self, name: &str, default: T, choices: &[(&str, T)]) -> T {
        self.parse(name, default, |text| {
            choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
                let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
                format!("is `{text}`; it can be {}", words.join(" or "))
            })
        })
    }

    /// A secret, given directly or as the path of a file that holds it.
    pub(super) fn secret(&mut self, name: &str) -> Option<Secret> {
        let text = self.hidden(name)?;
        match Secret::parse(&text) {
            Ok(secret) => Some(secret),
            Err(mistake) => {
                self.mistake(name, &mistake);
                None
            }
        }
    }

    /// A password somebody else gave us, however long, directly or as the path of a file that holds it.
    pub(super) fn hidden(&mut self, name: &str) -> Option<String> {
        let path = self.raw(&format!("{name}_file"));
        let text = match (self.raw(name), path) {
            (Some(_), Some(_)) => {
                self.mistake(name, "is given twice: directly and as a file");
                None
            }
            (Some(text), None) => Some(text),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                Ok(text) => Some(text),
                Err(cause) => {
                    self.mistake(&format!("{name}_file"), &format!("`{path}` cannot be read: {cause}"));
                    None
                }
            },
            (None, None) => None,
        }?;
        Some(text.trim().to_owned())
    }

    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        self.note(name);
        if let Some(text) = self.reader.environment.get(&variable_of(self.name, name)) {
            return text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
        }
        match self.reader.file.get(self.name).and_then(|section| section.get(name)) {
            None => Vec::new(),
            Some(Value::Array(items)) if items.iter().all(Value::is_str) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(_) => {
                self.mistake(name, "must be a list of texts");
                Vec::new()
            }
        }
    }

    fn raw(&mut self, name: &str) -> Option<String> {
        self.note(name);
        if let Some(text) = self.reader.environment.get(&variable_of(self.name, name)) {
            return Some(text.clone());
        }
        match self.reader.file.get(self.name)?.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Boolean(value) => Some(value.to_string()),
            _ => {
                self.mistake(name, "must be a text or a number");
                None
            }
        }
    }

    fn note(&mut self, name: &str) {
        self.reader.known.insert((self.name.to_owned(), name.to_owned()));
    }

    pub(super) fn mistake(&mut self, name: &str, what: &str) {
        self.reader.mistakes.push(format!("`{}.{name}` {what}", self.name));
    }
}

fn parse_whole(text: &str, (least, most): (u64, u64)) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("is `{text}`; it must be a whole number from {least} to {most}")),
    }
}

fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|cause| format!("is `{text}`, which is no URL: {cause}"))?;
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    match url.scheme() {
        "http" | "https" if url.has_host() && is_plain => Ok(url),
        _ => Err(format!("is `{text}`; it must be a plain http or https URL")),
    }
}
