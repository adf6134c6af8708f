//! The forms in which collectives are called.

mod blocking;
pub(super) mod explain;
pub(super) mod persistent;
pub(super) mod raw;
pub(super) mod registered;
pub(super) mod scope;
pub(super) mod short;
mod vector;
