//! The best schedule of a call under the network model, with a certificate.
//!
//! # The space
//!
//! Every form in which the registry performs the collective; for walks a pattern for each dimension (all that serve
//! its size: bine, doubling, circulant, balanced, direct, rings, k-rings, k-nomial and Bruck's up to radix 8,
//! products of radices in every order, in latency forms on a smaller core, too, and leaders on a node axis), their
//! steps in turn, in turn from the end, or one dimension after the other, in latency forms fused with several
//! numbers of messages; the vector split over 1 to P lanes; segments of several lengths. Schedules in which a rank
//! meets more than 1,024 others are not in it.
//!
//! # The search
//!
//! Branch and bound, best first (Land and Doig 1960; Hart, Nilsson and Raphael 1968 for the order). A node of the
//! tree is a frame with patterns for the first dimensions. What is not below the best that is known is
//! pruned: by sums over the dimensions for a node, by the chain of a lane's steps for a whole schedule (`bound`).
//! An analytic cost of each dimension says who comes first, times what schedules of the same frame have taken
//! over theirs. The cost of a schedule is what
//! the network model's fast player predicts of it ([`Point::cost`]). Where one rank does not stand exactly for
//! all, and all are too many to be followed, of trees and rooted collectives only the registry's own rows count.
//!
//! The search has no clock: it hands out one schedule after the other ([`Search::next`]) and is told their costs
//! ([`Search::learn`]), so that its caller may stop at any time, or have several predicted at once. [`best_of`] stops
//! after so many predictions, so that all who ask the same get the same answer.

mod bound;
mod counted;
mod ordered;
mod question;
mod space;
mod split;
mod steps;
mod tree;
mod unwalked;

pub use counted::best_of;
pub use question::{Best, Certificate, Cost, Point, Question, QuestionError, SEGMENTS};
pub use split::{better, splits};
pub use tree::Search;
