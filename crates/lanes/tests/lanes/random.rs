//! Random loads through the public door, judged by the rules alone.

use lanes::{Lanes, Settings};
use proptest::prelude::*;
use tokio::time::Instant;

use crate::stage::{Journal, ms, work};

const PASS_AFTER_MS: u64 = 50;

#[derive(Debug, Clone)]
struct Load {
    key: u8,
    /// `None` for a task that has nothing to prepare.
    prepare_ms: Option<u64>,
    finish_ms: u64,
    pause_before_ms: u64,
    panics: bool,
}

fn loads() -> impl Strategy<Value = Vec<Load>> {
    let load = (0..3u8, prop::option::of(0..150u64), 0..30u64, 0..20u64, prop::bool::weighted(0.1)).prop_map(
        |(key, prepare_ms, finish_ms, pause_before_ms, panics)| Load {
            key,
            prepare_ms,
            finish_ms,
            pause_before_ms,
            panics,
        },
    );
    prop::collection::vec(load, 0..40)
}

/// One finishing part, in milliseconds since the beginning.
#[derive(Debug, Clone, Copy)]
struct Turn {
    number: usize,
    key: u8,
    ready_ms: u64,
    from_ms: u64,
    to_ms: u64,
}

async fn play(loads: &[Load]) -> Vec<Turn> {
    let lanes = Lanes::new(Settings { pass_after: ms(PASS_AFTER_MS), ..Default::default() }).unwrap();
    let (journal, began) = (Journal::new(), Instant::now());
    let clock = move || u64::try_from(began.elapsed().as_millis()).unwrap();

    for (number, load) in loads.iter().enumerate() {
        work(load.pause_before_ms).await;
        let Load { key, finish_ms, panics, .. } = *load;
        let journal = journal.clone();
        let finish = move |ready_ms| async move {
            let from_ms = clock();
            work(finish_ms).await;
            journal.note(Turn { number, key, ready_ms, from_ms, to_ms: clock() });
            assert!(!panics, "as planned");
        };
        let submitted = match load.prepare_ms {
            None => lanes.submit(key, finish(clock())),
            Some(prepare_ms) => {
                let prepare = async move {
                    work(prepare_ms).await;
                    clock()
                };
                lanes.submit_pipelined(key, prepare, finish)
            }
        };
        drop(submitted.unwrap());
    }
    assert!(lanes.drain().await.is_clean());
    assert!(lanes.is_drained());
    journal.read()
}

fn judge(turns: &[Turn]) {
    for (index, later) in turns.iter().enumerate() {
        for earlier in turns[..index].iter().filter(|earlier| earlier.key == later.key) {
            assert!(earlier.to_ms <= later.from_ms, "{earlier:?} and {later:?} overlap");
            let has_passed = earlier.number > later.number;
            let was_preparing = later.ready_ms >= earlier.from_ms;
            assert!(
                !has_passed || (was_preparing && may_pass(earlier, turns)),
                "{earlier:?} must not pass {later:?}"
            );
        }
    }
}

/// Whether it, or one behind it that had not had its turn, was ready for long enough.
fn may_pass(turn: &Turn, turns: &[Turn]) -> bool {
    let behind = turns.iter().filter(|other| other.key == turn.key && other.number >= turn.number);
    let mut waiting = behind.filter(|other| other.from_ms >= turn.from_ms);
    waiting.any(|other| other.ready_ms + PASS_AFTER_MS <= turn.from_ms)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_task_has_its_turn_alone_and_none_passes_without_right(loads in loads()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();

        let turns = runtime.block_on(play(&loads));

        prop_assert_eq!(turns.len(), loads.len());
        judge(&turns);
    }

    #[test]
    fn tasks_with_nothing_to_prepare_run_exactly_as_a_queue_per_key_would(mut loads in loads()) {
        loads.iter_mut().for_each(|load| load.prepare_ms = None);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();

        let turns = runtime.block_on(play(&loads));

        for key in 0..3 {
            let mut free_ms = 0;
            let mut now_ms = 0;
            let mut expected = Vec::new();
            for (number, load) in loads.iter().enumerate() {
                now_ms += load.pause_before_ms;
                if load.key == key {
                    let from_ms = now_ms.max(free_ms);
                    free_ms = from_ms + load.finish_ms;
                    expected.push((number, from_ms, free_ms));
                }
            }
            let mine = turns.iter().filter(|turn| turn.key == key);
            prop_assert_eq!(mine.map(|it| (it.number, it.from_ms, it.to_ms)).collect::<Vec<_>>(), expected);
        }
    }
}
