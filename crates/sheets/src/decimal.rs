//! Exact decimal numbers, as people write them into cells.
//!
//! Guarantees: no floating point anywhere; a value has one representation and one text (no trailing zeros, no `-0`); an operation
//! whose result would not fit says so instead of being wrong.
//! Does not do: division, which would have to round.

use std::cmp::Ordering;
use std::fmt;

/// Digits behind the point that are kept at most.
pub const SCALE_MAX: u8 = 18;
/// Digits a number may have in all; products of two such numbers still fit.
const DIGITS_MAX: u32 = 28;
/// Digits that fit into 64 bits, whichever they are.
const DIGITS_SMALL: usize = 18;
/// Digits a spreadsheet shows of a number. What stands behind them is an artefact of binary fractions.
const DIGITS_SHOWN: u32 = 15;

/// A decimal number: `mantissa / 10^scale`, always in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i128,
    scale: u8,
}

impl Decimal {
    /// Nothing.
    pub const ZERO: Self = Self { mantissa: 0, scale: 0 };

    /// A whole number.
    pub fn whole(number: i64) -> Self {
        Self { mantissa: i128::from(number), scale: 0 }
    }

    /// Reads what a person typed as text: digits, perhaps a sign before and a point between them. Nothing is guessed: `1,020` and
    /// `1e3` are no numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let is_plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain(whole) || !is_plain(fraction) {
            return None;
        }
        Self::parse_number(text, Artefacts::None)
    }

    /// Reads a number as files hold it, with an exponent perhaps.
    pub(crate) fn parse_number(text: &str, artefacts: Artefacts) -> Option<Self> {
        let (digits, exponent) = match text.find(['e', 'E']) {
            Some(at) => (text.get(..at)?, parse_exponent(text.get(at + 1..)?)?),
            None => (text, 0),
        };
        let is_negative = digits.starts_with('-');
        let read = Digits::read(digits.trim_start_matches(['-', '+']))?;
        let exponent = exponent.checked_add(read.exponent)?;
        let (mut mantissa, mut exponent) = (read.mantissa, exponent);
        if artefacts == Artefacts::Rounded && exponent < 0 {
            let surplus = digits_of(mantissa).saturating_sub(DIGITS_SHOWN);
            mantissa = divide_half_up(mantissa, surplus);
            exponent += i32::try_from(surplus).ok()?;
        }
        let mantissa = if is_negative { -mantissa } else { mantissa };
        Self::of(mantissa, exponent)
    }

    /// `mantissa * 10^exponent`, rounded to what is kept.
    fn of(mantissa: i128, exponent: i32) -> Option<Self> {
        if mantissa == 0 {
            return Some(Self::ZERO);
        }
        if exponent >= 0 {
            let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
            let mantissa = mantissa.checked_mul(factor)?;
            return (digits_of(mantissa) <= DIGITS_MAX).then_some(Self { mantissa, scale: 0 });
        }
        let scale = exponent.unsigned_abs();
        let surplus = scale.saturating_sub(u32::from(SCALE_MAX));
        let mantissa = divide_half_up(mantissa, surplus);
        let scale = u8::try_from(scale - surplus).ok()?;
        (digits_of(mantissa) <= DIGITS_MAX).then(|| Self { mantissa, scale }.lowest())
    }

    fn lowest(mut self) -> Self {
        // Most numbers are small, and small ones are divided ten times as fast.
        if let Ok(mut small) = i64::try_from(self.mantissa) {
            while self.scale > 0 && small % 10 == 0 {
                small /= 10;
                self.scale -= 1;
            }
            self.mantissa = i128::from(small);
            return self;
        }
        while self.scale > 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }

    /// Rounded to so many digits behind the point; a half goes away from zero, as spreadsheets do it.
    #[must_use]
    pub fn round(self, scale: u8) -> Self {
        if self.scale <= scale {
            return self;
        }
        Self { mantissa: divide_half_up(self.mantissa, u32::from(self.scale - scale)), scale }.lowest()
    }

    /// The sum, if it fits.
    pub fn plus(self, other: Self) -> Option<Self> {
        let (mine, others, scale) = self.aligned(other)?;
        Some(Self { mantissa: mine.checked_add(others)?, scale }.lowest())
    }

    /// The difference, if it fits.
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }

    /// The product, if it fits.
    pub fn times(self, other: Self) -> Option<Self> {
        let mantissa = self.mantissa.checked_mul(other.mantissa)?;
        let product = Self { mantissa, scale: self.scale.checked_add(other.scale)? }.lowest();
        (product.scale <= 2 * SCALE_MAX).then_some(product)
    }

    /// With the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        // No number that can be read has this many digits; sums stay in bounds by `checked_add`.
        Self { mantissa: self.mantissa.checked_neg().unwrap_or(i128::MAX), scale: self.scale }
    }

    /// Without its sign.
    #[must_use]
    pub fn absolute(self) -> Self {
        if self.mantissa < 0 { self.negated() } else { self }
    }

    /// Whether there is nothing behind the point.
    pub fn is_whole(self) -> bool {
        self.scale == 0
    }

    /// The part before the point, towards zero.
    pub fn truncated(self) -> i128 {
        self.mantissa / 10_i128.pow(u32::from(self.scale))
    }

    fn aligned(self, other: Self) -> Option<(i128, i128, u8)> {
        let scale = self.scale.max(other.scale);
        let raised =
            |each: Self| 10_i128.checked_pow(u32::from(scale - each.scale))?.checked_mul(each.mantissa);
        Some((raised(self)?, raised(other)?, scale))
    }
}

/// What to do with digits that only binary fractions explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Artefacts {
    /// There are none: somebody typed this text.
    None,
    /// Round to what a spreadsheet shows: `0.30000000000000004` is 0.3.
    Rounded,
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.aligned(*other) {
            Some((mine, others, _)) => mine.cmp(&others),
            // Too far apart to be written with one scale: the one with more digits before the point is the larger.
            None => self.truncated().cmp(&other.truncated()),
        }
    }
}

impl Decimal {
    /// Writes its text behind another one.
    pub(crate) fn write_to(self, out: &mut String) {
        let mut digits = self.mantissa.unsigned_abs();
        // The last digits first: a `u128` has at most 39, a point and a zero may come to them.
        let (mut text, mut at) = ([b'0'; 48], 48);
        let mut written = 0;
        // Something stands before the point, if only a zero.
        while digits > 0 || written <= self.scale {
            if written == self.scale && written > 0 {
                at -= 1;
                text[at] = b'.';
            }
            let (rest, digit) = divided(digits);
            at -= 1;
            text[at] = b'0' + digit;
            (digits, written) = (rest, written + 1);
        }
        if self.mantissa < 0 {
            out.push('-');
        }
        out.push_str(std::str::from_utf8(&text[at..]).unwrap_or_default());
    }
}

/// A tenth, and the digit that is left. Most numbers are small, and small ones are divided ten times as fast.
fn divided(digits: u128) -> (u128, u8) {
    match u64::try_from(digits) {
        Ok(small) => (u128::from(small / 10), u8::try_from(small % 10).unwrap_or(0)),
        Err(_) => (digits / 10, u8::try_from(digits % 10).unwrap_or(0)),
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_to(&mut text);
        out.write_str(&text)
    }
}

/// The digits of a text, without its point.
struct Digits {
    mantissa: i128,
    exponent: i32,
}

impl Digits {
    fn read(text: &str) -> Option<Self> {
        let (mut mantissa, mut exponent, mut kept) = (0_i128, 0_i32, 0);
        let (mut has_digits, mut is_behind_point) = (false, false);
        let mut bytes = text.bytes();
        // As long as they fit, digits are added up in a small number.
        let mut small = 0_u64;
        for byte in bytes.by_ref().take(DIGITS_SMALL) {
            match byte {
                b'.' if !is_behind_point => is_behind_point = true,
                b'0'..=b'9' => {
                    has_digits = true;
                    small = small * 10 + u64::from(byte - b'0');
                    kept += u32::from(small > 0);
                    exponent -= i32::from(is_behind_point);
                }
                _ => return None,
            }
        }
        mantissa += i128::from(small);
        for byte in bytes {
            match byte {
                b'.' if !is_behind_point => is_behind_point = true,
                b'0'..=b'9' => {
                    has_digits = true;
                    if kept < DIGITS_MAX + 2 {
                        mantissa = mantissa * 10 + i128::from(byte - b'0');
                        kept += u32::from(mantissa > 0);
                        exponent -= i32::from(is_behind_point);
                    } else {
                        // Beyond all precision: only its place counts.
                        exponent += i32::from(!is_behind_point);
                    }
                }
                _ => return None,
            }
        }
        has_digits.then_some(Self { mantissa, exponent })
    }
}

fn parse_exponent(text: &str) -> Option<i32> {
    let number: i32 = text.strip_prefix('+').unwrap_or(text).parse().ok()?;
    (-1000..=1000).contains(&number).then_some(number)
}

fn digits_of(mantissa: i128) -> u32 {
    let digits = mantissa.unsigned_abs();
    let log = u64::try_from(digits).map_or_else(|_| digits.checked_ilog10(), u64::checked_ilog10);
    log.map_or(0, |log| log + 1)
}

fn divide_half_up(mantissa: i128, digits: u32) -> i128 {
    if digits == 0 {
        return mantissa;
    }
    let Some(factor) = 10_i128.checked_pow(digits) else { return 0 };
    let (quotient, rest) = (mantissa / factor, mantissa % factor);
    let is_half = rest.unsigned_abs() * 2 >= factor.unsigned_abs() && digits > 0;
    quotient + if is_half { mantissa.signum() } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn texts_are_read_exactly_and_written_in_one_way() {
        for (text, canonical) in [
            ("1.50", "1.5"),
            ("-0", "0"),
            ("007", "7"),
            ("0.1", "0.1"),
            ("-12.340", "-12.34"),
            ("1000.0", "1000"),
        ] {
            assert_eq!(number(text).to_string(), canonical, "{text}");
        }
        for text in ["", "-", ".", "1.", ".5", "1,020", "1e3", "+1", " 1", "0x1", "1.2.3", "١"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_only_binary_fractions_explain_is_rounded_away() {
        for (text, canonical) in [
            ("0.30000000000000004", "0.3"),
            ("2.6749999999999998", "2.675"),
            ("1.1000000000000001", "1.1"),
            ("1E-3", "0.001"),
            ("1.5E+3", "1500"),
            ("1.2E-300", "0"),
            ("1234567890123456", "1234567890123456"),
            ("-8.9999999999999993E-3", "-0.009"),
        ] {
            let read = Decimal::parse_number(text, Artefacts::Rounded);
            assert_eq!(read.map(|number| number.to_string()).as_deref(), Some(canonical), "{text}");
        }
        assert_eq!(Decimal::parse_number("1E+40", Artefacts::Rounded), None);
        assert_eq!(Decimal::parse_number("1E+99999", Artefacts::Rounded), None);
    }

    #[test]
    fn halves_go_away_from_zero() {
        for (text, scale, rounded) in [
            ("0.125", 2, "0.13"),
            ("-0.125", 2, "-0.13"),
            ("0.124", 2, "0.12"),
            ("9.99", 1, "10"),
            ("2.5", 0, "3"),
        ] {
            assert_eq!(number(text).round(scale).to_string(), rounded, "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_no_result() {
        let large = number("9999999999999999999999999999");
        assert_eq!(large.times(large), None);
        assert!(large.plus(Decimal::whole(1)).is_some());
        assert!(large > number("0.000000000000000001"));
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_whole_numbers(a in -1_000_000_000_i64..1_000_000_000, b in -1_000_000_000_i64..1_000_000_000) {
            let thousandths = |n: i64| Decimal::of(i128::from(n), -3).unwrap();
            prop_assert_eq!(thousandths(a).plus(thousandths(b)), Some(thousandths(a + b)));
            prop_assert_eq!(thousandths(a).minus(thousandths(b)), Some(thousandths(a - b)));
            prop_assert_eq!(thousandths(a).times(thousandths(b)), Decimal::of(i128::from(a) * i128::from(b), -6));
            prop_assert_eq!(thousandths(a).cmp(&thousandths(b)), a.cmp(&b));
        }

        #[test]
        fn a_text_is_its_number(mantissa in -1_000_000_000_000_000_i64..1_000_000_000_000_000, scale in 0_i32..15) {
            let number = Decimal::of(i128::from(mantissa), -scale).unwrap();
            prop_assert_eq!(Decimal::parse(&number.to_string()), Some(number));
        }

        #[test]
        fn no_text_makes_trouble(text in "[-+0-9.eE]{0,60}") {
            let _ = Decimal::parse_number(&text, Artefacts::Rounded);
            let _ = Decimal::parse_number(&text, Artefacts::None);
        }
    }
}
