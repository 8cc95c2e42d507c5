//! The machine in a world of its own: random people, a moody host, time that jumps.
//!
//! Guarantees checked for many seeds: the same seed gives the same story; the recorded steps rebuild the state;
//! and as long as the host answers within the window and does not acknowledge a save without a file, no accepted
//! change is ever lost, through refusals, retries, reopenings, force saves and crashes of the server.

use std::collections::VecDeque;

use super::*;
use crate::chance::draw;
use crate::journal::Journal;
use crate::links::Signer;
use crate::tokens::{Secret, SessionTokens};

const START_MS: u64 = 1_794_770_435_250;

fn rules(seed: u64) -> Rules {
    Rules {
        timings: Timings::default(),
        seed,
        links: Signer::new(&Secret::new("links")),
        sessions: SessionTokens::new(Secret::new("sessions")),
        autosave: seed.is_multiple_of(2),
        results_bytes_max: 1 << 20,
        version: "9.3.0".to_owned(),
        first_delivery: 0,
    }
}

/// Everything around the machine.
struct World {
    seed: u64,
    draws: u64,
    now_ms: u64,
    machine: Machine,
    /// Rebuilt from the recorded steps alone.
    shadow: Durable,
    journal: Journal,
    conns: Vec<ConnId>,
    conn_last: u64,
    /// Answers on their way, with the time they arrive.
    answers: VecDeque<(u64, Event)>,
    story: Vec<String>,
}

impl World {
    fn new(seed: u64) -> World {
        let machine = Machine::new(rules(seed), Durable::default(), START_MS);
        World {
            seed,
            draws: 0,
            now_ms: START_MS,
            machine,
            shadow: Durable::default(),
            journal: Journal::open(None).unwrap(),
            conns: Vec::new(),
            conn_last: 0,
            answers: VecDeque::new(),
            story: Vec::new(),
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.draws += 1;
        draw(self.seed, "world", self.draws) % below
    }

    fn tell(&mut self, event: Event) {
        let effects = self.machine.apply(self.now_ms, event);
        for step in self.machine.take_steps() {
            self.shadow.replay(step);
        }
        for effect in effects {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Note(note) => {
                self.story.push(format!("{note:?}"));
                self.journal.write(self.now_ms, *note);
            }
            Effect::Post(post) => {
                let answer = self.hosts_answer(&post.body);
                let at_ms = self.now_ms + self.draw(4_000);
                self.answers.push_back((at_ms, Event::Answered { delivery: post.delivery, answer }));
            }
            Effect::Fetch { task, .. } => {
                let outcome = match self.draw(10) {
                    0 => Fetched::Failed,
                    1 => Fetched::TimedOut,
                    _ => Fetched::Bytes("base".into()),
                };
                self.answers.push_back((self.now_ms + 50, Event::Fetched { task, outcome }));
            }
            Effect::Build { task, recipe } => {
                let outcome = self.build(&recipe);
                self.answers.push_back((self.now_ms + 50, Event::Built { task, outcome }));
            }
            Effect::Send { .. } | Effect::Disconnect { .. } | Effect::Reply { .. } => {}
        }
    }

    /// Any answer, but never an acknowledgement of a save without a file.
    fn hosts_answer(&mut self, body: &Body) -> Answer {
        let http = |status: u16, body: &str| Answer::Http { status, body: body.to_owned() };
        let empty_save =
            matches!(body.status, status::CORRUPTED | status::CORRUPTED_FORCE) && body.url.is_none();
        match self.draw(10) {
            0 => http(503, ""),
            1 => Answer::Lost { why: "closed".to_owned() },
            2 => http(200, r#"{"error":1}"#),
            3 => http(404, ""),
            _ if empty_save => http(200, r#"{"error":1}"#),
            _ => http(200, r#"{"error":0}"#),
        }
    }

    fn build(&mut self, recipe: &Recipe) -> Built {
        if self.draw(12) == 0 {
            return Built { conversion: Conversion::Failed, file: None, changes_zip: None };
        }
        let base = &recipe.base.content;
        let inside = base.holds.iter().chain(recipe.changes.iter().map(|change| &change.id)).cloned();
        let holds: std::collections::BTreeSet<ChangeId> = inside.collect();
        let text = holds.iter().map(|id| id.to_string()).collect::<Vec<_>>().join("\n");
        let file = Content::new(text.into(), &recipe.ext, holds.into_iter().collect());
        Built { conversion: Conversion::Done, file: Some(file), changes_zip: None }
    }

    fn pass(&mut self, span_ms: u64) {
        let end_ms = self.now_ms + span_ms;
        loop {
            let answer_ms = self.answers.iter().map(|(at_ms, _)| *at_ms).min();
            let next_ms = [answer_ms, self.machine.next_deadline_ms()].into_iter().flatten().min();
            let Some(next_ms) = next_ms.filter(|next_ms| *next_ms <= end_ms) else { break };
            self.now_ms = self.now_ms.max(next_ms);
            let due = self.answers.iter().position(|(at_ms, _)| *at_ms <= self.now_ms);
            let event =
                due.and_then(|place| self.answers.remove(place)).map_or(Event::Tick, |(_, event)| event);
            self.tell(event);
        }
        self.now_ms = end_ms;
        self.tell(Event::Tick);
    }

    fn step(&mut self) {
        match self.draw(12) {
            0..=2 => self.somebody_opens(),
            3..=6 => self.somebody(|conn, world| {
                world.conn_last += 1;
                let change = NewChange { id: Some(format!("c{}", world.conn_last)), data: "{}".to_owned() };
                world.tell(Event::Edit(Edit::whole(conn, vec![change])));
            }),
            7 => self.somebody(|conn, world| world.tell(Event::PressSave { conn })),
            8 | 9 => self.somebody(|conn, world| {
                let how = if world.draw(2) == 0 { Leaving::Explicit } else { Leaving::Lost };
                world.tell(Event::Leave { conn, how });
            }),
            10 if self.draw(6) == 0 => self.crash(),
            _ => {
                let command = Command::ForceSave { key: "k0".to_owned(), userdata: None };
                self.tell(Event::Command { request: RequestId(1), command, base_url: String::new() });
            }
        }
        let spans_ms = [10, 10, 300, 300, 3_000, 3_000, 9_000, 9_000, 400_000];
        let span_ms = spans_ms[usize::try_from(self.draw(9)).unwrap()];
        self.pass(span_ms);
    }

    fn somebody(&mut self, act: impl FnOnce(ConnId, &mut World)) {
        if self.conns.is_empty() {
            return self.somebody_opens();
        }
        let place = usize::try_from(self.draw(self.conns.len() as u64)).unwrap();
        act(self.conns[place], self);
    }

    fn somebody_opens(&mut self) {
        self.conn_last += 1;
        let conn = ConnId(self.conn_last);
        let (key, user) = (format!("k{}", self.draw(2)), format!("u{}", self.draw(3)));
        let source = Source { url: "http://host/doc".to_owned(), file_type: "txt".to_owned(), vouched: true };
        self.conns.push(conn);
        self.tell(Event::Open(Box::new(Open {
            conn,
            key,
            user_name: user.clone(),
            callback: Some(format!("http://host/cb?u={user}")),
            user_id: user,
            view: self.draws.is_multiple_of(7),
            live_viewer: false,
            source: Some(source),
            base_url: "http://ds".to_owned(),
            permissions: None,
            restore: None,
        })));
    }

    fn crash(&mut self) {
        self.conns.clear();
        self.answers.clear();
        let mut rules = self.machine.rules.clone();
        rules.first_delivery = self.journal.next_number() * 1_000;
        self.machine = Machine::new(rules, self.machine.durable().clone(), self.now_ms);
        self.tell(Event::Tick);
    }
}

fn play(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..80 {
        world.step();
    }
    for conn in world.conns.clone() {
        world.tell(Event::Leave { conn, how: Leaving::Lost });
    }
    world.pass(120_000);
    world
}

#[test]
fn whatever_happens_no_accepted_change_is_lost() {
    for seed in 0..250 {
        let world = play(seed);

        let lost: Vec<_> =
            world.journal.changes().into_iter().filter(|(_, change)| change.is_lost()).collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?}\n{}", world.story.join("\n"));
    }
}

#[test]
fn the_recorded_steps_rebuild_the_state() {
    for seed in 0..50 {
        let mut world = play(seed);

        let steps = world.machine.durable().as_steps();
        let mut compacted = Durable::default();
        steps.into_iter().for_each(|step| compacted.replay(step));

        world.shadow.take_steps();
        assert_eq!(world.shadow.as_steps(), world.machine.durable().as_steps(), "seed {seed}");
        assert_eq!(compacted.as_steps(), world.machine.durable().as_steps(), "seed {seed}");
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in 0..20 {
        assert_eq!(play(seed).story, play(seed).story, "seed {seed}");
    }
}

#[test]
fn a_story_has_everything_in_it() {
    let stories: Vec<String> = (0..60).flat_map(|seed| play(seed).story).collect();
    for wanted in [
        "CallbackSent",
        "again in 1000 ms",
        "forgotten",
        "ForgottenDeleted",
        "from_forgotten: true",
        "kept the changes",
        "opened again",
        "status: 7",
        "status: 3",
        "as_what: \"refresh\"",
        "RowRevived",
        "encrypted: Some(false)",
    ] {
        assert!(stories.iter().any(|line| line.contains(wanted)), "never saw {wanted}");
    }
}

#[test]
fn results_beyond_the_limit_go_oldest_first() {
    let mut world = World::new(3);
    world.machine.rules.results_bytes_max = 40;
    for _ in 0..200 {
        world.step();
    }

    let size = |saved: &Saved| saved.file.as_ref().map_or(0, |file| file.size_bytes);
    let saves = &world.machine.durable().saves;
    let total: u64 = saves.values().map(size).sum();
    // The newest stays even if it is too large by itself: it is about to be offered.
    let newest = saves.values().max_by_key(|saved| saved.since_ms).map_or(0, size);
    assert!(total <= 40 + newest, "{total} bytes kept, the newest {newest}");
    assert!(world.journal.entries().len() > 200);
}
