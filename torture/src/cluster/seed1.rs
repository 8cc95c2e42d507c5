//! The failure that started it all: SAVE to one instance and FORCESAVE to another at the same moment, again and again.
//!
//! Many documents side by side, session after session in each: somebody opens, a checkpoint (status 6) and the final save (status 2) of
//! the session arrive at two instances with random delays, now and then the final one a second time at a third.
//!
//! Guarantees: after each session the head is the final save and its version is the one after the last; at the end versions and
//! checkpoints are dense, nothing was kept aside, and `verify` agrees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use understudy::office::{sample_docx, sha256_hex};
use understudy::times;
use understudy::tokens::{Secret, sign};

use super::files::Files;
use super::fleet::{self, cluster};
use crate::checking::{Ledger, check_numbers};
use crate::chronicle::{Class, Violation};
use crate::dice::Dice;
use crate::report::{Totals, tell};
use crate::round::{self, Report};
use crate::run::{self, Plan};
use crate::settling;
use crate::watching::parse_label;
use crate::world::{DOCUMENT_SERVER_SECRET, Host, Mode, NoAnswer, Paper, World};

/// Documents that are saved at the same time.
const SIDE_BY_SIDE: u64 = 8;
/// Sessions of one document, one after the other.
const SESSIONS: u64 = 50;
/// The two callbacks arrive within so many milliseconds, in either order.
const APART_MS: std::ops::Range<u64> = 0..12;
/// What the Document Server does when it is not answered 0.
const REPEATS_MAX: u32 = 10;
const REPEAT_AFTER: Duration = Duration::from_millis(250);
const TOKEN_LIFE_SECONDS: u64 = 300;
/// How often people are told.
const TELL_EVERY: u64 = 1000;

/// Runs it so many times.
pub(crate) async fn run(plan: &Plan, times: u64) -> Result<Totals> {
    let files = Arc::new(Files::serve().await?);
    // Nobody is killed at a step.
    let plan = Plan { all_steps: Arc::default(), ..plan.clone() };
    let plan = plan.under(|conditions| {
        if let Some(shape) = &mut conditions.cluster {
            shape.settings.push(("DOCUMENT_SERVER_INTERNAL_URL", files.url.clone()));
            // Nothing is late here but a busy machine.
            shape.settings.push(("SAVING_ANSWER_ZERO_SECONDS", "180".to_owned()));
        }
    });
    let world = Arc::new(World::new(run::setting(&plan, 0)?).await?);
    let processes = fleet::start_all(&world).await?.context("the instances do not even start")?;
    if let Err(refused) = world.host.set_up().await {
        bail!("the service does not take the first project: {refused:?}");
    }
    let (report, mut totals) = (Report::begin(&world), Totals::new(&plan));
    let done = Arc::new(AtomicU64::new(0));
    let mut players = JoinSet::new();
    for lane in 0..SIDE_BY_SIDE {
        let share = times * (lane + 1) / SIDE_BY_SIDE - times * lane / SIDE_BY_SIDE;
        let player = Player { world: Arc::clone(&world), files: Arc::clone(&files), done: Arc::clone(&done) };
        let dice = Dice::of(world.setting.seed).part("seed1", lane);
        players.spawn(player.play(lane, share, dice));
    }
    while let Some(ended) = players.join_next().await {
        ended??;
    }
    settling::rest(&world).await;
    fleet::kill_all(processes).await?;
    check_end(&world).await?;
    let report = report.end();
    totals.add(&report);
    run::clean_up(&plan, &report);
    Ok(totals)
}

async fn check_end(world: &World) -> Result<()> {
    let ledger = Ledger::of(world).await?.context("there is a ledger")?;
    check_numbers(world, &ledger);
    for kept in &ledger.kept {
        let what = format!("a copy was kept aside ({}) although nothing went wrong", kept.reason);
        let document = kept.document.clone().unwrap_or_default();
        world.chronicle.accuse(Violation::new(Class::Duplicated, what).of_document(&document));
    }
    round::verify(world).await
}

/// Somebody who saves.
struct Player {
    world: Arc<World>,
    files: Arc<Files>,
    done: Arc<AtomicU64>,
}

impl Player {
    async fn play(self, lane: u64, share: u64, mut dice: Dice) -> Result<()> {
        for number in 0..share {
            let (book, session) = (number / SESSIONS, number % SESSIONS);
            let document = format!("race-{lane}-{book}");
            if session == 0 {
                self.bring(&document).await?;
            }
            self.race(&document, session, &mut dice).await?;
            let done = self.done.fetch_add(1, Ordering::SeqCst) + 1;
            if done.is_multiple_of(TELL_EVERY) {
                tell(&format!("{done} times, {} findings", self.world.chronicle.violations().len()));
            }
        }
        Ok(())
    }

    async fn bring(&self, document: &str) -> Result<()> {
        let bytes = sample_docx("Report", &[document]);
        let paper = Paper { name: "report.docx".to_owned(), sha256: sha256_hex(&bytes) };
        let uploaded = self.world.host.upload(document, &paper.name, bytes).await;
        uploaded.map_err(|refused| anyhow::anyhow!("an upload was refused: {refused:?}"))?;
        self.world.add_paper(document, paper);
        Ok(())
    }

    /// One session: both callbacks at once, then a look at what is there.
    async fn race(&self, document: &str, session: u64, dice: &mut Dice) -> Result<()> {
        let granted = self.world.host.configure(document, "ann", Mode::Edit).await;
        let grant = granted.map_err(|refused| anyhow::anyhow!("nobody could open: {refused:?}"))?;
        let hosts: Vec<&Host> =
            cluster(&self.world)?.instances.iter().map(|instance| &instance.host).collect();
        let first = usize::try_from(dice.number(0..hosts.len() as u64)).unwrap_or(0);
        let host = |step: usize| hosts[(first + step) % hosts.len()];
        let (typed, closed) = (format!("{document}-{session}-typed"), format!("{document}-{session}-closed"));
        let saved_ms = self.world.chronicle.now_ms() / 1000 * 1000;
        let checkpoint = self.claims(&grant.key, (6, saved_ms, saved_ms), &typed);
        // Within one second nobody can tell their order by the times they carry.
        let last = self.claims(&grant.key, (2, saved_ms + 1000 * dice.number(0..2), saved_ms), &closed);
        let mut apart = || Duration::from_millis(dice.number(APART_MS));
        let (early, late, again) = (apart(), apart(), apart());
        let is_repeated = dice.happens(20);
        let repeat = async {
            if is_repeated {
                self.deliver(host(2), (document, &last), again).await;
            }
        };
        tokio::join!(
            self.deliver(host(0), (document, &checkpoint), early),
            self.deliver(host(1), (document, &last), late),
            repeat
        );
        self.look(document, session, &closed).await;
        Ok(())
    }

    /// Both callbacks of a session tell of the same first change: with another time it would be another session.
    fn claims(&self, key: &str, (status, saved_ms, began_ms): (u8, u64, u64), file: &str) -> Value {
        let now_s = self.world.chronicle.now_ms() / 1000;
        let user = json!({ "id": "ann", "name": "Ann" });
        let changes = json!([{ "created": times::sql_style(began_ms / 1000), "user": user }]);
        json!({
            "key": key, "status": status, "url": self.files.link(file), "users": ["ann"], "filetype": "docx",
            "history": { "serverVersion": "9.3.0", "changes": changes }, "notmodified": false,
            "lastsave": times::iso(saved_ms), "iat": now_s, "exp": now_s + TOKEN_LIFE_SECONDS,
        })
    }

    /// Delivers a callback, and repeats it as the Document Server does until it is answered 0.
    async fn deliver(&self, host: &Host, (document, claims): (&str, &Value), wait: Duration) {
        tokio::time::sleep(wait).await;
        let token = sign(claims, &Secret::new(DOCUMENT_SERVER_SECRET));
        let mut answer = Err(NoAnswer::Down);
        for attempt in 0..REPEATS_MAX {
            answer = host.callback(document, &token).await;
            if answer.as_ref().is_ok_and(|said| said["error"] == 0) {
                self.world.chronicle.count("callbacks answered 0", 1);
                self.world.chronicle.count("callbacks that had to be repeated", u64::from(attempt > 0));
                return;
            }
            let why = match &answer {
                Err(NoAnswer::Refused(status, _)) => status.to_string(),
                Err(NoAnswer::Down) => "the connection was closed".to_owned(),
                Ok(said) => said.to_string(),
            };
            self.world.chronicle.count(&format!("status {} was not answered 0: {why}", claims["status"]), 1);
            tokio::time::sleep(REPEAT_AFTER).await;
        }
        let what = format!("a callback of status {} was never answered 0: {answer:?}", claims["status"]);
        self.world.chronicle.accuse(Violation::new(Class::Stuck, what).of_document(document));
    }

    /// The head is the final save, under the next number.
    async fn look(&self, document: &str, session: u64, closed: &str) {
        let expected = sha256_hex(&sample_docx("Report", &[closed]));
        let (class, what) =
            match self.world.host.bytes(&format!("/api/v1/documents/{document}/content")).await {
                Ok((bytes, label, _)) => {
                    self.world.chronicle.count("heads looked at", 1);
                    let is_newest = sha256_hex(&bytes) == expected;
                    if is_newest
                        && (u64::from(parse_label(&label).0), parse_label(&label).1) == (session + 2, 0)
                    {
                        return;
                    }
                    let holds = if is_newest { "the newest save" } else { "an older save" };
                    (Class::Damaged, format!("after session {session} the head is {label} with {holds}"))
                }
                Err(refused) => {
                    (Class::Lost, format!("after session {session} the head cannot be read: {refused:?}"))
                }
            };
        self.world.chronicle.accuse(Violation::new(class, what).of_document(document));
    }
}
