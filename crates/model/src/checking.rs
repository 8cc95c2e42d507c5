//! What follows from a check of the bytes: findings, and content that vanished since the head.
//!
//! Two duties pull against each other: damaged bytes must never become the head, and a legitimate save must never be refused,
//! because refusing loses somebody's work. So only damage refuses. Emptiness never does: people empty documents on
//! purpose. But much content in the head and hardly any now is worth telling, or, where the operator wants it, worth holding
//! until a person has looked.
//!
//! Guarantees: total and pure. Does not do: check bytes (`office-check` does), remember the head.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::saves::{ConflictReason, Ruling};

/// What the operator wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Codes of findings that are only counted: neither flagged nor refused. For rules that are being tried out.
    pub shadow: BTreeSet<String>,
    /// What happens to a save in which much content vanished.
    pub on_vanished: OnVanished,
}

impl Policy {
    /// Whether something follows from this code.
    pub fn is_live(&self, code: &str) -> bool {
        !self.shadow.contains(code)
    }
}

/// What happens to a save in which much content vanished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnVanished {
    /// It becomes the head, marked.
    #[default]
    Flag,
    /// It is kept aside until a person has looked; the head stays.
    Hold,
}

/// Where bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The configured Document Server sent them, signed: its work is not refused for being large.
    DocumentServer,
    /// Anybody else.
    Other,
}

/// How heavy a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Nothing follows from it.
    Note,
    /// The bytes are taken and marked.
    Notice,
    /// More of something than any program writes.
    OverLimit,
    /// The bytes are damaged.
    Damage,
}

/// What follows from one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Noted,
    /// Nothing, because the rule runs in shadow mode; it would have had an effect.
    Shadowed,
    /// The bytes are marked.
    Flagged,
    /// The bytes are kept aside.
    Refused,
}

impl Effect {
    /// The word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Noted => "noted",
            Self::Shadowed => "shadowed",
            Self::Flagged => "flagged",
            Self::Refused => "refused",
        }
    }
}

/// Decides what follows from one finding.
pub fn rule_on_finding(policy: &Policy, source: Source, (code, weight): (&str, Weight)) -> Effect {
    match (weight, source) {
        (Weight::Note, _) => Effect::Noted,
        _ if !policy.is_live(code) => Effect::Shadowed,
        (Weight::Notice, _) | (Weight::OverLimit, Source::DocumentServer) => Effect::Flagged,
        (Weight::OverLimit, Source::Other) | (Weight::Damage, _) => Effect::Refused,
    }
}

/// How much a content holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extent {
    /// Bytes of text.
    pub text_bytes: u64,
    /// Cells with a value.
    pub cells: u64,
    /// Cells with a formula.
    pub formulas: u64,
    /// Sheets.
    pub sheets: u64,
    /// Slides.
    pub slides: u64,
    /// Pictures and charts.
    pub pictures: u64,
}

/// What vanished since the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vanished {
    /// Nearly all text.
    Text,
    /// Nearly all values of cells.
    Cells,
    /// Nearly all formulas, while the cells kept their values.
    Formulas,
    /// Most sheets.
    Sheets,
    /// Most slides.
    Slides,
    /// All pictures.
    Pictures,
}

impl Vanished {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Text, Self::Cells, Self::Formulas, Self::Sheets, Self::Slides, Self::Pictures];

    /// The code, as findings have one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text-vanished",
            Self::Cells => "cells-vanished",
            Self::Formulas => "formulas-vanished",
            Self::Sheets => "sheets-vanished",
            Self::Slides => "slides-vanished",
            Self::Pictures => "pictures-vanished",
        }
    }

    /// What it means, in a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Text => "The head held a page of text or more, and hardly a twentieth of it is left.",
            Self::Cells => "The head held a hundred values or more, and hardly a twentieth of them is left.",
            Self::Formulas => {
                "The head held twenty formulas or more; hardly any are left, and the cells have values instead."
            }
            Self::Sheets => "The head had four sheets or more, and less than a third of them is left.",
            Self::Slides => "The head had four slides or more, and less than a third of them is left.",
            Self::Pictures => "The head had three pictures or charts or more, and none is left.",
        }
    }
}

/// Compares a content with the head it would replace: much before, hardly any now. A page has some two thousand bytes.
pub fn what_vanished(head: &Extent, now: &Extent) -> Vec<Vanished> {
    let fell = |before: u64, after: u64, (much, share): (u64, u64)| before >= much && after < before / share;
    let is_gone = |what: &Vanished| match what {
        Vanished::Text => fell(head.text_bytes, now.text_bytes, (2_000, 20)),
        Vanished::Cells => fell(head.cells, now.cells, (100, 20)),
        Vanished::Formulas => fell(head.formulas, now.formulas, (20, 20)) && now.cells >= head.formulas,
        Vanished::Sheets => fell(head.sheets, now.sheets, (4, 3)),
        Vanished::Slides => fell(head.slides, now.slides, (4, 3)),
        Vanished::Pictures => head.pictures >= 3 && now.pictures == 0,
    };
    Vanished::ALL.into_iter().filter(is_gone).collect()
}

/// Decides whether content that vanished keeps a save from the head.
pub fn rule_on_vanished(policy: &Policy, ruling: Ruling, vanished: &[Vanished]) -> Ruling {
    let moves_head = matches!(ruling, Ruling::NewVersion | Ruling::NewCheckpoint);
    let is_held = policy.on_vanished == OnVanished::Hold
        && vanished.iter().any(|vanished| policy.is_live(vanished.as_str()));
    if moves_head && is_held { Ruling::KeepAside(ConflictReason::ContentVanished) } else { ruling }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadowing(code: &str) -> Policy {
        Policy { shadow: BTreeSet::from([code.to_owned()]), ..Policy::default() }
    }

    #[test]
    fn only_damage_refuses_and_the_document_servers_work_is_not_refused_for_its_size() {
        let rule = |source, weight| rule_on_finding(&Policy::default(), source, ("code", weight));

        assert_eq!(rule(Source::Other, Weight::Note), Effect::Noted);
        assert_eq!(rule(Source::Other, Weight::Notice), Effect::Flagged);
        assert_eq!(rule(Source::Other, Weight::OverLimit), Effect::Refused);
        assert_eq!(rule(Source::DocumentServer, Weight::OverLimit), Effect::Flagged);
        assert_eq!(rule(Source::DocumentServer, Weight::Damage), Effect::Refused);
    }

    #[test]
    fn a_rule_in_shadow_mode_has_no_effect_and_the_others_have() {
        let policy = shadowing("zip-data");

        let rule = |code| rule_on_finding(&policy, Source::Other, (code, Weight::Damage));

        assert_eq!((rule("zip-data"), rule("zip-header")), (Effect::Shadowed, Effect::Refused));
    }

    #[test]
    fn much_before_and_hardly_any_now_has_vanished() {
        let head = Extent { text_bytes: 40_000, cells: 900, formulas: 40, sheets: 5, slides: 0, pictures: 3 };

        assert_eq!(what_vanished(&head, &head), []);
        assert_eq!(what_vanished(&head, &Extent { text_bytes: 2_000, ..head }), [], "a twentieth is left");
        assert_eq!(what_vanished(&head, &Extent { text_bytes: 1_999, ..head }), [Vanished::Text]);
        assert_eq!(what_vanished(&head, &Extent { formulas: 0, ..head }), [Vanished::Formulas]);
        assert_eq!(
            what_vanished(&head, &Extent { sheets: 4, pictures: 1, ..head }),
            [],
            "people delete sheets"
        );
        let emptied = what_vanished(&head, &Extent { sheets: 1, ..Extent::default() });
        assert_eq!(
            emptied,
            [Vanished::Text, Vanished::Cells, Vanished::Pictures],
            "formulas went with the cells"
        );
    }

    #[test]
    fn a_small_document_may_be_emptied() {
        let head = Extent { text_bytes: 1_999, cells: 99, formulas: 19, sheets: 3, slides: 3, pictures: 2 };

        assert_eq!(what_vanished(&head, &Extent::default()), []);
    }

    #[test]
    fn what_vanished_holds_a_save_only_where_the_operator_wants_it() {
        let hold = Policy { on_vanished: OnVanished::Hold, ..Policy::default() };
        let in_shadow = Policy { on_vanished: OnVanished::Hold, ..shadowing("text-vanished") };
        let rule = |policy: &Policy, ruling| rule_on_vanished(policy, ruling, &[Vanished::Text]);
        let held = Ruling::KeepAside(ConflictReason::ContentVanished);

        assert_eq!(rule(&Policy::default(), Ruling::NewVersion), Ruling::NewVersion);
        assert_eq!((rule(&hold, Ruling::NewVersion), rule(&hold, Ruling::NewCheckpoint)), (held, held));
        assert_eq!(rule(&hold, Ruling::FileBeside), Ruling::FileBeside, "the head does not move anyway");
        assert_eq!(rule(&in_shadow, Ruling::NewVersion), Ruling::NewVersion);
        assert_eq!(rule_on_vanished(&hold, Ruling::NewVersion, &[]), Ruling::NewVersion);
    }
}
