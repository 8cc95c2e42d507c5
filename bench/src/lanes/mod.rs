//! `lanes` against plain `tokio::spawn` (the limit: no order at all) and against seed 1's design in Java (the peer).
//!
//! Every contestant does the same tasks in the same shape, in rounds that alternate within one run; the figures are
//! medians. What is not the same is said in the row's note.

mod load;
mod peer;

use anyhow::Result;

use crate::gauge::{self, median};
use crate::report::{Report, Row};
use load::{Contestant, Load, Sample, Shape};
use peer::Peer;

/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 5;

/// A virtual machine needs longer per round, and differs less between rounds.
const ROUNDS_PEER: usize = 3;

/// About 2 µs: less than any real task, more than what the contestants add to it.
const MIXING: u32 = 1_000;

/// As many requests as a servlet container handles at once by default.
const CALLERS: usize = 200;

const PREFACE: &str = "\
Tasks: 1000 rounds of 64-bit mixing (about 2 µs) unless the row says otherwise. 200 callers submit one task, wait
for it and go on (60 s at most; the limit waits without one), keys in turn. ours: lanes. limit: tokio::spawn, which
keeps no order. peer: seed 1's design in Java, a thread per key. Medians of alternating rounds; /limit and /peer are
ours divided by theirs.";

pub(crate) fn run() -> Result<Report> {
    let mut peer = Peer::start()?;
    if peer.is_none() {
        eprintln!("no JDK found: the peer is skipped");
    }
    let callers = Shape::Callers(CALLERS);
    let load = Load { shape: callers, keys: 10_000, tasks: 200_000, mixing: MIXING };

    let main = Figures::of("10000 keys", load, peer.as_mut())?;
    let mut rows = vec![main.tasks_per_s("10000 keys")];
    rows.push(Figures::of("300 ns task", Load { mixing: 170, ..load }, None)?.tasks_per_s("10000 keys, 300 ns task"));
    rows.push(Figures::of("empty task", Load { mixing: 0, ..load }, None)?.tasks_per_s("10000 keys, empty task"));
    let burst = Load { shape: Shape::Burst(5), ..load };
    rows.push(Figures::of("burst", burst, peer.as_mut())?.tasks_per_s("10000 keys, 5 submitted each"));
    let hundred = Load { keys: 100, ..load };
    rows.push(Figures::of("100 keys", hundred, peer.as_mut())?.tasks_per_s("100 keys"));
    let one = Figures::of("1 key", Load { keys: 1, ..load }, peer.as_mut())?;
    rows.push(one.tasks_per_s("1 key").noted("the limit runs one key's tasks in parallel, which is what lanes prevent"));
    rows.push(used_once(load, peer.as_mut())?);
    let timed = Load { shape: Shape::Callers(16), ..load };
    rows.push(Figures::of("latency", timed, peer.as_mut())?.p99_us("p99 latency, 16 callers"));
    rows.push(main.cpu_us("CPU per task"));
    rows.push(idle(peer.as_mut())?);

    Ok(Report { bench: "lanes", rows, preface: PREFACE.to_owned() })
}

/// What each contestant showed in its rounds.
struct Figures {
    ours: Vec<Sample>,
    limit: Vec<Sample>,
    peer: Vec<Sample>,
    note: String,
}

impl Figures {
    fn of(name: &str, load: Load, mut peer: Option<&mut Peer>) -> Result<Self> {
        let mut figures = Self { ours: Vec::new(), limit: Vec::new(), peer: Vec::new(), note: String::new() };
        for round in 0..ROUNDS {
            eprintln!("{name}: round {} of {ROUNDS}", round + 1);
            figures.ours.push(load::measure(load, Contestant::Lanes)?);
            figures.limit.push(load::measure(load, Contestant::Spawn)?);
            if let Some(peer) = peer.as_mut().filter(|_| round < ROUNDS_PEER) {
                figures.peer.push(peer.measure(load)?);
            }
        }
        if let Some(cut) = figures.peer.iter().find(|sample| sample.tasks < load.tasks) {
            figures.note = format!("the peer did {} of {} tasks before its time was up", cut.tasks, load.tasks);
        }
        Ok(figures)
    }

    fn tasks_per_s(&self, name: &str) -> Row {
        self.row(name, "tasks/s", |sample| sample.tasks_per_s)
    }

    fn p99_us(&self, name: &str) -> Row {
        self.row(name, "µs", |sample| sample.p99_us)
    }

    fn cpu_us(&self, name: &str) -> Row {
        self.row(name, "µs", |sample| sample.cpu_us_per_task)
    }

    fn row(&self, name: &str, unit: &'static str, figure: fn(&Sample) -> f64) -> Row {
        let middle = |samples: &[Sample]| median(samples.iter().map(figure).collect());
        let peer = (!self.peer.is_empty()).then(|| middle(&self.peer));
        Row::new(name, unit, (middle(&self.ours), Some(middle(&self.limit)), peer)).noted(&self.note)
    }
}

/// A million keys, one task each. The peer would need a million threads, so it shows its rate on ten thousand.
fn used_once(load: Load, peer: Option<&mut Peer>) -> Result<Row> {
    let million = Load { keys: 1_000_000, tasks: 1_000_000, ..load };
    let mut figures = Figures::of("1000000 keys", million, None)?;
    if let Some(peer) = peer {
        figures.peer.push(peer.measure(Load { tasks: 10_000, ..load })?);
        figures.note = "peer: its rate on the first 10000 keys; a million need a million threads".to_owned();
    }
    Ok(figures.tasks_per_s("1000000 keys used once"))
}

/// What a key that was used costs when it is not used any more.
fn idle(peer: Option<&mut Peer>) -> Result<Row> {
    let load = |keys| Load { shape: Shape::Callers(CALLERS), keys, tasks: keys, mixing: MIXING };
    let own = std::process::id();
    let grown = |contestant| -> Result<f64> {
        let before = gauge::resident_bytes(own);
        load::measure(load(1_000_000), contestant)?;
        Ok((gauge::resident_bytes(own) - before).max(0.0) / 1_000_000.0)
    };

    let (ours, limit) = (grown(Contestant::Lanes)?, grown(Contestant::Spawn)?);
    let peer = peer.map(|peer| peer.bytes_per_idle_key(load(5_000))).transpose()?;
    let row = Row::new("bytes per idle key", "bytes", (ours, Some(limit), peer));
    Ok(row.noted("growth of resident memory by 1000000 keys used once; by 5000 for the peer"))
}
