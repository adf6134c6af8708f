//! Plans: their types, their derivation, their text form and their proof.

pub mod check;
mod derive;
mod exchange;
mod ir;
pub mod segments;
mod text;
pub mod traffic;

pub use check::{Checker, Expect, PlanFault, Violation, WrongContent, check};
pub use derive::expansion::Expansion;
pub use derive::schedule::{
    Placement, PrefixSteps, Recipe, Schedule, ScheduleError, StepOrder, TreeWays, WalkRecipe,
    max_ports,
};
pub use derive::walk::Interleave;
pub(crate) use derive::walk::{GlobalStep, interleaved};
pub use exchange::{ExchangeRecipe, ExchangeStages};
pub use ir::defect::{Defect, LocatedDefect};
pub use ir::flow::{Flow, LaneHeader, Message, Visit, for_each_message};
pub use ir::grid::{Grid, NodeGroups};
pub use ir::layout;
pub use ir::listed::{InconsistentPlans, Listed};
pub use ir::members::Tile;
pub use ir::runs::{Run, Runs, n_positions};
pub use ir::space::{BlockOrder, BlockPermutation, Displaced, Space};
pub use ir::split::{InvalidWeights, Part, Split};
pub use ir::types::{Lane, Plan, Step, Transfer, Transfers};
pub use ir::validate::sent_positions;
pub use ir::view::{
    DependsOn, LineHop, LineStep, MessagesKey, ProductStep, Shift, ShiftStep, StepView,
    TargetChoice,
};
pub use text::TextError;
pub use traffic::{Traffic, traffic, traffic_with_volumes};
