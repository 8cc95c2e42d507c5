//! One row of a table: its values, what is wrong with them, how it counts, and its way to the sink.
//!
//! Guarantees: a row that goes to the sink has a key and nothing fatal in it; a row with values and no key is a problem, never
//! dropped; every problem names its cell.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::civil::Date;
use model::submissions::{Severity, StagedRow};

use super::cells::{RawCell, Row, letters};
use super::collector::Collector;
use super::fault::Fault;
use super::found::{Found, Slot, text_of};
use super::values::{Choices, Workbook};
use crate::expressions::{Cell, Facts};
use crate::{
    Column, ColumnKind, Decimal, Duplicates, Outcome, Outcomes, Place, Rule, ScopeFacts, Sink, Table,
    Template, Unreadable, code,
};

/// Rows between two reports of progress.
const ROWS_BETWEEN_REPORTS: u64 = 1_000;

/// Looks at rows, one after the other.
pub(crate) struct RowReader<'a> {
    pub(crate) template: &'a Template,
    pub(crate) scope: &'a ScopeFacts,
    pub(crate) today: Date,
    pub(crate) choices: &'a [Vec<Choices>],
    pub(crate) problems: Collector<'a>,
    pub(crate) sink: &'a mut dyn Sink,
    rows: u64,
    cells: Vec<Cell>,
    unknown: Vec<String>,
    faults: Vec<RowFault<'a>>,
}

/// Something wrong in the row.
struct RowFault<'a> {
    column: usize,
    code: &'a str,
    detail: String,
}

/// How a row counts.
enum Verdict<'a> {
    Rejected,
    Counts(Outcomes, Option<&'a str>),
}

/// A row of a table, with the cells of its columns.
#[derive(Clone, Copy)]
pub(crate) struct TableRow<'r> {
    pub(crate) row: &'r Row,
    /// For each slot of the table, the cell that stands there.
    pub(crate) picks: &'r [Option<usize>],
    pub(crate) workbook: &'r Workbook<'r>,
}

impl TableRow<'_> {
    fn cell(&self, slot: usize) -> Option<&RawCell> {
        self.row.cells.get((*self.picks.get(slot)?)?)
    }
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(
        template: &'a Template,
        (scope, today): (&'a ScopeFacts, Date),
        choices: &'a [Vec<Choices>],
        sink: &'a mut dyn Sink,
    ) -> Self {
        Self {
            template,
            scope,
            today,
            choices,
            problems: Collector::new(template),
            sink,
            rows: 0,
            cells: Vec::new(),
            unknown: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Tells how far we are, and asks whether to go on.
    pub(crate) fn looked_at_a_row(&mut self) -> Result<(), Fault> {
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_BETWEEN_REPORTS) {
            self.sink.progress(self.rows);
            if self.sink.is_cancelled() {
                return Err(Fault::Ours(Unreadable::Cancelled));
            }
        }
        Ok(())
    }

    /// Looks at a row of a table.
    pub(crate) fn read(&mut self, at: usize, found: &mut Found, row: TableRow<'_>) -> Result<(), Fault> {
        let Some(table) = self.template.tables.get(at) else { return Ok(()) };
        if is_skipped(table, found, row) {
            found.totals.skipped += 1;
            return Ok(());
        }
        self.read_values(at, found, row);
        if self.is_unused(table) {
            found.totals.unused += 1;
            return Ok(());
        }
        found.rows += 1;
        if found.rows > self.template.limits.rows_per_table {
            self.tell_too_many(found, row.row.number);
            return Ok(());
        }
        found.used.push(row.row.number);
        let key = self.key(table);
        self.check_needed(table);
        self.check_rules(table);
        let verdict = self.verdict(table);
        self.tell(table, found, (row, key.as_deref()));
        let values = found.canonical(&self.cells, &self.unknown);
        let Some(key) = key else {
            found.totals.rejected += 1;
            return Ok(());
        };
        let is_first = self.take_key(table, found, (&key, &values, row.row.number));
        match verdict {
            Verdict::Counts(outcome, reason) if is_first => {
                self.stage((table, found), (key, values, row.row.number), (outcome, reason))
            }
            Verdict::Counts(..) => Ok(()),
            Verdict::Rejected => {
                found.totals.rejected += 1;
                Ok(())
            }
        }
    }

    fn read_values(&mut self, at: usize, found: &Found, row: TableRow<'_>) {
        let Some((table, choices)) = self.template.tables.get(at).zip(self.choices.get(at)) else { return };
        self.cells.clear();
        self.cells.resize(table.columns.len(), Cell::Blank);
        self.unknown.clear();
        self.unknown.resize(found.unknown.len(), String::new());
        self.faults.clear();
        for (number, slot) in found.slots.iter().enumerate() {
            let Some(cell) = row.cell(number) else { continue };
            match *slot {
                Slot::Column(index) => {
                    let Some(column) = table.columns.get(index).zip(choices.get(index)) else { continue };
                    let value = row.workbook.value((row.row, cell), column);
                    if let Some(fault) = value.fault {
                        self.faults.push(RowFault { column: index, code: fault.code, detail: fault.detail });
                    }
                    if let Some(cell) = self.cells.get_mut(index) {
                        *cell = value.cell;
                    }
                }
                Slot::Unknown(index) => {
                    if let Some(text) = self.unknown.get_mut(index) {
                        *text = row.workbook.shown(row.row, cell);
                    }
                }
                Slot::Skip | Slot::Nothing => {}
            }
        }
    }

    fn is_unused(&self, table: &Table) -> bool {
        let is_blank = |index: &usize| self.cells.get(*index).is_none_or(Cell::is_blank);
        if table.unused_when_blank.is_empty() {
            return self.cells.iter().all(Cell::is_blank) && self.unknown.iter().all(String::is_empty);
        }
        table.unused_when_blank.iter().all(is_blank)
    }

    fn tell_too_many(&mut self, found: &mut Found, row: u32) {
        if found.rows == self.template.limits.rows_per_table + 1 {
            let detail = format!("at most {}", self.template.limits.rows_per_table);
            let place = Place {
                sheet: Some(found.sheet.to_string()),
                cell: Some(format!("{}{row}", letters(found.first + 1))),
                ..Place::default()
            };
            self.problems.add((code::TOO_MANY_ROWS, 3), || (place, detail));
        }
        found.totals.rejected += 1;
    }

    /// The row's id, if it has one.
    fn key(&mut self, table: &Table) -> Option<String> {
        let mut key = String::new();
        let mut is_whole = true;
        for (number, index) in table.key.iter().enumerate() {
            let cell = self.cells.get(*index).unwrap_or(&Cell::Blank);
            match cell {
                Cell::Blank => {
                    self.faults.push(RowFault {
                        column: *index,
                        code: code::ROW_WITHOUT_KEY,
                        detail: String::new(),
                    });
                    is_whole = false;
                }
                Cell::Wrong(_) => is_whole = false,
                cell => {
                    if number > 0 {
                        key.push('|');
                    }
                    let text = text_of(cell);
                    // Several columns stay apart whatever is in them.
                    let is_plain = table.key.len() == 1 || !text.contains(['|', '\\']);
                    key.push_str(&if is_plain {
                        text
                    } else {
                        text.replace('\\', "\\\\").replace('|', "\\|")
                    });
                }
            }
        }
        is_whole.then_some(key)
    }

    fn check_needed(&mut self, table: &Table) {
        for (index, column) in table.columns.iter().enumerate() {
            let is_blank = self.cells.get(index).is_none_or(Cell::is_blank);
            if column.is_required && is_blank && !table.key.contains(&index) {
                self.faults.push(RowFault {
                    column: index,
                    code: code::VALUE_REQUIRED,
                    detail: String::new(),
                });
            }
        }
    }

    fn check_rules(&mut self, table: &'a Table) {
        let values = self.faults.len();
        for rule in &table.rules {
            let has_all = rule.expect.inputs().iter().all(|input| {
                let is_right = !self.faults.iter().take(values).any(|fault| fault.column == *input);
                is_right && self.cells.get(*input).is_some_and(|cell| !cell.is_blank())
            });
            if has_all && !rule.expect.holds(&self.facts(Some((rule, table)))) {
                self.faults.push(RowFault { column: rule.blame, code: &rule.code, detail: String::new() });
            }
        }
    }

    fn facts(&self, rule: Option<(&Rule, &Table)>) -> Facts<'_> {
        let blamed = rule.and_then(|(rule, table)| table.columns.get(rule.blame));
        let scale = blamed.and_then(|column| match column.kind {
            ColumnKind::Decimal { scale, .. } => Some(scale),
            _ => None,
        });
        Facts {
            cells: &self.cells,
            scope: self.scope,
            template_id: &self.template.id,
            today: self.today,
            tolerance: rule.map_or(Decimal::ZERO, |(rule, _)| rule.tolerance),
            scale,
        }
    }

    /// How the row counts. Something wrong decides before any rule; an outcome may be a problem itself.
    fn verdict(&mut self, table: &'a Table) -> Verdict<'a> {
        let severities = self.faults.iter().map(|fault| (self.problems.severity(fault.code), fault.code));
        match severities.min_by_key(|(severity, _)| *severity) {
            Some((Severity::Fatal, _)) => return Verdict::Rejected,
            Some((Severity::Error, code)) => return Verdict::Counts(Outcomes::Excluded, Some(code)),
            _ => {}
        }
        let Some(outcome) = table.outcomes.iter().find(|outcome| outcome.when.holds(&self.facts(None)))
        else {
            return Verdict::Counts(Outcomes::Included, None);
        };
        if let Some(code) = &outcome.code {
            self.blame(table, outcome, code);
            if self.problems.severity(code) == Severity::Fatal {
                return Verdict::Rejected;
            }
        }
        Verdict::Counts(outcome.outcome, outcome.reason.as_deref())
    }

    /// An outcome is shown at its column, at the blank ones it is about, or at the key.
    fn blame(&mut self, table: &Table, outcome: &Outcome, code: &'a str) {
        let is_blank = |index: &usize| self.cells.get(*index).is_none_or(Cell::is_blank);
        let mut blamed: Vec<usize> = match outcome.blame {
            Some(index) => vec![index],
            None => outcome.when.asked_blank().iter().copied().filter(is_blank).collect(),
        };
        if blamed.is_empty() {
            blamed.extend(table.key.first());
        }
        self.faults.extend(blamed.into_iter().map(|column| RowFault { column, code, detail: String::new() }));
    }

    fn tell(&mut self, table: &Table, found: &Found, (row, key): (TableRow<'_>, Option<&str>)) {
        for fault in self.faults.drain(..) {
            let Some(column) = table.columns.get(fault.column) else { continue };
            self.problems.add((fault.code, 3), || {
                let column_at = found.places.get(fault.column).copied().flatten();
                let slot = column_at.and_then(|at| usize::try_from(at - found.first - 1).ok());
                let cell = slot.and_then(|slot| row.cell(slot));
                let place = Place {
                    sheet: Some(found.sheet.to_string()),
                    cell: column_at.map(|at| format!("{}{}", letters(at), row.row.number)),
                    header: Some(column.label.clone()),
                    row_id: key.map(str::to_owned),
                    value: cell
                        .map(|cell| row.workbook.shown(row.row, cell))
                        .filter(|value| !value.is_empty()),
                };
                (place, fault.detail)
            });
        }
    }

    /// Whether the row is the only one with its key so far. If not, all copies are told of.
    fn take_key(&mut self, table: &Table, found: &mut Found, (key, values, row): (&str, &str, u32)) -> bool {
        let is_asked = table.duplicates == Duplicates::IdenticalOnce;
        let Some(earlier) = found.keys.take(key, is_asked.then_some(values), row) else { return true };
        let is_harmless = is_asked && earlier.is_identical;
        let code = if is_harmless { code::ROW_REPEATED } else { code::KEY_TWICE };
        let index = table.key.first().copied().unwrap_or(0);
        let label = table.columns.get(index).map_or("", |column: &Column| column.label.as_str());
        let column = found.places.get(index).copied().flatten().unwrap_or(found.first);
        let mut tell = |row: u32, other: u32| {
            self.problems.add((code, 3), || {
                let cell = |row| format!("{}{row}", letters(column));
                let place = Place {
                    sheet: Some(found.sheet.to_string()),
                    cell: Some(cell(row)),
                    header: Some(label.to_owned()),
                    row_id: Some(key.to_owned()),
                    value: Some(key.to_owned()),
                };
                (place, format!("also in {}", cell(other)))
            });
        };
        if earlier.is_news && !is_harmless {
            tell(earlier.row, row);
        }
        tell(row, earlier.row);
        false
    }

    fn stage(
        &mut self,
        (table, found): (&Table, &mut Found),
        (key, values, number): (String, String, u32),
        (outcome, reason): (Outcomes, Option<&str>),
    ) -> Result<(), Fault> {
        let counted = table.measure.as_ref().filter(|_| outcome == Outcomes::Included);
        let measure =
            counted.and_then(|measure| Some(measure.value.number(&self.facts(None))?.round(measure.scale)));
        let totals = &mut found.totals;
        match outcome {
            Outcomes::Included => totals.included += 1,
            Outcomes::Excluded => totals.excluded += 1,
            Outcomes::Ignored => totals.ignored += 1,
        }
        if let Some(measure) = measure {
            totals.measure = totals.measure.unwrap_or(Decimal::ZERO).plus(measure);
        }
        self.sink.row(StagedRow {
            kind: Arc::clone(&found.kind),
            key,
            values,
            outcome: Cow::Borrowed(outcome.as_str()),
            reason: reason.map(str::to_owned),
            measure: measure.map(|measure| measure.to_string()),
            sheet: Arc::clone(&found.sheet),
            row: number,
        })?;
        Ok(())
    }
}

/// Whether the row is a heading or an example.
fn is_skipped(table: &Table, found: &Found, row: TableRow<'_>) -> bool {
    table.skip_rows.iter().any(|rule| {
        found.slots.iter().enumerate().any(|(number, slot)| {
            let is_meant = match rule.column {
                Some(column) => *slot == Slot::Column(column),
                None => *slot == Slot::Skip,
            };
            let cell = if is_meant { row.cell(number) } else { None };
            let text = cell.map(|cell| row.workbook.shown(row.row, cell));
            text.is_some_and(
                |text| if rule.is_prefix { text.starts_with(&rule.text) } else { text == rule.text },
            )
        })
    })
}
