//! Fuzzes status words and announcements of failures.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine::fuzz::play("status_words", bytes));
