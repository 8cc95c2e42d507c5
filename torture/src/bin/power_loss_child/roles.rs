//! Roles that work until they are killed, and report each promise they were given.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use rusqlite::Connection;
use tokio::io::AsyncWriteExt;

use crate::report;

const SAVE_BYTES: usize = 20_000;
/// In place, in pieces: a half applied fsync would show.
const OVERWRITE_BYTES: usize = 64 * 1024;
const PIECE_BYTES: usize = 5_000;

/// Numbered rows into `rows.db`, one commit each.
pub(crate) fn commit_rows(synchronous: &str) -> Result<()> {
    let database = open_database(synchronous)?;
    let last: i64 = database.query_row("SELECT coalesce(max(number), 0) FROM rows", [], |row| row.get(0))?;
    for number in last + 1.. {
        commit_row(&database, number)?;
        report(&number.to_string())?;
    }
    Ok(())
}

fn open_database(synchronous: &str) -> Result<Connection> {
    let database = Connection::open("rows.db")?;
    database.pragma_update(None, "journal_mode", "wal")?;
    database.pragma_update(None, "synchronous", synchronous)?;
    // Often, so that a kill meets checkpoints too.
    database.pragma_update(None, "wal_autocheckpoint", 20)?;
    database.execute_batch("CREATE TABLE IF NOT EXISTS rows (number INTEGER PRIMARY KEY, filling BLOB)")?;
    Ok(database)
}

fn commit_row(database: &Connection, number: i64) -> Result<()> {
    database.execute("INSERT INTO rows VALUES (?1, zeroblob(2000))", [number])?;
    Ok(())
}

/// Files saved as they should be: written aside, fsynced, named, and the name fsynced.
pub(crate) fn save_files(threads: u32) -> Result<()> {
    let workers: Vec<_> = (0..threads).map(|thread| thread::spawn(move || save_for_ever(thread))).collect();
    workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
}

fn save_for_ever(thread: u32) -> Result<()> {
    for number in 0_u64.. {
        let name = format!("{thread}-{number}");
        save(&name)?;
        report(&name)?;
    }
    Ok(())
}

fn save(name: &str) -> io::Result<()> {
    let aside = format!("{name}.tmp");
    let mut file = File::create_new(&aside)?;
    file.write_all(name.repeat(SAVE_BYTES / name.len()).as_bytes())?;
    file.sync_all()?;
    fs::rename(aside, name)?;
    File::open(".")?.sync_all()
}

/// The same without a single fsync.
pub(crate) fn save_files_without_sync() -> Result<()> {
    for number in 0_u64.. {
        let (name, aside) = (number.to_string(), format!("{number}.tmp"));
        fs::write(&aside, name.repeat(SAVE_BYTES))?;
        fs::rename(aside, &name)?;
        report(&name)?;
    }
    Ok(())
}

/// Each thread fills its file with 1, then with 2, and so on, and fsyncs in between.
pub(crate) fn overwrite_files(threads: u32) -> Result<()> {
    let workers: Vec<_> =
        (0..threads).map(|thread| thread::spawn(move || overwrite_for_ever(thread))).collect();
    workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
}

fn overwrite_for_ever(thread: u32) -> Result<()> {
    let file = OpenOptions::new().write(true).open(thread.to_string())?;
    for number in 1_u64.. {
        let filling = number.to_le_bytes().repeat(OVERWRITE_BYTES / 8);
        for (piece, bytes) in filling.chunks(PIECE_BYTES).enumerate() {
            file.write_all_at(bytes, u64::try_from(piece * PIECE_BYTES)?)?;
        }
        file.sync_data()?;
        report(&format!("{thread} {number}"))?;
    }
    Ok(())
}

/// One file fsynced and one not, with the names of both fsynced.
pub(crate) fn write_with_tokio() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        tokio::fs::create_dir("made").await?;
        let mut synced = tokio::fs::File::create_new("made/synced.tmp").await?;
        synced.write_all(b"synced").await?;
        synced.sync_all().await?;
        tokio::fs::rename("made/synced.tmp", "made/synced").await?;
        tokio::fs::write("made/unsynced", b"unsynced").await?;
        tokio::fs::File::open("made").await?.sync_all().await?;
        tokio::fs::File::open(".").await?.sync_all().await?;
        tokio::fs::hard_link("made/synced", "made/linked").await?;
        tokio::fs::remove_file("made/unsynced").await
    })?;
    report("done")?;
    wait_for_the_end()
}

/// `tempfile` renames with rustix, which makes its own system calls.
pub(crate) fn rename_past_libc() -> Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(".")?;
    file.write_all(b"never fsynced")?;
    file.persist("persisted")?;
    report("done")?;
    wait_for_the_end()
}

/// A shell inherits the disk; what it writes is not fsynced.
pub(crate) fn write_through_a_child_process() -> Result<()> {
    save("mine")?;
    ensure!(Command::new("sh").args(["-c", "echo theirs > theirs"]).status()?.success());
    save("mine-too")?;
    report("done")?;
    wait_for_the_end()
}

pub(crate) fn measure_saves(saves: u32) -> Result<()> {
    let start = Instant::now();
    (0..saves).try_for_each(|number| save(&format!("save-{number}")))?;
    report(&format!("{:.0} saves/s", f64::from(saves) / start.elapsed().as_secs_f64()))?;
    Ok(())
}

pub(crate) fn measure_rows(rows: u32) -> Result<()> {
    let database = open_database("full")?;
    let start = Instant::now();
    (0..rows).try_for_each(|number| commit_row(&database, number.into()))?;
    report(&format!("{:.0} commits/s", f64::from(rows) / start.elapsed().as_secs_f64()))?;
    Ok(())
}

fn wait_for_the_end() -> Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
