//! Numbers of up to 8 bytes, in the machine's byte order, as the low bits of a word.

pub(super) fn read(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    if cfg!(target_endian = "little") {
        word[..bytes.len()].copy_from_slice(bytes);
    } else {
        word[8 - bytes.len()..].copy_from_slice(bytes);
    }
    u64::from_ne_bytes(word)
}

/// Writes the low bits of `value`, as many as `bytes` holds; drops the bits above.
pub(super) fn write(value: u64, bytes: &mut [u8]) {
    let (word, n) = (value.to_ne_bytes(), bytes.len());
    bytes.copy_from_slice(if cfg!(target_endian = "little") { &word[..n] } else { &word[8 - n..] });
}
