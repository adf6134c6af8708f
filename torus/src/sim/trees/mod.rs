//! Trees through which our engine passes vectors piece by piece, in whatever order pieces come.
//!
//! A lane whose every message is the whole of a vector, and in which ranks send at most once towards a root, or
//! receive at most once from it, is a tree. Subtrees that are alike are one ([`subtrees`]): their ranks do the
//! same after as long. So pieces are followed from class to class, by recurrences and not event by event
//! ([`times`]): when each has come, when the port is done with it, when it has left.

mod port;
mod subtrees;
mod times;

pub(super) use self::subtrees::TreesOfLanes;
pub(super) use self::times::play;
