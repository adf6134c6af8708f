//! 1-D patterns: for a ring of `d` coordinates, whom each coordinate may send to at each step.
//!
//! A pattern knows no data, no sizes and no collective (algorithms.md section 1). Every
//! pattern here is *vertex-transitive*: for every coordinate x there is a renumbering of the
//! ring that moves x to 0 and maps the pattern onto itself ([`Pattern::normalise`]). So one
//! column of the toward table ([`Toward`]), that of coordinate 0, tells all of it.
//!
//! The *mirrored* form of any pattern is its image under a -> -a: it leaves in the opposite
//! direction (Swing, section 4.1; Bine, appendix D.4). The *far-first* form takes the steps
//! in reverse order, which turns distance doubling into distance halving.
//!
//! ```
//! use hopbine_torus::patterns::{Kind, Pattern};
//! let bine = Pattern::new(Kind::Bine, 8).unwrap();
//! assert_eq!(bine.n_steps(), 3);
//! assert_eq!((0..3).map(|t| bine.targets(t, 0)[0]).collect::<Vec<_>>(), [1, 7, 3]);
//! ```

mod bine;
mod circulant;
mod direct;
mod doubling;
mod multiplying;
mod ring;
mod toward;

use std::fmt;
use std::str::FromStr;

use smallvec::SmallVec;

pub use toward::{Hop, Toward};

/// The peers of one coordinate at one step; one for most patterns.
pub type Peers = SmallVec<[u32; 2]>;

/// The rule that defines a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Alternating distances 1, -1, 3, -5, 11 (Bine, Eq. 4-5; Swing, Eq. 2). Even sizes.
    Bine,
    /// The neighbour, d - 1 times: the bucket algorithm in every dimension.
    Ring,
    /// XOR with powers of two (Rabenseifner, Thakur). Powers of two.
    Doubling,
    /// Distances 1, -2, 4, -8, ... in one direction per rank. Every size.
    Circulant,
    /// Everyone at once. Small sizes.
    Direct,
    /// Groups of up to `max_radix` ("recursive multiplying", generalized-radix paper,
    /// section IV).
    Multiplying {
        /// The largest group that the factorisation of the size aims at, at least 2.
        max_radix: u32,
    },
}

/// Why a pattern does not exist for a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} does not serve a dimension of size {size}: it needs {needs}")]
pub struct Unserved {
    /// The pattern.
    pub kind: Kind,
    /// The size of the dimension.
    pub size: u32,
    /// What sizes it serves.
    pub needs: String,
}

impl Kind {
    /// Checks that the pattern exists for rings of `size` coordinates.
    ///
    /// # Errors
    /// [`Unserved`] saying which sizes are served.
    pub fn serves(self, size: u32) -> Result<(), Unserved> {
        let needs = match self {
            _ if size == 1 => None,
            Kind::Bine => bine::needs(size),
            Kind::Ring => ring::needs(size),
            Kind::Doubling => doubling::needs(size),
            Kind::Circulant => None,
            Kind::Direct => direct::needs(size),
            Kind::Multiplying { max_radix } => multiplying::needs(size, max_radix),
        };
        needs.map_or(Ok(()), |needs| Err(Unserved { kind: self, size, needs }))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bine => f.pad("bine"),
            Kind::Ring => f.pad("ring"),
            Kind::Doubling => f.pad("doubling"),
            Kind::Circulant => f.pad("circulant"),
            Kind::Direct => f.pad("direct"),
            Kind::Multiplying { max_radix } => f.pad(&format!("multiplying:{max_radix}")),
        }
    }
}

/// A text that names no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a pattern; known are bine, ring, doubling, circulant, direct and \
     multiplying:K with K of 2 or more"
)]
pub struct UnknownPattern(pub String);

impl FromStr for Kind {
    type Err = UnknownPattern;

    fn from_str(text: &str) -> Result<Self, UnknownPattern> {
        let unknown = || UnknownPattern(text.to_owned());
        Ok(match text {
            "bine" => Kind::Bine,
            "ring" => Kind::Ring,
            "doubling" => Kind::Doubling,
            "circulant" => Kind::Circulant,
            "direct" => Kind::Direct,
            _ => {
                let radix = text.strip_prefix("multiplying:").ok_or_else(unknown)?;
                let max_radix = radix.parse().ok().filter(|&k| k >= 2).ok_or_else(unknown)?;
                Kind::Multiplying { max_radix }
            }
        })
    }
}

/// A pattern on a ring of a given size.
#[derive(Clone, Debug)]
pub struct Pattern {
    kind: Kind,
    size: u32,
    mirrored: bool,
    far_first: bool,
    rule: Rule,
}

/// What a kind needs to know about a size, computed once.
#[derive(Clone, Debug)]
enum Rule {
    /// Size 1: nobody to talk to.
    Alone,
    Bine(bine::Bine),
    Ring(ring::Ring),
    Circulant(circulant::Circulant),
    Direct(direct::Direct),
    /// Doubling is multiplying with every radix 2.
    Digits(multiplying::Digits),
}

impl Pattern {
    /// Nothing but a ring of `size` coordinates, whose renumberings are its shifts.
    pub fn shift(size: u32) -> Self {
        let rule = if size == 1 { Rule::Alone } else { Rule::Ring(ring::Ring::new(size)) };
        Pattern { kind: Kind::Ring, size, mirrored: false, far_first: false, rule }
    }

    /// The plain, near-first form of `kind` on `size` coordinates.
    ///
    /// # Errors
    /// [`Unserved`] if there is none.
    pub fn new(kind: Kind, size: u32) -> Result<Self, Unserved> {
        kind.serves(size)?;
        let rule = match kind {
            _ if size == 1 => Rule::Alone,
            Kind::Bine => Rule::Bine(bine::Bine::new(size)),
            Kind::Ring => Rule::Ring(ring::Ring::new(size)),
            Kind::Doubling => Rule::Digits(doubling::digits(size)),
            Kind::Circulant => Rule::Circulant(circulant::Circulant::new(size)),
            Kind::Direct => Rule::Direct(direct::Direct::new(size)),
            Kind::Multiplying { max_radix } => {
                Rule::Digits(multiplying::Digits::new(multiplying::radices(size, max_radix)))
            }
        };
        Ok(Pattern { kind, size, mirrored: false, far_first: false, rule })
    }

    /// The mirrored form, if `mirrored`.
    pub fn mirrored(mut self, mirrored: bool) -> Self {
        self.mirrored = mirrored;
        self
    }

    /// The form with its steps in reverse order, if `far_first`.
    pub fn far_first(mut self, far_first: bool) -> Self {
        self.far_first = far_first;
        self
    }

    /// The rule.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Coordinates on the ring.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Number of steps.
    pub fn n_steps(&self) -> u32 {
        match &self.rule {
            Rule::Alone => 0,
            Rule::Bine(rule) => rule.n_steps(),
            Rule::Ring(rule) => rule.n_steps(),
            Rule::Circulant(rule) => rule.n_steps(),
            Rule::Direct(_) => 1,
            Rule::Digits(rule) => rule.n_steps(),
        }
    }

    /// Whom `a` may send to at step `t`, in an order that [`Pattern::normalise`] preserves.
    pub fn targets(&self, t: u32, a: u32) -> Peers {
        self.through(t, a, |rule, t, a| match rule {
            Rule::Alone => Peers::new(),
            Rule::Bine(rule) => Peers::from_slice(&[rule.partner(t, a)]),
            Rule::Ring(rule) => Peers::from_slice(&[rule.next(a)]),
            Rule::Circulant(rule) => Peers::from_slice(&[rule.target(t, a)]),
            Rule::Direct(rule) => rule.targets(a),
            Rule::Digits(rule) => rule.targets(t, a),
        })
    }

    /// Who may send to `a` at step `t`: entry `i` is the coordinate whose target `i` is `a`.
    pub fn sources(&self, t: u32, a: u32) -> Peers {
        self.through(t, a, |rule, t, a| match rule {
            Rule::Alone => Peers::new(),
            Rule::Bine(rule) => Peers::from_slice(&[rule.partner(t, a)]),
            Rule::Ring(rule) => Peers::from_slice(&[rule.previous(a)]),
            Rule::Circulant(rule) => Peers::from_slice(&[rule.source(t, a)]),
            Rule::Direct(rule) => rule.sources(a),
            Rule::Digits(rule) => rule.sources(t, a),
        })
    }

    /// Applies the far-first and mirrored forms around a rule.
    fn through(&self, t: u32, a: u32, peers: impl Fn(&Rule, u32, u32) -> Peers) -> Peers {
        let t = if self.far_first { self.n_steps() - 1 - t } else { t };
        let mut found = peers(&self.rule, t, self.mirror(a));
        for peer in &mut found {
            *peer = self.mirror(*peer);
        }
        found
    }

    fn mirror(&self, a: u32) -> u32 {
        if self.mirrored && a > 0 { self.size - a } else { a }
    }

    /// The image of `a` under the renumbering that maps the pattern onto itself and `x` to 0.
    pub fn normalise(&self, a: u32, x: u32) -> u32 {
        let (a, x) = (self.mirror(a), self.mirror(x));
        self.mirror(match &self.rule {
            Rule::Alone => 0,
            Rule::Bine(rule) => rule.normalise(a, x),
            Rule::Ring(_) | Rule::Circulant(_) | Rule::Direct(_) => {
                if a >= x {
                    a - x
                } else {
                    a + self.size - x
                }
            }
            Rule::Digits(rule) => rule.subtract(a, x),
        })
    }

    /// The inverse of [`Pattern::normalise`]: the coordinate whose image is `b`.
    pub fn denormalise(&self, b: u32, x: u32) -> u32 {
        let (b, x) = (self.mirror(b), self.mirror(x));
        self.mirror(match &self.rule {
            Rule::Alone => 0,
            // Bine's renumbering is a shift for even x, a reflection (its own inverse) for odd.
            Rule::Bine(rule) => rule.denormalise(b, x),
            Rule::Ring(_) | Rule::Circulant(_) | Rule::Direct(_) => (b + x) % self.size,
            Rule::Digits(rule) => rule.add(b, x),
        })
    }

    /// The coordinate x whose renumbering takes `a` to `b`: `normalise(a, x) == b`.
    pub fn solve(&self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.mirror(a), self.mirror(b));
        self.mirror(match &self.rule {
            Rule::Alone => 0,
            Rule::Bine(rule) => rule.solve(a, b),
            Rule::Ring(_) | Rule::Circulant(_) | Rule::Direct(_) => minus(a, b, self.size),
            Rule::Digits(rule) => rule.subtract(a, b),
        })
    }

    /// True if the sets that are sent and kept are nested groups, or nearly (bine on even
    /// sizes that are no powers of two), so that one order of the coordinates makes them
    /// contiguous on every coordinate.
    pub fn is_nested(&self) -> bool {
        match &self.rule {
            Rule::Alone | Rule::Bine(_) | Rule::Direct(_) | Rule::Digits(_) => true,
            Rule::Ring(_) | Rule::Circulant(_) => self.size <= 2,
        }
    }

    /// True if all steps are alike.
    pub fn is_uniform(&self) -> bool {
        matches!(self.rule, Rule::Ring(_))
    }

    /// True if the sets are intervals of the coordinates as they are.
    pub fn is_interval(&self) -> bool {
        matches!(self.rule, Rule::Ring(_))
    }

    /// True if the sets of coordinates that have exchanged up to each step are nested groups
    /// in which everyone talks to everyone. The latency form of allreduce exists only then (algorithms.md section 5).
    pub fn groups_nest(&self) -> bool {
        match &self.rule {
            Rule::Alone | Rule::Direct(_) | Rule::Digits(_) => true,
            Rule::Bine(_) => self.size == 2 || self.far_first && self.size.is_power_of_two(),
            Rule::Ring(_) | Rule::Circulant(_) => self.size == 2,
        }
    }
}

/// Subtraction on a ring.
fn minus(a: u32, b: u32, size: u32) -> u32 {
    let b = b % size;
    if a >= b { a - b } else { a + size - b }
}

#[cfg(test)]
mod tests;
