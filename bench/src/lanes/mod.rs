//! `lanes` against plain `tokio::spawn` (the limit: no order at all) and against seed 1's design in Java (the peer).
//!
//! Every contestant does the same tasks in the same shape. Rounds of ours and the limit alternate, the peer's come behind;
//! the figures are medians. What is not the same is said in the row's note.

mod load;
mod peer;

use anyhow::Result;

use crate::gauge::{self, median};
use crate::report::{Report, Row};
use load::{Contestant, Load, Sample, Shape};
use peer::Peer;

/// Odd, so that the median is a measured figure.
const ROUNDS: usize = 9;

/// A virtual machine with 10,000 threads needs many times longer for a round.
const ROUNDS_PEER: usize = 3;

/// About 2 µs: less than any real task.
const MIXING: u32 = 1_000;

/// As many requests as a servlet container handles at once by default.
const CALLERS: Shape = Shape::Callers(200);

const PREFACE: &str = "\
Task: 1000 rounds of 64-bit mixing (about 2 µs) unless the row says otherwise. 200 callers submit one task, wait for
it (at most 60 s; the limit waits without one) and go on, keys in turn.
ours: lanes. limit: plain tokio::spawn, which keeps no order. peer: seed 1's design in Java, a thread per key.
Medians; rounds of ours and the limit alternate. /limit and /peer are ours divided by theirs.";

pub(crate) fn run() -> Result<Report> {
    let mut peer = Peer::start()?;
    if peer.is_none() {
        eprintln!("no JDK found: the peer is skipped");
    }
    let load = Load { shape: CALLERS, keys: 10_000, tasks: 200_000, mixing: MIXING };
    let (once_each, five_each) = (Load { tasks: 10_000, ..load }, Load { tasks: 50_000, ..load });

    let main = Figures::of("10000 keys", load, peer.as_mut().map(|peer| (peer, once_each)))?;
    let five = Figures::of("10000 keys, 5 tasks each", load, peer.as_mut().map(|peer| (peer, five_each)))?;
    let twenty_each = Figures::of("10000 keys, 20 tasks each", load, same(peer.as_mut(), load))?;
    let at_once = Load { shape: Shape::Burst(5), ..five_each };
    let (hundred, one) = (Load { keys: 100, ..load }, Load { keys: 1, ..load });
    let few_callers = Load { shape: Shape::Callers(16), ..five_each };
    let rows = vec![
        main.tasks_per_s()
            .noted("the peer: one task for each key, as the editor has a new key after every save"),
        five.tasks_per_s().noted("the peer: 5 tasks for each key, so each of its threads is used 5 times"),
        twenty_each.tasks_per_s().noted("the peer's threads are used again and again"),
        Figures::of("10000 keys, 300 ns task", Load { mixing: 170, ..load }, None)?.tasks_per_s(),
        Figures::of("10000 keys, empty task", Load { mixing: 0, ..load }, None)?.tasks_per_s(),
        Figures::of("10000 keys, all at once", at_once, same(peer.as_mut(), at_once))?
            .tasks_per_s()
            .noted("5 tasks for each key are submitted before the first is waited for"),
        Figures::of("100 keys", hundred, same(peer.as_mut(), hundred))?.tasks_per_s(),
        Figures::of("1 key", one, same(peer.as_mut(), one))?
            .tasks_per_s()
            .noted("the limit runs one key's tasks in parallel, which is what lanes are there to prevent"),
        used_once(load, peer.as_mut())?,
        Figures::of("p99 latency", few_callers, same(peer.as_mut(), few_callers))?
            .row("µs", |sample| sample.p99_us)
            .noted("10000 keys, 16 callers"),
        twenty_each.row("µs", |sample| sample.cpu_us_per_task).named("CPU per task").noted("10000 keys"),
        idle()?,
    ];
    Ok(Report::new("lanes", rows, PREFACE))
}

fn same(peer: Option<&mut Peer>, load: Load) -> Option<(&mut Peer, Load)> {
    peer.map(|peer| (peer, load))
}

/// What each contestant showed in its rounds.
struct Figures {
    name: &'static str,
    ours: Vec<Sample>,
    limit: Vec<Sample>,
    peer: Vec<Sample>,
    note: String,
}

impl Figures {
    fn of(name: &'static str, load: Load, mut peer: Option<(&mut Peer, Load)>) -> Result<Self> {
        let (mut ours, mut limit, mut peers) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            eprintln!("{name}: round {} of {ROUNDS}", round + 1);
            ours.push(load::measure(load, Contestant::Lanes)?);
            limit.push(load::measure(load, Contestant::Spawn)?);
        }
        // Afterwards: a machine that has just buried ten thousand threads is not quiet, and whoever came next would pay.
        if let Some((peer, load)) = peer.as_mut() {
            for round in 0..ROUNDS_PEER {
                eprintln!("{name}: round {} of {ROUNDS_PEER} of the peer", round + 1);
                peers.push(peer.measure(*load)?);
            }
        }
        let wanted = peer.map_or(0, |(_, load)| load.tasks);
        let note = match peers.iter().find(|sample| sample.tasks < wanted) {
            Some(cut) => format!("the peer did {} of {wanted} tasks before its time was up", cut.tasks),
            None => String::new(),
        };
        Ok(Self { name, ours, limit, peer: peers, note })
    }

    fn tasks_per_s(&self) -> Row {
        self.row("tasks/s", |sample| sample.tasks_per_s)
    }

    fn row(&self, unit: &'static str, figure: fn(&Sample) -> f64) -> Row {
        let middle = |samples: &[Sample]| median(samples.iter().map(figure).collect());
        let peer = (!self.peer.is_empty()).then(|| middle(&self.peer));
        Row::new(self.name, unit, (middle(&self.ours), Some(middle(&self.limit)), peer)).noted(&self.note)
    }
}

/// A million keys, one task each. The peer would need a million threads, so it shows its rate on ten thousand.
fn used_once(load: Load, peer: Option<&mut Peer>) -> Result<Row> {
    let million = Load { keys: 1_000_000, tasks: 1_000_000, ..load };
    let mut figures = Figures::of("1000000 keys used once", million, None)?;
    if let Some(peer) = peer {
        figures.peer.push(peer.measure(Load { tasks: load.keys, ..load })?);
        figures.note = "the peer: its rate on 10000 keys; a million would need a million threads".to_owned();
    }
    Ok(figures.tasks_per_s())
}

/// What a key that was used costs when it is not used any more.
fn idle() -> Result<Row> {
    let load = |keys| Load { shape: CALLERS, keys, tasks: keys, mixing: MIXING };
    let own = std::process::id();
    let grown = |contestant| -> Result<f64> {
        let before = gauge::resident_bytes(own);
        let after = load::measure(load(1_000_000), contestant)?.resident_bytes;
        // Less than a byte per key is the allocator breathing.
        Ok(((after - before) / 1_000_000.0).max(0.0).floor())
    };

    let (ours, limit) = (grown(Contestant::Lanes)?, grown(Contestant::Spawn)?);
    // A fresh one: the other has had its crowd of threads already, and keeps their memory.
    let peer = Peer::start()?.map(|mut peer| peer.bytes_per_idle_key(load(5_000))).transpose()?;
    let row = Row::new("bytes per idle key", "bytes", (ours, Some(limit), peer));
    Ok(row.noted("growth of resident memory by 1000000 keys used once; by 5000 for the peer"))
}
