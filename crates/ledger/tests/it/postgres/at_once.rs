//! Submissions from two instances at once: uploads, confirmations and runs race, and each race has one winner.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use ledger::documents::{Author, BlobFacts};
use ledger::logs::{
    CreatedLog, Finished, FinishedValidation, LogSource, LogVerdict, LogsPage, NewLog, Run, Submission,
    SubmitAnswer, SubmitWish, TakeUp,
};
use ledger::postgres::PostgresLedger;
use ledger::postgres::throwaway::{Database, Server};
use ledger::records::{RecordsPage, VersionAppends};
use ledger::scopes::{
    AccreditationWish, How, Import, OrganisationWish, RegistrationWish, ScopeWish, Writing,
};
use ledger::{LedgerError, Logs, Records, Result, Scopes, Staging};
use model::records::{RemovedRows, Scope};
use model::submissions::{LogState, OnSubmit, Policy, StagedRow, canonical_values};
use model::{AccreditationId, Digest, OrganisationId, RegistrationId, SummaryLogId};

/// Chances to get it wrong.
const ROUNDS: usize = 25;

/// Two instances on one database.
struct Two {
    one: PostgresLedger,
    two: PostgresLedger,
    second: AtomicI64,
    /// Goes last.
    _database: Database,
}

impl Two {
    async fn new() -> Self {
        let database = Server::shared().await.unwrap().database().await.unwrap();
        let (one, two) = (database.ledger().await.unwrap(), database.ledger().await.unwrap());
        Self { one, two, second: AtomicI64::new(0), _database: database }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_794_770_000 + self.second.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    /// A time at which every lease is over.
    fn much_later(&self) -> Timestamp {
        self.second.fetch_add(3600, Ordering::Relaxed);
        self.now()
    }

    fn upload(&self, id: &str, scope: &Scope, policy: Policy) -> NewLog {
        NewLog {
            id: log_id(id),
            scope: scope.clone(),
            accreditation: None,
            template: "loads".to_owned(),
            template_version: "1.0".to_owned(),
            policy,
            upload: None,
            source: LogSource::Workbook {
                name: "loads.xlsx".to_owned(),
                blob: BlobFacts {
                    digest: Digest::of(b"the same workbook"),
                    size_bytes: 17,
                    file_type: "xlsx".to_owned(),
                    flags: String::new(),
                    extent: None,
                    removals: 0,
                },
                document: None,
            },
            who: author(),
            at: self.now(),
        }
    }

    async fn take(&self, ledger: &PostgresLedger, id: &str, state: LogState) -> Option<Run> {
        let at = self.much_later();
        let until = at.checked_add(SignedDuration::from_secs(30)).unwrap();
        ledger.take_up(&TakeUp { log: log_id(id), state, at, until }).await.unwrap()
    }

    async fn validating(&self, id: &str, scope: &Scope, policy: Policy) -> Run {
        let created = self.one.create_log(&self.upload(id, scope, policy)).await.unwrap();
        assert!(matches!(created, CreatedLog::Created { .. }), "{created:?}");
        let run = self.take(&self.one, id, LogState::Preprocessing).await.unwrap();
        self.one.begin_validation(&run, self.now()).await.unwrap();
        run
    }

    async fn finish_preview(&self, run: &Run) {
        let removals = BTreeMap::from([("load".to_owned(), RemovedRows::Tombstone)]);
        let basis = self.one.compare(run, &removals).await.unwrap().basis;
        let verdict = LogVerdict::Validated { basis };
        let finish = FinishedValidation { run: run.clone(), verdict, facts: None, at: self.now() };
        assert_eq!(self.one.finish_validation(&finish).await.unwrap(), Finished::Yes);
    }

    async fn previewed(&self, id: &str, scope: &Scope, policy: Policy) {
        let run = self.validating(id, scope, policy).await;
        let rows = (0..20).map(|key| row(key, id)).collect();
        assert_eq!(self.one.stage_rows(&run, rows).await.unwrap(), []);
        self.finish_preview(&run).await;
    }

    fn confirmation(&self, id: &str, scope: &Scope) -> SubmitWish {
        let at = self.now();
        let until = at.checked_add(SignedDuration::from_secs(30)).unwrap();
        SubmitWish { scope: scope.clone(), log: log_id(id), who: author(), at, until }
    }

    async fn states(&self, scope: &Scope) -> Vec<(String, LogState)> {
        let page = LogsPage { scope: Some(scope.clone()), limit: 100, ..LogsPage::default() };
        let logs = self.two.logs(&page).await.unwrap();
        logs.into_iter().map(|log| (log.id.to_string(), log.state)).collect()
    }

    async fn records(&self, scope: &Scope) -> Vec<String> {
        let found = self.two.find_by_registration(&RecordsPage::of(scope, 1000)).await.unwrap();
        found.into_iter().map(|version| version.content.unwrap().measure.unwrap()).collect()
    }
}

fn author() -> Author {
    Author::new("ann", "Ann")
}

fn log_id(id: &str) -> SummaryLogId {
    SummaryLogId::parse(id).unwrap()
}

fn scope(round: usize) -> Scope {
    Scope {
        organisation: OrganisationId::parse("org-1").unwrap(),
        registration: RegistrationId::parse(&format!("reg-{round}")).unwrap(),
    }
}

fn row(key: u32, measure: &str) -> StagedRow {
    let values =
        BTreeMap::from([("ID".to_owned(), key.to_string()), ("TONNES".to_owned(), measure.to_owned())]);
    StagedRow {
        kind: "load".into(),
        key: format!("{key:06}"),
        values: canonical_values(&values),
        outcome: "included".into(),
        reason: None,
        measure: Some(measure.to_owned()),
        sheet: "Loads".into(),
        row: key + 2,
    }
}

async fn append_all(ledger: &PostgresLedger, run: &Run, scope: &Scope) -> Result<u64> {
    let (mut after, mut appended) = (None, 0);
    loop {
        let versions = ledger.versions_to_append(run, after.as_ref(), 7).await?;
        let Some(last) = versions.keys().next_back().cloned() else { return Ok(appended) };
        after = Some(last);
        let Scope { organisation, registration } = scope.clone();
        let append =
            VersionAppends { organisation, registration, accreditation: None, run: run.clone(), versions };
        appended += ledger.append_versions(&append).await?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_uploads_at_once_one_is_active_and_the_other_made_way() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        // Half of the time the scope is new too.
        let scope = scope(round / 2);
        let (a, b) = (format!("a-{round}"), format!("b-{round}"));
        let first = desk.upload(&a, &scope, Policy::OneActive);
        let second = desk.upload(&b, &scope, Policy::OneActive);

        let (first, second) = tokio::join!(desk.one.create_log(&first), desk.two.create_log(&second));

        for created in [first.unwrap(), second.unwrap()] {
            assert!(matches!(created, CreatedLog::Created { .. }), "{created:?}");
        }
        let states = desk.states(&scope).await;
        let [(winner, LogState::Preprocessing), (loser, LogState::Superseded), older @ ..] =
            states.as_slice()
        else {
            panic!("{states:?}")
        };
        assert!(older.iter().all(|(_, state)| *state == LogState::Superseded), "{states:?}");
        let loser = desk.one.log_by_id(&log_id(loser)).await.unwrap().unwrap();
        assert_eq!(loser.superseded_by, Some(log_id(winner)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_upload_twice_at_once_is_one_log() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let new = desk.upload(&format!("log-{round}"), &scope(round), Policy::OneActive);

        let (first, second) = tokio::join!(desk.one.create_log(&new), desk.two.create_log(&new));

        let known = [first.unwrap(), second.unwrap()];
        let known = known.iter().filter(|created| matches!(created, CreatedLog::Known(_))).count();
        assert_eq!(known, 1);
        assert_eq!(desk.states(&scope(round)).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_given_to_one_scope_also_at_once() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let id = format!("log-{round}");
        let (here, there) = (
            desk.upload(&id, &scope(round), Policy::OneActive),
            desk.upload(&id, &scope(round + 1000), Policy::OneActive),
        );

        let (first, second) = tokio::join!(desk.one.create_log(&here), desk.two.create_log(&there));

        let refused = [&first, &second].into_iter().filter(|each| each.is_err()).count();
        assert_eq!(refused, 1, "{first:?} {second:?}");
        let refused = first.err().or(second.err());
        assert!(matches!(refused, Some(LedgerError::AlreadyExists { .. })), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_upload_and_a_confirmation_at_once_one_is_refused() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let (scope, old, new) = (scope(round), format!("old-{round}"), format!("new-{round}"));
        desk.previewed(&old, &scope, Policy::OneActive).await;
        let (confirmation, upload) =
            (desk.confirmation(&old, &scope), desk.upload(&new, &scope, Policy::OneActive));

        let (confirmed, uploaded) =
            tokio::join!(desk.one.begin_submission(&confirmation), desk.two.create_log(&upload));

        let (confirmed, uploaded) = (confirmed.unwrap(), uploaded.unwrap());
        if confirmed.ruling == OnSubmit::Begin {
            assert_eq!(uploaded, CreatedLog::Busy(log_id(&old)));
            assert_eq!(desk.states(&scope).await, [(old, LogState::Submitting)]);
        } else {
            assert!(matches!(uploaded, CreatedLog::Created { .. }), "{uploaded:?}");
            let expected = [(new, LogState::Preprocessing), (old, LogState::Superseded)];
            assert_eq!(desk.states(&scope).await, expected);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_confirmations_at_once_one_begins() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let (scope, a, b) = (scope(round), format!("a-{round}"), format!("b-{round}"));
        desk.previewed(&a, &scope, Policy::Parallel).await;
        desk.previewed(&b, &scope, Policy::Parallel).await;
        let (first, second) = (desk.confirmation(&a, &scope), desk.confirmation(&b, &scope));

        let (first, second) =
            tokio::join!(desk.one.begin_submission(&first), desk.two.begin_submission(&second));

        let answers = [first.unwrap(), second.unwrap()];
        let runs: Vec<&Run> = answers.iter().filter_map(|answer| answer.run.as_ref()).collect();
        let [run] = runs.as_slice() else { panic!("{answers:?}") };
        append_all(&desk.two, run, &scope).await.unwrap();
        let committed = desk.two.commit_submission(run, desk.now()).await.unwrap();
        assert!(
            matches!(committed, Submission::Committed { sequence: 1, is_new: true, .. }),
            "{committed:?}"
        );
        let late = if run.log == log_id(&a) { &b } else { &a };
        let SubmitAnswer { ruling, log, .. } =
            desk.one.begin_submission(&desk.confirmation(late, &scope)).await.unwrap();
        assert_ne!(ruling, OnSubmit::Begin, "its preview is of other records");
        assert!(log.is_stale());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_take_a_log_up_at_once_one_gets_it() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let (id, scope) = (format!("log-{round}"), scope(round));
        desk.one.create_log(&desk.upload(&id, &scope, Policy::OneActive)).await.unwrap();
        let at = desk.now();
        let until = at.checked_add(SignedDuration::from_secs(30)).unwrap();
        let wish = TakeUp { log: log_id(&id), state: LogState::Preprocessing, at, until };

        let (first, second) = tokio::join!(desk.one.take_up(&wish), desk.two.take_up(&wish));

        assert_eq!([first.unwrap(), second.unwrap()].iter().flatten().count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_that_comes_back_while_another_begins_leaves_nothing() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let (id, scope) = (format!("log-{round}"), scope(round));
        let paused = desk.validating(&id, &scope, Policy::OneActive).await;
        let late = |from: u32| (from..from + 10).map(|key| row(key, "old")).collect::<Vec<_>>();

        let by_paused = async {
            for from in 0..10 {
                desk.one.stage_rows(&paused, late(from * 10)).await?;
            }
            Ok::<(), LedgerError>(())
        };
        // Every other time it was taken up before the paused run comes back.
        let taken = if round % 2 == 0 { desk.take(&desk.two, &id, LogState::Validating).await } else { None };
        let is_overtaken = taken.is_some();
        let by_new = async {
            let run = match taken {
                Some(run) => run,
                None => desk.take(&desk.two, &id, LogState::Validating).await.unwrap(),
            };
            desk.two.begin_validation(&run, desk.now()).await.unwrap();
            run
        };
        let (by_paused, run) = tokio::join!(by_paused, by_new);

        match by_paused {
            Ok(()) => assert!(!is_overtaken),
            Err(refused) => assert!(matches!(refused, LedgerError::Overtaken { .. }), "{refused:?}"),
        }
        desk.two.stage_rows(&run, (0..5).map(|key| row(key, "new")).collect()).await.unwrap();
        desk.finish_preview(&run).await;
        let log = desk.one.log_by_id(&log_id(&id)).await.unwrap().unwrap();
        assert_eq!((log.stats.unwrap().created, log.staged_rows), (5, 5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_two_finish_at_once_is_committed_once() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let (id, scope) = (format!("log-{round}"), scope(round));
        desk.previewed(&id, &scope, Policy::OneActive).await;
        let answer = desk.one.begin_submission(&desk.confirmation(&id, &scope)).await.unwrap();
        let paused = answer.run.unwrap();

        let by_paused = async {
            append_all(&desk.one, &paused, &scope).await?;
            desk.one.commit_submission(&paused, desk.now()).await
        };
        // Every other time it was taken up before the paused run comes back.
        let taken = if round % 2 == 0 { desk.take(&desk.two, &id, LogState::Submitting).await } else { None };
        let is_overtaken = taken.is_some();
        let by_new = async {
            let run = match taken {
                Some(run) => run,
                None => desk.take(&desk.two, &id, LogState::Submitting).await?,
            };
            append_all(&desk.two, &run, &scope).await.unwrap();
            Some(desk.two.commit_submission(&run, desk.now()).await.unwrap())
        };
        let (by_paused, by_new) = tokio::join!(by_paused, by_new);

        let committed = match (by_paused, by_new) {
            // Too late to be taken over.
            (Ok(committed), None) if !is_overtaken => committed,
            (Err(LedgerError::Overtaken { .. }), Some(committed)) => committed,
            other => panic!("{other:?}"),
        };
        assert!(
            matches!(committed, Submission::Committed { sequence: 1, is_new: true, .. }),
            "{committed:?}"
        );
        assert_eq!(desk.records(&scope).await, vec![id; 20]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_and_a_commit_at_once_leave_all_or_nothing() {
    let desk = Two::new().await;
    for round in 0..ROUNDS {
        let (id, scope) = (format!("log-{round}"), scope(round));
        desk.previewed(&id, &scope, Policy::OneActive).await;
        let answer = desk.one.begin_submission(&desk.confirmation(&id, &scope)).await.unwrap();
        let run = answer.run.unwrap();
        append_all(&desk.one, &run, &scope).await.unwrap();

        let (who, wanted, at) = (author(), log_id(&id), desk.now());
        let (committed, released) =
            tokio::join!(desk.one.commit_submission(&run, at), desk.two.release_log(&wanted, &who, at));

        let state = desk.states(&scope).await[0].1;
        match released.unwrap() {
            true => {
                assert!(matches!(committed, Err(LedgerError::Overtaken { .. })), "{committed:?}");
                assert_eq!((state, desk.records(&scope).await.len()), (LogState::Validated, 0));
            }
            false => {
                assert!(matches!(committed, Ok(Submission::Committed { .. })), "{committed:?}");
                assert_eq!((state, desk.records(&scope).await.len()), (LogState::Submitted, 20));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_clear_at_once_remove_each_row_once() {
    let desk = Two::new().await;
    for round in 0..8 {
        let (id, scope) = (format!("log-{round}"), scope(round));
        desk.previewed(&id, &scope, Policy::OneActive).await;
        desk.one.release_log(&log_id(&id), &author(), desk.now()).await.unwrap();
    }
    let clear = async |ledger: &PostgresLedger| {
        let mut cleared = 0;
        loop {
            match ledger.clear_staging(3).await.unwrap() {
                0 => return cleared,
                some => cleared += some,
            }
        }
    };

    let (by_one, by_two) = tokio::join!(clear(&desk.one), clear(&desk.two));

    assert_eq!(by_one + by_two + clear(&desk.one).await, 8 * 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_given_once_also_at_once() {
    let desk = Two::new().await;
    let writing = Writing { how: How::Put, by: author(), at: desk.now() };
    let organisation = OrganisationWish { id: scope(0).organisation, name: None, number: None };
    let (first, second) = tokio::join!(
        desk.one.write_organisation(&organisation, &writing),
        desk.two.write_organisation(&organisation, &writing)
    );
    assert_eq!(first.unwrap(), second.unwrap());
    for round in 0..ROUNDS {
        let wish = |number: usize| RegistrationWish {
            number: Some(format!("N-{round}")),
            ..RegistrationWish::new(scope(number))
        };
        let (a, b) = (wish(2 * round), wish(2 * round + 1));

        let (first, second) = tokio::join!(
            desk.one.write_registration(&a, &writing),
            desk.two.write_registration(&b, &writing)
        );

        let refused = [first, second].into_iter().filter_map(std::result::Result::err).collect::<Vec<_>>();
        assert!(matches!(refused.as_slice(), [LedgerError::AlreadyExists { .. }]), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_at_once_and_numbers_that_change_hands_are_written() {
    let desk = Two::new().await;
    let import = |at| Import { is_rehearsal: false, by: author(), at };
    let numbered = |round: usize, number: &str| {
        ScopeWish::Registration(RegistrationWish {
            number: Some(number.to_owned()),
            ..RegistrationWish::new(scope(round))
        })
    };
    let mut wishes = vec![ScopeWish::Organisation(OrganisationWish {
        id: scope(0).organisation,
        name: None,
        number: None,
    })];
    for round in 0..500 {
        wishes.push(numbered(round, &format!("N-{round}")));
        wishes.push(ScopeWish::Accreditation(AccreditationWish {
            scope: scope(round),
            id: AccreditationId::parse("licence").unwrap(),
            number: None,
            from: None,
            until: None,
        }));
    }
    let wishes: Vec<(u32, ScopeWish)> = (1..).zip(wishes).collect();

    let (at, other) = (desk.now(), desk.now());
    let (here, there) = (import(at), import(other));
    let (first, second) =
        tokio::join!(desk.one.import_scopes(&wishes, &here), desk.two.import_scopes(&wishes, &there));

    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.created + second.created, first.unchanged + second.unchanged), (1001, 1001));
    assert_eq!((first.refused, second.refused), (vec![], vec![]));

    // 0 leaves its number, 1 takes it, 0 takes the one of 1.
    let moved = [numbered(0, "free"), numbered(1, "N-0"), numbered(0, "N-1")];
    let moved: Vec<(u32, ScopeWish)> = (1..).zip(moved).collect();
    let imported = desk.one.import_scopes(&moved, &import(desk.now())).await.unwrap();
    assert_eq!((imported.changed, imported.refused), (3, vec![]));
    assert_eq!(desk.two.registration(&scope(0)).await.unwrap().unwrap().number, "N-1");
    assert_eq!(desk.two.registration(&scope(1)).await.unwrap().unwrap().number, "N-0");
}
