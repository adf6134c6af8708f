//! Which shapes without a class the network model chooses for.

use super::feature::NumberRange;

/// The model that chooses among the rows of the nearest classes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// The machine: one of [`Machine::NAMES`](crate::sim::Machine::NAMES).
    pub machine: String,
    /// Of how many ranks.
    pub ranks: NumberRange,
}

impl Model {
    /// The most ranks: of more, a choice takes too long.
    pub const MOST_RANKS: u32 = 64;
}
