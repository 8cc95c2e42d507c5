#![allow(unused, clippy::all, clippy::unwrap_used, clippy::print_stdout)]
#[path = "../../../bench/src/submission/workbooks.rs"]
mod workbooks;
use calamine::Reader as _;
use ledger::documents::*;
use ledger::logs::*;
use ledger::records::VersionAppends;
use ledger::sqlite::*;
use ledger::*;
use model::records::RemovedRows;
use model::submissions::*;
use model::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let words = text.rsplit(')').next().unwrap().split_whitespace();
    words.skip(11).take(2).filter_map(|w| w.parse::<f64>().ok()).sum::<f64>() * 0.01
}
fn hwm() -> f64 {
    let t = std::fs::read_to_string("/proc/self/status").unwrap();
    t.lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse::<f64>()
        .unwrap()
        / 1024.0
}
struct Null(u64);
impl sheets::Sink for Null {
    fn row(&mut self, _: StagedRow) -> Result<(), sheets::SinkError> {
        self.0 += 1;
        Ok(())
    }
}
fn timed<T>(name: &str, n: u32, mut f: impl FnMut() -> T) -> T {
    let (c, t) = (cpu(), Instant::now());
    let mut r = f();
    for _ in 1..n {
        r = f();
    }
    println!(
        "{name:30} {:.3} s CPU {:.3} s   HWM {:.0} MiB",
        (cpu() - c) / n as f64,
        t.elapsed().as_secs_f64() / n as f64,
        hwm()
    );
    r
}
fn main() {
    let rows: u32 = std::env::args().nth(1).map_or(15000, |a| a.parse().unwrap());
    let only = std::env::args().nth(2).unwrap_or_default();
    let n = if rows > 50_000 { 1 } else { 5 };
    let dir = tempfile::tempdir_in(".").unwrap();
    let file = std::env::temp_dir().join(format!("figures-{rows}.xlsx"));
    if !file.exists() {
        timed("write", 1, || workbooks::write(&file, rows, 0).unwrap());
    }
    if only.is_empty() || only == "limit" {
        timed("calamine", n, || {
            let mut book: calamine::Xlsx<_> = calamine::open_workbook(&file).unwrap();
            let mut cells = book.worksheet_cells_reader("Loads").unwrap();
            let mut count = 0u64;
            while let Some(c) = cells.next_cell().unwrap() {
                count += u64::from(!matches!(c.get_value(), calamine::DataRef::Empty));
            }
            count
        });
    }
    let template = sheets::Template::parse(&workbooks::template()).unwrap();
    let facts = sheets::ScopeFacts {
        organisation_id: "o".into(),
        organisation_name: "o".into(),
        registration_id: "r".into(),
        registration_number: "R-1".into(),
        ..Default::default()
    };
    let today = jiff::civil::date(2026, 11, 16);
    if only.is_empty() || only == "sheets" {
        let (a, count) = timed("sheets::assess", n, || {
            let mut sink = Null(0);
            let a = sheets::assess(
                &template,
                (&facts, today),
                &mut std::fs::File::open(&file).unwrap(),
                &mut sink,
            )
            .unwrap();
            (a, sink.0)
        });
        assert!(a.is_valid() && count == rows as u64, "{:?}", a.problems.first());
    }
    if !(only.is_empty() || only == "ledger") {
        return;
    }
    let mut all: Vec<StagedRow> = Vec::new();
    sheets::assess(&template, (&facts, today), &mut std::fs::File::open(&file).unwrap(), &mut all).unwrap();
    println!("row bytes {}", all[0].values.len());
    timed("hash", 1, || all.iter().map(|r| r.hash().as_bytes()[0] as u64).sum::<u64>());
    let rt = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let options = Options::new(Environment::parse("bench").unwrap());
    let ledger = SqliteLedger::open(&dir.path().join("l.sqlite"), &options).unwrap();
    let at = jiff::Timestamp::now();
    let until = at + jiff::SignedDuration::from_hours(1);
    let who = Author::new("a", "a");
    let scope = Scope {
        organisation: OrganisationId::parse("o").unwrap(),
        registration: RegistrationId::parse("r").unwrap(),
    };
    for round in 0..n.min(3) {
        let mut mine = all.clone();
        if round > 0 {
            for (i, r) in mine.iter_mut().enumerate() {
                if i % 10 == 0 || round == 1 {
                    r.values.insert_str(1, &format!("\"A\":\"{round}\","));
                }
            }
        }
        let id = SummaryLogId::parse(&format!("log{round}")).unwrap();
        rt.block_on(async {
            let digest = Digest::of(b"x");
            let new = NewLog {
                id: id.clone(),
                scope: scope.clone(),
                accreditation: None,
                template: "t".into(),
                template_version: "1".into(),
                policy: Policy::OneActive,
                upload: None,
                source: LogSource::Workbook {
                    name: "n".into(),
                    blob: BlobFacts::plain(digest, 1, "xlsx"),
                    document: None,
                },
                who: who.clone(),
                at,
            };
            ledger.create_log(&new).await.unwrap();
        });
        let run = rt
            .block_on(ledger.take_up(&TakeUp { log: id.clone(), state: LogState::Preprocessing, at, until }))
            .unwrap()
            .unwrap();
        rt.block_on(ledger.begin_validation(&run, at)).unwrap();
        let mut mine = Some(mine);
        timed("stage_rows", 1, || {
            rt.block_on(async {
                let mut mine = mine.take().unwrap();
                while !mine.is_empty() {
                    let rest = mine.split_off(mine.len().min(500));
                    let chunk = std::mem::replace(&mut mine, rest);
                    assert!(ledger.stage_rows(&run, chunk).await.unwrap().is_empty());
                }
            })
        });
        let removals = BTreeMap::from([("load".to_owned(), RemovedRows::Fatal)]);
        let c = timed("compare", 1, || rt.block_on(ledger.compare(&run, &removals)).unwrap());
        println!("{:?}", c.stats);
        timed("finish", 1, || {
            rt.block_on(ledger.finish_validation(&FinishedValidation {
                run: run.clone(),
                verdict: LogVerdict::Validated { basis: c.basis },
                facts: None,
                at,
            }))
            .unwrap()
        });
        let run = rt
            .block_on(ledger.begin_submission(&SubmitWish {
                scope: scope.clone(),
                log: id.clone(),
                who: who.clone(),
                at,
                until,
            }))
            .unwrap()
            .run
            .unwrap();
        timed("append", 1, || {
            rt.block_on(async {
                let mut after = None;
                loop {
                    let versions = ledger.versions_to_append(&run, after.as_ref(), 500).await.unwrap();
                    let Some((last, _)) = versions.last_key_value() else { break };
                    after = Some(last.clone());
                    ledger
                        .append_versions(&VersionAppends {
                            organisation: scope.organisation.clone(),
                            registration: scope.registration.clone(),
                            accreditation: None,
                            run: run.clone(),
                            versions,
                        })
                        .await
                        .unwrap();
                }
            })
        });
        timed("commit", 1, || rt.block_on(ledger.commit_submission(&run, at)).unwrap());
        timed("clear", 1, || rt.block_on(async { while ledger.clear_staging(1000).await.unwrap() > 0 {} }));
    }
}
