//! On a torn disk a part of what was not fsynced survives, and all that was.
use std::collections::BTreeSet;

use torture::power_loss::Survivor;

use crate::stage::{Stage, render};

const SEEDS: u64 = 500;

/// What may be left after the steps, over many seeds.
fn outcomes(durable: &str, steps: &str) -> BTreeSet<String> {
    let mut stage = Stage::in_memory();
    stage.steps(durable).kill();
    stage.disk.settle().unwrap();
    stage.steps(steps).kill();
    (0..SEEDS).map(|seed| render(&stage.disk.survivors_torn(seed).unwrap()).join(", ")).collect()
}

fn expect(outcomes: &BTreeSet<String>, expected: &[&str]) {
    assert_eq!(outcomes.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn of_the_changes_of_names_the_first_few_survive() {
    let outcomes = outcomes("", "make-folder b\n make-folder a\n make-folder c\n remove-folder a");

    expect(&outcomes, &["", "a/, b/", "a/, b/, c/", "b/", "b/, c/"]);
}

#[test]
fn a_rename_survives_as_a_whole() {
    let durable = "make-folder f\n make-folder g\n open a new f/a";

    let within = outcomes(durable, "rename f/a f/b");
    let across = outcomes(durable, "rename f/a g/b\n make-folder f/c");

    expect(&within, &["f/, f/a = , g/", "f/, f/b = , g/"]);
    expect(&across, &["f/, f/a = , g/", "f/, f/c/, g/, g/b = ", "f/, g/, g/b = "]);
}

#[test]
fn a_name_may_survive_without_the_bytes_and_the_bytes_in_part() {
    let outcomes = outcomes("", "open a new a\n write a x 4096\n write a y 4096");

    assert!(outcomes.contains(""));
    assert!(outcomes.contains("a = "));
    assert!(outcomes.contains("a = x*4096 y*4096 "));
    assert!(outcomes.contains("a = \0*4096 y*4096 "));
}

#[test]
fn the_size_may_be_the_old_or_the_new_one() {
    let outcomes = outcomes("open a new a\n write a - 4096", "open a old a\n write a x 8192");

    let pages = ["a = -*4096 ", "a = -*4096 \0*4096 ", "a = -*4096 x*4096 ", "a = x*4096 "];
    let mut expected = vec!["a = x*4096 \0*4096 ", "a = x*8192 "];
    expected.extend(pages);
    expected.sort_unstable();
    expect(&outcomes, &expected);
}

#[test]
fn pages_survive_in_any_order() {
    let durable = "open a new a\n write a - 12288";
    let outcomes = outcomes(durable, "open a old a\n write a x 4096\n write a y 4096\n write a z 4096");

    let pages = |one: &str, two: &str, three: &str| {
        let runs = [one, two, three].map(|letter| letter.repeat(4096)).concat().into_bytes();
        render(&[("a".into(), Survivor::File(runs))].into()).concat()
    };
    for one in ["-", "x"] {
        for two in ["-", "y"] {
            for three in ["-", "z"] {
                assert!(outcomes.contains(&pages(one, two, three)), "{one}{two}{three} never happened");
            }
        }
    }
    assert_eq!(outcomes.len(), 8);
}

#[test]
fn what_was_fsynced_always_survives() {
    let steps = "open a new a\n write a x 5000\n sync a\n sync-path .\n open b new b";
    expect(&outcomes("", steps), &["a = x*5000 ", "a = x*5000 , b = "]);
}

#[test]
fn a_crash_leaves_what_its_seed_foretold() {
    let mut stage = Stage::new();
    let steps =
        "open a new a\n write a x 20000\n sync-path .\n write a y 20000\n open b new b\n write b z 9000";
    stage.steps(steps).kill();

    let foretold = stage.disk.survivors_torn(7).unwrap();
    stage.disk.crash_torn(7).unwrap();

    assert_eq!(render(&stage.contents()), render(&foretold));
}
