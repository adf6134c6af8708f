//! Classes of shapes: an interval for each number of a shape.

use super::feature::{Feature, Features, NumberRange};
use crate::geometry::Shape;

/// Shapes whose numbers lie in these intervals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeClass {
    /// As rules call it.
    pub name: String,
    /// The intervals, in the order of [`Feature::ALL`].
    pub bounds: [NumberRange; Feature::ALL.len()],
    /// Shapes of it.
    pub examples: Vec<Shape>,
}

impl ShapeClass {
    /// The class of all shapes.
    pub fn all(name: &str) -> Self {
        let bounds = [NumberRange::ALL; Feature::ALL.len()];
        ShapeClass { name: name.to_owned(), bounds, examples: Vec::new() }
    }

    /// The smallest class of these shapes; of all, if there are none.
    pub fn like(name: &str, examples: Vec<Shape>) -> Self {
        let mut class = ShapeClass::all(name);
        let all: Vec<Features> = examples.iter().map(Features::of).collect();
        if let [first, rest @ ..] = &all[..] {
            class.bounds = Feature::ALL.map(|feature| {
                let only = NumberRange::only(first.get(feature));
                rest.iter().fold(only, |bounds, other| bounds.and(other.get(feature)))
            });
        }
        class.examples = examples;
        class
    }

    /// Whether a shape with these numbers is of it.
    pub fn contains(&self, of: &Features) -> bool {
        self.distance(of) == 0
    }

    /// How far the shape is from it: over all numbers, how many sixteenths of doublings they are outside.
    pub fn distance(&self, of: &Features) -> u64 {
        let bounds = Feature::ALL.iter().zip(&self.bounds);
        bounds.map(|(&feature, bounds)| bounds.weighed(feature, of.get(feature))).sum()
    }

    /// Whether all shapes of `other` are of it.
    pub(super) fn covers(&self, other: &ShapeClass) -> bool {
        self.bounds.iter().zip(&other.bounds).all(|(bounds, others)| bounds.covers(*others))
    }

    /// Shapes of it, to try algorithms on: its examples, and those of a fixed list that it has.
    pub(super) fn samples(&self) -> Vec<Shape> {
        let is_own = |shape: &Shape| self.contains(&Features::of(shape));
        let mut samples = self.examples.clone();
        samples.extend(sampled().filter(is_own).take(MOST_SAMPLES));
        samples
    }
}

/// Shapes of a class that algorithms are tried on, at most.
const MOST_SAMPLES: usize = 48;

/// Sizes of dimensions: small ones, powers of two, primes, what is even and no power, the last that patterns
/// serve and the next.
const SIZES: [u32; 24] = [
    2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 23, 24, 27, 48, 64, 65, 69, 128, 1000, 1024, 1025, 4096,
];
/// Ranks of a node.
const PER_NODE: [u32; 7] = [1, 2, 3, 4, 48, 64, 65];

/// Shapes of one, two and three dimensions. One that comes early is unlike the one before.
fn sampled() -> impl Iterator<Item = Shape> {
    let n = SIZES.len();
    let nodes = move |at: usize| {
        let sizes =
            (0..n).map(move |first| (first, (first * 7 + at) % n, (first * 11 + at * 5) % n));
        sizes.flat_map(|(a, b, c)| {
            let [a, b, c] = [a, b, c].map(|at| SIZES[at]);
            [vec![a], vec![a, b], vec![a, b, c.min(64)]]
        })
    };
    let one = std::iter::once(vec![1]);
    let all = one.chain((0..n).flat_map(nodes));
    all.flat_map(|sizes| {
        let with = move |ranks| {
            Shape::torus(&sizes).and_then(|torus| torus.with_ranks_per_node(ranks)).ok()
        };
        PER_NODE.into_iter().filter_map(with)
    })
}
