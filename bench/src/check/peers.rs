//! The peers: programs that people use to the same end. One that is not installed is skipped.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::ROUND_S;
use crate::gauge;

/// Which parts `xmllint` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    None,
    Required,
    All,
}

/// Processor time in milliseconds; `None` if a program is missing.
pub(crate) fn unzip_and_xmllint(path: &Path, parts: Parts) -> Result<Option<f64>> {
    let wanted = match parts {
        Parts::None => "",
        Parts::Required => "'\\[Content_Types\\].xml' '_rels/.rels' 'word/document.xml' 'xl/workbook.xml'",
        Parts::All => "'*.xml' '*.rels'",
    };
    // Each part by itself, as a script would do it; one stream of all parts is no document.
    let script = format!(
        "set -e; unzip -tqq \"$1\" >/dev/null; [ -z \"$2\" ] || for part in $(unzip -Z1 \"$1\" {wanted} 2>/dev/null); do \
         unzip -p \"$1\" \"$(printf %s \"$part\" | sed 's/\\[/\\\\[/g')\" | xmllint --noout --stream --huge -; done"
    );
    let flag = if parts == Parts::None { "" } else { "xml" };
    let needed = if parts == Parts::None { "unzip" } else { "unzip xmllint" };
    measured(needed, &["sh", "-c", &script, "sh", &path.display().to_string(), flag])
}

/// Python's own ZIP and XML, on all parts.
pub(crate) fn python(path: &Path) -> Result<Option<f64>> {
    let script = "import sys, zipfile, xml.parsers.expat\n\
        archive = zipfile.ZipFile(sys.argv[1])\n\
        for name in archive.namelist():\n\
        \x20   with archive.open(name) as part:\n\
        \x20       if name.endswith(('.xml', '.rels')): xml.parsers.expat.ParserCreate(namespace_separator=' ').ParseFile(part)\n\
        \x20       else:\n\
        \x20           while part.read(65536): pass\n";
    measured("python3", &["python3", "-c", script, &path.display().to_string()])
}

fn measured(needed: &str, command: &[&str]) -> Result<Option<f64>> {
    let is_there = needed.split(' ').all(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        found.is_ok_and(|found| found.status.success())
    });
    let (Some((program, arguments)), true) = (command.split_first(), is_there) else { return Ok(None) };
    let (before, mut count) = (gauge::children_cpu_s(), 0_u32);
    loop {
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr));
        count += 1;
        let used = gauge::children_cpu_s() - before;
        if used >= ROUND_S {
            return Ok(Some(used * 1000.0 / f64::from(count)));
        }
    }
}
