//! Fuzzes headers of the MPI wire, and the parts of messages behind them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hopbine::fuzz::play("mpi_headers", bytes));
