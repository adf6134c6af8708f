//! Plans: their types, their derivation, their text form and their proof.

pub mod check;
mod derive;
mod direct;
pub mod layout;
mod order;
mod schedule;
mod text;
pub mod traffic;
mod types;
mod walk;

pub use check::{Expect, Fault, Violation, check};
pub use schedule::{Form, Positions, Schedule, ScheduleError, StepOrder, max_ports};
pub use text::TextError;
pub use traffic::{Traffic, minimal_volume, traffic};
pub use walk::Interleave;

pub use types::{
    Action, Blocks, Placement, Plan, PortPlan, Rank, Recv, Run, Send, Space, Step, n_positions,
};
