//! Share links: what they allow, who may make them, and what their guests are called.
//!
//! Guarantees: a link never allows more than whoever makes it may do, and never delete or administration; a guest's id cannot be
//! that of a known user, because tokens of the host application with such an id do not count; a guest's name is short, has no
//! control characters, and says that it is a guest's. Does not do: tokens, passwords, limits (`server/src/sharing`).

use crate::access::{Permission, Role};
use crate::names::is_forbidden;
use crate::operations::{Audience, Operation, Refusal, Rights, Switches, rights_for};

/// Longest name of a guest, in characters, without the word that marks it.
pub const GUEST_NAME_CHARACTERS_MAX: usize = 60;
/// What ids of guests begin with.
const GUEST: &str = "guest:";

/// What a share link allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Allows {
    /// Reading.
    View,
    /// Reading and commenting.
    Comment,
    /// Editing.
    Edit,
}

impl Allows {
    /// Each with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::View, "view"), (Self::Comment, "comment"), (Self::Edit, "edit")];

    /// The word.
    pub fn as_str(self) -> &'static str {
        self.operation().as_str()
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(allows, _)| *allows)
    }

    /// What its guests are.
    pub const fn role(self) -> Role {
        match self {
            Self::View => Role::Viewer,
            Self::Comment => Role::Commenter,
            Self::Edit => Role::Editor,
        }
    }

    /// What its guests open the document for.
    pub const fn operation(self) -> Operation {
        match self {
            Self::View => Operation::View,
            Self::Comment => Operation::Comment,
            Self::Edit => Operation::Edit,
        }
    }
}

/// Whether a role may make a link that allows this.
pub fn may_share(role: Role, allows: Allows) -> bool {
    let needed = [Permission::Share, allows.operation().permission()];
    needed.iter().all(|permission| role.permissions().contains(permission))
}

/// What the editor lets a guest do. Who may not download may not print either: a printed page is a copy.
pub fn guest_rights(allows: Allows, switch: DownloadSwitch) -> Result<Rights, Refusal> {
    let may_download = switch == DownloadSwitch::On;
    let switches = Switches { may_download, may_print: may_download, may_copy: true };
    rights_for(allows.role(), allows.operation(), Audience::Link, switches)
}

/// Whether a link lets its guests take the bytes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadSwitch {
    /// It does.
    On,
    /// It does not.
    Off,
}

/// The id of a guest: the link's number and the guest's.
pub fn guest_id(link: u64, guest: u64) -> String {
    format!("{GUEST}{link}.{guest}")
}

/// Whether an id is a guest's.
pub fn is_guest(id: &str) -> bool {
    id.starts_with(GUEST)
}

/// The link's number and the guest's, from an id.
pub fn read_guest_id(id: &str) -> Option<(u64, u64)> {
    let (link, guest) = id.strip_prefix(GUEST)?.split_once('.')?;
    let pair = (link.parse().ok()?, guest.parse().ok()?);
    (guest_id(pair.0, pair.1) == id).then_some(pair)
}

/// What a guest is called: what they said, made harmless and marked, or their number.
pub fn guest_name(said: Option<&str>, guest: u64) -> String {
    let plain: String =
        said.unwrap_or_default().chars().map(|each| if is_forbidden(each) { ' ' } else { each }).collect();
    let name: String = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let name: String = name.chars().take(GUEST_NAME_CHARACTERS_MAX).collect();
    match name.trim() {
        "" => format!("Guest {guest}"),
        name => format!("{name} (guest)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Mode;

    #[test]
    fn nobody_shares_more_than_they_may_do() {
        for (role, _) in Role::ALL {
            for (allows, word) in Allows::ALL {
                let is_right = matches!(role, Role::Editor | Role::Admin);
                assert_eq!(may_share(role, allows), is_right, "{role:?} {allows:?}");
                assert!(!is_right || role.covers(allows.role()));
                assert_eq!((Allows::parse(word), allows.as_str()), (Some(allows), word));
            }
        }
        assert_eq!(Allows::parse("delete"), None);
    }

    #[test]
    fn guests_may_what_their_link_allows() {
        let view = guest_rights(Allows::View, DownloadSwitch::On).unwrap();
        let comment = guest_rights(Allows::Comment, DownloadSwitch::Off).unwrap();
        let edit = guest_rights(Allows::Edit, DownloadSwitch::On).unwrap();

        assert_eq!((view, edit), (Rights::VIEW, Rights::EDIT));
        assert_eq!((comment.mode, comment.may_comment, comment.may_edit), (Mode::Edit, true, false));
        assert!(!comment.switches.may_download && !comment.switches.may_print && comment.switches.may_copy);
    }

    #[test]
    fn ids_of_guests_are_read_back_and_nothing_else_is_one() {
        assert_eq!(read_guest_id(&guest_id(7, 3)), Some((7, 3)));
        assert!(is_guest(&guest_id(7, 3)));
        for strange in
            ["guest:", "guest:7", "guest:7.", "guest:07.3", "guest:7.3 ", "guest:+7.3", "ann", "guests"]
        {
            assert_eq!(read_guest_id(strange), None, "{strange}");
        }
    }

    #[test]
    fn names_of_guests_are_short_harmless_and_marked() {
        assert_eq!(guest_name(None, 4), "Guest 4");
        assert_eq!(guest_name(Some(" \u{202e}\n\0 "), 4), "Guest 4");
        assert_eq!(guest_name(Some("  Ann\r\nAuthor\u{7} "), 4), "Ann Author (guest)");
        assert_eq!(guest_name(Some("Zoë"), 4), "Zoë (guest)");
        assert_eq!(guest_name(Some(&"x".repeat(1000)), 4).chars().count(), GUEST_NAME_CHARACTERS_MAX + 8);
    }
}
