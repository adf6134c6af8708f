//! Fuzzes the first records that ranks exchange at start-up.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine::fuzz::play("startup_records", bytes));
