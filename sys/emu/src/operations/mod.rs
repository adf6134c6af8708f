//! Operations: what they do at their targets, at once or late, and what polls show of them.

pub(crate) mod checked;
pub(crate) mod late;
pub(crate) mod poll;
pub(crate) mod post;
pub(crate) mod remote;
pub(crate) mod times;
