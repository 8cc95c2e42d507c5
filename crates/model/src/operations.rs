//! What may be done with a document, by which role, and for whom: one user, many users, whoever has a share link.
//!
//! Guarantees: one table of operations ([`rule_on_operation`]) and one of what an editor is told ([`rights_for`]); a role that is too
//! small is refused, it never gets less in silence and never more. Total and pure.
//! Does not do: tell who is calling, or whether somebody edits just now ([`changing`](crate::changing) does).

use crate::access::{Permission, Role};
use crate::keys::Mode;

/// Something that is done with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Open it to read.
    View,
    /// Open it to add comments and nothing else.
    Comment,
    /// Open it to suggest changes that somebody else accepts.
    Review,
    /// Open it to fill in its forms and nothing else.
    Fill,
    /// Open it to change it.
    Edit,
    /// Take its bytes away.
    Download,
    /// Put it into the bin.
    Delete,
}

impl Operation {
    /// Every operation with its word.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::View, "view"),
        (Self::Comment, "comment"),
        (Self::Review, "review"),
        (Self::Fill, "fill"),
        (Self::Edit, "edit"),
        (Self::Download, "download"),
        (Self::Delete, "delete"),
    ];

    /// The word for people.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(operation, _)| *operation == self).map_or("", |(_, word)| word)
    }

    /// What a role needs for it. Suggesting and filling in change the text, so whoever does that may edit.
    pub const fn permission(self) -> Permission {
        match self {
            Self::View => Permission::View,
            Self::Comment => Permission::Comment,
            Self::Review | Self::Fill | Self::Edit => Permission::Edit,
            Self::Download => Permission::Download,
            Self::Delete => Permission::Delete,
        }
    }
}

/// For whom something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audience {
    /// Somebody known, alone in the document.
    OneUser,
    /// Somebody known, while others have it open for editing.
    ManyUsers,
    /// Whoever has a share link. Their role is the one the link gives.
    Link,
}

/// Why something is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The role does not allow it.
    RoleTooSmall,
    /// It cannot be done while others edit (DOC_001).
    WhileEdited,
    /// No share link allows it, whoever made it.
    NotThroughLink,
    /// It is nothing that is done in an editor.
    NotInEditor,
}

/// Whether a role may do something, for an audience.
pub fn rule_on_operation(role: Role, operation: Operation, audience: Audience) -> Result<(), Refusal> {
    let is_allowed = role.permissions().contains(&operation.permission());
    match audience {
        Audience::Link if !is_for_links(role, operation) => Err(Refusal::NotThroughLink),
        _ if !is_allowed => Err(Refusal::RoleTooSmall),
        Audience::ManyUsers if operation == Operation::Delete => Err(Refusal::WhileEdited),
        Audience::OneUser | Audience::ManyUsers | Audience::Link => Ok(()),
    }
}

/// Links view, comment, edit and download, and they do it as one of three roles.
fn is_for_links(role: Role, operation: Operation) -> bool {
    let is_one = matches!(role, Role::Viewer | Role::Commenter | Role::Editor);
    let is_open =
        matches!(operation, Operation::View | Operation::Comment | Operation::Edit | Operation::Download);
    is_one && is_open
}

/// What whoever asks for a configuration may switch off in the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// Saving a copy from the editor.
    pub may_download: bool,
    /// Printing.
    pub may_print: bool,
    /// The clipboard.
    pub may_copy: bool,
}

impl Switches {
    /// Nothing is switched off.
    pub const ON: Self = Self { may_download: true, may_print: true, may_copy: true };
}

/// What an editor lets somebody do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Which key they open under. Whoever comments, reviews or fills in shares the session of those who edit.
    pub mode: Mode,
    /// Change anything.
    pub may_edit: bool,
    /// Add comments.
    pub may_comment: bool,
    /// Suggest changes.
    pub may_review: bool,
    /// Fill in forms.
    pub may_fill: bool,
    /// Switches, as far as the role allows them.
    pub switches: Switches,
}

impl Rights {
    /// Everything.
    pub const EDIT: Self = Self {
        mode: Mode::Edit,
        may_edit: true,
        may_comment: true,
        may_review: true,
        may_fill: true,
        switches: Switches::ON,
    };
    /// Read, download, print and copy.
    pub const VIEW: Self = Self {
        mode: Mode::View,
        may_edit: false,
        may_comment: false,
        may_review: false,
        may_fill: false,
        switches: Switches::ON,
    };
}

/// What an editor lets somebody do who opens a document for an operation.
pub fn rights_for(
    role: Role,
    operation: Operation,
    audience: Audience,
    switches: Switches,
) -> Result<Rights, Refusal> {
    rule_on_operation(role, operation, audience)?;
    // Joins the session of those who edit, and may do nothing there yet.
    let joining = Rights { mode: Mode::Edit, ..Rights::VIEW };
    let rights = match operation {
        Operation::View => Rights::VIEW,
        Operation::Comment => Rights { may_comment: true, ..joining },
        Operation::Review => Rights { may_review: true, may_comment: true, ..joining },
        Operation::Fill => Rights { may_fill: true, ..joining },
        Operation::Edit => Rights::EDIT,
        Operation::Download | Operation::Delete => return Err(Refusal::NotInEditor),
    };
    let may_download =
        switches.may_download && rule_on_operation(role, Operation::Download, audience).is_ok();
    Ok(Rights { switches: Switches { may_download, ..switches }, ..rights })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter per operation, in the order of [`Operation::ALL`]: `+` done, `.` role too small, `e` while edited, `-` never
    /// through a link.
    fn row(role: Role, audience: Audience) -> String {
        let letter = |operation| match rule_on_operation(role, operation, audience) {
            Ok(()) => '+',
            Err(Refusal::RoleTooSmall) => '.',
            Err(Refusal::WhileEdited) => 'e',
            Err(Refusal::NotThroughLink) => '-',
            Err(Refusal::NotInEditor) => '?',
        };
        Operation::ALL.iter().map(|(operation, _)| letter(*operation)).collect()
    }

    #[test]
    fn every_role_does_for_every_audience_what_the_table_says() {
        // view, comment, review, fill, edit, download, delete: alone, with others, through a link
        let table = [
            (Role::Viewer, ["+....+.", "+....+.", "+.--.+-"]),
            (Role::Commenter, ["++...+.", "++...+.", "++--.+-"]),
            (Role::Editor, ["+++++++", "++++++e", "++--++-"]),
            (Role::Submitter, ["+....+.", "+....+.", "-------"]),
            (Role::Regulator, ["+....+.", "+....+.", "-------"]),
            (Role::Admin, ["+++++++", "++++++e", "-------"]),
        ];
        assert_eq!(table.len(), Role::ALL.len());
        for (role, expected) in table {
            let rows = [Audience::OneUser, Audience::ManyUsers, Audience::Link].map(|each| row(role, each));
            assert_eq!(rows, expected, "{role:?}");
        }
    }

    #[test]
    fn an_editor_is_told_exactly_what_the_operation_needs() {
        // mode, then edit, comment, review, fill
        let table = [
            (Operation::View, "view ...."),
            (Operation::Comment, "edit .c.."),
            (Operation::Review, "edit .cr."),
            (Operation::Fill, "edit ...f"),
            (Operation::Edit, "edit ecrf"),
        ];
        for (operation, expected) in table {
            for audience in [Audience::OneUser, Audience::ManyUsers] {
                let rights = rights_for(Role::Editor, operation, audience, Switches::ON).unwrap();
                let flags = [rights.may_edit, rights.may_comment, rights.may_review, rights.may_fill];
                let letters: String = flags
                    .iter()
                    .zip("ecrf".chars())
                    .map(|(may, letter)| if *may { letter } else { '.' })
                    .collect();
                assert_eq!(format!("{} {letters}", rights.mode.as_str()), expected);
                assert_eq!(rights.switches, Switches::ON);
            }
        }
    }

    #[test]
    fn a_role_never_gets_less_in_silence_and_never_more() {
        let all = [Audience::OneUser, Audience::ManyUsers, Audience::Link];
        for ((role, _), (operation, _)) in
            Role::ALL.iter().flat_map(|role| Operation::ALL.map(|operation| (role, operation)))
        {
            for audience in all {
                let rights = rights_for(*role, operation, audience, Switches::ON);
                let may = |permission| role.permissions().contains(&permission);
                if let Err(refused) = rule_on_operation(*role, operation, audience) {
                    assert_eq!(rights, Err(refused));
                } else if let Ok(rights) = rights {
                    assert!(
                        may(Permission::Edit) || !(rights.may_edit || rights.may_review || rights.may_fill)
                    );
                    assert!(may(Permission::Comment) || !rights.may_comment);
                } else {
                    assert!(matches!(operation, Operation::Download | Operation::Delete));
                }
            }
        }
    }

    #[test]
    fn switches_switch_off_and_nothing_on() {
        let off = Switches { may_download: false, may_print: false, may_copy: false };

        let rights = rights_for(Role::Editor, Operation::Edit, Audience::Link, off).unwrap();

        assert_eq!(rights, Rights { switches: off, ..Rights::EDIT });
    }
}
