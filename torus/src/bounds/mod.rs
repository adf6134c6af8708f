//! Lower bounds: what no algorithm can do without.
//!
//! Each bound has a name ([`BoundKind`]), its formula and its source (algorithms.md section 7). The bound of
//! a call is the largest of them, not their sum; the *gap* of a schedule is what it takes over that.
//! [`LeastTraffic`] is the form without a machine: volumes in units of n, the bytes of a vector or of all
//! blocks of a rank. [`Bounds`] are times on the network of a [`Limits`].
//!
//! V nodes of c ranks each, N = V c. What stays on a node is free.

mod links;
mod spread;
mod time;
mod traffic;

pub use links::{LineLinks, Links};
pub use time::{Bounds, Limits};
pub use traffic::LeastTraffic;

crate::named! {
    /// What a bound follows from.
    pub enum BoundKind {
        /// What must leave or enter a node over its links and interfaces.
        Bandwidth = "bandwidth",
        /// What must cross the links of a dimension.
        Bisection = "bisection",
        /// What must be combined.
        Reduction = "reduction",
        /// The fewest messages one after the other, and the longest way.
        Latency = "latency",
    }
}

/// The largest of some bounds, and what it follows from; the first of equal ones.
fn largest(bounds: impl IntoIterator<Item = (BoundKind, f64)>) -> (BoundKind, f64) {
    let larger = |a: (BoundKind, f64), b: (BoundKind, f64)| if b.1 > a.1 { b } else { a };
    bounds.into_iter().reduce(larger).unwrap_or((BoundKind::Bandwidth, 0.0))
}
