//! Who may do what.
//!
//! Guarantees: one function decides ([`may`]); everything it does not allow is forbidden; no id is ever enough, the
//! company always counts. Does not do: tell who is calling (the edge verifies tokens).

use crate::CompanyId;

/// What a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reads and comments.
    Commenter,
    /// Reads, comments, edits, uploads.
    Editor,
    /// Brings spreadsheets.
    Submitter,
    /// Reads across organisations.
    Regulator,
    /// Everything, in their companies.
    Admin,
}

impl Role {
    const ALL: [(Self, &'static str); 6] = [
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
}

/// Whose data a caller may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Companies {
    /// All of them: operators of the installation.
    All,
    /// These.
    Only(Vec<CompanyId>),
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
}

/// Something a caller may want to do with a company's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Read documents, versions and lists.
    View,
    /// Open for editing, upload.
    Edit,
    /// Read who did what, from where.
    Audit,
    /// Make companies and projects.
    Administer,
}

/// Whether a caller may do something with a company's data.
pub fn may(caller: &Caller, permission: Permission, company: &CompanyId) -> bool {
    let is_theirs = match &caller.companies {
        Companies::All => true,
        Companies::Only(companies) => companies.contains(company),
    };
    let role_allows = match permission {
        Permission::View => true,
        Permission::Edit => matches!(caller.role, Role::Editor | Role::Admin),
        Permission::Audit => matches!(caller.role, Role::Regulator | Role::Admin),
        Permission::Administer => caller.role == Role::Admin,
    };
    is_theirs && role_allows
}

/// Whether a caller may look after the installation itself: lanes, metrics, new companies.
pub fn may_operate(caller: &Caller) -> bool {
    caller.role == Role::Admin && caller.companies == Companies::All
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role, companies: &[&str]) -> Caller {
        let companies = companies.iter().map(|id| CompanyId::parse(id).unwrap()).collect();
        Caller { id: "u".to_owned(), name: "U".to_owned(), role, companies: Companies::Only(companies) }
    }

    #[test]
    fn roles_allow_what_they_should_and_nothing_else() {
        let acme = CompanyId::parse("acme").unwrap();
        for (role, word) in Role::ALL {
            let allowed = [Permission::View, Permission::Edit, Permission::Audit, Permission::Administer]
                .map(|permission| may(&caller(role, &["acme"]), permission, &acme));
            let expected = match role {
                Role::Admin => [true, true, true, true],
                Role::Editor => [true, true, false, false],
                Role::Regulator => [true, false, true, false],
                _ => [true, false, false, false],
            };
            assert_eq!(allowed, expected, "{word}");
            assert_eq!(Role::parse(word), Some(role));
        }
    }

    #[test]
    fn nobody_touches_another_companys_data() {
        let other = CompanyId::parse("other").unwrap();
        for permission in [Permission::View, Permission::Edit, Permission::Audit, Permission::Administer] {
            assert!(!may(&caller(Role::Admin, &["acme"]), permission, &other));
        }
    }

    #[test]
    fn only_an_admin_of_everything_looks_after_the_installation() {
        let operator = Caller { companies: Companies::All, ..caller(Role::Admin, &[]) };

        assert!(may_operate(&operator));
        assert!(!may_operate(&caller(Role::Admin, &["acme"])));
        assert!(!may_operate(&Caller { role: Role::Regulator, ..operator }));
    }
}
