//! Which algorithm performs a call.

pub(crate) mod preferred;
pub(crate) mod select;
