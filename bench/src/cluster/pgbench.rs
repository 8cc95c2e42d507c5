//! pgbench with the very statements of `publish_version`: the most this PostgreSQL can carry of them.
//!
//! One save is committed on a connection whose statements the server writes into its log. The transaction is read from there,
//! values and all, and becomes a script in which the number of a document stands wherever something follows from it. So the
//! script is always what the ledger does today. Does not do: hashes of the audit trail, which pgbench cannot make; all
//! entries get the same one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use ledger::postgres::throwaway::Server;
use model::InboxNumber;

use super::publishing::{digest, document_id};

/// Marks the place of a value in the text of a statement.
const STATEMENT_MARKS: [&str; 2] = ["LOG:  statement: ", "LOG:  execute "];
const VALUES_MARK: &str = "DETAIL:  parameters: ";
/// Only the commit of a save writes a content.
const TELLTALE: &str = "INSERT INTO contents";

/// What the number of a document decides, as it stands in the recorded transaction of the document 0.
pub(super) struct Pattern {
    pub(super) set: char,
    pub(super) first_received: InboxNumber,
}

/// A statement and its values, as the server logged them.
#[derive(Debug, Default)]
struct Statement {
    text: String,
    values: String,
}

/// The script of the last commit of a save in a server's log.
pub(super) fn script(log: &str, pattern: &Pattern) -> Result<String> {
    let statements = statements(log);
    let at =
        statements.iter().rposition(|each| each.text.contains(TELLTALE)).context("no save in the log")?;
    let begin = statements[..at].iter().rposition(|each| each.text == "BEGIN").context("no beginning")?;
    let end = at + statements[at..].iter().position(|each| each.text == "COMMIT").context("no commit")?;
    let mut script = String::from("\\set i :i + 1\n\\set n :first + :client_id * :share + :i - 1\n");
    for statement in &statements[begin..=end] {
        script.push_str(&statement.filled(pattern)?);
        script.push_str(";\n");
    }
    Ok(script)
}

fn statements(log: &str) -> Vec<Statement> {
    let mut found: Vec<Statement> = Vec::new();
    let mut lines = log.lines().peekable();
    while let Some(line) = lines.next() {
        let mut whole = line.to_owned();
        while let Some(more) = lines.next_if(|next| next.starts_with('\t')) {
            whole.push('\n');
            whole.push_str(more.trim_start_matches('\t'));
        }
        if let Some((_, values)) = whole.split_once(VALUES_MARK) {
            if let Some(last) = found.last_mut() {
                values.clone_into(&mut last.values);
            }
        } else if let Some((_, rest)) = STATEMENT_MARKS.iter().find_map(|mark| whole.split_once(mark)) {
            // `execute s7: SELECT …` has a name before its text.
            let named = whole.contains(STATEMENT_MARKS[1]);
            let text = if named { rest.split_once(": ").map_or(rest, |(_, text)| text) } else { rest };
            found.push(Statement { text: text.to_owned(), values: String::new() });
        }
    }
    found
}

impl Statement {
    /// The statement with its values in place.
    fn filled(&self, pattern: &Pattern) -> Result<String> {
        let values = self.parsed_values()?;
        let mut filled = String::new();
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            let digits = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            let number: usize = after[..digits].parse().context("a dollar that is no value")?;
            let value =
                values.get(number - 1).with_context(|| format!("no value {number}: {}", self.text))?;
            filled.push_str(before);
            filled.push_str(
                &value.as_deref().map_or_else(|| "NULL".to_owned(), |text| pattern.expression(text)),
            );
            rest = &after[digits..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// `$1 = 'it''s', $2 = NULL`, taken apart.
    fn parsed_values(&self) -> Result<Vec<Option<String>>> {
        let mut values = Vec::new();
        let mut rest = self.values.as_str();
        while let Some((_, after)) = rest.split_once(" = ") {
            if let Some(next) = after.strip_prefix("NULL") {
                values.push(None);
                rest = next;
                continue;
            }
            let Some(mut quoted) = after.strip_prefix('\'') else { bail!("no value: {after}") };
            let mut value = String::new();
            loop {
                let (part, next) = quoted.split_once('\'').context("a value without an end")?;
                value.push_str(part);
                match next.strip_prefix('\'') {
                    Some(more) => {
                        value.push('\'');
                        quoted = more;
                    }
                    None => {
                        quoted = next;
                        break;
                    }
                }
            }
            values.push(Some(value));
            rest = quoted;
        }
        Ok(values)
    }
}

impl Pattern {
    /// A value as an expression in which the number of the document stands wherever something follows from it.
    fn expression(&self, value: &str) -> String {
        let of_inbox = format!("({} + :n::bigint)", self.first_received.0);
        if value == self.first_received.0.to_string() {
            return of_inbox;
        }
        let base = digest(0).to_string();
        let stem = &base[..48];
        if value.strip_prefix("\\x") == Some(base.as_str()) {
            return format!("decode('{stem}' || lpad(to_hex(:n::bigint), 16, '0'), 'hex')");
        }
        let id = document_id(self.set, 0);
        let replaced = [
            (id.as_str(), format!("'{}' || lpad(:n::text, 7, '0')", self.set)),
            (base.as_str(), format!("'{stem}' || lpad(to_hex(:n::bigint), 16, '0')")),
            (&self.first_received.0.to_string(), format!("{of_inbox}::text")),
        ];
        let mut pieces = Vec::new();
        let mut rest = value;
        while let Some((at, wanted, by)) = replaced
            .iter()
            .filter_map(|(wanted, by)| rest.find(wanted).map(|at| (at, *wanted, by)))
            .min_by_key(|(at, ..)| *at)
        {
            pieces.push(quoted(&rest[..at]));
            pieces.push(by.clone());
            rest = &rest[at + wanted.len()..];
        }
        pieces.push(quoted(rest));
        if pieces.len() == 1 { pieces.remove(0) } else { format!("({})", pieces.join(" || ")) }
    }
}

/// A text as pgbench leaves it alone: a colon would begin one of its variables, even inside quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("E'");
    for letter in text.chars() {
        match letter {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            ':' => out.push_str("\\x3a"),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// Runs the script: documents from `first` on, `count` of them, `depth` at once; says how many there are in a second.
pub(super) fn run(script: &Path, url: &str, (first, count, depth): (u64, u64, usize)) -> Result<f64> {
    let share = count / depth as u64;
    let output = Command::new(Server::program("pgbench")?)
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
        .arg(format!("--client={depth}"))
        .arg(format!("--transactions={share}"))
        .args(["-D", &format!("first={first}"), "-D", &format!("share={share}"), "-D", "i=0"])
        .arg("--file")
        .arg(script)
        .arg(url)
        .output()
        .context("pgbench cannot be started")?;
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "pgbench failed: {wrong}");
    let line = said.lines().find_map(|line| line.strip_prefix("tps = ")).context("pgbench says no figure")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_transaction_becomes_a_script() {
        let log = "\
2026-11-17 14:00:00.000 UTC [7] LOG:  statement: BEGIN
2026-11-17 14:00:00.001 UTC [7] LOG:  execute s1: SELECT 1 FROM documents
\t    WHERE id = $1
2026-11-17 14:00:00.001 UTC [7] DETAIL:  parameters: $1 = 'b0000000'
2026-11-17 14:00:00.002 UTC [7] LOG:  execute s2: INSERT INTO contents VALUES ($1, $2, $3)
2026-11-17 14:00:00.002 UTC [7] DETAIL:  parameters: $1 = '500', $2 = NULL, $3 = '{\"a\":\"it''s 500\"}'
2026-11-17 14:00:00.003 UTC [7] LOG:  statement: COMMIT
";
        let pattern = Pattern { set: 'b', first_received: InboxNumber(500) };

        let script = script(log, &pattern).unwrap();

        let lines: Vec<&str> = script.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "BEGIN;",
                "SELECT 1 FROM documents",
                "    WHERE id = (E'' || 'b' || lpad(:n::text, 7, '0') || E'');",
                "INSERT INTO contents VALUES ((500 + :n::bigint), NULL, \
                 (E'{\"a\"\\x3a\"it''s ' || (500 + :n::bigint)::text || E'\"}'));",
                "COMMIT;",
            ]
        );
    }
}
