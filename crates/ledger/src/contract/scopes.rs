//! The contract about organisations, registrations, accreditations and deadlines.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "the names of checks are sentences; a broken contract must stop"
)]

use jiff::civil::Date;
use model::scopes::{Deadline, Span, day};
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, TemplateId};

use super::desk::{Desk, author};
use super::templates::{new_template, retirement};
use crate::LedgerError;
use crate::scopes::{
    AccreditationWish, DeadlineWish, How, Import, Imported, OrganisationWish, PER_REGISTRATION_MAX,
    RegistrationWish, ScopeWish, Writing,
};
use crate::trail::{ActsOf, ActsOrder, ActsPage};

fn on(text: &str) -> Date {
    day(text).unwrap()
}

fn writing(desk: &Desk, how: How) -> Writing {
    Writing { how, by: author("ops"), at: desk.now() }
}

fn organisation(id: &str, name: Option<&str>, number: Option<&str>) -> OrganisationWish {
    let id = OrganisationId::parse(id).unwrap();
    OrganisationWish { id, name: name.map(str::to_owned), number: number.map(str::to_owned) }
}

fn scope(organisation: &str, registration: &str) -> Scope {
    Scope {
        organisation: OrganisationId::parse(organisation).unwrap(),
        registration: RegistrationId::parse(registration).unwrap(),
    }
}

fn registration(organisation: &str, id: &str, number: Option<&str>) -> RegistrationWish {
    RegistrationWish { number: number.map(str::to_owned), ..RegistrationWish::new(scope(organisation, id)) }
}

fn accreditation(id: &str, number: Option<&str>, from: Option<&str>) -> AccreditationWish {
    AccreditationWish {
        scope: scope("o1", "r1"),
        id: AccreditationId::parse(id).unwrap(),
        number: number.map(str::to_owned),
        from: from.map(on),
        until: None,
    }
}

fn deadline(period: &str, opens: Option<&str>, due: &str) -> DeadlineWish {
    DeadlineWish { scope: scope("o1", "r1"), period: period.to_owned(), opens: opens.map(on), due: on(due) }
}

/// An organisation with a registration.
async fn register(desk: &Desk) {
    let create = writing(desk, How::Create);
    desk.ledger.write_organisation(&organisation("o1", None, None), &create).await.unwrap();
    desk.ledger.write_registration(&registration("o1", "r1", Some("R/1")), &create).await.unwrap();
}

/// The words of an organisation's chain.
async fn acts(desk: &Desk, organisation: &str) -> Vec<String> {
    let entries = desk.ledger.audit(&format!("organisation:{organisation}"), 0, 1000).await.unwrap();
    model::audit::verify(entries.iter().map(|(entry, hash)| (entry, *hash))).unwrap();
    entries.into_iter().map(|(entry, _)| entry.action).collect()
}

pub async fn organisations_are_made_replaced_and_listed_page_by_page(desk: &Desk) {
    let (create, put) = (writing(desk, How::Create), writing(desk, How::Put));
    let first = organisation("o1", Some("One"), Some("50001"));

    let made = desk.ledger.write_organisation(&first, &create).await.unwrap();
    let again = desk.ledger.write_organisation(&first, &create).await;
    desk.ledger.write_organisation(&organisation("o2", None, None), &put).await.unwrap();
    let same = desk.ledger.write_organisation(&first, &put).await.unwrap();
    let bare = desk.ledger.write_organisation(&organisation("o1", None, None), &put).await.unwrap();

    assert!(matches!(again, Err(LedgerError::AlreadyExists { .. })));
    assert_eq!(
        (made.name.as_str(), made.number.as_deref(), made.created_at),
        ("One", Some("50001"), create.at)
    );
    assert_eq!(same, made);
    assert_eq!((bare.name.as_str(), bare.number.as_deref()), ("o1", None), "a replacement says all there is");
    assert_eq!(bare.created_at, create.at);
    assert_eq!(desk.ledger.organisation(&bare.id).await.unwrap(), Some(bare.clone()));
    let listed = desk.ledger.organisations(None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|each| each.id.as_str()).collect::<Vec<_>>(), ["o1", "o2"]);
    assert_eq!(desk.ledger.organisations(Some(&bare.id), 10).await.unwrap(), listed[1..]);
    assert_eq!(desk.ledger.organisations(None, 1).await.unwrap(), listed[..1]);
    assert_eq!(acts(desk, "o1").await, ["organisation-created", "organisation-changed"]);
    desk.expect_consistent().await;
}

pub async fn a_registration_belongs_to_its_organisation_and_has_a_number_of_its_own(desk: &Desk) {
    register(desk).await;
    let (create, put) = (writing(desk, How::Create), writing(desk, How::Put));
    desk.ledger.write_organisation(&organisation("o2", None, None), &create).await.unwrap();

    let elsewhere = desk.ledger.write_registration(&registration("o2", "r1", Some("R/1")), &create).await;
    let taken = desk.ledger.write_registration(&registration("o1", "r2", Some("R/1")), &create).await;
    let again = desk.ledger.write_registration(&registration("o1", "r1", None), &create).await;
    let nobody = desk.ledger.write_registration(&registration("nobody", "r1", None), &create).await;
    let plain = desk.ledger.write_registration(&registration("o1", "r2", None), &create).await.unwrap();
    let onto = desk.ledger.write_registration(&registration("o1", "r2", Some("R/1")), &put).await;

    assert!(elsewhere.is_ok(), "ids and numbers are unique in an organisation");
    assert!(matches!(taken, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(again, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(nobody, Err(LedgerError::NotFound { .. })));
    assert!(matches!(onto, Err(LedgerError::AlreadyExists { .. })));
    assert_eq!((plain.number.as_str(), plain.title.as_str()), ("r2", "r2"));
    let o1 = OrganisationId::parse("o1").unwrap();
    let listed = desk.ledger.registrations(&o1, None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|each| each.scope.to_string()).collect::<Vec<_>>(), ["o1/r1", "o1/r2"]);
    assert_eq!(
        desk.ledger.registrations(&o1, Some(&listed[0].scope.registration), 10).await.unwrap(),
        [plain]
    );
    assert_eq!(desk.ledger.registration(&scope("o1", "r1")).await.unwrap(), Some(listed[0].clone()));
    assert_eq!(desk.ledger.registration(&scope("o2", "r2")).await.unwrap(), None);
    desk.expect_consistent().await;
}

pub async fn a_registration_has_days_and_a_template_that_counts(desk: &Desk) {
    register(desk).await;
    let put = writing(desk, How::Put);
    let template = TemplateId::parse("loads").unwrap();
    let wish = RegistrationWish {
        title: Some("Glass".to_owned()),
        material: Some("glass".to_owned()),
        template: Some(template.clone()),
        from: Some(on("2026-01-01")),
        until: Some(on("2026-12-31")),
        ..registration("o1", "r1", Some("R/1"))
    };

    let unknown = desk.ledger.write_registration(&wish, &put).await;
    desk.ledger.add_template(&new_template(desk, "1.0", "text")).await.unwrap();
    let written = desk.ledger.write_registration(&wish, &put).await.unwrap();
    desk.ledger.retire_template(&retirement(desk, "1.0")).await.unwrap();
    let renamed = RegistrationWish { title: Some("Old glass".to_owned()), ..wish.clone() };
    let kept = desk.ledger.write_registration(&renamed, &put).await;
    let create = writing(desk, How::Create);
    let retired = RegistrationWish { template: Some(template), ..registration("o1", "r2", None) };
    let retired = desk.ledger.write_registration(&retired, &create).await;
    let reversed = RegistrationWish { until: Some(on("2025-12-31")), ..wish };
    let reversed = desk.ledger.write_registration(&reversed, &put).await;

    assert!(matches!(unknown, Err(LedgerError::NoTemplate { .. })));
    assert!(matches!(retired, Err(LedgerError::NoTemplate { .. })));
    assert!(matches!(reversed, Err(LedgerError::Reversed(_))));
    assert!(kept.is_ok(), "what was assigned before stays assigned");
    assert_eq!(written.active, Span::new(Some(on("2026-01-01")), Some(on("2026-12-31"))).unwrap());
    assert_eq!((written.title.as_str(), written.material.as_deref()), ("Glass", Some("glass")));
    let expected =
        ["organisation-created", "registration-created", "registration-changed", "registration-changed"];
    assert_eq!(acts(desk, "o1").await, expected);
    desk.expect_consistent().await;
}

pub async fn accreditations_stand_under_a_registration_by_their_first_day(desk: &Desk) {
    register(desk).await;
    let (create, put) = (writing(desk, How::Create), writing(desk, How::Put));

    let (later, first) = (
        accreditation("a", Some("A/2"), Some("2027-01-01")),
        accreditation("b", Some("A/1"), Some("2026-01-01")),
    );
    let later = desk.ledger.write_accreditation(&later, &create).await.unwrap();
    let first = desk.ledger.write_accreditation(&first, &create).await.unwrap();
    let taken = desk.ledger.write_accreditation(&accreditation("c", Some("A/1"), None), &create).await;
    let nowhere = AccreditationWish { scope: scope("o1", "r9"), ..accreditation("a", None, None) };
    let nowhere = desk.ledger.write_accreditation(&nowhere, &create).await;
    let reversed =
        AccreditationWish { until: Some(on("2026-12-31")), ..accreditation("a", None, Some("2027-01-01")) };
    let reversed = desk.ledger.write_accreditation(&reversed, &put).await;

    assert!(matches!(taken, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(nowhere, Err(LedgerError::NotFound { .. })));
    assert!(matches!(reversed, Err(LedgerError::Reversed(_))));
    assert_eq!(desk.ledger.accreditations(&scope("o1", "r1")).await.unwrap(), [first, later]);
    assert_eq!(desk.ledger.accreditations(&scope("o1", "r9")).await.unwrap(), []);
    desk.expect_consistent().await;
}

pub async fn deadlines_are_set_moved_and_taken_away_and_that_is_written_down(desk: &Desk) {
    register(desk).await;
    let (create, merge) = (writing(desk, How::Create), writing(desk, How::Merge));
    let at = scope("o1", "r1");

    desk.ledger.write_deadline(&deadline("Q2", None, "2026-07-28"), &create).await.unwrap();
    desk.ledger.write_deadline(&deadline("Q1", Some("2026-04-01"), "2026-04-28"), &create).await.unwrap();
    let again = desk.ledger.write_deadline(&deadline("Q1", None, "2026-04-30"), &create).await;
    let moved = desk.ledger.write_deadline(&deadline("Q1", None, "2026-04-30"), &merge).await.unwrap();
    let reversed = desk.ledger.write_deadline(&deadline("Q1", None, "2026-03-31"), &merge).await;

    assert!(matches!(again, Err(LedgerError::AlreadyExists { .. })));
    assert!(matches!(reversed, Err(LedgerError::Reversed(_))));
    let q1 = Deadline { period: "Q1".to_owned(), opens: Some(on("2026-04-01")), due: on("2026-04-30") };
    let q2 = Deadline { period: "Q2".to_owned(), opens: None, due: on("2026-07-28") };
    assert_eq!(moved, q1);
    assert_eq!(desk.ledger.deadlines(&at).await.unwrap(), [q1.clone(), q2]);
    assert!(desk.ledger.remove_deadline(&at, "Q2", &merge).await.unwrap());
    assert!(!desk.ledger.remove_deadline(&at, "Q2", &merge).await.unwrap());
    assert_eq!(desk.ledger.deadlines(&at).await.unwrap(), [q1]);
    let acts = acts(desk, "o1").await;
    let page = ActsPage {
        of: ActsOf::Organisation(at.organisation),
        actor: None,
        action: Some("deadline-removed".to_owned()),
        since: None,
        until: None,
        after: None,
        order: ActsOrder::OldestFirst,
        limit: 10,
    };
    assert_eq!(desk.ledger.find_acts(&page).await.unwrap().len(), 1);
    assert_eq!(acts[2..], ["deadline-set", "deadline-set", "deadline-changed", "deadline-removed"]);
    desk.expect_consistent().await;
}

fn import(desk: &Desk) -> Import {
    Import { is_rehearsal: false, by: author("ops"), at: desk.now() }
}

fn file() -> Vec<(u32, ScopeWish)> {
    vec![
        (2, ScopeWish::Organisation(organisation("o1", Some("One"), None))),
        (2, ScopeWish::Registration(registration("o1", "r1", Some("R/1")))),
        (3, ScopeWish::Accreditation(accreditation("a", Some("A/1"), Some("2026-01-01")))),
        (3, ScopeWish::Deadline(deadline("Q1", None, "2026-04-28"))),
    ]
}

pub async fn an_import_writes_all_once_and_leaves_what_it_does_not_name(desk: &Desk) {
    let rehearsed =
        desk.ledger.import_scopes(&file(), &Import { is_rehearsal: true, ..import(desk) }).await.unwrap();
    let nothing_yet = desk.ledger.organisations(None, 10).await.unwrap();
    let imported = desk.ledger.import_scopes(&file(), &import(desk)).await.unwrap();
    let again = desk.ledger.import_scopes(&file(), &import(desk)).await.unwrap();
    let numbered = [(2, ScopeWish::Organisation(organisation("o1", None, Some("50001"))))];
    let changed = desk.ledger.import_scopes(&numbered, &import(desk)).await.unwrap();

    assert_eq!(nothing_yet, [], "a rehearsal leaves nothing");
    assert_eq!(rehearsed, Imported { created: 4, ..Imported::default() });
    assert_eq!(imported, rehearsed);
    assert_eq!(again, Imported { unchanged: 4, ..Imported::default() });
    assert_eq!(changed, Imported { changed: 1, ..Imported::default() });
    let one = desk.ledger.organisation(&OrganisationId::parse("o1").unwrap()).await.unwrap().unwrap();
    assert_eq!((one.name.as_str(), one.number.as_deref()), ("One", Some("50001")));
    let expected = [
        "organisation-created",
        "registration-created",
        "accreditation-created",
        "deadline-set",
        "organisation-changed",
    ];
    assert_eq!(acts(desk, "o1").await, expected);
    desk.expect_consistent().await;
}

pub async fn an_import_with_one_wrong_line_writes_nothing_and_tells_all_of_them(desk: &Desk) {
    let mut wishes = file();
    wishes.push((4, ScopeWish::Registration(registration("nobody", "r1", None))));
    wishes.push((5, ScopeWish::Registration(registration("o1", "r2", Some("R/1")))));
    let template = Some(TemplateId::parse("nothing").unwrap());
    let unknown = RegistrationWish { template, ..registration("o1", "r3", None) };
    wishes.push((6, ScopeWish::Registration(unknown)));

    let refused = desk.ledger.import_scopes(&wishes, &import(desk)).await.unwrap().refused;

    assert_eq!(refused.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [4, 5, 6]);
    for ((_, words), expected) in refused.iter().zip(["`nobody`", "`R/1`", "`nothing`"]) {
        assert!(words.contains(expected), "{words}");
    }
    assert_eq!(desk.ledger.organisations(None, 10).await.unwrap(), []);
    assert_eq!(acts(desk, "o1").await, Vec::<String>::new());
    desk.expect_consistent().await;
}

pub async fn a_registration_has_no_more_deadlines_than_are_listed(desk: &Desk) {
    register(desk).await;
    let numbers = 1..=PER_REGISTRATION_MAX + 1;
    let wishes: Vec<_> = numbers
        .map(|number| (number, ScopeWish::Deadline(deadline(&format!("P{number}"), None, "2026-04-28"))))
        .collect();

    let refused = desk.ledger.import_scopes(&wishes, &import(desk)).await.unwrap().refused;
    let all_but_one = desk.ledger.import_scopes(&wishes[1..], &import(desk)).await.unwrap();

    assert_eq!(refused.len(), 1);
    assert_eq!((all_but_one.created, all_but_one.refused.len()), (PER_REGISTRATION_MAX, 0));
    let listed = desk.ledger.deadlines(&scope("o1", "r1")).await.unwrap();
    assert_eq!(listed.len(), usize::try_from(PER_REGISTRATION_MAX).unwrap());
}
