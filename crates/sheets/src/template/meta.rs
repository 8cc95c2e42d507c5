//! Single values of a template: `[[meta]]`.

use std::collections::BTreeMap;

use model::submissions::Severity;

use super::walk::Walk;
use super::{Issue, Meta, MetaKind, check};
use crate::expressions::{Expression, Kind};

const KINDS: [(MetaKind, &str); 4] = [
    (MetaKind::Text, "text"),
    (MetaKind::Version, "version"),
    (MetaKind::Date, "date"),
    (MetaKind::Integer, "integer"),
];

/// What may be wrong with a single value: the end of its code, and the sentence.
const FAULTS: [(&str, &str, &str); 4] = [
    ("missing", "MISSING", "is missing. Fill it in."),
    ("malformed", "MALFORMED", "does not look as it should: \"{value}\"."),
    ("mismatch", "WRONG", "is \"{value}\" and should be {detail}."),
    ("forbidden", "NOT_EXPECTED", "is \"{value}\" and should be empty."),
];

pub(super) fn read(walk: Walk<'_>, issues: &mut BTreeMap<String, Issue>) -> Meta {
    let name = walk.needed_text("name");
    check::name(&walk, &name);
    let label = walk.text("label").unwrap_or_else(|| name.clone());
    let kind = walk.word("type", &KINDS).unwrap_or(MetaKind::Text);
    let normalise = walk.texts("normalise");
    for word in normalise.iter().filter(|word| !["trim", "upper"].contains(&word.as_str())) {
        walk.note("normalise", format!("has \"{word}\"; known are \"trim\" and \"upper\""));
    }
    let equals = expression(&walk, "equals", Kind::Text);
    if equals.is_some() && kind != MetaKind::Text {
        walk.note("equals", "compares texts, and the type is another");
    }
    let one_of = walk.text("one_of");
    if one_of.as_deref().is_some_and(|word| word != "template.accepts") {
        walk.note("one_of", "must be \"template.accepts\"");
    }
    if one_of.is_some() && kind != MetaKind::Version {
        walk.note("one_of", "needs type = \"version\"");
    }
    let meta = Meta {
        kind,
        is_upper: normalise.iter().any(|word| word == "upper"),
        is_required: walk.flag("required"),
        required_when: expression(&walk, "required_when", Kind::Flag),
        forbidden_when: expression(&walk, "forbidden_when", Kind::Flag),
        equals,
        is_accepted_version: one_of.is_some(),
        is_personal: walk.flag("personal_data"),
        codes: codes(&walk, (&name, &label), issues),
        name,
        label,
    };
    walk.finish();
    meta
}

fn expression(walk: &Walk<'_>, key: &'static str, kind: Kind) -> Option<Expression> {
    let text = walk.text(key)?;
    Expression::parse(&text, kind, &[]).map_err(|fault| walk.note(key, fault)).ok()
}

/// The codes of its problems; each has a sentence even if the catalogue has none.
fn codes(walk: &Walk<'_>, (name, label): (&str, &str), issues: &mut BTreeMap<String, Issue>) -> [String; 4] {
    let given = walk.child("codes");
    let codes = FAULTS.map(|(key, end, sentence)| {
        let code = given.text(key).unwrap_or_else(|| format!("{}_{end}", name.to_uppercase()));
        let text = format!("{label} {sentence}");
        issues.entry(code.clone()).or_insert(Issue { severity: Severity::Fatal, text });
        code
    });
    given.finish();
    codes
}
