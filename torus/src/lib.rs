//! Torus geometry, patterns, plans and their proof: the pure part of hopbine.
//!
//! A schedule is data. This crate turns *pattern x torus x collective* into a [`plan::Plan`] that can be executed,
//! checked, simulated and drawn:
//!
//! - [`geometry`]: shapes, coordinates, rank maps, links and routes, Tofu's 6-D coordinates, trees;
//! - [`patterns`]: who may send to whom on a ring of `d` coordinates, step by step;
//! - [`collectives`]: what ranks contribute to each collective and have at the end, and the passes between;
//! - [`plan`]: the derivation of each rank's messages, the plan types, their text form, the checker;
//! - [`registry`]: every algorithm by name;
//! - [`bounds`]: lower bounds of every collective, by shape and by machine;
//! - [`fit`]: parameters of a model from measurements, and how far its predictions can be trusted;
//! - [`sim`]: the network model, which predicts the time of a plan on a machine;
//! - [`choose`]: decision tables, which select the algorithm of a call;
//! - [`search`]: the best schedule of a call under the network model, with a certificate;
//! - [`sizes`]: byte counts as text, such as `1MiB`.
//!
//! Each of these modules imports only modules above it in this list.
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
