//! Why an operation does not go on: the watchdog, its search along the ranks that wait for each other, and
//! what ranks ask and tell one another.

mod inquiry;
pub(super) mod operation;
mod search;
pub(super) mod watchdog;
