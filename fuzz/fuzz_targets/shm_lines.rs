//! Fuzzes a port in shared memory whose peer writes arbitrary bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine::fuzz::play("shm_lines", bytes));
