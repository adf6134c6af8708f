//! All tests of the crate's public items, in one program, so that long tests run in parallel.

mod bounds;
mod broken;
mod common;
mod conditions;
mod engine_profile;
mod matrix;
mod mutants;
mod nodes;
mod paper_profile;
mod parameters;
mod plans;
mod players;
mod reproduction;
mod reproduction_nodes;
mod search;
mod splits;
mod trees;
mod vector_alltoall;
mod views;
