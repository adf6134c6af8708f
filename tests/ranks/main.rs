//! Ranks as threads of one program, on the emulated device or on a wire in memory, and the registration cache alone.
//!
//! These tests are one program, because linking takes longer than running. Among the separate programs are
//! `allocation` and `footprint` (they count the allocations of the whole program), `brk` (it moves the program
//! break), `processes` (it starts itself once for each rank) and `cli` (it needs the `hopbine` command).

#[path = "../common/mod.rs"]
mod common;

/// The shapes and macros of the tests that run over all algorithms.
#[path = "../../torus/tests/common/mod.rs"]
mod all;

mod differing;
mod duplicate_ends;
mod emulated;
mod ending;
mod endpoint;
mod engine;
mod failures;
mod flat_buffers;
mod full_device;
mod interpreter;
mod interpreter_vector;
mod matrix;
mod nodes;
mod preferred;
mod regcache;
mod requests;
mod schedules;
mod shm;
mod short_requests;
mod splits;
mod stress;
mod tuning;
mod unexpected;
mod vector;
mod vector_errors;
mod window;
