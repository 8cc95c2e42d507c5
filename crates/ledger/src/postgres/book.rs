//! Who hands in what, in memory: as much of it as some wishes are about, and what they make of it.
//!
//! An import has thousands of wishes, each of which sees what those before it did. Here that takes no way to the server and
//! back: what they need is loaded at once, and what they changed is written at once ([`super::registering`]).
//!
//! Guarantees: a wish that is refused leaves nothing. Does not do: SQL.

use std::collections::{BTreeMap, BTreeSet};

use model::scopes::Deadline;
use model::{AccreditationId, OrganisationId, RegistrationId, Scope, TemplateId};
use serde_json::Value;

use crate::scopes::{
    Accreditation, AccreditationWish, DeadlineWish, Organisation, OrganisationWish, PER_REGISTRATION_MAX,
    Registration, RegistrationWish, ScopeWish, Writing,
};
use crate::wishes::{
    self, ACCREDITATION_WORDS, DEADLINE_WORDS, Effect, ORGANISATION_WORDS, REGISTRATION_WORDS,
    accreditation_text, deadline_text, effect, expect, organisation_text, registration_text, told,
};
use crate::{LedgerError, Result};

/// What is there, and what became of it.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) organisations: BTreeMap<OrganisationId, Organisation>,
    pub(super) registrations: BTreeMap<Scope, Registration>,
    /// All of a registration, for their numbers and how many there are.
    pub(super) accreditations: BTreeMap<Scope, BTreeMap<AccreditationId, Accreditation>>,
    pub(super) deadlines: BTreeMap<Scope, BTreeMap<String, Deadline>>,
    /// Templates of which a version is not retired.
    pub(super) templates: BTreeSet<TemplateId>,
    /// Whose a number is.
    numbers: BTreeMap<(OrganisationId, String), RegistrationId>,
    pub(super) changed: Changed,
}

/// What has to be written.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub(super) organisations: BTreeSet<OrganisationId>,
    pub(super) registrations: BTreeSet<Scope>,
    pub(super) accreditations: BTreeSet<(Scope, AccreditationId)>,
    pub(super) deadlines: BTreeSet<(Scope, String)>,
    /// Entries of the trail, in order.
    pub(super) acts: Vec<(OrganisationId, &'static str, Value)>,
}

impl Book {
    /// Adds a registration that is there.
    pub(super) fn know(&mut self, registration: Registration) {
        let Scope { organisation, registration: id } = registration.scope.clone();
        self.numbers.insert((organisation, registration.number.clone()), id);
        self.registrations.insert(registration.scope.clone(), registration);
    }

    pub(super) fn write(&mut self, wish: &ScopeWish, writing: &Writing) -> Result<Effect> {
        match wish {
            ScopeWish::Organisation(wish) => self.organisation(wish, writing),
            ScopeWish::Registration(wish) => self.registration(wish, writing),
            ScopeWish::Accreditation(wish) => self.accreditation(wish, writing),
            ScopeWish::Deadline(wish) => self.deadline(wish, writing),
        }
    }

    fn organisation(&mut self, wish: &OrganisationWish, writing: &Writing) -> Result<Effect> {
        let was = self.organisations.get(&wish.id);
        expect(writing.how, was, || format!("organisation `{}`", wish.id))?;
        let after = wishes::organisation(wish, was, writing);
        let effect = effect(was, &after);
        if effect != Effect::Unchanged {
            let act = told(ORGANISATION_WORDS, (organisation_text(&after), was.map(organisation_text)));
            self.changed.acts.push((wish.id.clone(), act.0, act.1));
            self.changed.organisations.insert(wish.id.clone());
            self.organisations.insert(wish.id.clone(), after);
        }
        Ok(effect)
    }

    fn registration(&mut self, wish: &RegistrationWish, writing: &Writing) -> Result<Effect> {
        let scope = &wish.scope;
        let organisation = &scope.organisation;
        if !self.organisations.contains_key(organisation) {
            return Err(LedgerError::not_found(format!("organisation `{organisation}`")));
        }
        let was = self.registrations.get(scope);
        expect(writing.how, was, || format!("registration `{}`", scope.registration))?;
        let after = wishes::registration(wish, was, writing)?;
        let effect = effect(was, &after);
        if effect == Effect::Unchanged {
            return Ok(effect);
        }
        let number = (organisation.clone(), after.number.clone());
        if self.numbers.get(&number).is_some_and(|whose| *whose != scope.registration) {
            let what = format!("registration number `{}`", after.number);
            return Err(LedgerError::AlreadyExists { what });
        }
        let assigned_before = was.and_then(|was| was.template.as_ref());
        if let Some(template) = after.template.as_ref().filter(|template| Some(*template) != assigned_before)
            && !self.templates.contains(template)
        {
            return Err(LedgerError::NoTemplate { template: template.clone() });
        }
        let act = told(REGISTRATION_WORDS, (registration_text(&after), was.map(registration_text)));
        if let Some(was) = was {
            self.numbers.remove(&(organisation.clone(), was.number.clone()));
        }
        self.changed.acts.push((organisation.clone(), act.0, act.1));
        self.changed.registrations.insert(scope.clone());
        self.know(after);
        Ok(effect)
    }

    fn require_registration(&self, scope: &Scope) -> Result<()> {
        match self.registrations.get(scope) {
            Some(_) => Ok(()),
            None => Err(LedgerError::not_found(format!("registration `{scope}`"))),
        }
    }

    fn accreditation(&mut self, wish: &AccreditationWish, writing: &Writing) -> Result<Effect> {
        let scope = &wish.scope;
        self.require_registration(scope)?;
        let there = self.accreditations.entry(scope.clone()).or_default();
        let was = there.get(&wish.id);
        expect(writing.how, was, || format!("accreditation `{}`", wish.id))?;
        let after = wishes::accreditation(wish, was, writing)?;
        let effect = effect(was, &after);
        if effect == Effect::Unchanged {
            return Ok(effect);
        }
        refuse_too_many(effect, there.len(), "accreditations of a registration")?;
        if there.values().any(|each| each.number == after.number && each.id != after.id) {
            let what = format!("accreditation number `{}`", after.number);
            return Err(LedgerError::AlreadyExists { what });
        }
        let act = told(ACCREDITATION_WORDS, (accreditation_text(&after), was.map(accreditation_text)));
        self.changed.acts.push((scope.organisation.clone(), act.0, act.1));
        self.changed.accreditations.insert((scope.clone(), wish.id.clone()));
        there.insert(wish.id.clone(), after);
        Ok(effect)
    }

    fn deadline(&mut self, wish: &DeadlineWish, writing: &Writing) -> Result<Effect> {
        let scope = &wish.scope;
        self.require_registration(scope)?;
        let there = self.deadlines.entry(scope.clone()).or_default();
        let was = there.get(&wish.period);
        expect(writing.how, was, || format!("deadline `{}`", wish.period))?;
        let after = wishes::deadline(wish, was, writing)?;
        let effect = effect(was, &after);
        if effect == Effect::Unchanged {
            return Ok(effect);
        }
        refuse_too_many(effect, there.len(), "deadlines of a registration")?;
        let text = |each: &Deadline| deadline_text(scope.registration.as_str(), each);
        let act = told(DEADLINE_WORDS, (text(&after), was.map(text)));
        self.changed.acts.push((scope.organisation.clone(), act.0, act.1));
        self.changed.deadlines.insert((scope.clone(), wish.period.clone()));
        there.insert(wish.period.clone(), after);
        Ok(effect)
    }
}

fn refuse_too_many(effect: Effect, there: usize, what: &'static str) -> Result<()> {
    let limit = PER_REGISTRATION_MAX;
    let is_full = usize::try_from(limit).is_ok_and(|limit| there >= limit);
    if effect == Effect::Created && is_full { Err(LedgerError::TooMany { what, limit }) } else { Ok(()) }
}
