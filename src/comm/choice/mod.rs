//! Which algorithm performs a call.

pub(crate) mod candidate;
pub(crate) mod preferred;
pub(crate) mod select;
