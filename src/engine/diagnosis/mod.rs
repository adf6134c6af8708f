//! Failure detection and its messages: the watchdog of a wait, its search along the chain of waiting ranks, and the
//! status words that ranks publish.

mod inquiry;
pub(super) mod operation;
mod search;
pub(super) mod watchdog;
