//! The hash FNV-1a of 64 bits, by Fowler, Noll and Vo
//! (draft-eastlake-fnv, "The FNV Non-Cryptographic Hash Algorithm").

/// Of nothing.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// `hash` with a byte more. Also of words, where whoever hashes some rotates the hash after each: the upper
/// half of a word would not reach the lower half of the hash.
#[inline]
#[must_use]
pub fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(PRIME)
}

/// Of bytes.
pub fn of_bytes(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(START, |hash, byte| mix(hash, byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the draft's test vectors.
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
