//! The forms in which collectives are called.

mod methods;
pub(super) mod persistent;
pub(super) mod raw;
pub(super) mod registered;
pub(super) mod scope;
pub(super) mod short;
mod table;
