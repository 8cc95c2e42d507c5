//! The rules of retention: a table for people, and properties over arbitrary histories and policies.

use proptest::prelude::*;

use super::*;

const NOW_S: i64 = 1_794_770_000;

fn now() -> Timestamp {
    Timestamp::from_second(NOW_S).unwrap()
}

fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

fn content(label: &str, key: &str, hours_old: i64) -> ContentFacts {
    ContentFacts {
        label: Label::parse(label).unwrap(),
        committed_at: now() - hours(hours_old),
        key: EditorKey::parse(key),
        is_filed_beside: false,
        is_pruned: false,
        is_in_use: false,
        handed_out_at: None,
    }
}

fn in_use(content: ContentFacts) -> ContentFacts {
    ContentFacts { is_in_use: true, ..content }
}

fn going(policy: &Retention, contents: &[ContentFacts]) -> Vec<(String, &'static str)> {
    let going = rule_on_contents(policy, contents, now());
    going.into_iter().map(|(label, why)| (label.to_string(), why.as_str())).collect()
}

fn thinning() -> Retention {
    Retention { checkpoints_all: Some(hours(48)), ..Retention::EVERYTHING }
}

#[test]
fn without_limits_nothing_goes() {
    let contents = [
        content("1", "", 99_999),
        content("1.1", "a", 99_998),
        content("2", "a", 99_997),
        in_use(content("3", "b", 1)),
    ];

    assert_eq!(going(&Retention::EVERYTHING, &contents), []);
    assert!(!Retention::EVERYTHING.lets_contents_go());
}

#[test]
fn old_checkpoints_are_thinned_to_one_a_day() {
    let contents = [
        content("1", "", 200),
        content("1.1", "a", 101),
        content("1.2", "a", 100),
        content("1.3", "a", 70),
        content("1.4", "a", 40),
        in_use(content("2", "a", 39)),
    ];

    assert_eq!(
        going(&thinning(), &contents),
        [("1.1".to_owned(), "thinned")],
        "1.4 is young, 1.3 is of another day"
    );
}

#[test]
fn the_last_checkpoint_of_a_session_is_no_step_on_the_way() {
    // Somebody restored version 1 over a session whose last words are in 1.2.
    let contents = [
        content("1", "", 300),
        content("1.1", "a", 201),
        content("1.2", "a", 200),
        in_use(content("2", "", 199)),
    ];

    assert_eq!(going(&thinning(), &contents), [], "1.1 is the only other one of its day");
    let versions = Retention { versions_newest: Some(1), ..thinning() };
    let expected = [("1", "beyond-limit"), ("1.1", "with-its-version"), ("1.2", "beyond-limit")];
    assert_eq!(going(&versions, &contents), expected.map(|(label, why)| (label.to_owned(), why)));
}

#[test]
fn a_version_goes_only_beyond_both_limits() {
    let contents: Vec<_> =
        (1..=5).map(|number| content(&number.to_string(), "", 1000 - i64::from(number))).collect();
    let labels = |policy: &Retention| -> Vec<String> {
        rule_on_contents(policy, &contents, now()).into_keys().map(|label| label.to_string()).collect()
    };
    let count = Retention { versions_newest: Some(2), ..Retention::EVERYTHING };
    let age = Retention { versions_younger: Some(hours(996)), ..Retention::EVERYTHING };

    assert_eq!(labels(&count), ["1", "2", "3"]);
    assert_eq!(labels(&age), ["1", "2", "3"], "the fourth is just as old as the limit");
    assert_eq!(labels(&Retention { versions_newest: Some(4), ..age }), ["1"]);
}

#[test]
fn a_content_somebody_was_just_given_a_link_to_stays() {
    let policy = Retention { versions_newest: Some(1), ..Retention::EVERYTHING };
    let linked =
        |hours_ago| ContentFacts { handed_out_at: Some(now() - hours(hours_ago)), ..content("1", "", 500) };

    assert_eq!(going(&policy, &[linked(24), in_use(content("2", "", 1))]), []);
    assert_eq!(going(&policy, &[linked(25), in_use(content("2", "", 1))]).len(), 1);
}

#[test]
fn a_deleted_document_goes_after_its_time_and_only_if_nothing_is_left_to_do() {
    let policy = Retention { deleted: Some(hours(24)), ..Retention::EVERYTHING };
    let deleted = |hours_ago| DeletedFacts {
        deleted_at: now() - hours(hours_ago),
        has_session: false,
        has_open_save: false,
        has_kept_copy: false,
        is_shown: false,
    };

    assert_eq!(rule_on_purge(&policy, &deleted(24), now()), PurgeRuling::NotYet);
    assert_eq!(rule_on_purge(&policy, &deleted(25), now()), PurgeRuling::Purge);
    assert_eq!(rule_on_purge(&Retention::EVERYTHING, &deleted(99_999), now()), PurgeRuling::NotYet);
    let waiting = [
        (DeletedFacts { has_session: true, ..deleted(25) }, WaitsFor::Session),
        (DeletedFacts { has_open_save: true, ..deleted(25) }, WaitsFor::Save),
        (DeletedFacts { has_kept_copy: true, ..deleted(25) }, WaitsFor::KeptCopy),
        (DeletedFacts { is_shown: true, ..deleted(25) }, WaitsFor::Tree),
    ];
    for (facts, why) in waiting {
        assert_eq!(rule_on_purge(&policy, &facts, now()), PurgeRuling::Waits(why));
    }
}

#[test]
fn a_kept_copy_goes_only_after_a_person_settled_it() {
    let policy = Retention { kept: Some(hours(24)), ..Retention::EVERYTHING };

    assert!(!rule_on_kept(&policy, None, now()));
    assert!(!rule_on_kept(&policy, Some(now() - hours(24)), now()));
    assert!(rule_on_kept(&policy, Some(now() - hours(25)), now()));
    assert!(!rule_on_kept(&Retention::EVERYTHING, Some(now() - hours(99_999)), now()));
}

fn some_content() -> impl Strategy<Value = ContentFacts> {
    let label = (1..6_u32, 0..4_u32).prop_map(|(version, checkpoint)| Label { version, checkpoint });
    let linked = proptest::option::of(0..60_i64);
    (label, 0..400_i64, 0..4_usize, 0..8_u8, linked).prop_map(|(label, hours_old, key, bits, linked)| {
        ContentFacts {
            label,
            committed_at: now() - hours(hours_old),
            key: [None, EditorKey::parse("a"), EditorKey::parse("b"), EditorKey::parse("c")][key].clone(),
            is_filed_beside: bits & 1 != 0 && !label.is_version(),
            is_pruned: bits & 2 != 0,
            is_in_use: bits == 4,
            handed_out_at: linked.map(|hours_ago| now() - hours(hours_ago)),
        }
    })
}

/// Contents of one document: each number once.
fn history() -> impl Strategy<Value = Vec<ContentFacts>> {
    proptest::collection::vec(some_content(), 0..24).prop_map(|contents| {
        let unique: BTreeMap<Label, ContentFacts> =
            contents.into_iter().map(|content| (content.label, content)).collect();
        unique.into_values().collect()
    })
}

fn policy() -> impl Strategy<Value = Retention> {
    let limit = || proptest::option::of((0..300_i64).prop_map(hours));
    (limit(), (1..60_i64).prop_map(hours), proptest::option::of(0..5_u32), limit()).prop_map(
        |(checkpoints_all, checkpoints_one_per, versions_newest, versions_younger)| Retention {
            checkpoints_all,
            checkpoints_one_per,
            versions_newest,
            versions_younger,
            ..Retention::EVERYTHING
        },
    )
}

proptest! {
    #[test]
    fn nothing_in_use_linked_gone_or_younger_than_the_policy_goes(contents in history(), policy in policy()) {
        for (label, reason) in rule_on_contents(&policy, &contents, now()) {
            let content = contents.iter().find(|content| content.label == label).unwrap();
            let old = now().duration_since(content.committed_at);
            prop_assert!(!content.is_in_use && !content.is_pruned);
            prop_assert!(content.handed_out_at.is_none_or(|at| now().duration_since(at) > policy.links));
            match reason {
                Reason::Thinned => prop_assert!(policy.checkpoints_all.is_some_and(|limit| old > limit)),
                Reason::BeyondLimit => prop_assert!(policy.versions_younger.is_none_or(|limit| old > limit)),
                Reason::WithItsVersion => {
                    prop_assert!(policy.versions_younger.is_none_or(|limit| old > limit));
                    prop_assert!(policy.checkpoints_all.is_none_or(|limit| old > limit));
                }
            }
        }
    }

    #[test]
    fn a_document_whose_contents_are_all_young_need_not_be_looked_into(contents in history(), policy in policy()) {
        let limit = policy.spares_younger_than().unwrap_or(SignedDuration::MIN);
        let is_old = |content: &ContentFacts| !content.is_pruned && now().duration_since(content.committed_at) > limit;
        if !contents.iter().any(is_old) {
            prop_assert!(rule_on_contents(&policy, &contents, now()).is_empty());
        }
    }

    #[test]
    fn the_newest_versions_stay(contents in history(), policy in policy()) {
        let going = rule_on_contents(&policy, &contents, now());
        let mut versions: Vec<_> = contents.iter().map(|content| content.label).filter(|label| label.is_version()).collect();
        versions.sort();
        // Last checkpoints of sessions count as versions do, so at least one of the newest of them all stays.
        let sessions = newest_of_sessions(&contents);
        let newest = contents.iter().filter(|content| !is_held_by_a_later_one(content, &sessions)).map(|content| content.label).max();
        if policy.versions_newest.is_some() {
            prop_assert!(newest.is_none_or(|label| !going.contains_key(&label)));
        }
        if policy.versions_newest.is_none() && policy.versions_younger.is_none() {
            prop_assert!(versions.iter().all(|label| !going.contains_key(label)));
        }
    }

    #[test]
    fn a_checkpoint_is_thinned_only_if_a_later_save_of_its_session_is_there(contents in history(), policy in policy()) {
        for (label, reason) in rule_on_contents(&policy, &contents, now()) {
            let content = contents.iter().find(|content| content.label == label).unwrap();
            if reason != Reason::BeyondLimit {
                prop_assert!(contents.iter().any(|other| other.key == content.key && other.label != label && !other.is_filed_beside));
            }
        }
    }

    #[test]
    fn asking_again_lets_nothing_more_go(contents in history(), policy in policy()) {
        let going = rule_on_contents(&policy, &contents, now());
        let after: Vec<_> = contents
            .into_iter()
            .map(|content| ContentFacts { is_pruned: content.is_pruned || going.contains_key(&content.label), ..content })
            .collect();

        prop_assert_eq!(rule_on_contents(&policy, &after, now()), BTreeMap::new());
    }

    #[test]
    fn no_kept_copy_goes_without_a_persons_act(limit in 0..1000_i64) {
        let policy = Retention { kept: Some(hours(limit)), ..Retention::EVERYTHING };
        prop_assert!(!rule_on_kept(&policy, None, now()));
    }
}
