//! `[[webhook]]`: who is told of what. A list, so it comes from the file only.

use model::webhooks::Event;
use toml::Value;
use url::Url;

use super::secret::Secret;

/// What a target may set.
const KNOWN: [&str; 5] = ["name", "url", "secret", "secret_file", "events"];
/// More targets than that are better served by one that passes things on.
const TARGETS_MAX: usize = 32;

/// A target.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Its name, in logs and for operators.
    pub name: String,
    /// What is called.
    pub url: Url,
    /// Signs what it is told.
    pub secret: Secret,
    /// What it is told of.
    pub events: Vec<Event>,
}

/// Takes the targets out of the file.
pub(super) fn read(file: &mut toml::Table, mistakes: &mut Vec<String>) -> Vec<Webhook> {
    let targets = match file.remove("webhook") {
        None => return Vec::new(),
        Some(Value::Array(targets)) if targets.len() <= TARGETS_MAX => targets,
        Some(_) => {
            mistakes.push(format!("`webhook` must be a list of at most {TARGETS_MAX}: [[webhook]]"));
            return Vec::new();
        }
    };
    let mut webhooks: Vec<Webhook> = Vec::new();
    for (place, target) in (1..).zip(targets) {
        match one(&target) {
            Ok(webhook) if webhooks.iter().any(|known| known.name == webhook.name) => {
                mistakes.push(format!("webhook {place} has the name of another one: `{}`", webhook.name));
            }
            Ok(webhook) => webhooks.push(webhook),
            Err(found) => mistakes.extend(found.into_iter().map(|what| format!("webhook {place}: {what}"))),
        }
    }
    webhooks
}

fn one(target: &Value) -> Result<Webhook, Vec<String>> {
    let Some(table) = target.as_table() else { return Err(vec!["is no table: [[webhook]]".to_owned()]) };
    let mut mistakes: Vec<String> = table
        .keys()
        .filter(|name| !KNOWN.contains(&name.as_str()))
        .map(|name| format!("there is no setting `{name}`"))
        .collect();
    let text = |name: &str| table.get(name).and_then(Value::as_str);
    let name = noted(&mut mistakes, name_of(text("name")));
    let url = noted(&mut mistakes, url_of(text("url")));
    let secret = noted(&mut mistakes, secret_of(text("secret"), text("secret_file")));
    let events = noted(&mut mistakes, events_of(table.get("events")));
    match (name, url, secret, events) {
        (Some(name), Some(url), Some(secret), Some(events)) if mistakes.is_empty() => {
            Ok(Webhook { name, url, secret, events })
        }
        _ => Err(mistakes),
    }
}

fn noted<T>(mistakes: &mut Vec<String>, read: Result<T, String>) -> Option<T> {
    read.map_err(|mistake| mistakes.push(mistake)).ok()
}

fn name_of(name: Option<&str>) -> Result<String, String> {
    let is_plain = |name: &&str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let name = name.filter(is_plain).map(str::to_owned);
    name.ok_or_else(|| "`name` must be 1 to 64 letters, digits or `-_.`".to_owned())
}

fn url_of(url: Option<&str>) -> Result<Url, String> {
    let url = url.and_then(|url| Url::parse(url).ok()).filter(|url| matches!(url.scheme(), "http" | "https"));
    url.filter(Url::has_host).ok_or_else(|| "`url` must be an http or https URL".to_owned())
}

fn secret_of(secret: Option<&str>, file: Option<&str>) -> Result<Secret, String> {
    let text = match (secret, file) {
        (Some(text), None) => text.to_owned(),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|cause| format!("`secret_file` `{path}` cannot be read: {cause}"))?,
        (Some(_), Some(_)) => return Err("`secret` is given twice: directly and as a file".to_owned()),
        (None, None) => return Err("`secret` or `secret_file` is missing".to_owned()),
    };
    Secret::parse(&text).map_err(|mistake| format!("`secret` {mistake}"))
}

fn events_of(events: Option<&Value>) -> Result<Vec<Event>, String> {
    let words = Event::ALL.map(Event::as_str).join(", ");
    let wrong = || format!("`events` must be a list of some of: {words}");
    let listed = events.and_then(Value::as_array).filter(|listed| !listed.is_empty()).ok_or_else(wrong)?;
    listed.iter().map(|word| word.as_str().and_then(Event::parse).ok_or_else(wrong)).collect()
}
