//! Many instances on one PostgreSQL: saves and submissions with 1, 2 and 4 of them, each with a fixed slice of the processor, so
//! that the instance and not the machine is the limit.
//!
//! Beside them: the commit of a save alone, through the port of the ledger, and pgbench with the very statements of it
//! (limit) and the embedded engine (peer); the embedded engine in an instance with the same slice; and instances without
//! Redis. Everything in one run, in rounds that alternate; medians are shown. PostgreSQL flushes what it commits.
//!
//! A bench that misses what we promise says so and ends with exit code 1.

mod cap;
mod engines;
mod instances;
mod pgbench;
mod publishing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ledger::Ledger;
use ledger::postgres::{Options as PostgresOptions, PostgresLedger};
use ledger::sqlite::{Options as SqliteOptions, SqliteLedger};

use crate::gauge::median;
use crate::options;
use crate::report::{Report, Row};
use crate::stage::{DocumentServer, Template, build, target_folder};
use crate::submission::workbooks;
use engines::{Postgres, Redis};
use instances::{Driver, Instance};
use publishing::Saves;

const SIZE_BYTES: usize = 100_000;
/// Of a core, for each instance. All of them, PostgreSQL and the driver fit on two cores.
const SLICE_PERCENT: u32 = 10;
/// An instance that used less than this of its slice was not the limit.
const USED_MIN: f64 = 0.8;
/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 3;
/// Machines grow faster and slower: saves are compared within a round, and there are more of these.
const SAVE_ROUNDS: usize = 5;
const ROUND_TIME: Duration = Duration::from_secs(6);
/// Commits of one round, by how many are on their way at once.
const DEPTHS: [(usize, u64); 2] = [(1, 600), (8, 2400)];
/// Where the numbers of callbacks begin that pgbench commits: a number that nothing else is.
const FIRST_RECEIVED: u64 = 50_000_000;
const WORKBOOK_ROWS: u32 = 500;
const WORKBOOKS_EACH: usize = 3;

/// What we promise.
const TWO_OVER_ONE_MIN: f64 = 1.6;
const OF_PGBENCH_MIN: f64 = 0.6;
/// At how many at once.
const PROMISED_DEPTH: usize = 8;

/// What to measure.
#[derive(Debug, Default)]
pub(crate) struct Options {
    server: Option<PathBuf>,
    is_ledger_only: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        options::read(arguments, |name, values| {
            match name {
                "--server" => options.server = Some(values.next()?.into()),
                "--ledger-only" => options.is_ledger_only = true,
                _ => return None,
            }
            Some(())
        })?;
        Some(options)
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(options))
}

const PREFACE: &str = "\
publish_version: the commit of a final save of 100 KB, through the port of the ledger. limit: pgbench, prepared, the same statements with
as many clients. peer: the embedded engine.
saves: a docx of 100 KB through instances with a tenth of a core each, 8 at once for each of them; the bytes go into a shared folder.
peer: one instance with the same slice and the embedded engine. PostgreSQL and the embedded engine flush every commit.";

async fn measure(options: &Options) -> Result<Report> {
    let target = target_folder()?;
    let folder = tempfile::tempdir_in(&target)?;
    let mut findings = Findings::default();
    publishing(&target, folder.path(), &mut findings).await?;
    if !options.is_ledger_only {
        let program = options.server.clone().map_or_else(build, Ok)?;
        let _pieces = cap::SmallPieces::set();
        let cluster = Cluster::start((&target, folder.path()), &program).await?;
        cluster.saves(&mut findings).await?;
        cluster.submissions(&mut findings).await?;
    }
    Ok(Report::new("cluster", findings.rows, PREFACE).failed(findings.failures))
}

#[derive(Default)]
struct Findings {
    rows: Vec<Row>,
    failures: Vec<String>,
}

/// The commit of a save alone: the ledger, pgbench and the embedded engine in turn.
async fn publishing(target: &Path, folder: &Path, findings: &mut Findings) -> Result<()> {
    let postgres = Postgres::start(target).await?;
    let url = postgres.database.url();
    let options =
        PostgresOptions { connections: 16, ..PostgresOptions::new(publishing::environment()?, url.clone()) };
    let ledger: Arc<dyn Ledger> = Arc::new(PostgresLedger::open(&options).await?);
    let embedded = SqliteOptions::new(publishing::environment()?);
    let embedded: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(&folder.join("ledger.db"), &embedded)?);
    publishing::furnish(&*ledger).await?;
    publishing::furnish(&*embedded).await?;
    let count = DEPTHS.iter().map(|(_, count)| count * ROUNDS as u64).sum::<u64>();
    eprintln!("{count} documents for each, to be saved once");
    let ours = Arc::new(Saves::prepare(Arc::clone(&ledger), 'a', count).await?);
    let peer = Arc::new(Saves::prepare(embedded, 'a', count).await?);
    postgres.ask(&format!("SELECT setval(pg_get_serial_sequence('inbox', 'number'), {FIRST_RECEIVED})"))?;
    // One more, which is committed by the ledger to be recorded.
    let theirs = Saves::prepare(ledger, 'b', count + 1).await?;
    ensure!(theirs.is_dense(), "the callbacks for pgbench have gaps");
    let script = folder.join("publish.sql");
    std::fs::write(&script, recorded(&postgres, &theirs, &options).await?)?;
    postgres.ask("CHECKPOINT")?;
    let (before, mut first) = (postgres.bytes()?, 1);
    for (depth, count) in DEPTHS {
        let (mut of_ours, mut of_limit, mut of_peer) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            of_ours.push(ours.publish(count, depth).await?);
            of_limit.push(pgbench::run(&script, &url, (first, count, depth))?);
            of_peer.push(peer.publish(count, depth).await?);
            first += count;
            let (a, b, c) = (of_ours[round - 1], of_limit[round - 1], of_peer[round - 1]);
            eprintln!(
                "publish_version, {depth} at once: round {round} of {ROUNDS}: {a:.0}/s, pgbench {b:.0}, embedded {c:.0}"
            );
        }
        findings.published(depth, [of_ours, of_limit, of_peer].map(median));
    }
    let (tables, log) = postgres.bytes()?;
    #[allow(clippy::cast_precision_loss, reason = "counts of saves are small")]
    let saves = (first - 1) as f64 * 2.0;
    findings.rows.push(Row::new(
        "bytes in tables per commit",
        "B",
        ((tables - before.0) / saves, None, None),
    ));
    findings.rows.push(Row::new("bytes in the WAL per commit", "B", ((log - before.1) / saves, None, None)));
    let done = postgres.number("SELECT count(*) FROM documents WHERE id LIKE 'b%' AND head_version = 2")?;
    ensure!(done == saves / 2.0 + 1.0, "pgbench did something else: {done} versions");
    Ok(())
}

/// The script of one commit, as the server saw it.
async fn recorded(postgres: &Postgres, saves: &Saves, options: &PostgresOptions) -> Result<String> {
    let url = format!("{}?options=-c%20log_statement%3Dall", options.url);
    let talkative = PostgresLedger::open(&PostgresOptions { url, ..options.clone() }).await?;
    saves.commit(&talkative, 0).await?;
    drop(talkative);
    let log = std::fs::read_to_string(postgres.server.log())?;
    let first_received = saves.first_received().context("nothing was received")?;
    pgbench::script(&log, &pgbench::Pattern { set: 'b', first_received })
}

impl Findings {
    fn published(&mut self, depth: usize, [ours, limit, peer]: [f64; 3]) {
        let name = format!("publish_version, {depth} at once");
        self.rows.push(Row::new(&name, "/s", (ours, Some(limit), Some(peer))));
        if depth == PROMISED_DEPTH && ours < limit * OF_PGBENCH_MIN {
            self.failures.push(format!("{name}: {ours:.0}/s is less than 60 % of pgbench's {limit:.0}/s"));
        }
    }
}

/// An instance, and the keys of the documents that it saves.
type Role<'a> = (&'a Instance, Vec<String>);

/// Instances with and without Redis on one PostgreSQL and one folder, and one by itself.
struct Cluster {
    with_redis: Vec<Instance>,
    without_redis: Vec<Instance>,
    embedded: Instance,
    documents: DocumentServer,
    folder: PathBuf,
    _redis: Redis,
    postgres: Postgres,
}

impl Cluster {
    async fn start((target, folder): (&Path, &Path), program: &Path) -> Result<Self> {
        let postgres = Postgres::start(target).await?;
        let redis = Redis::start(folder).await?;
        let documents = DocumentServer::start().await?;
        let shared = [
            ("LEDGER_ENGINE", "postgres".to_owned()),
            ("LEDGER_URL", postgres.database.url()),
            ("VAULT_FOLDER", folder.join("shared").display().to_string()),
        ];
        std::fs::create_dir(folder.join("shared"))?;
        let mut hearing = shared.to_vec();
        hearing.push(("SIGNALS_REDIS", redis.url()));
        let (mut with_redis, mut without_redis) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            with_redis.push(Instance::start((&documents, program), &hearing).await?);
        }
        for _ in 0..2 {
            without_redis.push(Instance::start((&documents, program), &shared).await?);
        }
        let embedded = Instance::start((&documents, program), &[]).await?;
        instances::furnish(&with_redis[0]).await?;
        instances::furnish(&embedded).await?;
        let folder = folder.to_owned();
        Ok(Self { with_redis, without_redis, embedded, documents, folder, _redis: redis, postgres })
    }

    async fn saves(&self, findings: &mut Findings) -> Result<()> {
        let driver = Driver::new(self.documents.clone(), Template::new(SIZE_BYTES)?);
        let mut with_redis = Vec::new();
        for (at, instance) in self.with_redis.iter().enumerate() {
            with_redis.push((instance, driver.open(instance.service(), &format!("with-{at}")).await?));
        }
        let mut without_redis = Vec::new();
        for (at, instance) in self.without_redis.iter().enumerate() {
            without_redis.push((instance, driver.open(instance.service(), &format!("without-{at}")).await?));
        }
        let embedded = [(&self.embedded, driver.open(self.embedded.service(), "embedded").await?)];
        let caps = self.capped()?;
        let casts: [(&str, &[Role<'_>]); 5] = [
            ("1 instance", &with_redis[..1]),
            ("2 instances", &with_redis[..2]),
            ("4 instances", &with_redis),
            ("2 instances, Redis off", &without_redis),
            ("embedded engine", &embedded),
        ];
        let mut figures = casts.map(|_| Vec::new());
        let before = (self.postgres.bytes()?, self.postgres.cpu_s()?);
        for round in 1..=SAVE_ROUNDS {
            for ((name, cast), figures) in casts.iter().zip(&mut figures) {
                let cast: Vec<_> = cast.iter().map(|(instance, keys)| (*instance, keys.as_slice())).collect();
                let done = driver.round(&cast, ROUND_TIME).await?;
                eprintln!("saves, {name}: round {round} of {SAVE_ROUNDS}: {done}");
                figures.push(done.saves_per_s());
                if done.least_percent() < f64::from(SLICE_PERCENT) * USED_MIN {
                    findings.failures.push(format!("saves, {name}, round {round}: an instance used {:.1} % of a core, so something else was the limit", done.least_percent()));
                }
            }
        }
        drop(caps);
        let fetched_again = self.documents.fetched_again();
        if fetched_again > 0 {
            findings
                .failures
                .push(format!("{fetched_again} files were fetched again: two instances worked on one save"));
        }
        self.cost_per_save(before, findings)?;
        findings.saved(&figures);
        Ok(())
    }

    /// What a checkpoint costs the database, with everything around it.
    fn cost_per_save(&self, before: ((f64, f64), f64), findings: &mut Findings) -> Result<()> {
        let ((tables, log), cpu_s) = (self.postgres.bytes()?, self.postgres.cpu_s()?);
        let saves = self.postgres.number("SELECT count(*) FROM contents WHERE checkpoint > 0")?;
        let per_save = |before: f64, after: f64| ((after - before) / saves, None, None);
        let ((tables_before, log_before), cpu_before_s) = before;
        let cpu = per_save(cpu_before_s * 1000.0, cpu_s * 1000.0);
        findings.rows.push(Row::new("PostgreSQL's CPU per save", "ms", cpu));
        findings.rows.push(Row::new("bytes in tables per save", "B", per_save(tables_before, tables)));
        findings.rows.push(Row::new("bytes in the WAL per save", "B", per_save(log_before, log)));
        Ok(())
    }

    async fn submissions(&self, findings: &mut Findings) -> Result<()> {
        let workbook = self.folder.join("bench.xlsx");
        workbooks::write(&workbook, WORKBOOK_ROWS, 0)?;
        let _caps = self.capped()?;
        let before = self.postgres.bytes()?;
        let mut figures = Vec::new();
        for count in [1, 2, 4] {
            let cast: Vec<&Instance> = self.with_redis[..count].iter().collect();
            let name = format!("o{count}");
            let per_minute =
                instances::submit(&cast, (&workbook, WORKBOOK_ROWS), (&name, WORKBOOKS_EACH)).await?;
            eprintln!("submissions, {count} instances: {per_minute:.1} a minute");
            figures.push((count, per_minute));
        }
        let after = self.postgres.bytes()?;
        let cast = [&self.embedded];
        let peer = instances::submit(&cast, (&workbook, WORKBOOK_ROWS), ("e", WORKBOOKS_EACH)).await?;
        for (count, per_minute) in figures {
            let name = format!("submissions of {WORKBOOK_ROWS} rows, {count} instances");
            findings.rows.push(Row::new(&name, "/min", (per_minute, None, Some(peer))));
        }
        let versions = self.postgres.number("SELECT count(*) FROM record_versions")?;
        let per_version = |before: f64, after: f64| ((after - before) / versions, None, None);
        findings.rows.push(Row::new(
            "bytes in tables per record version",
            "B",
            per_version(before.0, after.0),
        ));
        findings.rows.push(Row::new(
            "bytes in the WAL per record version",
            "B",
            per_version(before.1, after.1),
        ));
        Ok(())
    }

    /// Each instance in its slice, until this is dropped.
    fn capped(&self) -> Result<Vec<cap::Cap>> {
        let all = self.with_redis.iter().chain(&self.without_redis).chain([&self.embedded]);
        all.map(|instance| cap::Cap::put_on(instance.service().process(), SLICE_PERCENT)).collect()
    }
}

impl Findings {
    /// From the figures of all rounds: one, two and four instances, two without Redis, the embedded engine.
    fn saved(&mut self, figures: &[Vec<f64>; 5]) {
        let over_one =
            |others: &[f64]| median(others.iter().zip(&figures[0]).map(|(it, one)| it / one).collect());
        let (two_over_one, four_over_one) = (over_one(&figures[1]), over_one(&figures[2]));
        let [one, two, four, deaf, embedded] = figures.clone().map(median);
        for (count, per_s) in [(1, one), (2, two), (4, four)] {
            let name = format!("saves, {count} instances");
            self.rows.push(Row::new(&name, "saves/s", (per_s, None, Some(embedded))));
        }
        let row = Row::new("saves, 2 instances, Redis off", "saves/s", (deaf, Some(two), Some(embedded)));
        self.rows.push(row.noted("limit: two with Redis"));
        let row = Row::new("2 instances over 1", "times", (two_over_one, Some(2.0), None));
        self.rows.push(row.noted(&format!("the middle of the rounds; 4 over 1: {four_over_one:.2}")));
        if two_over_one < TWO_OVER_ONE_MIN {
            self.failures
                .push(format!("two instances save {two_over_one:.2} times as much as one: less than 1.6"));
        }
    }
}
