//! The hash FNV-1a of 64 bits, by Fowler, Noll and Vo
//! (draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm").

/// Hash of no bytes.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// Adds a byte to `hash`. Can also add words of 64 bits, if the caller rotates the hash after each word: otherwise a
/// word's upper half would not reach the hash's lower half.
#[inline]
#[must_use]
pub fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(PRIME)
}

/// Returns the hash of bytes.
pub fn of_bytes(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(START, |hash, byte| mix(hash, byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the draft.
    #[test]
    fn known_texts_have_known_hashes() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(of_bytes(text.bytes()), hash, "{text}");
        }
    }
}
