//! What `fuzz` and `testing/tests/seeds.rs` call: whatever another process writes, this one reports it, or takes it as
//! what it says.

use crate::endpoint::hostile;
use crate::world;

/// Takes any bytes, and ends well.
pub type Target = fn(&[u8]);

/// By name.
pub const TARGETS: [(&str, Target); 5] = [
    ("shm_lines", shm_lines),
    ("utofu_slots", hostile::play_slots),
    ("mpi_headers", hostile::play_headers),
    ("status_words", status_words),
    ("cards", cards),
];

/// A port in shared memory and a peer that writes what it likes: lines, counts, words.
fn shm_lines(bytes: &[u8]) {
    // An error is what should come of most.
    let _ = hostile::play_lines(bytes);
}

/// Status and news.
fn status_words(bytes: &[u8]) {
    bytes.as_chunks().0.iter().for_each(|word| hostile::check_word(u64::from_le_bytes(*word)));
}

/// What ranks tell each other first, in the world and in shared memory.
fn cards(bytes: &[u8]) {
    world::check_card(bytes);
    hostile::check_card(bytes);
}

/// Plays one of the targets.
///
/// # Panics
/// If there is none of that name.
pub fn play(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.0 == name);
    target.unwrap_or_else(|| panic!("no target {name}")).1(bytes);
}
