//! Every manipulation of a trail that somebody with the database in hands could try.

use jiff::Timestamp;

use super::*;

type Trail = Vec<(Entry, Digest)>;

/// Appends an entry as the ledger does.
fn append(trail: &mut Trail, chain: &str, action: &str, details: String) {
    let last = trail.iter().rev().find(|(entry, _)| entry.chain == chain);
    let (sequence, previous) = last.map_or((0, CHAIN_START), |(entry, hash)| (entry.sequence, *hash));
    let entry = Entry {
        chain: chain.to_owned(),
        sequence: sequence + 1,
        at: Timestamp::from_second(1_794_770_000).unwrap(),
        actor: "u1".to_owned(),
        from: "192.0.2.7".to_owned(),
        action: action.to_owned(),
        outcome: "done".to_owned(),
        details,
    };
    let hash = hash_of(&previous, &entry);
    trail.push((entry, hash));
}

fn anchor(trail: &mut Trail, chains: &[&str]) {
    let head = |chain: &&str| {
        let (entry, hash) = trail.iter().rev().find(|(entry, _)| entry.chain == **chain).unwrap();
        ((*chain).to_owned(), AnchoredHead { sequence: entry.sequence, hash: hash.to_string() })
    };
    let anchor = Anchor { heads: chains.iter().map(head).collect() };
    append(trail, "company:acme", ANCHOR, serde_json::to_string(&anchor).unwrap());
}

/// Two documents with four entries each; the third of each is anchored; companies stand first.
fn trail() -> Trail {
    let mut trail = Trail::new();
    for round in 1..=4 {
        append(&mut trail, "a", "save-committed", format!("{{\"round\":{round}}}"));
        append(&mut trail, "b", "save-committed", format!("{{\"round\":{round}}}"));
        if round == 1 || round == 3 {
            anchor(&mut trail, &["a", "b"]);
        }
    }
    trail.sort_by_key(|(entry, _)| (!is_company_chain(&entry.chain), entry.chain.clone()));
    trail
}

fn check(trail: &Trail) -> Verdict {
    let mut checker = Checker::default();
    trail.iter().for_each(|(entry, hash)| checker.read(entry, *hash));
    checker.finish(|_| true)
}

/// Cuts a chain off after an entry.
fn cut(trail: &mut Trail, chain: &str, after: u64) {
    trail.retain(|(entry, _)| entry.chain != chain || entry.sequence <= after);
}

#[test]
fn an_untouched_trail_has_no_flaw() {
    let verdict = check(&trail());

    assert_eq!(verdict.flaws, []);
    assert_eq!((verdict.entries, verdict.ends.len(), verdict.unanchored), (10, 3, 2));
}

#[test]
fn a_chain_whose_end_was_cut_off_is_found_by_its_anchor() {
    let mut shorter = trail();
    cut(&mut shorter, "a", 2);
    let mut gone = trail();
    cut(&mut gone, "a", 0);

    let witness = || Witness::Anchor { chain: "company:acme".into(), sequence: 2 };
    let flaw = |ends_at| Flaw::CutOff { chain: "a".to_owned(), ends_at, seen: 3, witness: witness() };
    assert_eq!(check(&shorter).flaws, [flaw(2)]);
    assert_eq!(check(&gone).flaws, [flaw(0)]);
}

#[test]
fn a_chain_that_went_on_after_it_was_cut_off_is_found() {
    let mut forged = trail();
    cut(&mut forged, "a", 2);
    append(&mut forged, "a", "save-committed", "{\"forged\":1}".to_owned());
    append(&mut forged, "a", "save-committed", "{\"forged\":2}".to_owned());

    let flaws = check(&forged).flaws;

    assert!(matches!(flaws.as_slice(), [Flaw::Replaced { sequence: 3, .. }]), "{flaws:?}");
}

#[test]
fn what_was_edited_removed_reordered_or_spliced_is_found_where_it_happened() {
    let at = |trail: &Trail, chain: &str, sequence: u64| {
        trail.iter().position(|(entry, _)| entry.chain == chain && entry.sequence == sequence).unwrap()
    };
    let mut edited = trail();
    let place = at(&edited, "a", 2);
    edited[place].0.actor = "somebody else".to_owned();
    let mut removed = trail();
    let place = at(&removed, "a", 2);
    removed.remove(place);
    let mut reordered = trail();
    let (one, two) = (at(&reordered, "a", 2), at(&reordered, "a", 3));
    reordered.swap(one, two);
    let mut spliced = trail();
    let (of_a, of_b) = (at(&spliced, "a", 2), at(&spliced, "b", 2));
    spliced[of_a] = spliced[of_b].clone();
    spliced[of_a].0.chain = "a".to_owned();

    for (what, trail) in
        [("edited", edited), ("removed", removed), ("reordered", reordered), ("spliced", spliced)]
    {
        let flaws = check(&trail).flaws;
        assert_eq!(flaws.first(), Some(&Flaw::Broken { chain: "a".to_owned(), sequence: 2 }), "{what}");
    }
}

#[test]
fn an_anchor_that_was_touched_is_found() {
    let mut removed = trail();
    removed.remove(0);
    let mut emptied = trail();
    emptied[0].0.details = "{}".to_owned();
    let mut late = trail();
    late.rotate_left(2);

    assert_eq!(check(&removed).flaws, [Flaw::Broken { chain: "company:acme".to_owned(), sequence: 1 }]);
    assert_eq!(check(&emptied).flaws.len(), 2, "it does not follow, and it cannot be read");
    assert!(matches!(check(&late).flaws.as_slice(), [Flaw::OutOfOrder { .. }, ..]));
}

#[test]
fn a_receipt_finds_what_was_cut_off_together_with_its_anchor() {
    let whole = trail();
    let last = whole.iter().find(|(entry, _)| entry.chain == "a" && entry.sequence == 3).unwrap().1;
    let mut shorter = whole.clone();
    cut(&mut shorter, "a", 2);
    cut(&mut shorter, "b", 2);
    cut(&mut shorter, "company:acme", 1);
    assert_eq!(check(&shorter).flaws, [], "nobody in the trail has seen more");

    let with_receipt = |trail: &Trail| {
        let mut checker = Checker::default();
        checker.expect("a", 3, (last, Witness::Caller));
        trail.iter().for_each(|(entry, hash)| checker.read(entry, *hash));
        checker.finish(|_| true).flaws
    };

    assert_eq!(with_receipt(&whole), []);
    assert!(matches!(with_receipt(&shorter).as_slice(), [Flaw::CutOff { seen: 3, .. }]));
}

#[test]
fn chains_that_are_not_asked_for_need_not_be_there() {
    let mut only_a = trail();
    cut(&mut only_a, "b", 0);
    let mut checker = Checker::default();
    only_a.iter().for_each(|(entry, hash)| checker.read(entry, *hash));

    assert_eq!(checker.finish(|chain| chain == "a").flaws, []);
}
