//! Plans: their types, their derivation, their text form and their proof.

pub mod check;
mod defect;
mod exchange;
mod expansion;
mod flow;
mod fold;
mod grid;
pub mod layout;
mod linear;
mod listed;
mod members;
mod order;
mod parlinna;
mod pass;
mod paths;
mod places;
mod prefix;
mod resend;
mod rounds;
mod runs;
mod schedule;
mod space;
mod text;
pub mod traffic;
mod tree;
mod types;
mod validate;
mod walk;

pub use check::{Checker, Expect, Fault, Found, Violation, check};
pub use defect::{Defect, Invalid};
pub use exchange::{Exchange, Stages};
pub use expansion::Expansion;
pub use flow::{Flow, LaneHeader, Message, for_each_message};
pub use grid::{Grid, Groups};
pub use listed::{Listed, Mixed};
pub use members::Tile;
pub use parlinna::ParLinNa;
pub use runs::{Blocks, Run, n_positions};
pub use schedule::{
    Positions, PrefixSteps, Recipe, Schedule, ScheduleError, StepOrder, WalkRecipe, max_ports,
};
pub use space::{BlockOrder, Displaced, Listing, Space};
pub use text::TextError;
pub use traffic::{Traffic, traffic, weighed};
pub use types::{Lane, Plan, Step, Transfer, Transfers};
pub use validate::sent_positions;
pub use walk::Interleave;
