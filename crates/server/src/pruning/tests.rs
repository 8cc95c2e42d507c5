//! Letting go against memory ports: with every call failing in turn, cut short anywhere, and while the same bytes come again.

use std::sync::Arc;

use jiff::SignedDuration;
use ledger::documents::{BlobFacts, NewDocument, UnnamedBlob};
use ledger::pruning::Meaning;
use ledger::{Documents as _, LedgerError, Pruning as _, Publications as _, Trail as _};
use model::callbacks::Answer;
use model::names::FileName;
use model::retention::Retention;
use model::{CompanyId, Digest, DocumentId, EditorKey, ProjectId};
use steps::{Aftermath, Faults, Moment};
use vault::{Sidecar, Spool, Spooled, Tree as _, Vault as _};

use super::{Pruned, Reach, prune};
use crate::app::App;
use crate::changing::delete;
use crate::recovering::round;
use crate::testing::{Quietly, Workbench, author, deliver, docx, idle, place};
use crate::verifying::{ReadData, verify};

const DAY: i64 = 24 * 3600;

/// Keeps the newest version, deleted documents for a day, and bytes for a day.
fn little() -> Retention {
    Retention {
        checkpoints_all: Some(SignedDuration::from_hours(1)),
        versions_newest: Some(1),
        deleted: Some(SignedDuration::from_hours(24)),
        links: SignedDuration::from_hours(1),
        bytes: SignedDuration::from_hours(24),
        ..Retention::EVERYTHING
    }
}

/// Versions 1 to 3 with two checkpoints, all of them published, and days ago.
async fn bench() -> Workbench {
    bench_with(&["second", "third"]).await
}

async fn bench_with(versions: &[&str]) -> Workbench {
    let mut bench = Workbench::new().await;
    let app = bench.process();
    round(&app).await;
    // Otherwise the first version may be shown so late that a checkpoint is shown after it.
    idle(&app).await;
    for (at, text) in versions.iter().enumerate() {
        let key = bench.open(&app).await;
        deliver(&app, &bench.callback(&key, 6, &docx(&format!("half of {text}")))).await;
        deliver(&app, &bench.callback(&key, 2, &docx(text))).await;
        idle(&app).await;
        round(&app).await;
        idle(&app).await;
        bench.clock.pass(60 + i64::try_from(at).unwrap());
    }
    // The last session is over, as far as anybody knows.
    bench.open(&app).await;
    bench.clock.pass(2 * DAY);
    bench.retention = little();
    bench
}

async fn expect_clean(app: &Arc<App>) {
    let report = verify(app, ReadData::Yes, &Quietly).await.unwrap();
    assert_eq!(report.findings, []);
}

async fn prune_all(app: &Arc<App>) -> Pruned {
    prune(app, Meaning::DoIt, Reach::All).await.unwrap()
}

async fn blobs(bench: &Workbench) -> Vec<Digest> {
    bench.vault.list(None, 1000).await.unwrap().iter().map(|blob| blob.digest).collect()
}

async fn backups(bench: &Workbench) -> Vec<String> {
    bench.tree.backups(&place(&bench.document().await)).await.unwrap()
}

#[tokio::test]
async fn what_the_policy_does_not_keep_goes_first_from_sight_and_then_from_the_vault() {
    let bench = bench().await;
    let app = bench.process();
    assert_eq!((blobs(&bench).await.len(), backups(&bench).await.len()), (5, 2));
    let said = prune(&app, Meaning::OnlySay, Reach::All).await.unwrap();
    assert_eq!((said.contents, said.blobs, blobs(&bench).await.len()), (4, 0, 5), "said, and not done");

    let first = prune_all(&app).await;
    assert_eq!((first.contents, first.backups, first.blobs, first.failed), (4, 2, 0, 0), "{first:?}");
    assert_eq!(blobs(&bench).await.len(), 5, "bytes stay for a day");
    expect_clean(&app).await;
    bench.clock.pass(DAY + 1);
    let second = prune_all(&app).await;

    assert_eq!((second.contents, second.blobs), (0, 4), "{second:?}");
    assert_eq!(blobs(&bench).await, [Digest::of(&docx("third"))]);
    assert!(backups(&bench).await.is_empty());
    assert!(prune_all(&app).await.is_nothing());
    expect_clean(&app).await;
}

#[tokio::test]
async fn a_round_lets_go_by_and_by() {
    let bench = bench().await;
    let app = bench.process();

    round(&app).await;
    bench.clock.pass(DAY + 1);
    round(&app).await;

    assert_eq!(blobs(&bench).await, [Digest::of(&docx("third"))]);
    expect_clean(&app).await;
}

/// Every call fails in turn, before or after it did its work, and the process goes on or ends: the next one finishes, and
/// nothing that is needed goes.
#[tokio::test]
async fn letting_go_ends_the_same_whatever_fails_on_the_way() {
    let reference = {
        let bench = bench_with(&["second"]).await;
        let faults = Arc::new(Faults::none());
        prune_all(&bench.process_with(&faults)).await;
        bench.clock.pass(DAY + 1);
        prune_all(&bench.process_with(&faults)).await;
        faults.calls().len()
    };
    // A process that ends does no less harm after its call than before; one that goes on does.
    let ways = [
        (Moment::Before, Aftermath::GoesOn),
        (Moment::After, Aftermath::GoesOn),
        (Moment::After, Aftermath::Crashed),
    ];
    for (moment, aftermath) in ways {
        for number in 1..=reference {
            let at = format!("call {number} of {reference}, {moment:?}, {aftermath:?}");
            let bench = bench_with(&["second"]).await;
            let app = bench.process_with(&Arc::new(Faults::at_call(number, moment, aftermath)));
            let _ = prune(&app, Meaning::DoIt, Reach::All).await;
            bench.clock.pass(DAY + 1);
            let _ = prune(&app, Meaning::DoIt, Reach::All).await;
            let head = bench.document().await.head_digest;
            assert!(blobs(&bench).await.contains(&head), "{at}: the head is there at any moment");

            let next = bench.process();
            prune_all(&next).await;
            bench.clock.pass(DAY + 1);
            prune_all(&next).await;

            assert_eq!(blobs(&bench).await, [head], "{at}");
            assert!(backups(&bench).await.is_empty(), "{at}");
            expect_clean(&next).await;
        }
    }
}

/// Cut short at every call, the same bytes come again as a save; then it goes on.
#[tokio::test]
async fn bytes_that_come_again_while_they_go_are_kept() {
    let calls = {
        let bench = bench_with(&["second"]).await;
        let faults = Arc::new(Faults::none());
        prune_all(&bench.process()).await;
        bench.clock.pass(DAY + 1);
        prune_all(&bench.process_with(&faults)).await;
        faults.calls().len()
    };
    for moment in [Moment::Before, Moment::After] {
        for number in 1..=calls {
            let bench = bench_with(&["second"]).await;
            prune_all(&bench.process()).await;
            bench.clock.pass(DAY + 1);
            let ending = bench.process_with(&Arc::new(Faults::at_call(number, moment, Aftermath::Crashed)));
            let _ = prune(&ending, Meaning::DoIt, Reach::All).await;

            // Somebody makes the document what it was at first.
            let app = bench.process();
            let key = bench.open(&app).await;
            let again = bench.callback(&key, 2, &docx("base"));
            let mut answer = deliver(&app, &again).await;
            for _ in 0..3 {
                prune_all(&app).await;
                if answer != Some(Answer::Saved) {
                    answer = deliver(&app, &again).await;
                }
            }
            idle(&app).await;
            bench.clock.pass(DAY + 1);
            prune_all(&app).await;

            let at = format!("call {number} of {calls}, {moment:?}");
            assert_eq!(answer, Some(Answer::Saved), "{at}");
            assert_eq!(bench.document().await.head_digest, Digest::of(&docx("base")), "{at}");
            round(&app).await;
            idle(&app).await;
            expect_clean(&app).await;
        }
    }
}

/// A step of whoever removes bytes, or of one of two who store the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Remover,
    First,
    Second,
}

/// Every order of so many steps of each.
fn orders(left: &[(Who, usize)]) -> Vec<Vec<Who>> {
    if left.iter().all(|(_, count)| *count == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, (who, count)) in left.iter().enumerate() {
        if *count > 0 {
            let mut rest = left.to_vec();
            rest[at].1 -= 1;
            all.extend(orders(&rest).into_iter().map(|mut order| {
                order.insert(0, *who);
                order
            }));
        }
    }
    all
}

/// Somebody who stores bytes and then names them.
#[derive(Default)]
struct Saver {
    steps: usize,
    life: u64,
    is_named: bool,
}

impl Saver {
    /// Ask, store, name: as `incoming::store` and a commit do.
    async fn step(&mut self, bench: &Workbench, spooled: &Spooled, id: &str) {
        match self.steps {
            0 => self.life = bench.ledger.removals_of(&spooled.digest).await.unwrap(),
            1 => {
                let to_become = DocumentId::parse(id).unwrap();
                let spooled = spooled.in_life(self.life);
                bench.vault.put(&spooled, &Sidecar::Uploaded { to_become }).await.unwrap();
            }
            _ => match bench.ledger.create_document(&new_document(bench, spooled, (id, self.life))).await {
                Ok(_) => self.is_named = true,
                Err(LedgerError::BlobGoing) => {}
                Err(cause) => panic!("{cause}"),
            },
        }
        self.steps = (self.steps + 1) % 3;
    }
}

fn facts(spooled: &Spooled, removals: u64) -> BlobFacts {
    BlobFacts {
        digest: spooled.digest,
        size_bytes: spooled.size_bytes,
        file_type: "txt".to_owned(),
        flags: String::new(),
        extent: None,
        removals,
    }
}

fn new_document(bench: &Workbench, spooled: &Spooled, (id, removals): (&str, u64)) -> NewDocument {
    NewDocument {
        id: DocumentId::parse(id).unwrap(),
        company: CompanyId::parse("acme").unwrap(),
        project: ProjectId::parse("plans").unwrap(),
        name: FileName::parse("same.txt").unwrap(),
        blob: facts(spooled, removals),
        author: author("u1"),
        at: bench.clock.tick(),
    }
}

/// One or two store the same bytes while they are removed, perhaps by a process that ends half way and by the one after it: in
/// every order, whoever was told that the bytes have a row finds them, and whoever was refused succeeds with the next attempt.
#[tokio::test]
async fn no_order_of_removing_and_storing_loses_bytes() {
    let bench = Workbench::new().await;
    let cut_short = orders(&[(Who::Remover, 4), (Who::First, 3)]);
    let is_mirrored = |order: &Vec<Who>| order.iter().find(|who| **who != Who::Remover) == Some(&Who::Second);
    let mut of_two = orders(&[(Who::Remover, 3), (Who::First, 3), (Who::Second, 3)]);
    of_two.retain(|order| !is_mirrored(order));
    assert_eq!((cut_short.len(), of_two.len()), (35, 840));
    for (number, order) in cut_short.iter().chain(&of_two).enumerate() {
        play(&bench, number, order).await;
    }
    assert_eq!(bench.ledger.inconsistencies().await.unwrap(), []);
}

async fn play(bench: &Workbench, number: usize, order: &[Who]) {
    let spooled = unneeded(bench, number).await;
    let removals = order.iter().filter(|who| **who == Who::Remover).count();
    let (mut removed, mut is_going) = (0, false);
    let mut savers = [Saver::default(), Saver::default()];
    let ids = [format!("one-{number}"), format!("two-{number}")];
    for who in order {
        match who {
            Who::First => savers[0].step(bench, &spooled, &ids[0]).await,
            Who::Second => savers[1].step(bench, &spooled, &ids[1]).await,
            Who::Remover => {
                removed += 1;
                if removed == 1 {
                    is_going = bench.ledger.begin_removal(&spooled.digest, bench.clock.tick()).await.unwrap();
                } else if is_going && removed == removals {
                    bench.ledger.finish_removal(&spooled.digest, bench.clock.tick()).await.unwrap();
                } else if is_going {
                    // With four steps: the first process ends after this, the second finds the mark and does it again.
                    bench.vault.remove(&spooled.digest, 0).await.unwrap();
                }
            }
        }
    }
    for (saver, id) in
        savers.iter_mut().zip(&ids).filter(|(_, id)| order.contains(&Who::Second) || id.starts_with("one"))
    {
        for _ in 0..3 {
            if !saver.is_named {
                saver.step(bench, &spooled, id).await;
            }
        }
        assert!(saver.is_named, "{order:?}: refused for good");
        let is_there = bench.vault.size_of(&spooled.digest).await.unwrap().is_some();
        assert!(is_there, "{order:?}: named, and not there");
    }
}

/// A process that was stopped after it had marked a blob, and goes on after another has removed it and it came again.
#[tokio::test]
async fn a_removal_that_is_carried_out_late_does_not_touch_what_was_stored_since() {
    let bench = Workbench::new().await;
    let spooled = unneeded(&bench, 0).await;
    assert!(bench.ledger.begin_removal(&spooled.digest, bench.clock.tick()).await.unwrap());
    let stopped = bench.ledger.begun_removals(10).await.unwrap()[0];
    bench.vault.remove(&stopped.digest, stopped.removals).await.unwrap();
    bench.ledger.finish_removal(&stopped.digest, bench.clock.tick()).await.unwrap();
    let mut saver = Saver::default();
    for _ in 0..3 {
        saver.step(&bench, &spooled, "again").await;
    }
    assert!(saver.is_named);

    bench.vault.remove(&stopped.digest, stopped.removals).await.unwrap();

    assert!(bench.vault.size_of(&spooled.digest).await.unwrap().is_some());
}

/// As `saveguard vault copy` does from a vault that is older.
#[tokio::test]
async fn what_was_let_go_and_is_brought_back_by_a_copy_goes_again_and_nobody_is_asked() {
    let bench = Workbench::new().await;
    let app = bench.process();
    let spooled = unneeded(&bench, 0).await;
    assert!(bench.ledger.begin_removal(&spooled.digest, bench.clock.tick()).await.unwrap());
    bench.vault.remove(&spooled.digest, 0).await.unwrap();
    bench.ledger.finish_removal(&spooled.digest, bench.clock.tick()).await.unwrap();
    let before = bench.ledger.totals().await.unwrap();
    let document = DocumentId::parse("12345").unwrap();
    bench.vault.put(&spooled, &Sidecar::Brought { document }).await.unwrap();

    crate::recovering::adopt(&app, crate::recovering::AgeMin::None).await.unwrap();

    assert_eq!(bench.vault.size_of(&spooled.digest).await.unwrap(), None);
    assert_eq!(bench.ledger.totals().await.unwrap(), before);
}

/// Bytes in the vault that a row names and none needs.
async fn unneeded(bench: &Workbench, number: usize) -> Spooled {
    let spooled = Spool::hold(format!("content {number}").into());
    let key = EditorKey::parse("test_12345_edit_1.k").unwrap();
    bench.vault.put(&spooled, &Sidecar::Changes { key }).await.unwrap();
    let found = UnnamedBlob {
        blob: facts(&spooled, 0),
        document: None,
        key: None,
        is_record_of_changes: true,
        at: bench.clock.tick(),
    };
    bench.ledger.keep_unnamed(&found).await.unwrap();
    spooled
}

#[tokio::test]
async fn a_deleted_document_is_purged_with_its_backups_and_its_id_stays_taken() {
    let mut bench = Workbench::new().await;
    let app = bench.process();
    round(&app).await;
    idle(&app).await;
    let document = bench.document().await;
    bench.bring(&app, "other", docx("base")).await;
    delete(&app, &document.id, &author("u7")).await.unwrap();
    round(&app).await;
    idle(&app).await;
    expect_clean(&app).await;
    let folder = place(&document);
    assert_eq!(bench.tree.backups(&folder).await.unwrap().len(), 1);
    bench.retention = little();
    let app = bench.process();
    assert_eq!(prune_all(&app).await.purged, 0);
    bench.clock.pass(DAY + 60);

    let purged = prune_all(&app).await;

    assert_eq!((purged.purged, purged.backups, purged.failed), (1, 1, 0), "{purged:?}");
    assert!(bench.ledger.document(&document.id).await.unwrap().is_none());
    assert!(bench.tree.names(&folder).is_empty());
    bench.clock.pass(DAY + 1);
    prune_all(&app).await;
    assert_eq!(
        blobs(&bench).await,
        [Digest::of(&docx("base"))],
        "the other document has the very same bytes"
    );
    expect_clean(&app).await;
}

#[tokio::test]
async fn purging_ends_the_same_whatever_fails_on_the_way() {
    let prepared = async || {
        let mut bench = Workbench::new().await;
        let app = bench.process();
        round(&app).await;
        idle(&app).await;
        delete(&app, &bench.document().await.id, &author("u7")).await.unwrap();
        round(&app).await;
        idle(&app).await;
        bench.clock.pass(DAY + 60);
        bench.retention = Retention { bytes: SignedDuration::ZERO, ..little() };
        bench
    };
    let bench = prepared().await;
    let folder = place(&bench.document().await);
    let faults = Arc::new(Faults::none());
    prune_all(&bench.process_with(&faults)).await;
    for moment in [Moment::Before, Moment::After] {
        for number in 1..=faults.calls().len() {
            let bench = prepared().await;
            let app = bench.process_with(&Arc::new(Faults::at_call(number, moment, Aftermath::Crashed)));
            let _ = prune(&app, Meaning::DoIt, Reach::All).await;
            let next = bench.process();
            prune_all(&next).await;

            let at = format!("call {number}, {moment:?}");
            assert!(blobs(&bench).await.is_empty() && bench.tree.names(&folder).is_empty(), "{at}");
            expect_clean(&next).await;
        }
    }
}

#[tokio::test]
async fn a_backup_that_holds_what_nobody_knows_stays() {
    let bench = bench().await;
    let app = bench.process();
    let folder = place(&bench.document().await);
    let strange = backups(&bench).await.remove(0);
    let inside = vault::tree::Place { name: FileName::parse(&strange).unwrap(), ..folder };
    bench.tree.overwrite(&inside, b"put there by somebody");

    let pruned = prune_all(&app).await;

    assert_eq!((pruned.backups, pruned.failed), (1, 0));
    assert_eq!(backups(&bench).await, [strange]);
}

#[tokio::test]
async fn a_content_that_was_let_go_is_neither_read_nor_restored_nor_compared() {
    use crate::changing::{ChangeError, Changer, restore};
    let bench = bench().await;
    let app = bench.process();
    prune_all(&app).await;
    let document = bench.document().await;
    let first = model::Label::FIRST;

    assert!(crate::opening::version(&app, &document, Some(first)).await.is_err());
    let changer =
        Changer { who: author("u7"), expected_head: None, editors: ledger::changes::EditorsInside::Refuse };
    assert!(matches!(restore(&app, &document.id, first, changer).await, Err(ChangeError::NotFound)));
    let which = crate::comparing::Which::Version(first);
    assert!(crate::comparing::compare(&app, &document, (Some(which), None)).await.is_err());
    assert!(!bench.ledger.knows_content(&document.id, &Digest::of(&docx("base"))).await.unwrap());
}
