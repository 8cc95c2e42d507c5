//! Processes that never rest, killed in the middle of it: what they were promised is there afterwards.
use std::collections::HashMap;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rusqlite::Connection;
use torture::power_loss::Survivor;

use crate::stage::Stage;

const KILLS: u64 = 50;

#[test]
fn a_database_that_syncs_keeps_every_row_it_confirmed() {
    let mut stage = Stage::new();
    for seed in 0..KILLS {
        let confirmed = commit_rows_until_killed(&stage, "full", seed);
        stage.disk.crash().unwrap();

        assert!(rows(&stage) >= confirmed, "row {confirmed} was lost; seed {seed}");
        stage.disk.settle().unwrap();
    }
}

#[test]
fn a_database_that_syncs_keeps_every_row_it_confirmed_on_a_torn_disk() {
    let mut stage = Stage::new().without_real_sync();
    for seed in 0..KILLS {
        let confirmed = commit_rows_until_killed(&stage, "full", seed);
        stage.disk.crash_torn(seed).unwrap();

        assert!(rows(&stage) >= confirmed, "row {confirmed} was lost; seed {seed}");
        stage.disk.settle().unwrap();
    }
}

#[test]
fn a_database_that_recovers_by_itself_keeps_every_row_it_confirmed() {
    let mut stage = Stage::new().without_real_sync();
    let mut confirmed = 0;
    for seed in 0..KILLS {
        confirmed = confirmed.max(commit_rows_until_killed(&stage, "full", seed));
        if seed % 3 > 0 {
            stage.disk.crash().unwrap();
        }
    }
    stage.disk.crash().unwrap();

    assert!(rows(&stage) >= confirmed, "row {confirmed} was lost");
}

#[test]
fn a_database_that_does_not_sync_loses_rows() {
    let mut stage = Stage::new();
    let mut process = stage.start(&["rows", "full"]);
    process.line();
    process.kill();
    stage.disk.settle().unwrap();

    let confirmed = commit_rows_until_killed(&stage, "off", 0);
    stage.disk.crash().unwrap();

    let left = rows(&stage);
    assert!(left < confirmed, "{left} of {confirmed} rows are left");
}

/// Returns the last row that was reported.
fn commit_rows_until_killed(stage: &Stage, synchronous: &str, seed: u64) -> i64 {
    let mut process = stage.start(&["rows", synchronous]);
    let patience = StdRng::seed_from_u64(seed).random_range(10..100);
    let mut reported: Vec<_> = (0..patience).map_while(|_| process.line()).collect();
    reported.extend(process.kill());
    reported.last().map_or(0, |number| number.parse().unwrap())
}

/// How many rows there are, which must be all from the first to the last.
fn rows(stage: &Stage) -> i64 {
    let database = Connection::open(stage.root().join("rows.db")).unwrap();
    let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let sql = "SELECT count(*), coalesce(max(number), 0) FROM rows";
    let (count, last): (i64, i64) =
        database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(count, last, "a row in the middle is missing");
    count
}

#[test]
fn files_saved_with_care_are_there_whole() {
    for seed in 0..10 {
        let mut stage = Stage::new();
        let mut process = stage.start(&["saves", "8"]);
        let mut reported: Vec<_> = (0..20 + seed).map_while(|_| process.line()).collect();
        reported.extend(process.kill());
        match seed {
            0..5 => stage.disk.crash().unwrap(),
            _ => stage.disk.crash_torn(seed).unwrap(),
        }

        let contents = stage.contents();
        let name_of = |path: &Path| path.to_str().unwrap().to_owned();
        for (path, survivor) in contents.iter().filter(|(path, _)| path.extension().is_none()) {
            let Survivor::File(bytes) = survivor else { panic!("{} is not a file", path.display()) };
            let name = name_of(path);
            assert_eq!(bytes, &name.repeat(20_000 / name.len()).into_bytes(), "{name} is torn; seed {seed}");
        }
        for name in reported {
            assert!(contents.contains_key(Path::new(&name)), "{name} was lost; seed {seed}");
        }
    }
}

#[test]
fn files_saved_without_a_sync_are_gone() {
    let mut stage = Stage::new();
    let mut process = stage.start(&["careless-saves"]);
    let reported = (0..50).map_while(|_| process.line()).count();
    process.kill();

    stage.disk.crash().unwrap();

    assert_eq!(reported, 50);
    assert!(stage.contents().is_empty());
}

#[test]
fn files_saved_without_a_sync_are_empty_or_torn_on_a_torn_disk() {
    let mut stage = Stage::new();
    let mut process = stage.start(&["careless-saves"]);
    (0..50).map_while(|_| process.line()).count();
    process.kill();

    stage.disk.crash_torn(1).unwrap();

    let contents = stage.contents();
    let is_whole = |path: &Path, survivor: &Survivor| match survivor {
        Survivor::File(bytes) => *bytes == path.to_str().unwrap().repeat(20_000).into_bytes(),
        _ => false,
    };
    assert!(contents.iter().any(|(path, survivor)| path.extension().is_none() && !is_whole(path, survivor)));
}

#[test]
fn an_fsync_within_which_the_process_dies_counts_wholly_or_not_at_all() {
    for seed in 0..20 {
        let mut stage = if seed % 2 == 0 { Stage::new() } else { Stage::new().without_real_sync() };
        let threads = 4;
        for thread in 0..threads {
            std::fs::write(stage.root().join(thread.to_string()), [0; 64 * 1024]).unwrap();
        }
        stage.disk.settle().unwrap();

        let mut process = stage.start(&["overwrites", &threads.to_string()]);
        let mut reported: Vec<_> = (0..30 + seed).map_while(|_| process.line()).collect();
        reported.extend(process.kill());
        stage.disk.crash().unwrap();

        let promised: HashMap<&str, u64> = reported
            .iter()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(thread, number)| (thread, number.parse().unwrap()))
            .collect();
        for (path, survivor) in stage.contents() {
            let Survivor::File(bytes) = survivor else { panic!("{} is not a file", path.display()) };
            let numbers: Vec<u64> = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes).collect();
            assert!(
                numbers.iter().all(|number| *number == numbers[0]),
                "{} is torn; seed {seed}",
                path.display()
            );
            let promised = promised.get(path.to_str().unwrap()).copied().unwrap_or(0);
            assert!(numbers[0] >= promised, "{} lost {promised}; seed {seed}", path.display());
        }
    }
}
