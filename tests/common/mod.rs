//! What several test files need: inputs, an independent reference, and a wire in memory.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub mod calls;
pub mod cores;
pub mod memory_wire;
pub mod mixed;
pub mod processes;
pub mod reference;
pub mod skew;
