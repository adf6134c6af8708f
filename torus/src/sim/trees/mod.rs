//! Trees through which hopbine's engine forwards vectors piece by piece, in any order of arrival.
//!
//! A lane is a tree if each of its messages is a whole vector, and ranks send at most once towards a root, or receive
//! at most once from it. Equal subtrees are one ([`subtrees`](super::subtrees)): their ranks do the same after the same
//! times. So pieces are followed from class to class by recurrences, not event by event ([`times`]): when each has
//! arrived, when the port is done with it, when it has left.

mod branches;
mod play;
mod port;
mod times;

pub(super) use self::play::{busiest_ns, play};
