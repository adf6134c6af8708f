//! Recursive doubling: XOR with 1, 2, 4, ... (Rabenseifner; Thakur, Rabenseifner and Gropp,
//! IJHPCA 2005). Powers of two only.
//!
//! In mixed-radix terms this is [`super::multiplying`] with every radix 2, so that is what
//! it builds.

use super::multiplying::Digits;

pub(super) fn needs(size: u32) -> Option<String> {
    (!size.is_power_of_two()).then(|| "a power of two".to_owned())
}

pub(super) fn digits(size: u32) -> Digits {
    Digits::new(vec![2; size.trailing_zeros() as usize])
}
