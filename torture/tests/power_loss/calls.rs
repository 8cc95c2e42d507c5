//! Which calls pass through the disk, and which do not.
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::{Stage, render};

#[test]
fn tokio_passes_through_the_disk() {
    let mut stage = Stage::new();
    let mut process = stage.start(&["tokio"]);
    assert_eq!(process.line().unwrap(), "done");
    process.kill();

    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["made/", "made/synced = synced", "made/unsynced = "]);
}

#[test]
fn a_child_of_the_process_is_on_the_disk_too() {
    let mut stage = Stage::new();
    let mut process = stage.start(&["parent"]);
    assert_eq!(process.line().unwrap(), "done");
    process.kill();

    stage.disk.crash().unwrap();

    let left: Vec<String> = stage.contents().keys().map(|path| path.display().to_string()).collect();
    assert_eq!(left, ["mine", "mine-too", "theirs"]);
    assert_eq!(stage.contents()[&PathBuf::from("theirs")], torture::power_loss::Survivor::File(Vec::new()));
}

#[test]
fn a_call_past_libc_is_noticed() {
    let mut stage = Stage::new();
    let mut process = stage.start(&["raw"]);
    assert_eq!(process.line().unwrap(), "done");
    process.kill();

    let complaint = stage.disk.crash().unwrap_err().to_string();

    assert!(complaint.contains("did not pass the power-loss disk"), "{complaint}");
    assert!(complaint.contains("persisted"), "{complaint}");
}

#[test]
fn a_change_made_by_the_test_is_noticed_unless_it_is_settled() {
    let mut stage = Stage::new();
    stage.steps("open a new a\n write a x 1\n sync a\n sync-path .").kill();
    stage.disk.crash().unwrap();

    std::fs::write(stage.root().join("a"), "changed").unwrap();
    assert!(stage.disk.crash().unwrap_err().to_string().contains("did not pass the power-loss disk"));
    stage.disk.settle().unwrap();
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["a = changed"]);
}

#[test]
fn rare_calls_pass_through_the_disk() {
    let mut stage = Stage::new();
    let program = compile(&stage, "rare_calls.c");
    run_and_kill(&stage, &program, "prepare");
    stage.disk.settle().unwrap();
    let before = render(&stage.contents());

    run_and_kill(&stage, &program, "change");
    assert_ne!(render(&stage.contents()), before);
    stage.disk.crash().unwrap();
    assert_eq!(render(&stage.contents()), before, "nothing was fsynced");

    run_and_kill(&stage, &program, "change-and-sync");
    let changed = render(&stage.contents());
    stage.disk.crash().unwrap();
    assert_eq!(render(&stage.contents()), changed, "everything was fsynced");
}

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
    stage.steps("open a new a\n write a x 5").kill();
    stage.disk.settle().unwrap();
    let program = compile(&stage, "during_sync.c");

    run_and_kill(&stage, &program, scene);
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), [left]);
}

/// Returns the program, which stands beside the root.
fn compile(stage: &Stage, source: &str) -> PathBuf {
    let program = stage.root().with_file_name("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_loss").join(source);
    let flags = ["-Wall", "-Wextra", "-Werror", "-rdynamic", "-o"];
    assert!(Command::new("cc").args(flags).arg(&program).arg(source).status().unwrap().success());
    program
}

/// Waits until it is done, or dead by its own hand.
fn run_and_kill(stage: &Stage, program: &Path, scene: &str) {
    let mut process = stage.start_program(program, &[scene]);
    let answer = process.line();
    assert!(answer.as_deref() == Some("done") || scene == "die", "{scene} failed");
    process.kill();
}
