//! Names of algorithms in tables, in which a number can depend on the shape.

use std::fmt;

use super::feature::{Feature, Features};
use crate::collectives::Collective;
use crate::geometry::Shape;
use crate::registry::{self, Algorithm, UnknownAlgorithm};

/// An algorithm's name; `{sqrt-ranks}` in it stands for the square root of the number of ranks, rounded down, and at
/// least 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template(pub String);

/// The placeholder for the square root of the number of ranks.
const ROOT_OF_RANKS: &str = "{sqrt-ranks}";
/// The least radix that replaces the placeholder.
const LEAST_RADIX: u32 = 2;

impl Template {
    /// Returns the algorithm on a shape with these features.
    ///
    /// # Errors
    /// [`UnknownAlgorithm`].
    pub fn on(&self, collective: Collective, of: &Features) -> Result<Algorithm, UnknownAlgorithm> {
        if !self.0.contains(ROOT_OF_RANKS) {
            return registry::find(collective, &self.0);
        }
        let root = of.get(Feature::Ranks).isqrt().max(LEAST_RADIX);
        registry::find(collective, &self.0.replace(ROOT_OF_RANKS, &root.to_string()))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The algorithms of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidates {
    /// Tried first: this algorithm is taken if it folds no node onto another.
    pub if_unfolded: Option<Template>,
    /// Of these the first that serves the shape is taken.
    pub first_of: Vec<Template>,
}

impl Candidates {
    /// Returns the algorithm for a collective on a shape, on `ports` ports. If no candidate serves the shape and the
    /// ports, which can happen outside the rule's class and ports, it is the first of the registry, which serves every
    /// shape.
    pub fn on(
        &self,
        collective: Collective,
        (shape, of): (&Shape, &Features),
        ports: u32,
    ) -> Algorithm {
        let named = |name: &Template| {
            name.on(collective, of).ok().filter(|algorithm| algorithm.is_for(ports))
        };
        let unfolded = self.if_unfolded.as_ref().and_then(named);
        let unfolded = unfolded.filter(|algorithm| algorithm.serves_unfolded(shape));
        let serves = |algorithm: &Algorithm| algorithm.serves(shape).is_ok();
        let first = || self.first_of.iter().filter_map(named).find(serves);
        unfolded.or_else(first).unwrap_or_else(|| registry::algorithms(collective).swap_remove(0))
    }

    /// All names, in the order in which they are tried.
    pub fn names(&self) -> impl Iterator<Item = &Template> {
        self.if_unfolded.iter().chain(&self.first_of)
    }
}
