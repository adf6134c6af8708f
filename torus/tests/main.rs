//! All tests of the pure part through its public items, in one program: long ones run beside each other.

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
