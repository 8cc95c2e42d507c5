//! Which calls pass through the disk, and which do not.
use std::path::PathBuf;

use crate::stage::{CHILD, Stage, render};

#[test]
fn tokio_passes_through_the_disk() {
    let mut stage = Stage::new();
    assert_eq!(stage.run_and_kill(CHILD.as_ref(), "tokio").unwrap(), "done");

    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["made/", "made/synced = synced", "made/unsynced = "]);
}

#[test]
fn a_child_of_the_process_is_on_the_disk_too() {
    let mut stage = Stage::new();
    assert_eq!(stage.run_and_kill(CHILD.as_ref(), "parent").unwrap(), "done");

    stage.disk.crash().unwrap();

    let left: Vec<String> = stage.contents().keys().map(|path| path.display().to_string()).collect();
    assert_eq!(left, ["mine", "mine-too", "theirs"]);
    assert_eq!(stage.contents()[&PathBuf::from("theirs")], torture::power_loss::Survivor::File(Vec::new()));
}

#[test]
fn a_call_past_libc_is_noticed() {
    let mut stage = Stage::new();
    assert_eq!(stage.run_and_kill(CHILD.as_ref(), "raw").unwrap(), "done");

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
    let program = stage.compile("rare_calls.c");
    assert_eq!(stage.run_and_kill(&program, "prepare").unwrap(), "done");
    stage.disk.settle().unwrap();
    let before = render(&stage.contents());

    assert_eq!(stage.run_and_kill(&program, "change").unwrap(), "done");
    assert_ne!(render(&stage.contents()), before);
    stage.disk.crash().unwrap();
    assert_eq!(render(&stage.contents()), before, "nothing was fsynced");

    assert_eq!(stage.run_and_kill(&program, "change-and-sync").unwrap(), "done");
    let changed = render(&stage.contents());
    stage.disk.crash().unwrap();
    assert_eq!(render(&stage.contents()), changed, "everything was fsynced");
}
