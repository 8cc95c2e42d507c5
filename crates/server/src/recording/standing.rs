//! How registrations stand, across organisations: their last submission, what is on its way, and who is overdue.
//!
//! Guarantees: every registration is among them, also one that never handed in; they come in order of organisation and
//! registration, page by page. Does not do: decide who is late (`model::scopes`).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use ledger::LedgerError;
use ledger::records::{AsOf, ScopeStanding, StandingsPage};
use ledger::scopes::Registration;
use model::scopes::{Overdue, Returns, day_of, who_is_overdue};
use model::{OrganisationId, Scope, SummaryLogId};

use crate::app::App;

/// Registrations read at once.
const PAGE: u32 = 500;

/// Whose registrations are looked at.
#[derive(Debug, Clone)]
pub enum Whose {
    /// All organisations'.
    All,
    /// These ones'.
    Only(BTreeSet<OrganisationId>),
}

/// How a registration stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Which.
    pub registration: Registration,
    /// The number of its last submission; 0 if there is none.
    pub head: u64,
    /// When that was.
    pub submitted_at: Option<Timestamp>,
    /// Logs that are on their way.
    pub active: Vec<SummaryLogId>,
}

/// A page of registrations, in order, from the one after `after`.
pub async fn standings(
    app: &App,
    whose: &Whose,
    (after, limit): (Option<&Scope>, u32),
) -> Result<Vec<Standing>, LedgerError> {
    let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    let mut after = after.cloned();
    let mut organisation = match &after {
        Some(scope) if whose.contains(&scope.organisation) => Some(scope.organisation.clone()),
        after => whose.next(app, after.as_ref().map(|scope| &scope.organisation)).await?,
    };
    while let Some(current) = organisation {
        let place = after.take().filter(|scope| scope.organisation == current);
        let missing = u32::try_from(wanted - found.len()).unwrap_or(limit);
        found.extend(of_organisation(app, (&current, place.as_ref()), missing).await?);
        if found.len() >= wanted {
            break;
        }
        organisation = whose.next(app, Some(&current)).await?;
    }
    Ok(found)
}

impl Whose {
    fn contains(&self, organisation: &OrganisationId) -> bool {
        match self {
            Self::All => true,
            Self::Only(organisations) => organisations.contains(organisation),
        }
    }

    /// The organisation after this one.
    async fn next(
        &self,
        app: &App,
        after: Option<&OrganisationId>,
    ) -> Result<Option<OrganisationId>, LedgerError> {
        match self {
            Self::All => {
                let found = app.ledger.organisations(after, 1).await?;
                Ok(found.into_iter().next().map(|organisation| organisation.id))
            }
            Self::Only(organisations) => {
                Ok(organisations.iter().find(|each| after.is_none_or(|after| *each > after)).cloned())
            }
        }
    }
}

async fn of_organisation(
    app: &App,
    (organisation, after): (&OrganisationId, Option<&Scope>),
    limit: u32,
) -> Result<Vec<Standing>, LedgerError> {
    let place = after.map(|scope| &scope.registration);
    let registrations = app.ledger.registrations(organisation, place, limit).await?;
    // Only registrations have records, so that the same page of both has all that are needed.
    let page =
        StandingsPage { organisations: Some(vec![organisation.clone()]), after: after.cloned(), limit };
    let known = app.ledger.scope_standings(&page).await?;
    let mut known: BTreeMap<Scope, ScopeStanding> =
        known.into_iter().map(|standing| (standing.scope.clone(), standing)).collect();
    let stand = |registration: Registration| match known.remove(&registration.scope) {
        Some(known) => Standing {
            registration,
            head: known.head,
            submitted_at: known.committed_at,
            active: known.active,
        },
        None => Standing { registration, head: 0, submitted_at: None, active: Vec::new() },
    };
    Ok(registrations.into_iter().map(stand).collect())
}

/// Who had not submitted by their deadline on a day, the longest overdue first.
pub async fn overdue(app: &App, whose: &Whose, day: Date) -> Result<Vec<Overdue>, LedgerError> {
    let mut found = Vec::new();
    let mut after: Option<Scope> = None;
    loop {
        let page = standings(app, whose, (after.as_ref(), PAGE)).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.registration.scope.clone());
        for standing in page {
            let returns = returns_on(app, standing, day).await?;
            found.extend(who_is_overdue([&returns], day));
        }
    }
    found.sort_by(|one, other| {
        (one.due, &one.scope, &one.period).cmp(&(other.due, &other.scope, &other.period))
    });
    Ok(found)
}

/// What was known of a registration at the end of a day. Who is overdue is told from the newest submission alone.
async fn returns_on(app: &App, standing: Standing, day: Date) -> Result<Returns, LedgerError> {
    let scope = standing.registration.scope;
    let deadlines = app.ledger.deadlines(&scope).await?;
    let submitted_at = match standing.submitted_at {
        Some(at) if day_of(at) > day && !deadlines.is_empty() => last_until(app, &scope, day).await?,
        at => at,
    };
    let span = standing.registration.active;
    Ok(Returns { scope, span, deadlines, submissions: submitted_at.into_iter().collect() })
}

async fn last_until(app: &App, scope: &Scope, day: Date) -> Result<Option<Timestamp>, LedgerError> {
    let Ok(end) = day.at(23, 59, 59, 999_999_999).to_zoned(jiff::tz::TimeZone::UTC) else { return Ok(None) };
    let commit = app.ledger.commit_at(scope, &AsOf::Time(end.timestamp())).await?.unwrap_or(0);
    let commits = app.ledger.commits(scope, Some(commit + 1), 1).await?;
    Ok(commits.first().map(|commit| commit.at))
}
