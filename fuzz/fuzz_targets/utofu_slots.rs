//! Fuzzes a channel of the uTofu wire: ends of writes, descriptors, eager messages, credits.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine::fuzz::play("utofu_slots", bytes));
