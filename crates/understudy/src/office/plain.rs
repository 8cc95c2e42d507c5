//! Plain text and CSV: lines.
//!
//! Guarantees: line endings, a byte order mark and a missing end of line stay as they were.
//!
//! Does not know columns: a CSV line is a line.

use super::edit::Edit;
use super::shape::Shape;

const BOM: &str = "\u{feff}";

pub(super) fn read(bytes: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.trim_start_matches(BOM).lines().map(|line| (line.to_owned(), String::new()));
    Shape::of_texts(lines.collect::<Vec<_>>().into_iter())
}

pub(super) fn write(base: &[u8], edits: &[Edit], kept: &[String]) -> Vec<u8> {
    let old = String::from_utf8_lossy(base);
    let ending = if old.contains("\r\n") { "\r\n" } else { "\n" };
    let mut shape = read(base);
    shape.apply(edits);
    let mut lines: Vec<String> = match &shape {
        Shape::Text { paragraphs } => {
            paragraphs.iter().filter(|line| !line.removed).map(|line| line.text.clone()).collect()
        }
        Shape::Sheets { .. } | Shape::Opaque => Vec::new(),
    };
    lines.extend(kept.iter().cloned());
    let mut text = if old.starts_with(BOM) { BOM.to_owned() } else { String::new() };
    text.push_str(&lines.join(ending));
    if old.ends_with('\n') || old.is_empty() {
        text.push_str(ending);
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_in_the_files_own_manner() {
        let edits = [Edit::append("c1", "d;e;f")];

        let csv = write("\u{feff}a;b;c\r\n1;2;3\r\n".as_bytes(), &edits, &[]);

        assert_eq!(String::from_utf8(csv).unwrap(), "\u{feff}a;b;c\r\n1;2;3\r\nd;e;f [#c1]\r\n");
    }
}
