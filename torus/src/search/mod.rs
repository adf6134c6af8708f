//! The best schedule of a call under the network model, with a certificate.
//!
//! # The search space
//!
//! The space contains every form in which the registry performs the collective. A walk has a pattern for each
//! dimension, of all that serve its size: bine, doubling, circulant, balanced, direct, rings, k-rings, k-nomial and
//! Bruck's up to radix 8, products of radices in every order, in latency forms also on a smaller core, and leaders on
//! a node axis. The steps of the dimensions come in turn, in turn from the end, or one dimension after the other; in
//! latency forms they may be fused, with several numbers of messages. The vector is split over 1 to P lanes, with
//! segments of several lengths. The space has no schedules in which a rank has more than 1,024 peers.
//!
//! # Branch and bound
//!
//! The search is best first (Land and Doig 1960; Hart, Nilsson and Raphael 1968 for the order). A node of the tree is
//! a template (a schedule without patterns) with patterns for the first dimensions. A node is pruned if its bound is
//! not below the best known time: sums over the dimensions for a partial choice, the chain of a lane's steps for a
//! whole schedule (`bound`). The order follows an analytic cost of each dimension, times the ratio of predicted to
//! estimated time for schedules of the same template. The cost of a schedule is the prediction of the network model's
//! fast simulation ([`Candidate::cost`]). If one rank does not stand exactly for all, and there are too many messages
//! to follow all ranks, only the registry's own rows count for trees and rooted collectives.
//!
//! The search has no clock. [`Search::next`] returns one schedule after the other, and [`Search::learn`] records
//! their costs, so the caller may stop at any time, or predict several schedules at once. [`best_of`](fn@best_of) stops
//! after a number of predictions, so equal requests have equal results.

mod best_of;
mod bound;
mod non_walk;
mod ordered;
mod request;
mod space;
mod split;
mod steps;
mod tree;

pub use best_of::best_of;
pub use request::{Best, Candidate, Certificate, Cost, SEGMENTS, SearchError, SearchRequest};
pub use split::{better, splits};
pub use tree::Search;
