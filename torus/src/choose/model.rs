//! The shapes without a class for which the network model chooses.

use super::feature::NumberRange;

/// A model that chooses among the rows of the nearest classes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// The machine: one of [`Machine::NAMES`](crate::sim::Machine::NAMES).
    pub machine: String,
    /// Numbers of ranks for which the model chooses.
    pub ranks: NumberRange,
}

impl Model {
    /// The most ranks for which the model may choose: with more, a choice takes too long.
    pub const MOST_RANKS: u32 = 64;
}
