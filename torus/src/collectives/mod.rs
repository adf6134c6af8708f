//! The collectives, each a row of data: what ranks contribute, what they have at the end, and the passes that lead
//! from one to the other.

mod collective;
mod row;
mod rows;

pub use collective::{Collective, UnknownCollective, ceil_log};
pub use row::{Action, Payload, Routing, Share, Sums, WalkForm, WalkPhase};
