//! What `fuzz` calls, and a test that plays its seeds: whatever another process writes, this one reports
//! it, or takes it as what it says.

/// Takes any bytes, and ends well.
pub type Target = fn(&[u8]);

/// By name.
pub const TARGETS: [(&str, Target); 2] = [("shm_lines", shm_lines), ("status_words", status_words)];

/// A port in shared memory and a peer that writes what it likes: lines, counts, words.
pub fn shm_lines(bytes: &[u8]) {
    // An error is what should come of most.
    let _ = crate::endpoint::shm::hostile::play(bytes);
}

/// Status and news.
pub fn status_words(bytes: &[u8]) {
    for word in bytes.as_chunks::<8>().0 {
        crate::endpoint::check_status_word(u64::from_le_bytes(*word));
    }
}

#[cfg(test)]
mod tests {
    /// Those that are checked in: some of each target's, and what has failed once.
    #[test]
    fn seeds_do_no_harm() {
        for (name, play) in super::TARGETS {
            let seeds =
                std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
            let files = std::fs::read_dir(&seeds).expect(name);
            let played =
                files.map(|file| play(&std::fs::read(file.unwrap().path()).unwrap())).count();
            assert!(played > 0, "no seed of {name}");
        }
    }
}
