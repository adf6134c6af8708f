//! The collectives, one file each: what ranks bring, what they have in the end, and the passes
//! that lead from one to the other.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod bcast;
mod collective;
mod exscan;
mod gather;
mod reduce;
mod reduce_scatter;
mod row;
mod scan;
mod scatter;

pub use collective::{Collective, UnknownCollective, ceil_log};
pub use row::{Action, Payload, Routing, Share, Sums, WalkForm, WalkPhase};
