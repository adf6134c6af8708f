//! Classes of shapes: an interval for each feature of a shape.

use super::feature::{Feature, Features, NumberRange};
use crate::geometry::Shape;

/// The shapes whose features lie in these intervals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeClass {
    /// The name that rules use.
    pub name: String,
    /// The intervals, in the order of [`Feature::ALL`].
    pub bounds: [NumberRange; Feature::ALL.len()],
    /// Some shapes of the class.
    pub examples: Vec<Shape>,
}

impl ShapeClass {
    /// The class of all shapes.
    pub fn all(name: &str) -> Self {
        let bounds = [NumberRange::ALL; Feature::ALL.len()];
        ShapeClass { name: name.to_owned(), bounds, examples: Vec::new() }
    }

    /// The smallest class that contains these shapes; the class of all shapes if there are none.
    pub fn enclosing(name: &str, examples: Vec<Shape>) -> Self {
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

    /// Whether the class contains a shape with these features.
    pub fn contains(&self, of: &Features) -> bool {
        self.distance(of) == 0
    }

    /// Distance of a shape from the class: the sum over its features of the weighted sixteenths of doublings outside.
    pub fn distance(&self, of: &Features) -> u64 {
        let bounds = Feature::ALL.iter().zip(&self.bounds);
        bounds.map(|(&feature, bounds)| bounds.weighted_distance(feature, of.get(feature))).sum()
    }

    /// Whether the class contains all shapes of `other`.
    pub(super) fn covers(&self, other: &ShapeClass) -> bool {
        self.bounds.iter().zip(&other.bounds).all(|(bounds, others)| bounds.covers(*others))
    }

    /// Shapes of the class to try algorithms on: its examples, and shapes of a fixed list.
    pub(super) fn samples(&self) -> Vec<Shape> {
        let is_own = |shape: &Shape| self.contains(&Features::of(shape));
        let mut samples = self.examples.clone();
        samples.extend(sampled().filter(is_own).take(MOST_SAMPLES));
        samples
    }
}

/// The most shapes of the fixed list that are tried for a class.
const MOST_SAMPLES: usize = 48;

/// Sizes of dimensions: small ones, powers of two, primes, even numbers that are no powers of two, the largest size
/// that patterns serve and the next one.
const SIZES: [u32; 24] = [
    2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 23, 24, 27, 48, 64, 65, 69, 128, 1000, 1024, 1025, 4096,
];
/// Numbers of ranks on a node.
const PER_NODE: [u32; 7] = [1, 2, 3, 4, 48, 64, 65];

/// Shapes of one, two and three dimensions, in an order in which neighbours differ.
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
