//! The files through which ranks meet.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine_meet::fuzz_records(bytes));
