//! Ranks as threads of one program, on the emulated device or on a wire in memory; and the
//! registration cache by itself.
//!
//! One program, since linking costs more than running. Apart are only: `allocation` (it counts
//! what the whole program allocates), `brk` (it moves the program's break), `processes` (it runs
//! itself once for each rank) and `cli` (it needs the `hopbine` command).

#[path = "../common/mod.rs"]
mod common;

/// What the tests of all algorithms run over.
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
