//! Paragraphs out of the markup of text documents and slides.
//!
//! Text that was deleted or moved away in a review is not there any more; what was inserted is. A shape that is written down
//! twice, for newer and for older programs, is read once.

use crate::Place;
use crate::budget::Budget;
use crate::markup::{Tag, Then, Visitor};

/// Paragraphs inside of paragraphs: text boxes. More than so deep there are none that anybody made.
const NESTED_MAX: usize = 64;

/// A paragraph that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paragraph {
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// Reads the paragraphs of a part.
pub(crate) struct Reader<P> {
    place: P,
    number: u32,
    open: Vec<(u32, String)>,
    texts: u32,
    pub(crate) found: Vec<Paragraph>,
}

impl<P: Fn(u32) -> Place> Reader<P> {
    pub(crate) fn new(place: P) -> Self {
        Self { place, number: 0, open: Vec::new(), texts: 0, found: Vec::new() }
    }

    fn say(&mut self, text: &str, budget: &Budget) {
        if let Some((_, said)) = self.open.last_mut()
            && said.len() <= budget.text_bytes()
        {
            said.push_str(text);
        }
    }
}

impl<P: Fn(u32) -> Place> Visitor for Reader<P> {
    const SKIPPED: &'static [&'static str] = &["Fallback", "moveFrom", "del"];

    fn start(&mut self, name: &str, _: &Tag<'_>, budget: &mut Budget) -> Then {
        match name {
            "p" if self.open.len() < NESTED_MAX => {
                self.number += 1;
                self.open.push((self.number, String::new()));
            }
            "t" => self.texts += 1,
            "tab" if self.open.last().is_some_and(|(_, said)| !said.is_empty()) => self.say("\t", budget),
            "br" | "cr" => self.say("\n", budget),
            _ => {}
        }
        Then::GoOn
    }

    fn end(&mut self, name: &str, budget: &mut Budget) -> Then {
        match name {
            "t" => self.texts = self.texts.saturating_sub(1),
            "p" => {
                if let Some((number, text)) = self.open.pop()
                    && !text.trim().is_empty()
                    && budget.takes(text.len())
                {
                    self.found.push(Paragraph { place: (self.place)(number), text });
                }
            }
            _ => {}
        }
        Then::GoOn
    }

    fn text(&mut self, text: &str, budget: &Budget) {
        if self.texts > 0 {
            self.say(text, budget);
        }
    }
}
