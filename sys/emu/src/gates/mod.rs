//! Barrier gates, and the reductions of the packets that pass through them.

mod bfpsum;
pub(crate) mod gate;
pub(crate) mod reduce;
