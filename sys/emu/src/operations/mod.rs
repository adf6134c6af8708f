//! Operations: their execution at the targets, at once or late, and the polls for their results.

pub(crate) mod checked;
pub(crate) mod late;
pub(crate) mod poll;
pub(crate) mod post;
pub(crate) mod remote;
pub(crate) mod times;
