//! From the lines of a file to what shall be written down.
//!
//! A line tells of an organisation, and of a registration, an accreditation and a deadline of it if it names them. Several lines
//! may tell of the same thing, and must not contradict each other. What is empty is not said: it stays as it is.
//!
//! Guarantees: all mistakes are found in one pass; what comes out is in an order in which it can be written.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;
use ledger::scopes::{AccreditationWish, DeadlineWish, OrganisationWish, RegistrationWish, ScopeWish};
use model::names::title;
use model::scopes::{day, label};
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, TemplateId};

use super::LineMistake;
use super::table::{Row, Table};

/// Every column, with what it means.
pub(crate) const COLUMNS: [(&str, &str); 17] = [
    ("organisation", "the id of the organisation; in every line"),
    ("organisation_name", "what people call it; without one, its id"),
    ("organisation_number", "its number, as others know it"),
    ("registration", "the id of a registration of the organisation"),
    ("registration_number", "its number, unique in the organisation; without one, its id"),
    ("title", "what people call the registration; without one, its id"),
    ("material", "the material it is for"),
    ("template", "the id of the template its workbooks are read by"),
    ("active_from", "the first day the registration is active, YYYY-MM-DD"),
    ("active_until", "the last day it is active"),
    ("accreditation", "the id of an accreditation under the registration"),
    ("accreditation_number", "its number, unique under the registration; without one, its id"),
    ("valid_from", "the first day the accreditation counts"),
    ("valid_until", "the last day it counts"),
    ("period", "what a deadline is for, such as 2026 Q1"),
    (
        "opens",
        "the first day on which a submission counts for it; without one, the day after the deadline before",
    ),
    ("due", "the last day"),
];
const OF_REGISTRATION: [&str; 6] =
    ["registration_number", "title", "material", "template", "active_from", "active_until"];
const OF_ACCREDITATION: [&str; 3] = ["accreditation_number", "valid_from", "valid_until"];
const OF_DEADLINE: [&str; 2] = ["opens", "due"];

/// Reads all lines.
pub(super) fn read(table: &Table) -> Result<Vec<(u32, ScopeWish)>, Vec<LineMistake>> {
    let columns = columns(&table.header)?;
    let mut reading = Reading::default();
    for row in &table.rows {
        reading.row(row, &columns);
    }
    reading.finish()
}

/// What each place of a row means.
fn columns(header: &Row) -> Result<Vec<&'static str>, Vec<LineMistake>> {
    let (mut columns, mut mistakes) = (Vec::new(), Vec::new());
    let mut wrong = |what: String| mistakes.push(LineMistake::new(header.line, None, what));
    for cell in &header.cells {
        match COLUMNS.iter().find(|(name, _)| name == cell) {
            None => {
                wrong(format!("there is no column `{cell}`: `saveguard scopes import --help` lists them"))
            }
            Some((name, _)) if columns.contains(name) => wrong(format!("the column `{name}` is there twice")),
            Some((name, _)) => columns.push(name),
        }
    }
    if mistakes.is_empty() && !columns.contains(&"organisation") {
        mistakes.push(LineMistake::new(header.line, None, "the column `organisation` is missing"));
    }
    if mistakes.is_empty() { Ok(columns) } else { Err(mistakes) }
}

/// What was read so far, by what it is about, each with the line that named it first.
#[derive(Default)]
struct Reading {
    organisations: BTreeMap<OrganisationId, (u32, OrganisationWish)>,
    registrations: BTreeMap<Scope, (u32, RegistrationWish)>,
    accreditations: BTreeMap<(Scope, AccreditationId), (u32, AccreditationWish)>,
    deadlines: BTreeMap<(Scope, String), (u32, DeadlineWish)>,
    /// Which line said what of what first.
    said: HashMap<(String, &'static str), (u32, String)>,
    mistakes: Vec<LineMistake>,
}

/// The filled cells of a line.
struct Line<'a> {
    number: u32,
    cells: HashMap<&'static str, &'a str>,
}

impl Reading {
    fn row(&mut self, row: &Row, columns: &[&'static str]) {
        if row.cells.len() > columns.len() && row.cells[columns.len()..].iter().any(|cell| !cell.is_empty()) {
            self.wrong(row.line, None, "the line has more values than there are columns");
            return;
        }
        let filled = columns.iter().zip(&row.cells).filter(|(_, cell)| !cell.is_empty());
        let line =
            Line { number: row.line, cells: filled.map(|(name, cell)| (*name, cell.as_str())).collect() };
        let organisation = self.organisation(&line);
        let scope = self.registration(&line, organisation);
        self.accreditation(&line, scope.as_ref());
        self.deadline(&line, scope.as_ref());
    }

    fn organisation(&mut self, line: &Line<'_>) -> Option<OrganisationId> {
        let Some(text) = line.cells.get("organisation") else {
            self.wrong(line.number, Some("organisation"), "every line needs one");
            return None;
        };
        let id = self.parsed(line, "organisation", OrganisationId::parse)?;
        let thing = format!("organisation {text}");
        let name = self.once(line, (&thing, "organisation_name"), title);
        let number = self.once(line, (&thing, "organisation_number"), label);
        let new = || (line.number, OrganisationWish { id: id.clone(), name: None, number: None });
        let (_, wish) = self.organisations.entry(id.clone()).or_insert_with(new);
        fill(&mut wish.name, name);
        fill(&mut wish.number, number);
        Some(id)
    }

    fn registration(&mut self, line: &Line<'_>, organisation: Option<OrganisationId>) -> Option<Scope> {
        let below = OF_REGISTRATION.iter().copied().chain(["accreditation", "period"]);
        if !self.needs(line, "registration", below) {
            return None;
        }
        let registration = self.parsed(line, "registration", RegistrationId::parse);
        let (organisation, registration) = (organisation?, registration?);
        let scope = Scope { organisation, registration };
        let thing = format!("registration {scope}");
        let number = self.once(line, (&thing, "registration_number"), label);
        let title = self.once(line, (&thing, "title"), title);
        let material = self.once(line, (&thing, "material"), label);
        let template = self.once(line, (&thing, "template"), TemplateId::parse);
        let from = self.once(line, (&thing, "active_from"), day);
        let until = self.once(line, (&thing, "active_until"), day);
        let new = || (line.number, RegistrationWish::new(scope.clone()));
        let (_, wish) = self.registrations.entry(scope.clone()).or_insert_with(new);
        fill(&mut wish.number, number);
        fill(&mut wish.title, title);
        fill(&mut wish.material, material);
        fill(&mut wish.template, template);
        fill(&mut wish.from, from);
        fill(&mut wish.until, until);
        Some(scope)
    }

    fn accreditation(&mut self, line: &Line<'_>, scope: Option<&Scope>) {
        if !self.needs(line, "accreditation", OF_ACCREDITATION) {
            return;
        }
        let id = self.parsed(line, "accreditation", AccreditationId::parse);
        let (Some(scope), Some(id)) = (scope, id) else { return };
        let thing = format!("accreditation {scope}/{id}");
        let number = self.once(line, (&thing, "accreditation_number"), label);
        let from = self.once(line, (&thing, "valid_from"), day);
        let until = self.once(line, (&thing, "valid_until"), day);
        let bare = || AccreditationWish {
            scope: scope.clone(),
            id: id.clone(),
            number: None,
            from: None,
            until: None,
        };
        let place = (scope.clone(), id.clone());
        let (_, wish) = self.accreditations.entry(place).or_insert_with(|| (line.number, bare()));
        fill(&mut wish.number, number);
        fill(&mut wish.from, from);
        fill(&mut wish.until, until);
    }

    fn deadline(&mut self, line: &Line<'_>, scope: Option<&Scope>) {
        if !self.needs(line, "period", OF_DEADLINE) {
            return;
        }
        if !line.cells.contains_key("due") {
            self.wrong(line.number, Some("due"), "a period needs the day by which it is due");
        }
        let period = self.parsed(line, "period", label);
        let (Some(scope), Some(period)) = (scope, period) else { return };
        let thing = format!("deadline {scope}/{period}");
        let opens: Option<Date> = self.once(line, (&thing, "opens"), day);
        let Some(due) = self.once(line, (&thing, "due"), day) else { return };
        let wish = DeadlineWish { scope: scope.clone(), period: period.clone(), opens: None, due };
        let (_, wish) = self.deadlines.entry((scope.clone(), period)).or_insert((line.number, wish));
        fill(&mut wish.opens, opens);
    }

    /// Whether a line names this thing; what is said of it without naming it is a mistake.
    fn needs(
        &mut self,
        line: &Line<'_>,
        name: &'static str,
        said: impl IntoIterator<Item = &'static str>,
    ) -> bool {
        if line.cells.contains_key(name) {
            return true;
        }
        if let Some(said) = said.into_iter().find(|column| line.cells.contains_key(column)) {
            self.wrong(line.number, Some(name), format!("`{said}` is filled in, so this is needed"));
        }
        false
    }

    fn parsed<T, E: ToString>(
        &mut self,
        line: &Line<'_>,
        column: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let parsed = parse(line.cells.get(column)?);
        parsed.map_err(|refused| self.wrong(line.number, Some(column), refused.to_string())).ok()
    }

    /// A value that may be said in several lines, if it is the same in all of them.
    fn once<T, E: ToString>(
        &mut self,
        line: &Line<'_>,
        (thing, column): (&str, &'static str),
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = *line.cells.get(column)?;
        let value = self.parsed(line, column, parse)?;
        let place = (thing.to_owned(), column);
        let (first, said) = self.said.entry(place).or_insert_with(|| (line.number, text.to_owned())).clone();
        if said != text {
            self.wrong(
                line.number,
                Some(column),
                format!("it is `{text}` here and `{said}` in line {first}"),
            );
        }
        Some(value)
    }

    fn wrong(&mut self, line: u32, column: Option<&'static str>, what: impl Into<String>) {
        self.mistakes.push(LineMistake::new(line, column, what));
    }

    fn finish(mut self) -> Result<Vec<(u32, ScopeWish)>, Vec<LineMistake>> {
        if !self.mistakes.is_empty() {
            self.mistakes.sort();
            return Err(self.mistakes);
        }
        let organisations =
            self.organisations.into_values().map(|(line, wish)| (line, ScopeWish::Organisation(wish)));
        let registrations =
            self.registrations.into_values().map(|(line, wish)| (line, ScopeWish::Registration(wish)));
        let accreditations =
            self.accreditations.into_values().map(|(line, wish)| (line, ScopeWish::Accreditation(wish)));
        let deadlines = self.deadlines.into_values().map(|(line, wish)| (line, ScopeWish::Deadline(wish)));
        Ok(organisations.chain(registrations).chain(accreditations).chain(deadlines).collect())
    }
}

fn fill<T>(place: &mut Option<T>, value: Option<T>) {
    if place.is_none() {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn wishes(text: &str) -> Result<Vec<(u32, ScopeWish)>, Vec<String>> {
        let read = table::read(text).and_then(|table| read(&table));
        read.map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn several_lines_tell_of_one_thing_and_each_thing_comes_once() {
        let text = "organisation,organisation_name,registration,template,active_from,accreditation,valid_from,period,due\n\
                    o1,One,r1,,2026-01-01,,,2026 Q1,2026-04-28\n\
                    o1,,r1,loads,,a1,2026-01-01,2026 Q2,2026-07-28\n\
                    o2,Two,,,,,,,\n";

        let wishes = wishes(text).unwrap();

        let lines: Vec<u32> = wishes.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 4, 2, 3, 2, 3]);
        let ScopeWish::Registration(registration) = &wishes[2].1 else { panic!("{wishes:?}") };
        assert_eq!(registration.template, TemplateId::parse("loads").ok());
        assert_eq!(registration.from, day("2026-01-01").ok());
        let ScopeWish::Deadline(deadline) = &wishes[5].1 else { panic!("{wishes:?}") };
        assert_eq!((deadline.period.as_str(), deadline.due), ("2026 Q2", day("2026-07-28").unwrap()));
    }

    #[test]
    fn all_mistakes_are_told_at_once_with_their_lines() {
        let text = "organisation;organisation_name;registration;title;active_from;accreditation;period;due\n\
                    o1;One;r1;;28.04.2026;;;\n\
                    ;;;;;;;\n\
                    o1;Uno;;Glass;;;;\n\
                    ;Nobody;;;;;;\n\
                    ../x;;;;;;;\n\
                    o2;;r1;;;;2026 Q1;\n\
                    o3;;;;;a1;;2026-04-28;extra\n\
                    o4;;;;;a1;;2026-04-28\n";

        let told = wishes(text).unwrap_err();

        let expected = [
            "line 2: active_from: a day is written",
            "line 4: organisation_name: it is `Uno` here and `One` in line 2",
            "line 4: registration: `title` is filled in",
            "line 5: organisation: every line needs one",
            "line 6: organisation: `../x` is not an id",
            "line 7: due: a period needs the day",
            "line 8: the line has more values",
            "line 9: period: `due` is filled in",
            "line 9: registration: `accreditation` is filled in",
        ];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}");
        }
    }

    #[test]
    fn columns_that_do_not_exist_are_named() {
        let told = wishes("organisation,name,title,title\no1,x,y,z\n").unwrap_err();

        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("`name`") && told[1].contains("`title` is there twice"), "{told:?}");
        assert!(wishes("registration\nr1\n").unwrap_err()[0].contains("`organisation` is missing"));
    }
}
