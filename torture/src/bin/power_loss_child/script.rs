//! Single steps on files, as a test dictates them. Each line is answered by `ok` or the error.
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, symlink};

use anyhow::{Context, Result, bail};

use crate::report;

/// Open files by the name that the script gave them.
#[derive(Default)]
struct Script {
    files: HashMap<String, File>,
}

pub(crate) fn run() -> Result<()> {
    let mut script = Script::default();
    for line in io::stdin().lines() {
        let line = line?;
        match script.step(&line.split(' ').collect::<Vec<_>>()) {
            Ok(()) => report("ok")?,
            Err(error) => report(&format!("{line}: {error:#}"))?,
        }
    }
    Ok(())
}

impl Script {
    fn step(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["open", file, how, path] => self.open(file, how, path)?,
            ["again", file, other] => {
                let again = self.file(other)?.try_clone()?;
                self.files.insert((*file).to_owned(), again);
            }
            ["close", file] => drop(self.files.remove(*file)),
            ["write", file, letter, bytes] => self.file(file)?.write_all(&fill(letter, bytes)?)?,
            ["write-at", file, offset, letter, bytes] => {
                self.file(file)?.write_all_at(&fill(letter, bytes)?, offset.parse()?)?;
            }
            ["resize", file, bytes] => self.file(file)?.set_len(bytes.parse()?)?,
            ["sync", file] => self.file(file)?.sync_all()?,
            ["sync-data", file] => self.file(file)?.sync_data()?,
            ["sync-path", path] => File::open(path)?.sync_all()?,
            ["copy", from, to] => {
                io::copy(&mut File::open(from)?, &mut OpenOptions::new().write(true).open(to)?)?;
            }
            ["rename", from, to] => fs::rename(from, to)?,
            ["link", from, to] => fs::hard_link(from, to)?,
            ["symlink", target, path] => symlink(target, path)?,
            ["remove", path] => fs::remove_file(path)?,
            ["make-folder", path] => fs::create_dir(path)?,
            ["make-folders", path] => fs::create_dir_all(path)?,
            ["remove-folder", path] => fs::remove_dir(path)?,
            ["remove-all", path] => fs::remove_dir_all(path)?,
            _ => bail!("no such step"),
        }
        Ok(())
    }

    fn open(&mut self, file: &str, how: &str, path: &str) -> Result<()> {
        let mut options = OpenOptions::new();
        let opened = match how {
            "read" => options.read(true),
            "new" => options.read(true).write(true).create_new(true),
            "old" => options.read(true).write(true),
            "append" => options.append(true).create(true),
            "emptied" => options.write(true).create(true).truncate(true),
            _ => bail!("no such way to open"),
        }
        .open(path)?;
        self.files.insert(file.to_owned(), opened);
        Ok(())
    }

    fn file(&mut self, name: &str) -> Result<&mut File> {
        self.files.get_mut(name).context("not open")
    }
}

fn fill(letter: &str, bytes: &str) -> Result<Vec<u8>> {
    Ok(letter.repeat(bytes.parse()?).into_bytes())
}
