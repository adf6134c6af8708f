//! Memory that ranks share: the arena, what lies in it under locks, and how bytes move between ranks.

pub(crate) mod arena;
pub(crate) mod copy;
pub(crate) mod lock;
pub(crate) mod registrations;
pub(crate) mod watched;
