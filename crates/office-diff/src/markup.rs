//! A walk through the markup of a part, event by event.
//!
//! Guarantees: names come without prefix, references are resolved (the five predefined and numbered ones, no others), and
//! what stands inside of a skipped element is not seen. No more than one event is in memory.

use std::io::Read;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::Cut;
use crate::budget::Budget;

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    Stop,
}

/// Looks at a part.
pub(crate) trait Visitor {
    /// Elements whose inside is not looked at.
    const SKIPPED: &'static [&'static str] = &[];

    fn start(&mut self, name: &str, tag: &Tag<'_>, budget: &mut Budget) -> Then;
    fn end(&mut self, name: &str, budget: &mut Budget) -> Then;
    fn text(&mut self, text: &str, budget: &Budget);
}

/// A start tag.
pub(crate) struct Tag<'a>(&'a BytesStart<'a>);

impl Tag<'_> {
    /// The value of an attribute, by its name without prefix.
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let found = self.0.attributes().flatten().find(|each| each.key.local_name().as_ref() == name)?;
        let raw = found.value.into_owned();
        Some(quick_xml::escape::unescape(&raw).map(|value| value.into_owned()).unwrap_or(raw))
    }

    /// The id of a relation: `r:id`, beside which a plain `id` may stand.
    pub(crate) fn relation(&self) -> Option<String> {
        let mut ids = self.0.attributes().flatten().filter(|each| each.key.local_name().as_ref() == "id");
        let found = ids.find(|each| each.key.prefix().is_some())?;
        Some(found.value.into_owned())
    }

    /// The value of an attribute as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.attribute(name)?.trim().parse().ok()
    }
}

/// Walks through a part. What stops it early is in the budget.
pub(crate) fn walk<V: Visitor>(source: impl Read, budget: &mut Budget, visitor: &mut V) {
    let mut reader = Reader::from_reader(budget.reader(source));
    let mut buffer = Vec::new();
    let (mut depth, mut skipped): (u64, u64) = (0, 0);
    loop {
        buffer.clear();
        reader.get_mut().next_event();
        let event = reader.read_event_into(&mut buffer);
        let then = match event {
            Ok(Event::Eof) => {
                if depth > 0 {
                    budget.cut = Some(Cut::Damaged);
                }
                Then::Stop
            }
            Ok(Event::Start(tag)) => {
                depth += 1;
                enter(visitor, budget, (&tag, &mut skipped))
            }
            Ok(Event::End(tag)) => {
                depth = depth.saturating_sub(1);
                leave(visitor, budget, (tag.local_name().as_ref(), &mut skipped))
            }
            Ok(Event::Empty(tag)) => match enter(visitor, budget, (&tag, &mut skipped)) {
                Then::GoOn => leave(visitor, budget, (tag.local_name().as_ref(), &mut skipped)),
                Then::Stop => Then::Stop,
            },
            Ok(other) => {
                if skipped == 0 {
                    say(visitor, budget, other);
                }
                Then::GoOn
            }
            Err(_) => {
                budget.cut = Some(if reader.get_ref().is_exhausted() { Cut::Read } else { Cut::Damaged });
                Then::Stop
            }
        };
        if then == Then::Stop || !budget.is_open() {
            budget.settle(reader.get_ref());
            return;
        }
    }
}

fn enter<V: Visitor>(
    visitor: &mut V,
    budget: &mut Budget,
    (tag, skipped): (&BytesStart<'_>, &mut u64),
) -> Then {
    let name = tag.local_name();
    if *skipped > 0 || V::SKIPPED.contains(&name.as_ref()) {
        *skipped += 1;
        return Then::GoOn;
    }
    visitor.start(name.as_ref(), &Tag(tag), budget)
}

fn leave<V: Visitor>(visitor: &mut V, budget: &mut Budget, (name, skipped): (&str, &mut u64)) -> Then {
    if *skipped > 0 {
        *skipped -= 1;
        return Then::GoOn;
    }
    visitor.end(name, budget)
}

fn say(visitor: &mut impl Visitor, budget: &Budget, event: Event<'_>) {
    match event {
        Event::Text(text) => visitor.text(&text.xml10_content(), budget),
        Event::CData(text) => visitor.text(&text.into_inner(), budget),
        Event::GeneralRef(name) => match name.resolve_char_ref() {
            Ok(Some(letter)) => visitor.text(letter.encode_utf8(&mut [0; 4]), budget),
            _ => visitor.text(predefined(&name.into_inner()), budget),
        },
        _ => {}
    }
}

fn predefined(name: &str) -> &'static str {
    match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "apos" => "'",
        "quot" => "\"",
        _ => "",
    }
}
