//! Torus geometry, patterns, plans and their proof: the pure part of hopbine.
//!
//! A schedule is data. This crate turns *pattern x torus x collective* into a
//! [`plan::Plan`] that can be executed, checked, simulated and drawn by others:
//!
//! - [`geometry`]: shapes, coordinates, rank maps, links and routes, Tofu's 6-D coordinates, trees;
//! - [`patterns`]: who may send to whom on a ring of `d` coordinates, step by step;
//! - [`collectives`]: what ranks bring to each and have in the end, and the passes between;
//! - [`plan`]: the derivation of what each rank sends, the plan types, their text form, the checker;
//! - [`registry`]: every algorithm by name;
//! - [`bounds`]: what no algorithm can do without, by collective and shape;
//! - [`sim`]: what a plan takes on a machine that is not here, predicted;
//! - [`choose`]: decision tables, which say what performs a call;
//! - [`search`]: the best schedule of a call under that model, and how good it is known to be;
//! - [`sizes`]: amounts of bytes as people write them.
//!
//! Each of these rooms imports only those above it in this list.
//!
//! Architecture invariant: nothing here performs input or output, reads a clock or the
//! environment, starts a thread, or knows of buffers, MPI or uTofu. Unsafe code is forbidden.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod choose;
pub mod collectives;
pub mod fit;
pub mod geometry;
mod names;
pub mod patterns;
pub mod plan;
pub mod registry;
pub mod search;
pub mod sim;
pub mod sizes;

pub use collectives::Collective;
pub use geometry::{RankMap, Shape};
pub use names::{Block, LaneId, LinkId, PortId, Position, Rank, StepId};
pub use plan::{Plan, Schedule};
pub use registry::{Algorithm, Request};
