//! Plans: their types, their derivation, their text form and their proof.

pub mod check;
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
mod rounds;
mod schedule;
mod space;
mod text;
pub mod traffic;
mod tree;
mod types;
mod validate;
mod walk;

pub use check::{Checker, Expect, Fault, Found, Violation, check};
pub use exchange::{Exchange, Stages};
pub use expansion::Expansion;
pub use flow::{Flow, LaneHeader, Message, for_each_message};
pub use grid::Grid;
pub use listed::{Listed, Mixed};
pub use members::Tile;
pub use parlinna::ParLinNa;
pub use schedule::{
    Positions, PrefixSteps, Recipe, Schedule, ScheduleError, StepOrder, WalkRecipe, max_ports,
};
pub use space::{BlockOrder, Displaced, Listing, Space};
pub use text::TextError;
pub use traffic::{Traffic, traffic, weighed};
pub use types::{Blocks, Lane, Plan, Run, Step, Transfer, Transfers, n_positions};
pub use validate::{Defect, Invalid, sent_positions};
pub use walk::Interleave;
