//! Barrier gates, and the reductions of the packets that pass through the gates.

mod bfpsum;
pub(crate) mod gate;
mod late;
pub(crate) mod reduce;
pub(crate) mod table;
