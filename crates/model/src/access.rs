//! Who may do what.
//!
//! Guarantees: one table says what a role may ([`Role::permissions`]) and one function decides ([`may`]); everything it does
//! not allow is forbidden; no id is ever enough, the company always counts. Nobody hands out more than they have
//! ([`may_manage`]). Does not do: tell who is calling (the edge verifies tokens).

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
    /// All of them: regulators.
    All,
    /// These.
    Only(Vec<OrganisationId>),
}

impl Organisations {
    /// None of them.
    pub const NONE: Self = Self::Only(Vec::new());
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

/// Whether a caller may make, see and revoke an API token: it gives nobody more than the caller has, in companies that the
/// caller administers. One that opens a company besides is not theirs to know of.
pub fn may_manage(caller: &Caller, role: Role, companies: &Companies) -> bool {
    let are_theirs = match companies {
        Companies::All => may_operate(caller),
        Companies::Only(companies) => {
            let administers = |company| may(caller, Permission::Administer, company);
            // A token without companies opens nothing: asking for one is a mistake.
            !companies.is_empty() && companies.iter().all(administers)
        }
    };
    are_theirs && caller.role.covers(role)
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

    #[test]
    fn a_token_is_managed_by_admins_of_all_its_companies() {
        let operator = Caller { companies: Companies::All, ..caller(Role::Admin, &[]) };
        let admin = caller(Role::Admin, &["acme", "zeta"]);

        for role in [Role::Viewer, Role::Admin] {
            assert!(may_manage(&admin, role, &only(&["acme"])));
            assert!(may_manage(&admin, role, &only(&["acme", "zeta"])));
            assert!(may_manage(&operator, role, &Companies::All));
            assert!(may_manage(&operator, role, &only(&["other"])));
        }
        assert!(!may_manage(&admin, Role::Viewer, &only(&["acme", "other"])));
        assert!(!may_manage(&admin, Role::Viewer, &Companies::All));
        assert!(!may_manage(&admin, Role::Viewer, &only(&[])));
        assert!(!may_manage(&caller(Role::Editor, &["acme"]), Role::Viewer, &only(&["acme"])));
    }
}
