//! What ranks tell each other first.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine::fuzz::play("cards", bytes));
