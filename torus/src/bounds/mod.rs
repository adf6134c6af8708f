//! Lower bounds of the traffic and the time of a collective, whatever the algorithm.
//!
//! Each bound has a name ([`BoundKind`]), a formula and a source (algorithms.md section 7). The bound of a call is
//! the largest of them, not their sum. The *gap* of a schedule is its time, or its load, over the bound.
//! [`LeastTraffic`] bounds traffic without a machine, in units of n: the bytes of a vector or of all blocks of a
//! rank. [`Bounds`] are times on a machine with given [`Limits`].
//!
//! There are V nodes of c ranks each, N = V c. Traffic inside a node counts as free.

mod links;
mod spread;
mod time;
mod traffic;

pub use links::{LineLinks, Links};
pub use time::{Bounds, Limits};
pub use traffic::LeastTraffic;

crate::named! {
    /// What a bound follows from.
    #[non_exhaustive]
    pub enum BoundKind {
        /// The data that must leave or enter a node over its links and interfaces.
        Bandwidth = "bandwidth",
        /// The data that must cross the links of a dimension.
        Bisection = "bisection",
        /// The data that must be combined.
        Reduction = "reduction",
        /// The fewest messages in sequence, and the farthest node.
        Latency = "latency",
    }
}

/// Returns the largest of some bounds with its kind; the first of equal ones.
fn largest(bounds: impl IntoIterator<Item = (BoundKind, f64)>) -> (BoundKind, f64) {
    let larger = |a: (BoundKind, f64), b: (BoundKind, f64)| if b.1 > a.1 { b } else { a };
    bounds.into_iter().reduce(larger).unwrap_or((BoundKind::Bandwidth, 0.0))
}
