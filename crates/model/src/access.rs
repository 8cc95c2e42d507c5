//! Who may do what.
//!
//! Guarantees: one table says what a role may ([`Role::permissions`]) and one function decides ([`may`]); everything it does
//! not allow is forbidden; no id is ever enough, the company always counts, and for what is handed in the organisation
//! ([`may_for`]). Nobody hands out more than they have ([`may_manage`]). Does not do: tell who is calling (the edge verifies tokens).

use crate::{CompanyId, OrganisationId};

/// What a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads and comments.
    Commenter,
    /// Reads, comments, edits, uploads, deletes, restores, shares.
    Editor,
    /// Brings spreadsheets.
    Submitter,
    /// Reads across organisations.
    Regulator,
    /// Everything, in their companies.
    Admin,
}

impl Role {
    /// Every role with its word.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Viewer, "viewer"),
        (Self::Commenter, "commenter"),
        (Self::Editor, "editor"),
        (Self::Submitter, "submitter"),
        (Self::Regulator, "regulator"),
        (Self::Admin, "admin"),
    ];

    /// The word in tokens.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(role, _)| *role == self).map_or("", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(role, _)| *role)
    }

    /// The table: what each role may do in its companies.
    pub fn permissions(self) -> &'static [Permission] {
        use Permission::{Audit, Comment, Delete, Download, Edit, Restore, Share, Submit, View};
        match self {
            Self::Viewer => &[View, Download],
            Self::Regulator => &[View, Download, Audit],
            Self::Commenter => &[View, Download, Comment],
            Self::Editor => &[View, Download, Comment, Edit, Delete, Restore, Share],
            Self::Submitter => &[View, Download, Submit],
            Self::Admin => &Permission::ALL,
        }
    }

    /// Whether this role may do everything the other one may.
    pub fn covers(self, other: Self) -> bool {
        other.permissions().iter().all(|permission| self.permissions().contains(permission))
    }
}

/// Whose data a caller may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Companies {
    /// All of them: operators of the installation.
    All,
    /// These.
    Only(Vec<CompanyId>),
}

/// For which organisations a caller acts. Submissions belong to organisations; documents do not ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Organisations {
    /// All of them: regulators. Their tokens say so; the role alone opens none, for a company may have its regulators too.
    All,
    /// These.
    Only(Vec<OrganisationId>),
}

impl Organisations {
    /// None of them.
    pub const NONE: Self = Self::Only(Vec::new());

    /// Whether this one is among them.
    pub fn contains(&self, organisation: &OrganisationId) -> bool {
        match self {
            Self::All => true,
            Self::Only(organisations) => organisations.contains(organisation),
        }
    }

    /// Whether all of the others are among them.
    pub fn contain(&self, others: &Self) -> bool {
        match others {
            Self::All => *self == Self::All,
            Self::Only(others) => others.iter().all(|other| self.contains(other)),
        }
    }
}

/// Somebody with a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The id the host application knows.
    pub id: String,
    /// The name shown to people.
    pub name: String,
    /// What they are.
    pub role: Role,
    /// Whose data they may touch.
    pub companies: Companies,
    /// For which organisations they act.
    pub organisations: Organisations,
}

/// Something a caller may want to do with a company's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Read documents, versions and lists.
    View,
    /// Take bytes away.
    Download,
    /// Open for commenting.
    Comment,
    /// Open for editing, upload.
    Edit,
    /// Put a document into the bin.
    Delete,
    /// Bring back a deleted document, an older version or a kept copy.
    Restore,
    /// Make and revoke share links.
    Share,
    /// Hand in spreadsheets.
    Submit,
    /// Read who did what, from where.
    Audit,
    /// Rename companies, make projects and API tokens.
    Administer,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Self; 10] = [
        Self::View,
        Self::Download,
        Self::Comment,
        Self::Edit,
        Self::Delete,
        Self::Restore,
        Self::Share,
        Self::Submit,
        Self::Audit,
        Self::Administer,
    ];
}

/// Whether a caller may do something with a company's data.
pub fn may(caller: &Caller, permission: Permission, company: &CompanyId) -> bool {
    let is_theirs = match &caller.companies {
        Companies::All => true,
        Companies::Only(companies) => companies.contains(company),
    };
    is_theirs && caller.role.permissions().contains(&permission)
}

/// Whether a caller may look after the installation itself: lanes, metrics, new companies, quotas.
pub fn may_operate(caller: &Caller) -> bool {
    caller.role == Role::Admin && caller.companies == Companies::All
}

/// Whether a caller may do something for an organisation: see its registrations, hand in, read its records. What is said of
/// organisations themselves is changed by those who look after the installation ([`may_operate`]), who see all of them.
pub fn may_for(caller: &Caller, permission: Permission, organisation: &OrganisationId) -> bool {
    let is_theirs = may_operate(caller) || caller.organisations.contains(organisation);
    is_theirs && caller.role.permissions().contains(&permission)
}

/// Whether a caller may look across organisations: at who handed in and who did not, and at all records at once. They see those they act
/// for, and no others.
pub fn may_look_across(caller: &Caller) -> bool {
    let acts_for_some = may_operate(caller) || caller.organisations != Organisations::NONE;
    acts_for_some && caller.role.permissions().contains(&Permission::Audit)
}

/// Whether a caller may read templates. They belong to nobody; whoever acts for some organisation needs them.
pub fn may_read_templates(caller: &Caller) -> bool {
    may_operate(caller) || caller.organisations != Organisations::NONE
}

/// What an API token opens.
#[derive(Debug, Clone, Copy)]
pub struct Opens<'a> {
    /// What its bearer is.
    pub role: Role,
    /// Whose data its bearer may touch.
    pub companies: &'a Companies,
    /// For which organisations its bearer acts.
    pub organisations: &'a Organisations,
}

/// Whether a caller may make, see and revoke an API token: it gives nobody more than the caller has, in companies that the
/// caller administers. One that opens a company or an organisation besides is not theirs to know of.
pub fn may_manage(caller: &Caller, opens: Opens<'_>) -> bool {
    let are_theirs = match opens.companies {
        Companies::All => may_operate(caller),
        // A token without companies is for organisations, which nobody administers but the installation.
        Companies::Only(companies) if companies.is_empty() => {
            may_operate(caller) && *opens.organisations != Organisations::NONE
        }
        Companies::Only(companies) => {
            companies.iter().all(|company| may(caller, Permission::Administer, company))
        }
    };
    let acts_for = may_operate(caller) || caller.organisations.contain(opens.organisations);
    are_theirs && acts_for && caller.role.covers(opens.role)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn company(id: &str) -> CompanyId {
        CompanyId::parse(id).unwrap()
    }

    fn only(companies: &[&str]) -> Companies {
        Companies::Only(companies.iter().map(|id| company(id)).collect())
    }

    fn caller(role: Role, companies: &[&str]) -> Caller {
        Caller {
            id: "u".to_owned(),
            name: "U".to_owned(),
            role,
            companies: only(companies),
            organisations: Organisations::NONE,
        }
    }

    #[test]
    fn roles_allow_what_they_should_and_nothing_else() {
        let acme = company("acme");
        // view, download, comment, edit, delete, restore, share, submit, audit, administer
        let table = [
            (Role::Viewer, "vd........"),
            (Role::Commenter, "vdc......."),
            (Role::Editor, "vdcexrs..."),
            (Role::Submitter, "vd.....S.."),
            (Role::Regulator, "vd......a."),
            (Role::Admin, "vdcexrsSaA"),
        ];
        for (role, expected) in table {
            let allowed: String = Permission::ALL
                .iter()
                .zip("vdcexrsSaA".chars())
                .map(
                    |(permission, letter)| {
                        if may(&caller(role, &["acme"]), *permission, &acme) { letter } else { '.' }
                    },
                )
                .collect();
            assert_eq!(allowed, expected, "{role:?}");
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("root"), None);
    }

    #[test]
    fn nobody_touches_another_companys_data() {
        for permission in Permission::ALL {
            assert!(!may(&caller(Role::Admin, &["acme"]), permission, &company("other")));
        }
    }

    #[test]
    fn only_an_admin_of_everything_looks_after_the_installation() {
        let operator = Caller { companies: Companies::All, ..caller(Role::Admin, &[]) };

        assert!(may_operate(&operator));
        assert!(!may_operate(&caller(Role::Admin, &["acme"])));
        assert!(!may_operate(&Caller { role: Role::Regulator, ..operator }));
    }

    #[test]
    fn a_role_covers_those_that_may_less() {
        for (role, _) in Role::ALL {
            assert!(Role::Admin.covers(role) && role.covers(role) && role.covers(Role::Viewer));
        }
        assert!(!Role::Editor.covers(Role::Admin));
        assert!(!Role::Editor.covers(Role::Submitter) && !Role::Submitter.covers(Role::Editor));
    }

    fn organisations(ids: &[&str]) -> Organisations {
        Organisations::Only(ids.iter().map(|id| OrganisationId::parse(id).unwrap()).collect())
    }

    #[test]
    fn a_token_is_managed_by_admins_of_all_its_companies() {
        let operator = Caller { companies: Companies::All, ..caller(Role::Admin, &[]) };
        let admin = caller(Role::Admin, &["acme", "zeta"]);
        let manages = |caller: &Caller, role, companies: &Companies| {
            may_manage(caller, Opens { role, companies, organisations: &Organisations::NONE })
        };

        for role in [Role::Viewer, Role::Admin] {
            assert!(manages(&admin, role, &only(&["acme"])));
            assert!(manages(&admin, role, &only(&["acme", "zeta"])));
            assert!(manages(&operator, role, &Companies::All));
            assert!(manages(&operator, role, &only(&["other"])));
        }
        assert!(!manages(&admin, Role::Viewer, &only(&["acme", "other"])));
        assert!(!manages(&admin, Role::Viewer, &Companies::All));
        assert!(!manages(&admin, Role::Viewer, &only(&[])));
        assert!(!manages(&operator, Role::Viewer, &only(&[])), "it would open nothing");
        assert!(!manages(&caller(Role::Editor, &["acme"]), Role::Viewer, &only(&["acme"])));
    }

    #[test]
    fn nobody_hands_out_an_organisation_they_do_not_act_for() {
        let operator = Caller { companies: Companies::All, ..caller(Role::Admin, &[]) };
        let admin = Caller { organisations: organisations(&["o1", "o2"]), ..caller(Role::Admin, &["acme"]) };
        let manages = |caller: &Caller, companies: &[&str], organisations: &Organisations| {
            let companies = only(companies);
            may_manage(caller, Opens { role: Role::Submitter, companies: &companies, organisations })
        };

        assert!(manages(&admin, &["acme"], &organisations(&["o1"])));
        assert!(manages(&admin, &["acme"], &organisations(&["o1", "o2"])));
        assert!(!manages(&admin, &["acme"], &organisations(&["o1", "o3"])));
        assert!(!manages(&admin, &["acme"], &Organisations::All));
        assert!(!manages(&admin, &[], &organisations(&["o1"])), "only the installation makes such ones");
        for all in [Organisations::All, organisations(&["o3"])] {
            assert!(manages(&operator, &["acme"], &all) && manages(&operator, &[], &all));
        }
    }

    #[test]
    fn for_an_organisation_its_claim_and_the_role_count_and_companies_do_not() {
        let o1 = OrganisationId::parse("o1").unwrap();
        let acting = |role, claim: Organisations| Caller { organisations: claim, ..caller(role, &["acme"]) };

        let submitter = acting(Role::Submitter, organisations(&["o1"]));
        assert!(may_for(&submitter, Permission::Submit, &o1) && may_for(&submitter, Permission::View, &o1));
        assert!(!may_for(&submitter, Permission::Audit, &o1));
        let regulator = acting(Role::Regulator, Organisations::All);
        assert!(may_for(&regulator, Permission::View, &o1) && may_for(&regulator, Permission::Audit, &o1));
        assert!(!may_for(&regulator, Permission::Submit, &o1));
        let operator = Caller { companies: Companies::All, ..caller(Role::Admin, &[]) };
        assert!(may_for(&operator, Permission::Submit, &o1));
        for permission in Permission::ALL {
            for (role, _) in Role::ALL {
                let foreign = acting(role, organisations(&["o2"]));
                let company_only = acting(role, Organisations::NONE);
                assert!(!may_for(&foreign, permission, &o1) && !may_for(&company_only, permission, &o1));
            }
        }
        assert!(
            may_read_templates(&submitter) && may_read_templates(&regulator) && may_read_templates(&operator)
        );
        assert!(!may_read_templates(&caller(Role::Admin, &["acme"])));
        assert!(may_look_across(&regulator) && may_look_across(&operator));
        assert!(!may_look_across(&submitter) && !may_look_across(&caller(Role::Regulator, &["acme"])));
    }
}
