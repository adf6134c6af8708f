//! Fuzzes the rendezvous files through which ranks find each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine_meet::fuzz_records(bytes));
