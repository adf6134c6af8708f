//! From a schedule to the messages of its steps: the passes of walks, trees, folds and prefixes, the
//! orders of positions that keep their transfers contiguous, and their composition
//! ([`Expansion`](expansion::Expansion)).

mod dealt;
pub(super) mod expansion;
mod fold;
mod latency;
pub(super) mod order;
mod pass_steps;
mod prefix;
mod resend;
mod rounds;
pub(super) mod routing;
mod rules;
pub(super) mod schedule;
mod tree;
pub(super) mod walk;
mod walk_pass;
