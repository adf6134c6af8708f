//! Sizes in bytes and ranges of sizes as text: `1MiB`, `8..64MiB:x4`.

use std::str::FromStr;

/// Units of bytes: binary ones with an `i`, decimal ones without.
const UNITS: [(&str, u64); 10] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

/// Why a text is not a size or a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Not a number with a unit.
    #[error(
        "`{0}` is not a size; write whole bytes, or a whole number of KiB, MiB, GiB, TiB, kB, MB, GB or TB"
    )]
    NotASize(String),
    /// The size does not fit into 64 bits.
    #[error("`{0}` is more than 2^64 bytes")]
    TooLarge(String),
    /// The part behind the colon is not `xF`.
    #[error("`{0}` is not a factor; write `:xF` with F of 2 or more, such as 8..64MiB:x4")]
    NotAFactor(String),
    /// The range descends, or begins at 0.
    #[error("`{0}` is an empty range; write it from the smaller size, above 0, to the larger")]
    EmptyRange(String),
}

/// Parses a size.
///
/// # Errors
/// [`SizeError`].
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let not_a_size = || SizeError::NotASize(text.to_owned());
    let too_large = || SizeError::TooLarge(text.to_owned());
    let factor = match unit.trim() {
        "" => 1,
        unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(not_a_size)?.1,
    };
    if number.is_empty() {
        return Err(not_a_size());
    }
    let number: u64 = number.parse().map_err(|_| too_large())?;
    number.checked_mul(factor).ok_or_else(too_large)
}

/// Formats a size: in the largest binary unit of which it is a whole multiple, else in bytes.
pub fn show(bytes: u64) -> String {
    let whole = UNITS
        .iter()
        .take(4)
        .find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor))
        .map(|(name, factor)| format!("{} {name}", bytes / factor));
    whole.unwrap_or_else(|| format!("{bytes} B"))
}

/// Sizes from `first` up to `last`, each `factor` times the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    first: u64,
    last: u64,
    factor: u64,
}

impl SizeRange {
    /// The sizes, ascending.
    pub fn sizes(self) -> impl Iterator<Item = u64> {
        let next = move |&size: &u64| size.checked_mul(self.factor).filter(|_| size > 0);
        std::iter::successors(Some(self.first), next).take_while(move |&size| size <= self.last)
    }
}

impl FromStr for SizeRange {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let Some((first, rest)) = text.split_once("..") else {
            let size = parse_size(text)?;
            return Ok(SizeRange { first: size, last: size, factor: 2 });
        };
        let (last, factor) = match rest.split_once(':') {
            None => (rest, 2),
            Some((last, factor)) => {
                let number = factor.strip_prefix('x').and_then(|number| number.parse().ok());
                let number = number.filter(|&number| number >= 2);
                (last, number.ok_or_else(|| SizeError::NotAFactor(factor.to_owned()))?)
            }
        };
        let (first, last) = (parse_size(first)?, parse_size(last)?);
        if first == 0 || first > last {
            return Err(SizeError::EmptyRange(text.to_owned()));
        }
        Ok(SizeRange { first, last, factor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("0", 0),
            ("8", 8),
            ("12B", 12),
            ("1KiB", 1024),
            ("1 MiB", 1 << 20),
            ("3GiB", 3 << 30),
            ("5kB", 5000),
            ("2MB", 2_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_explained() {
        for (text, expected) in [
            ("", "not a size"),
            ("MiB", "not a size"),
            ("1.5MiB", "not a size"),
            ("-1", "not a size"),
            ("1M", "not a size"),
            ("99999999999999999999", "2^64"),
            ("99999999999TiB", "2^64"),
        ] {
            let message = parse_size(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
        for (text, expected) in [
            ("8..4", "empty range"),
            ("0..4", "empty range"),
            ("8..64:4", "factor"),
            ("8..64:x1", "factor"),
            ("8..", "not a size"),
        ] {
            let message = text.parse::<SizeRange>().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn ranges_multiply() {
        let sizes =
            |text: &str| -> Vec<u64> { text.parse::<SizeRange>().unwrap().sizes().collect() };
        assert_eq!(sizes("8..64"), [8, 16, 32, 64]);
        assert_eq!(sizes("8..1KiB:x4"), [8, 32, 128, 512]);
        assert_eq!(sizes("1MiB"), [1 << 20]);
        assert_eq!(sizes("0"), [0]);
        let most = format!("{}..{}", u64::MAX / 2 + 1, u64::MAX);
        assert_eq!(sizes(&most).len(), 1);
    }

    #[test]
    fn sizes_are_shown_whole() {
        assert_eq!(show(1 << 20), "1 MiB");
        assert_eq!(show(3 << 10), "3 KiB");
        assert_eq!(show(1000), "1000 B");
        assert_eq!(show(0), "0 B");
    }

    use proptest::prelude::*;

    proptest! {
        /// Any text gives ascending sizes, or an error that quotes the text.
        #[test]
        fn no_text_does_harm(
            text in "[0-9]{0,21} ?[kKMGT]?i?B?(\\.\\.[0-9]{0,21}[KMGT]?i?B?(:x?[0-9]{0,21})?)?|\\PC{0,12}",
        ) {
            match text.parse::<SizeRange>() {
                Ok(range) => {
                    let sizes: Vec<u64> = range.sizes().collect();
                    prop_assert!(!sizes.is_empty() && sizes.len() <= 64);
                    prop_assert!(sizes.is_sorted_by(|a, b| a < b), "{:?}", sizes);
                    prop_assert!(sizes[0] == range.first && sizes[sizes.len() - 1] <= range.last);
                }
                Err(error) => prop_assert!(error.to_string().starts_with('`'), "{}", error),
            }
        }

        #[test]
        fn what_is_shown_is_read(bytes: u64, shift in 0u32..60) {
            let bytes = bytes >> shift << (shift / 2);
            prop_assert_eq!(parse_size(&show(bytes)), Ok(bytes));
        }
    }
}
