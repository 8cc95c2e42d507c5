//! What happens at chosen instants inside of an fsync, and of the disk itself.
use crate::stage::{Stage, render};

/// More than the disk makes in the whole scene.
const STEPS_MAX: usize = 500;

#[test]
fn an_fsync_covers_what_was_there_when_it_began() {
    check_during_sync("write", "a = yyxxx");
    check_during_sync("rename", "a = xxxxx");
}

#[test]
fn an_fsync_that_fails_or_never_returns_does_not_count() {
    check_during_sync("fail", "a = xxxxx");
    check_during_sync("die", "a = xxxxx");
}

#[test]
fn stores_through_a_mapping_count_up_to_the_fsync() {
    check_during_sync("map", "a = xyxxx");
}

fn check_during_sync(scene: &str, left: &str) {
    let mut stage = Stage::new();
    let program = stage.compile("instants.c");
    reset(&mut stage);

    let report = stage.run_and_kill(&program, scene);
    stage.disk.crash().unwrap();

    assert_eq!(report.is_none(), scene == "die");
    assert_eq!(render(&stage.contents()), [left]);
}

#[test]
fn dying_before_any_step_of_the_disk_leaves_the_state_before_or_after_an_fsync() {
    let mut stage = Stage::in_memory();
    let program = stage.compile("instants.c");
    let mut outcomes = Vec::new();
    for steps in 0..STEPS_MAX {
        reset(&mut stage);
        let report = stage.run_and_kill(&program, &steps.to_string());
        stage.disk.crash().unwrap();
        outcomes.push(render(&stage.contents()).join(", "));
        if report.is_some() {
            break;
        }
    }

    assert!(outcomes.len() > 30);
    outcomes.dedup();
    assert_eq!(outcomes, ["a = xxxxx", "a = yyxxx", "a = zzzzz", ""]);
}

/// A durable file `a`, and nothing else.
fn reset(stage: &mut Stage) {
    std::fs::write(stage.root().join("a"), "xxxxx").unwrap();
    stage.disk.settle().unwrap();
}
