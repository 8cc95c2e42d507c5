//! What becomes of what is there when somebody wishes it otherwise: the part of writing down who hands in what that no engine
//! needs to know.
//!
//! Guarantees: pure; every adapter takes the same wish for the same thing, and tells it with the same words in the trail.
//! Does not do: looking up what is there.

use jiff::civil::Date;
use model::TemplateId;
use model::scopes::{Deadline, Reversed, Span};
use serde_json::{Value, json};

use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, How, Organisation, OrganisationWish, Registration,
    RegistrationWish, Writing,
};
use crate::{LedgerError, Result};

/// What a wish came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Created,
    Changed,
    Unchanged,
}

pub(crate) fn effect<T: PartialEq>(before: Option<&T>, after: &T) -> Effect {
    match before {
        None => Effect::Created,
        Some(before) if before == after => Effect::Unchanged,
        Some(_) => Effect::Changed,
    }
}

/// What is new must not be there.
pub(crate) fn expect<T>(how: How, before: Option<&T>, what: impl Fn() -> String) -> Result<()> {
    match how {
        How::Create if before.is_some() => Err(LedgerError::AlreadyExists { what: what() }),
        How::Create | How::Put | How::Merge => Ok(()),
    }
}

/// Whether an error says that this wish cannot be; another one may.
pub(crate) fn is_about_the_wish(error: &LedgerError) -> bool {
    matches!(
        error,
        LedgerError::NotFound { .. }
            | LedgerError::AlreadyExists { .. }
            | LedgerError::NoTemplate { .. }
            | LedgerError::TooMany { .. }
            | LedgerError::Reversed(_)
    )
}

/// A part of the wish, or what is there if the wish says nothing of it and that means to leave it.
fn chosen<T: Clone>(how: How, wished: &Option<T>, before: Option<&T>) -> Option<T> {
    match how {
        How::Merge => wished.as_ref().or(before).cloned(),
        How::Create | How::Put => wished.clone(),
    }
}

pub(crate) fn organisation(
    wish: &OrganisationWish,
    was: Option<&Organisation>,
    writing: &Writing,
) -> Organisation {
    Organisation {
        id: wish.id.clone(),
        name: chosen(writing.how, &wish.name, was.map(|was| &was.name))
            .unwrap_or_else(|| wish.id.to_string()),
        number: chosen(writing.how, &wish.number, was.and_then(|was| was.number.as_ref())),
        created_at: was.map_or(writing.at, |was| was.created_at),
    }
}

pub(crate) fn registration(
    wish: &RegistrationWish,
    was: Option<&Registration>,
    writing: &Writing,
) -> Result<Registration> {
    let (how, id) = (writing.how, || wish.scope.registration.to_string());
    let from = chosen(how, &wish.from, was.and_then(|was| was.active.from()).as_ref());
    let until = chosen(how, &wish.until, was.and_then(|was| was.active.until()).as_ref());
    Ok(Registration {
        scope: wish.scope.clone(),
        number: chosen(how, &wish.number, was.map(|was| &was.number)).unwrap_or_else(id),
        title: chosen(how, &wish.title, was.map(|was| &was.title)).unwrap_or_else(id),
        material: chosen(how, &wish.material, was.and_then(|was| was.material.as_ref())),
        template: chosen(how, &wish.template, was.and_then(|was| was.template.as_ref())),
        active: Span::new(from, until).map_err(LedgerError::Reversed)?,
        created_at: was.map_or(writing.at, |was| was.created_at),
    })
}

pub(crate) fn accreditation(
    wish: &AccreditationWish,
    was: Option<&Accreditation>,
    writing: &Writing,
) -> Result<Accreditation> {
    let how = writing.how;
    let from = chosen(how, &wish.from, was.and_then(|was| was.valid.from()).as_ref());
    let until = chosen(how, &wish.until, was.and_then(|was| was.valid.until()).as_ref());
    Ok(Accreditation {
        scope: wish.scope.clone(),
        id: wish.id.clone(),
        number: chosen(how, &wish.number, was.map(|was| &was.number)).unwrap_or_else(|| wish.id.to_string()),
        valid: Span::new(from, until).map_err(LedgerError::Reversed)?,
        created_at: was.map_or(writing.at, |was| was.created_at),
    })
}

pub(crate) fn deadline(wish: &DeadlineWish, was: Option<&Deadline>, writing: &Writing) -> Result<Deadline> {
    let opens = chosen(writing.how, &wish.opens, was.and_then(|was| was.opens).as_ref());
    match opens.filter(|opens| *opens > wish.due) {
        Some(opens) => Err(LedgerError::Reversed(Reversed(opens, wish.due))),
        None => Ok(Deadline { period: wish.period.clone(), opens, due: wish.due }),
    }
}

/// The words and details of an entry in the trail: what came, and what was there before.
pub(crate) fn told(
    [created, changed]: [&'static str; 2],
    (mut details, before): (Value, Option<Value>),
) -> (&'static str, Value) {
    match before {
        Some(before) => {
            details["before"] = before;
            (changed, details)
        }
        None => (created, details),
    }
}

pub(crate) const ORGANISATION_WORDS: [&str; 2] = ["organisation-created", "organisation-changed"];
pub(crate) const REGISTRATION_WORDS: [&str; 2] = ["registration-created", "registration-changed"];
pub(crate) const ACCREDITATION_WORDS: [&str; 2] = ["accreditation-created", "accreditation-changed"];
pub(crate) const DEADLINE_WORDS: [&str; 2] = ["deadline-set", "deadline-changed"];

pub(crate) fn organisation_text(each: &Organisation) -> Value {
    json!({ "name": each.name, "number": each.number })
}

pub(crate) fn registration_text(each: &Registration) -> Value {
    json!({
        "registration": each.scope.registration.as_str(),
        "number": each.number,
        "title": each.title,
        "material": each.material,
        "template": each.template.as_ref().map(TemplateId::as_str),
        "from": day_text(each.active.from()),
        "until": day_text(each.active.until()),
    })
}

pub(crate) fn accreditation_text(each: &Accreditation) -> Value {
    json!({
        "registration": each.scope.registration.as_str(),
        "accreditation": each.id.as_str(),
        "number": each.number,
        "from": day_text(each.valid.from()),
        "until": day_text(each.valid.until()),
    })
}

pub(crate) fn deadline_text(registration: &str, each: &Deadline) -> Value {
    json!({
        "registration": registration,
        "period": each.period,
        "opens": day_text(each.opens),
        "due": each.due.to_string(),
    })
}

fn day_text(day: Option<Date>) -> Option<String> {
    day.map(|day| day.to_string())
}
