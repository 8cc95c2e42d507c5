//! A line of CSV, safe to open in a spreadsheet program.
//!
//! Guarantees: what a line says reads back by RFC 4180; a value that a spreadsheet program would take for a formula begins with an apostrophe
//! instead. Plain numbers stay numbers, also negative ones. Does not do: undo the apostrophe.

/// What begins a formula, or is skipped before one.
const DANGEROUS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// One line of cells, with its line end.
pub(crate) fn csv_line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.into_iter().map(cell).collect();
    cells.join(",") + "\r\n"
}

fn cell(value: &str) -> String {
    let is_dangerous = value.starts_with(DANGEROUS) && !is_plain_number(value);
    let apostrophe = if is_dangerous { "'" } else { "" };
    let needs_quotes = value.contains([',', '"', '\n', '\r', '\t']) || value.trim() != value;
    if needs_quotes {
        format!("\"{apostrophe}{}\"", value.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{value}")
    }
}

/// `-12.5`: digits, with one point between them at most.
fn is_plain_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (whole, behind) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_formula_is_a_text_and_numbers_stay_numbers() {
        for (value, expected) in [
            ("=1+1", "'=1+1"),
            ("+49 30 123", "'+49 30 123"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("-12.5", "-12.5"),
            ("-0", "-0"),
            ("-1.2.3", "'-1.2.3"),
            ("-", "'-"),
            ("-.5", "'-.5"),
            ("-1e5", "'-1e5"),
            ("12,5", "\"12,5\""),
            ("a \"b\"", "\"a \"\"b\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" padded ", "\" padded \""),
            ("", ""),
            ("Plastic", "Plastic"),
        ] {
            assert_eq!(cell(value), expected);
        }
        assert_eq!(csv_line(["a", "=b", "c,d"]), "a,'=b,\"c,d\"\r\n");
    }
}
