//! The parts of a plan: positions and their blocks, transfers, steps, lanes, one rank's listing
//! ([`Plan`](types::Plan)), the messages of all ranks ([`Flow`](flow::Flow)), and the local rules for both.

pub(super) mod defect;
pub(super) mod flow;
pub(super) mod grid;
pub mod layout;
pub(super) mod listed;
pub(super) mod members;
pub(super) mod pass;
pub(super) mod runs;
pub(super) mod space;
pub(super) mod split;
pub(super) mod torus;
pub(super) mod types;
pub(super) mod validate;
pub(super) mod view;
