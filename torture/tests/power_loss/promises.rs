//! One rule of the disk per test.
use torture::power_loss::{Survivor, contents};

use crate::stage::{Stage, check, render};

const FILE_A: &str = "open a new a\n write a x 5";

#[test]
fn a_new_file_needs_its_own_fsync_and_that_of_its_folder() {
    check("", FILE_A, &[]);
    check("", &format!("{FILE_A}\n sync a"), &[]);
    check("", &format!("{FILE_A}\n sync-path ."), &["a = "]);
    check("", &format!("{FILE_A}\n sync a\n sync-path ."), &["a = xxxxx"]);
    check("", &format!("{FILE_A}\n sync-path .\n sync a"), &["a = xxxxx"]);
}

#[test]
fn bytes_written_after_the_fsync_are_lost() {
    check(FILE_A, "open a old a\n write-at a 1 y 2", &["a = xxxxx"]);
    check(FILE_A, "open a old a\n write-at a 1 y 2\n sync a\n write-at a 0 z 9", &["a = xyyxx"]);
}

#[test]
fn fdatasync_counts_for_bytes_and_size() {
    check(FILE_A, "open a old a\n write-at a 3 y 4\n sync-data a", &["a = xxxyyyy"]);
}

#[test]
fn appended_bytes_are_lost_back_to_the_size_at_the_fsync() {
    check(FILE_A, "open a append a\n write a y 3", &["a = xxxxx"]);
    check(FILE_A, "open a append a\n write a y 3\n sync a\n write a z 3", &["a = xxxxxyyy"]);
    check(FILE_A, "open a append a\n write a y 3\n open b old a\n write-at b 0 z 1", &["a = xxxxx"]);
}

#[test]
fn a_change_of_size_needs_an_fsync() {
    check(FILE_A, "open a old a\n resize a 2", &["a = xxxxx"]);
    check(FILE_A, "open a old a\n resize a 2\n sync a\n resize a 4", &["a = xx"]);
    check(FILE_A, "open a old a\n resize a 2\n resize a 7\n write-at a 0 y 7\n resize a 0", &["a = xxxxx"]);
}

#[test]
fn emptying_a_file_by_opening_it_needs_an_fsync() {
    check(FILE_A, "open a emptied a", &["a = xxxxx"]);
    check(FILE_A, "open a emptied a\n write a y 2", &["a = xxxxx"]);
    check(FILE_A, "open a emptied a\n sync a\n write a y 2", &["a = "]);
}

#[test]
fn copying_into_a_file_needs_an_fsync() {
    let durable = "open a new a\n write a x 5\n open b new b\n write b y 3";
    check(durable, "copy b a", &["a = xxxxx", "b = yyy"]);
    check(durable, "copy b a\n sync-path a", &["a = yyyxx", "b = yyy"]);
}

#[test]
fn an_fsync_through_any_descriptor_counts_for_the_file() {
    check(FILE_A, "open a old a\n write-at a 0 y 2\n again b a\n close a\n sync b", &["a = yyxxx"]);
    check(FILE_A, "open a old a\n write-at a 0 y 2\n open b read a\n sync b", &["a = yyxxx"]);
    check(
        FILE_A,
        "link a b\n open b old b\n write b y 2\n sync-path a\n sync-path .",
        &["a = yyxxx", "b = yyxxx"],
    );
}

#[test]
fn a_rename_needs_the_fsync_of_its_folder() {
    check(FILE_A, "rename a b", &["a = xxxxx"]);
    check(FILE_A, "rename a b\n sync-path b", &["a = xxxxx"]);
    check(FILE_A, "rename a b\n sync-path .", &["b = xxxxx"]);
}

#[test]
fn a_replaced_file_is_there_until_the_folder_is_fsynced() {
    let durable = "open a new a\n write a x 5\n open b new b\n write b y 3";
    check(durable, "rename a b", &["a = xxxxx", "b = yyy"]);
    check(durable, "rename a b\n sync-path .", &["b = xxxxx"]);
    check(durable, "rename a b\n rename b c\n remove c", &["a = xxxxx", "b = yyy"]);
    check(durable, "open b old b\n write b z 1\n rename a b\n sync b", &["a = xxxxx", "b = zyy"]);
}

#[test]
fn a_rename_without_an_fsync_of_the_bytes_leaves_an_empty_file() {
    check("", "open a new a.tmp\n write a x 5\n rename a.tmp a\n sync-path .", &["a = "]);
}

#[test]
fn a_move_to_another_folder_needs_both_folders() {
    let durable = "make-folder f\n make-folder g\n open a new f/a\n write a x 1";
    check(durable, "rename f/a g/a", &["f/", "f/a = x", "g/"]);
    check(durable, "rename f/a g/a\n sync-path g", &["f/", "f/a = x", "g/", "g/a = x"]);
    check(durable, "rename f/a g/a\n sync-path f", &["f/", "g/"]);
    check(durable, "rename f/a g/a\n sync-path g\n sync-path f", &["f/", "g/", "g/a = x"]);
    check(durable, "rename f/a g/a\n sync-path g\n remove g/a\n sync-path g", &["f/", "f/a = x", "g/"]);
}

#[test]
fn a_link_needs_the_fsync_of_its_folder() {
    check(FILE_A, "link a b", &["a = xxxxx"]);
    check(FILE_A, "link a b\n sync-path .\n remove a", &["a = xxxxx", "b = xxxxx"]);
    check(FILE_A, "symlink a b", &["a = xxxxx"]);
    check(FILE_A, "symlink a b\n sync-path .\n remove b", &["a = xxxxx", "b -> a"]);
}

#[test]
fn a_removed_file_is_there_until_the_folder_is_fsynced() {
    check(FILE_A, "remove a", &["a = xxxxx"]);
    check(FILE_A, "remove a\n open b new b\n open c new a\n write c z 9\n sync c", &["a = xxxxx"]);
    check(FILE_A, "remove a\n sync-path .", &[]);
    check(FILE_A, "remove a\n open c new a\n write c z 3\n sync c\n sync-path .", &["a = zzz"]);
}

#[test]
fn a_file_without_a_name_is_gone() {
    check("", "open a new a\n sync-path .\n remove a\n write a x 5\n sync a", &["a = xxxxx"]);
    check("", "open a new a\n sync-path .\n remove a\n sync-path .\n write a x 5\n sync a", &[]);
}

#[test]
fn every_new_folder_above_a_file_needs_an_fsync() {
    let steps = "make-folders f/g\n open a new f/g/a\n write a x 1\n sync a";
    check("", steps, &[]);
    check("", &format!("{steps}\n sync-path f/g\n sync-path f"), &[]);
    check("", &format!("{steps}\n sync-path f/g\n sync-path ."), &["f/"]);
    check("", &format!("{steps}\n sync-path f\n sync-path ."), &["f/", "f/g/"]);
    check("", &format!("{steps}\n sync-path f/g\n sync-path f\n sync-path ."), &["f/", "f/g/", "f/g/a = x"]);
}

#[test]
fn a_removed_folder_is_there_until_the_folder_above_is_fsynced() {
    let durable = "make-folders f/g\n open a new f/g/a\n write a x 1";
    check(durable, "remove-all f", &["f/", "f/g/", "f/g/a = x"]);
    check(durable, "remove f/g/a\n sync-path f/g\n remove-all f", &["f/", "f/g/"]);
    check(durable, "remove-all f\n sync-path .", &[]);
}

#[test]
fn a_folder_that_takes_the_number_of_a_removed_one_does_not_take_its_files() {
    // ext4 hands out the lowest free inode number again at once.
    let durable = "make-folder f\n open a new f/a\n write a x 1\n close a";
    let steps = "remove f/a\n remove-folder f\n make-folder g\n open b new g/b\n sync-path g";
    check(durable, steps, &["f/", "f/a = x"]);
    check(durable, &format!("{steps}\n sync-path ."), &["g/", "g/b = "]);
}

#[test]
fn a_moved_folder_takes_its_durable_contents_along() {
    let durable = "make-folder f\n make-folder g\n open a new f/a\n write a x 1";
    check(durable, "rename f g/h\n open b new g/h/b", &["f/", "f/a = x", "g/"]);
    check(
        durable,
        "rename f g/h\n sync-path g\n sync-path .\n open b new g/h/b",
        &["g/", "g/h/", "g/h/a = x"],
    );
    check(durable, "rename f g/h\n sync-path g/h\n sync-path g", &["f/", "f/a = x", "g/"]);
}

#[test]
fn a_file_from_outside_counts_as_not_fsynced() {
    let mut stage = Stage::new();
    std::fs::write(stage.root().with_file_name("stranger"), "bytes").unwrap();

    stage.steps("rename ../stranger a\n sync-path .").kill();
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["a = "]);
}

#[test]
fn names_may_be_long_and_strange() {
    let name = "ü".repeat(127);
    let path = format!("./..//root/{name}");
    check("", &format!("open a new {path}\n write a x 1\n sync a\n sync-path ."), &[&format!("{name} = x")]);
}

#[test]
fn modes_survive() {
    use std::os::unix::fs::PermissionsExt;
    let mut stage = Stage::new();
    stage.steps("make-folder f\n open a new f/a\n write a x 1").kill();
    std::fs::set_permissions(stage.root().join("f"), PermissionsExt::from_mode(0o500)).unwrap();
    std::fs::set_permissions(stage.root().join("f/a"), PermissionsExt::from_mode(0o640)).unwrap();
    stage.disk.settle().unwrap();

    stage.steps("open a old f/a\n write a y 1").kill();
    stage.disk.crash().unwrap();

    let mode = |path| stage.root().join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("f"), mode("f/a")), (0o500, 0o640));
}

#[test]
fn a_second_crash_starts_from_the_first() {
    let mut stage = Stage::new();
    stage.steps("open a new a\n write a x 3\n sync a\n sync-path .\n write a y 3").kill();
    stage.disk.crash().unwrap();
    stage.disk.crash().unwrap();

    stage.steps("open a old a\n write a z 1").kill();
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["a = xxx"]);
}

#[test]
fn a_kill_without_a_crash_keeps_everything_and_a_later_process_can_fsync_it() {
    let mut stage = Stage::new();
    stage.steps("open a new a\n write a x 3\n open b new b\n write b y 3").kill();
    assert_eq!(render(&stage.contents()), ["a = xxx", "b = yyy"]);

    stage.steps("sync-path a\n sync-path .").kill();
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["a = xxx", "b = "]);
}

#[test]
fn processes_at_the_same_time_see_each_others_fsyncs() {
    let mut stage = Stage::new();
    let mut server = stage.steps("open a new a\n write a x 3");
    let mut tool = stage.steps("open b new b\n write b y 3");

    tool.steps("sync-path a\n sync-path .");
    server.steps("sync-path b\n write a z 3\n open c new c");
    server.kill();
    tool.steps("open b old b\n write b w 1\n sync-path .");
    tool.kill();
    stage.disk.crash().unwrap();

    assert_eq!(render(&stage.contents()), ["a = xxx", "b = yyy", "c = "]);
}

#[test]
fn the_shadow_does_not_keep_what_was_fsynced() {
    let stage = Stage::new();
    let mut process = stage.steps("open a new a\n write a x 5000\n sync a\n open b new b\n write b y 5000");

    process.steps("write-at a 0 z 5000\n sync a\n rename b c\n remove c\n sync-path .");

    let bytes = |survivor: &Survivor| if let Survivor::File(bytes) = survivor { bytes.len() } else { 0 };
    let shadow = contents(&stage.shadow()).unwrap();
    let kept = shadow.iter().filter(|(path, _)| path.starts_with("old") || path.starts_with("held"));
    assert!(kept.map(|(_, survivor)| bytes(survivor)).sum::<usize>() < 10);
    process.end();
}

#[test]
fn a_crash_is_refused_while_a_process_is_running() {
    let mut stage = Stage::new();
    let process = stage.steps("open a new a");

    assert!(stage.disk.crash().unwrap_err().to_string().contains("still running"));
    assert!(stage.disk.settle().unwrap_err().to_string().contains("still running"));
    process.kill();
    stage.disk.crash().unwrap();

    assert!(stage.contents().is_empty());
}
