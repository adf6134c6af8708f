//! The emulated device's rendezvous file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| utofu_emu::play_rendezvous(bytes));
