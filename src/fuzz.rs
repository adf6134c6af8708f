//! Entry points for `fuzz` and `testing/tests/seeds.rs`. Whatever bytes another process writes, this process either
//! reports an error or interprets them as their format defines.

use crate::endpoint::hostile;
use crate::world;

/// A function that accepts any bytes without a crash.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 5] = [
    ("shm_lines", shm_lines),
    ("utofu_slots", hostile::play_slots),
    ("mpi_headers", hostile::play_headers),
    ("status_words", status_words),
    ("startup_records", startup_records),
];

/// A port in shared memory whose peer writes arbitrary lines, counts and words.
fn shm_lines(bytes: &[u8]) {
    // Most inputs are expected to produce an error.
    let _ = hostile::play_lines(bytes);
}

/// Status words and news words.
fn status_words(bytes: &[u8]) {
    bytes.as_chunks().0.iter().for_each(|word| hostile::check_word(u64::from_le_bytes(*word)));
}

/// The first records that ranks exchange at start-up, in the world and in shared memory.
fn startup_records(bytes: &[u8]) {
    world::check_startup_record(bytes);
    hostile::check_startup_record(bytes);
}

/// Runs the target called `name` on `bytes`.
///
/// # Panics
/// If no target has that name.
pub fn play(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.0 == name);
    target.unwrap_or_else(|| panic!("no target {name}")).1(bytes);
}
