//! Memory that ranks share: the arena, its locks and registrations, and copies between ranks.

pub(crate) mod arena;
pub(crate) mod copy;
pub(crate) mod lock;
pub(crate) mod registrations;
pub(crate) mod watched;
