//! What a template may know of the scope an upload belongs to.
//!
//! Guarantees: plain values, read once by the caller, so that the same facts give the same assessment.

use jiff::civil::Date;

/// The facts of an organisation's registration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeFacts {
    /// `scope.organisation.id`.
    pub organisation_id: String,
    /// `scope.organisation.name`.
    pub organisation_name: String,
    /// `scope.registration.id`.
    pub registration_id: String,
    /// `scope.registration.number`.
    pub registration_number: String,
    /// `scope.accreditation`: all there ever were, in any order. One that is renewed is another one.
    pub accreditations: Vec<AccreditationFacts>,
}

/// The facts of an accreditation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccreditationFacts {
    /// Its number.
    pub number: String,
    /// The first day it covers.
    pub from: Date,
    /// The last day it covers.
    pub until: Date,
}

impl ScopeFacts {
    /// Whether one of the accreditations covers the day.
    pub fn covers(&self, day: Date) -> bool {
        self.accreditations.iter().any(|each| each.from <= day && day <= each.until)
    }
}
