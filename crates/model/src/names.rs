//! File names that people choose, made safe once and then trusted.
//!
//! A name decides nothing: bytes lie under their hash and documents under their id. It is shown to people and it is
//! the last part of a path in the published tree, so it must not be able to leave its folder, hide its type or be too
//! long to be stored.
//!
//! Guarantees: a [`FileName`] is one path component of 1 to 255 bytes in NFC, without control characters, separators
//! or direction overrides, that is not `.` or `..` and is no device name on any system.
//! Does not do: avoid collisions (every document has a folder of its own).

use std::fmt;

use jiff::Timestamp;
use unicode_normalization::UnicodeNormalization as _;

use crate::Label;

/// NAME_MAX of every file system we publish to, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// A longer text is no name but an attack or a mistake; it is refused instead of cut.
pub const INPUT_BYTES_MAX: usize = 1024;
/// Extensions longer than this are not worth keeping when a name is cut.
const EXTENSION_BYTES_MAX: usize = 16;

/// Names that mean a device on Windows, where published trees may be mounted.
const DEVICE_NAMES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// Longest name of a company, a project or an API token, in characters.
pub const TITLE_CHARACTERS_MAX: usize = 200;

/// Why a text cannot be the name of a company, a project or an API token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("A name needs 1 to {TITLE_CHARACTERS_MAX} characters and no control characters.")]
pub struct TitleRefused;

/// Reads the name of a company, a project or an API token: it is shown to people and decides nothing.
pub fn title(text: &str) -> Result<String, TitleRefused> {
    let title = text.trim();
    let is_short = (1..=TITLE_CHARACTERS_MAX).contains(&title.chars().count());
    if is_short && !title.chars().any(char::is_control) { Ok(title.to_owned()) } else { Err(TitleRefused) }
}

/// Why a name was refused (DOC_007).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameRefused {
    /// Nothing is left of it.
    #[error("the name is empty")]
    Empty,
    /// It would lead into another folder, plainly or percent-encoded.
    #[error("the name contains a path separator, a `..` or an encoded form of one")]
    Traversal,
    /// It has control characters or direction overrides.
    #[error("the name contains control characters")]
    ControlCharacters,
    /// It is longer than any name we would cut.
    #[error("the name is longer than {INPUT_BYTES_MAX} bytes")]
    TooLong,
}

/// A safe file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileName(String);

impl FileName {
    /// Makes a name safe, or refuses it.
    pub fn parse(text: &str) -> Result<Self, NameRefused> {
        if text.len() > INPUT_BYTES_MAX {
            return Err(NameRefused::TooLong);
        }
        let name: String = text.nfc().collect();
        let name = name.trim_matches(|each: char| each.is_whitespace()).trim_end_matches(['.', ' ']);
        refuse_traversal(text, name)?;
        if name.chars().any(is_forbidden) {
            return Err(NameRefused::ControlCharacters);
        }
        if name.is_empty() {
            return Err(NameRefused::Empty);
        }
        let prefix = if needs_prefix(name) { "_" } else { "" };
        Ok(Self(cut(&format!("{prefix}{name}"), NAME_BYTES_MAX)))
    }

    /// The same for a name that must end in an extension, whatever the text ends in: a name does not hide what bytes are.
    pub fn parse_as(text: &str, extension: &str) -> Result<Self, NameRefused> {
        let name = Self::parse(text)?;
        if extension.is_empty() || name.extension() == extension.to_lowercase() {
            return Ok(name);
        }
        Self::parse(&format!("{name}.{extension}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The extension in lower case, without the dot; empty if there is none.
    pub fn extension(&self) -> String {
        split_extension(&self.0).1.trim_start_matches('.').to_lowercase()
    }

    /// This name with something appended, cut so that the whole still fits: `report.docx` + `.tmp.x`.
    pub fn with_suffix(&self, suffix: &str) -> String {
        let mut name = cut_at_character(&self.0, NAME_BYTES_MAX.saturating_sub(suffix.len())).to_owned();
        name.push_str(suffix);
        name
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What is appended to the name of a published file that was replaced: `.20261115T101500.123Z-v14.bak`, after the content it
/// showed and the time that was committed.
pub fn backup_suffix(committed_at: Timestamp, label: Label) -> String {
    format!("{}.bak", backup_mark(committed_at, label))
}

fn backup_mark(committed_at: Timestamp, label: Label) -> String {
    format!(".{}-v{label}", committed_at.strftime("%Y%m%dT%H%M%S.%3fZ"))
}

/// Whether a file name is that of a backup of this content, under whatever name it was shown. Backups of one instant are
/// numbered.
pub fn is_backup_of(name: &str, committed_at: Timestamp, label: Label) -> bool {
    let mark = backup_mark(committed_at, label);
    let rest =
        name.rfind(&mark).map(|at| &name[at + mark.len()..]).and_then(|rest| rest.strip_suffix(".bak"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_number))
}

fn refuse_traversal(raw: &str, name: &str) -> Result<(), NameRefused> {
    let lower = raw.to_lowercase();
    let encoded =
        ["%2e", "%2f", "%5c", "%00", "%252e", "%252f", "%255c"].iter().any(|part| lower.contains(part));
    let separated = name.contains(['/', '\\']);
    let is_dots = !raw.trim().is_empty() && raw.trim().chars().all(|each| each == '.');
    if encoded || separated || is_dots { Err(NameRefused::Traversal) } else { Ok(()) }
}

/// Characters that control, break lines or turn the direction of what is shown.
pub(crate) fn is_forbidden(each: char) -> bool {
    let overrides_direction =
        matches!(each, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks_lines = matches!(each, '\u{2028}' | '\u{2029}');
    each.is_control() || overrides_direction || breaks_lines || each == '\u{feff}'
}

/// A leading `-` reads as an option, a leading `.` hides the file, and device names cannot be stored on Windows.
fn needs_prefix(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim().to_lowercase();
    let letters = stem.trim_end_matches(|each: char| each.is_ascii_digit());
    name.starts_with(['-', '.']) || DEVICE_NAMES.contains(&letters)
}

fn cut(name: &str, bytes_max: usize) -> String {
    if name.len() <= bytes_max {
        return name.to_owned();
    }
    let (stem, extension) = split_extension(name);
    format!("{}{extension}", cut_at_character(stem, bytes_max - extension.len()))
}

fn split_extension(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && (2..=EXTENSION_BYTES_MAX + 1).contains(&(name.len() - at)) => name.split_at(at),
        _ => (name, ""),
    }
}

fn cut_at_character(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, NameRefused> {
        FileName::parse(text).map(|name| name.to_string())
    }

    #[test]
    fn titles_are_short_and_plain() {
        assert_eq!(title(" Acme & Sons "), Ok("Acme & Sons".to_owned()));
        assert!(title(&"é".repeat(200)).is_ok());
        for bad in ["", " ", "a\nb", "\u{7f}x", &"x".repeat(201)] {
            assert_eq!(title(bad), Err(TitleRefused), "{bad:?}");
        }
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for name in ["report.docx", "Résumé 2026.xlsx", "年度報告.pptx", "a", "x.tar.gz", "100% sure.docx"]
        {
            assert_eq!(parse(name).as_deref(), Ok(name));
        }
    }

    #[test]
    fn names_that_would_leave_their_folder_are_refused() {
        let hostile = [
            "..",
            ".",
            "...",
            "../x",
            "a/../b",
            "a/b",
            "a\\b",
            "..\\x",
            "%2e%2e",
            "%2E%2E%2Fx",
            "a%2fb",
            "a%5Cb",
            "%00",
            "%252e%252e",
            "/etc/passwd",
            "C:\\x",
            "\\\\?\\x",
            " .. ",
        ];
        for name in hostile {
            assert_eq!(parse(name), Err(NameRefused::Traversal), "{name:?}");
        }
    }

    #[test]
    fn control_characters_and_direction_overrides_are_refused() {
        for name in ["a\0b", "a\nb.docx", "a\u{202e}xcod.exe", "\u{7}", "a\u{2028}b", "x\u{1b}[31m"] {
            assert_eq!(parse(name), Err(NameRefused::ControlCharacters), "{name:?}");
        }
        for name in ["", "   ", "\u{a0}"] {
            assert_eq!(parse(name), Err(NameRefused::Empty), "{name:?}");
        }
    }

    #[test]
    fn composed_and_decomposed_twins_become_one_name() {
        assert_eq!(parse("Re\u{301}sume\u{301}.docx"), parse("R\u{e9}sum\u{e9}.docx"));
    }

    #[test]
    fn device_names_options_and_hidden_files_get_a_prefix() {
        for (name, safe) in
            [("CON", "_CON"), ("com1.docx", "_com1.docx"), ("-rf.docx", "_-rf.docx"), (".bashrc", "_.bashrc")]
        {
            assert_eq!(parse(name).as_deref(), Ok(safe));
        }
        assert_eq!(parse("console.docx").as_deref(), Ok("console.docx"));
        assert_eq!(parse("name. . ").as_deref(), Ok("name"));
    }

    #[test]
    fn long_names_are_cut_on_a_character_and_keep_their_type() {
        for letter in ["a", "é", "年", "🦀"] {
            for count in [1, 80, 126, 127, 200, 250] {
                let name = format!("{}.docx", letter.repeat(count));
                if name.len() > INPUT_BYTES_MAX {
                    continue;
                }

                let safe = FileName::parse(&name).unwrap();

                assert!(safe.as_str().len() <= NAME_BYTES_MAX);
                assert_eq!(safe.extension(), "docx");
                let backup = safe.with_suffix(".20261115T101500.123Z-v14.bak");
                assert!(backup.len() <= NAME_BYTES_MAX && backup.ends_with("-v14.bak"));
            }
        }
        assert_eq!(parse(&"a".repeat(1025)), Err(NameRefused::TooLong));
    }

    #[test]
    fn a_backup_is_known_by_the_content_it_was_made_of() {
        let at = Timestamp::from_millisecond(1_794_770_443_007).unwrap();
        let (fourteen, checkpoint) = (Label::version(14), Label::parse("14.2").unwrap());
        let name = format!("report.docx{}", backup_suffix(at, fourteen));
        assert_eq!(name, "report.docx.20261115T192043.007Z-v14.bak");

        assert!(is_backup_of(&name, at, fourteen));
        assert!(is_backup_of("other.docx.20261115T192043.007Z-v14-3.bak", at, fourteen));
        assert!(is_backup_of(&format!("x{}", backup_suffix(at, checkpoint)), at, checkpoint));
        for other in [
            format!("x{}", backup_suffix(at, checkpoint)),
            format!("x{}", backup_suffix(at, Label::version(1))),
            "report.20261115T192043.007Z-v14.docx.20261116T000000.000Z-v15.bak".to_owned(),
            "report.docx.20261115T192043.007Z-v14-x.bak".to_owned(),
            "report.docx.20261115T192043.007Z-v14.bak.docx".to_owned(),
            "report.docx".to_owned(),
        ] {
            assert!(!is_backup_of(&other, at, fourteen), "{other}");
        }
    }

    #[test]
    fn a_name_keeps_the_extension_it_must_have() {
        let named = |text, extension| FileName::parse_as(text, extension).map(|name| name.to_string());

        assert_eq!(named("letter.docx", "docx").unwrap(), "letter.docx");
        assert_eq!(named("letter.DOCX", "docx").unwrap(), "letter.DOCX");
        assert_eq!(named("letter", "docx").unwrap(), "letter.docx");
        assert_eq!(named("letter.exe", "docx").unwrap(), "letter.exe.docx");
        assert_eq!(named("letter", "").unwrap(), "letter");
        assert!(named("../letter", "docx").is_err() && named("", "docx").is_err());
        assert!(named(&"é".repeat(200), "docx").unwrap().ends_with(".docx"), "cut, and still what it is");
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_accepted_is_one_safe_component(text in ".{0,300}") {
            if let Ok(name) = FileName::parse(&text) {
                let shown = name.as_str();
                assert!((1..=NAME_BYTES_MAX).contains(&shown.len()));
                assert!(!shown.contains(['/', '\\', '\0']) && shown != "." && shown != "..");
                assert_eq!(FileName::parse(shown), Ok(name.clone()), "parsing again changes nothing");
            }
        }
    }
}
