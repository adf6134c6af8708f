//! Which algorithm a rule asks for, and which one that is on a shape.

use std::borrow::Cow;

use hopbine_torus::Collective;
use hopbine_torus::geometry::{AxisLink, Shape};
use hopbine_torus::registry::{self, Algorithm};

/// The largest group in which everybody sends the whole vector to everybody.
const MAX_WIDTH: u32 = 8;

/// Which algorithm a rule asks for. What comes of it depends on the shape, and not on sizes: see
/// [`on`](Candidate::on).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Candidate {
    Named(Cow<'static, str>),
    /// What takes the fewest steps for a short vector.
    Latency,
}

impl From<&'static str> for Candidate {
    fn from(name: &'static str) -> Self {
        Candidate::Named(name.into())
    }
}

impl Candidate {
    /// The algorithm if it serves the shape; else the collective's first, which serves every shape, and
    /// is `mixed` mostly.
    pub(crate) fn on(&self, collective: Collective, shape: &Shape) -> Algorithm {
        let name = match self {
            Candidate::Named(name) => name,
            Candidate::Latency => latency_form(shape),
        };
        let named = registry::find(collective, name).ok();
        let named = named.filter(|algorithm| algorithm.serves(shape).is_ok());
        named.unwrap_or_else(|| registry::algorithms(collective).swap_remove(0))
    }
}

/// One message at a time where all ranks take part, else a few at once, else what folds some
/// ranks onto others: two steps more.
fn latency_form(shape: &Shape) -> &'static str {
    let known = registry::algorithms(Collective::Allreduce);
    // One rank of each node takes part; the others fold onto it inside the node.
    let axes = shape.axes().iter().filter(|axis| axis.link != AxisLink::Node).copied();
    let nodes = Shape::from_axes(axes.collect()).unwrap_or_else(|_| shape.clone());
    let takes_all = |name: &str| {
        known.iter().any(|algorithm| algorithm.name == name && algorithm.serves_unfolded(&nodes))
    };
    let widest = nodes.sizes().into_iter().map(largest_prime_factor).max();
    let is_mixed = takes_all("mixed-l") || takes_all("multiplying-l") && widest > Some(MAX_WIDTH);
    match (is_mixed, shape.ranks_per_node() > 1) {
        (true, false) => "mixed-l",
        (true, true) => "mixed-leader-l",
        (false, false) => "multiplying-l",
        (false, true) => "multiplying-leader-l",
    }
}

fn largest_prime_factor(mut size: u32) -> u32 {
    let mut factor = 2;
    while factor * factor <= size {
        if size.is_multiple_of(factor) {
            size /= factor;
        } else {
            factor += 1;
        }
    }
    size
}
