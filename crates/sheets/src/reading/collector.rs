//! Problems, as they are found: all counted, the worst kept.
//!
//! Guarantees: counts are exact however many there are; what is kept is bounded; a fatal problem is never pushed out by a lesser one;
//! where a level has a fatal problem, nothing is told of the levels behind it.

use std::collections::BTreeMap;

use model::submissions::{Problem, Severity};

use crate::{Assessment, Place, Template};

/// Levels that are told apart: container, single values twice, rows.
const LEVELS: usize = 4;

/// Problems so far.
pub(crate) struct Collector<'a> {
    template: &'a Template,
    kept: Vec<Problem>,
    /// How many are kept of each severity, by level.
    room: [[usize; 3]; LEVELS],
    counts: BTreeMap<(usize, String), u64>,
    has_fatal: [bool; LEVELS],
}

impl<'a> Collector<'a> {
    pub(crate) fn new(template: &'a Template) -> Self {
        let room = usize::try_from(template.limits.problems).unwrap_or(usize::MAX);
        Self {
            template,
            kept: Vec::new(),
            room: [[room; 3]; LEVELS],
            counts: BTreeMap::new(),
            has_fatal: [false; LEVELS],
        }
    }

    /// How bad a code is.
    pub(crate) fn severity(&self, code: &str) -> Severity {
        self.template.issues.get(code).map_or(Severity::Fatal, |issue| issue.severity)
    }

    /// Counts a problem, and keeps it if there is room. Where it is, is only asked for then.
    pub(crate) fn add(
        &mut self,
        (code, level): (&str, u8),
        place: impl FnOnce() -> (Place, String),
    ) -> Severity {
        let severity = self.severity(code);
        let at = usize::from(level).min(LEVELS - 1);
        self.has_fatal[at] |= severity == Severity::Fatal;
        // Looked up before anything is copied: there may be a million of them.
        let count = self.counts.iter_mut().find(|((known, each), _)| *known == at && each == code);
        match count {
            Some((_, count)) => *count += 1,
            None => drop(self.counts.insert((at, code.to_owned()), 1)),
        }
        let room = &mut self.room[at][severity as usize];
        if *room > 0 {
            *room -= 1;
            let (place, detail) = place();
            self.kept.push(self.template.problem((code, level), place, &detail));
        }
        severity
    }

    /// Writes down what was found.
    pub(crate) fn into_assessment(self, assessment: &mut Assessment) {
        // Problems of rows stand beside each other; those before them hide what may only follow from them.
        let last = self.has_fatal.iter().position(|has| *has).unwrap_or(LEVELS);
        for ((level, code), count) in &self.counts {
            if *level <= last {
                *assessment.by_code.entry(code.clone()).or_default() += count;
                match self.severity(code) {
                    Severity::Fatal => assessment.fatal += count,
                    Severity::Error => assessment.errors += count,
                    Severity::Warning => assessment.warnings += count,
                }
            }
        }
        let mut kept = self.kept;
        kept.retain(|problem| usize::from(problem.level) <= last);
        kept.sort_by_key(|problem| (problem.severity, problem.level));
        kept.truncate(usize::try_from(self.template.limits.problems).unwrap_or(usize::MAX));
        assessment.problems = kept;
    }
}
