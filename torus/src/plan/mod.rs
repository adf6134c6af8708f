//! Plans: their types, their derivation, their text form and their proof.

pub mod layout;
mod types;

pub use types::{
    Action, Blocks, Placement, Plan, PortPlan, Rank, Recv, Run, Send, Space, Step, n_positions,
};
