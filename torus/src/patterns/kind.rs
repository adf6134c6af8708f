//! The patterns by name: the sizes that they serve, and their text form.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Largest size of a ring: plans have a step per coordinate.
const MAX_RING: u32 = 1 << 17;

/// Largest size of `direct`: every coordinate posts a message to all others at once.
const MAX_DIRECT: u32 = 64;

/// Largest radix of `multiplying` that a prime factor of the size may force.
const MAX_FORCED_RADIX: u32 = 16;

/// A pattern's name, with its parameters. `FromStr` and `Display` are inverse.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PatternKind {
    /// `bine`: alternating distances 1, -1, 3, -5, 11, ...; even and odd coordinates go in opposite directions
    /// (Bine, Eq. 4-5; Swing, Eq. 2). Even sizes.
    Bine,
    /// `ring`: the neighbour, in each of d - 1 steps; in every dimension of a torus the bucket algorithm (Swing,
    /// section 2.3.4).
    Ring,
    /// `doubling`: XOR with 1, 2, 4, ... (Rabenseifner; Thakur et al.). Powers of two.
    Doubling,
    /// `circulant`: distances 1, -2, 4, -8, ...; each rank sends in one direction per step. Every size; ours.
    Circulant,
    /// `balanced`: distances 1, 3, 9, ... in both directions in each step; the last step divides the remaining
    /// distance between both (Trivance, arXiv 2602.17254, for powers of three; other sizes are ours). Every size.
    Balanced,
    /// `direct`: all other coordinates in one step. Small sizes.
    Direct,
    /// `leader`: coordinate 0 alone, onto which all other coordinates fold: for the ranks of a node in a latency
    /// form.
    Leader,
    /// `multiplying:K`: in each step groups of up to K exchange all with all; K is the largest radix into which the
    /// size is factorised (recursive multiplying: generalized-radix paper, section IV).
    Multiplying {
        /// At least 2.
        max_radix: u32,
    },
    /// `multiplying:K1,K2,...`: the same with these radices; their product is the size.
    Radices(Arc<[u32]>),
    /// `knomial:K`: distances z K^t downwards, z < K: k-nomial trees (generalized radix,
    /// section III). Every size.
    Knomial {
        /// At least 2.
        radix: u32,
    },
    /// `bruck:R`: distances z R^t upwards, z < R: the order of Bruck's all-to-all (Bruck et
    /// al., IEEE TPDS 8(11), 1997). Every size.
    Bruck {
        /// At least 2.
        radix: u32,
    },
    /// `kring:K`: rings of K inside a group alternate with one step between groups
    /// (generalized radix, section V). Multiples of K.
    KRing {
        /// Size of a group, at least 2.
        group: u32,
    },
}

/// The pattern does not exist for a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} does not serve a dimension of size {size}: it needs {needs}")]
#[non_exhaustive]
pub struct UnsupportedSize {
    /// The pattern.
    pub kind: PatternKind,
    /// The size of the dimension.
    pub size: u32,
    /// The sizes that the pattern serves.
    pub needs: String,
}

impl PatternKind {
    /// Checks that the pattern exists for rings of `size` coordinates.
    ///
    /// # Errors
    /// [`UnsupportedSize`] with the sizes that are served.
    pub fn serves(&self, size: u32) -> Result<(), UnsupportedSize> {
        let unless = |serves: bool, needs: String| (!serves).then_some(needs);
        let needs = match self {
            _ if size == 1 => None,
            PatternKind::Circulant
            | PatternKind::Balanced
            | PatternKind::Knomial { .. }
            | PatternKind::Bruck { .. } => None,
            PatternKind::Bine => unless(size.is_multiple_of(2), "an even size".to_owned()),
            PatternKind::Doubling => unless(size.is_power_of_two(), "a power of two".to_owned()),
            PatternKind::Ring => unless(size <= MAX_RING, at_most(MAX_RING, "one step each")),
            PatternKind::Leader => Some("no other coordinates, or a latency form".to_owned()),
            PatternKind::Direct => {
                unless(size <= MAX_DIRECT, at_most(MAX_DIRECT, "all met at once"))
            }
            PatternKind::Multiplying { max_radix } => {
                let limit = (*max_radix).max(MAX_FORCED_RADIX);
                let serves = factors(size, *max_radix).iter().all(|&radix| radix <= limit);
                unless(serves, format!("prime factors of at most {limit}"))
            }
            PatternKind::Radices(radices) => {
                let of = product(radices);
                let served = of.map_or("radices whose product is a size".to_owned(), |of| {
                    format!("a size of {of}")
                });
                unless(of == Some(size), served)
            }
            PatternKind::KRing { group } => match size.is_multiple_of(*group) {
                true => unless(size <= MAX_RING, at_most(MAX_RING, "one step each")),
                false => Some(format!("a multiple of {group}")),
            },
        };
        needs.map_or(Ok(()), |needs| Err(UnsupportedSize { kind: self.clone(), size, needs }))
    }
}

impl PatternKind {
    /// The size of the core for the latency form on `size` coordinates (algorithms.md, section 5): the coordinates
    /// below it exchange whole vectors, the other coordinates fold onto them. On the core the pattern's groups nest
    /// with far-first steps. It is the largest such size; for `multiplying` it is, among the products of its
    /// radices from `size / 2` on, the one with the fewest factors. If no core exists, it is `size`.
    pub fn core(&self, size: u32) -> u32 {
        match self {
            PatternKind::Leader => 1,
            PatternKind::Bine | PatternKind::Doubling | PatternKind::Circulant => 1 << size.ilog2(),
            PatternKind::Knomial { radix } | PatternKind::Bruck { radix } => {
                radix.pow(size.ilog(*radix))
            }
            PatternKind::Multiplying { max_radix } if self.serves(size).is_err() => {
                let smooth = |core: &u32| factors(*core, *max_radix).iter().all(|k| k <= max_radix);
                let n_steps = |core: &u32| factors(*core, *max_radix).len();
                let cores = (size.div_ceil(2)..=size).rev().filter(smooth);
                cores.min_by_key(n_steps).unwrap_or(size)
            }
            PatternKind::Radices(radices) => {
                let is_core = |core: &u32| (size.div_ceil(2)..=size).contains(core);
                product(radices).filter(is_core).unwrap_or(size)
            }
            _ => size,
        }
    }
}

fn at_most(limit: u32, why: &str) -> String {
    format!("at most {limit} coordinates, {why}")
}

/// The product of radices; `None` if it is above all sizes.
fn product(radices: &[u32]) -> Option<u32> {
    radices.iter().try_fold(1u32, |product, &radix| product.checked_mul(radix))
}

/// Factors of `size`: each is the largest divisor up to `max_radix` of what remains, or else its smallest prime
/// factor.
pub(super) fn factors(size: u32, max_radix: u32) -> Vec<u32> {
    let mut rest = size;
    let mut radices = Vec::new();
    while rest > 1 {
        let radix = (2..=max_radix.min(rest))
            .rev()
            .find(|&k| rest.is_multiple_of(k))
            .unwrap_or_else(|| smallest_prime(rest));
        radices.push(radix);
        rest /= radix;
    }
    radices
}

fn smallest_prime(n: u32) -> u32 {
    (2..)
        .take_while(|&k| u64::from(k) * u64::from(k) <= u64::from(n))
        .find(|&k| n.is_multiple_of(k))
        .unwrap_or(n)
}

impl fmt::Display for PatternKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternKind::Bine => f.pad("bine"),
            PatternKind::Ring => f.pad("ring"),
            PatternKind::Doubling => f.pad("doubling"),
            PatternKind::Circulant => f.pad("circulant"),
            PatternKind::Balanced => f.pad("balanced"),
            PatternKind::Direct => f.pad("direct"),
            PatternKind::Leader => f.pad("leader"),
            PatternKind::Multiplying { max_radix } => f.pad(&format!("multiplying:{max_radix}")),
            PatternKind::Radices(radices) => {
                let list: Vec<String> = radices.iter().map(u32::to_string).collect();
                f.pad(&format!("multiplying:{}", list.join(",")))
            }
            PatternKind::Knomial { radix } => f.pad(&format!("knomial:{radix}")),
            PatternKind::Bruck { radix } => f.pad(&format!("bruck:{radix}")),
            PatternKind::KRing { group } => f.pad(&format!("kring:{group}")),
        }
    }
}

/// The text is not the name of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a pattern; known are bine, ring, doubling, circulant, balanced, direct, leader, \
     multiplying:K, multiplying:K,K,..., knomial:K, bruck:K and kring:K with every K 2 or more"
)]
pub struct UnknownPattern(pub String);

impl FromStr for PatternKind {
    type Err = UnknownPattern;

    fn from_str(text: &str) -> Result<Self, UnknownPattern> {
        let unknown = || UnknownPattern(text.to_owned());
        let (name, parameters) = match text.split_once(':') {
            Some((name, list)) => {
                let number = |word: &str| {
                    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
                    is_plain.then(|| word.parse::<u32>().ok()).flatten().filter(|&k| k >= 2)
                };
                let list = list.split(',').map(number).collect::<Option<Vec<u32>>>();
                (name, list.ok_or_else(unknown)?)
            }
            None => (text, Vec::new()),
        };
        Ok(match (name, &parameters[..]) {
            ("bine", []) => PatternKind::Bine,
            ("ring", []) => PatternKind::Ring,
            ("doubling", []) => PatternKind::Doubling,
            ("circulant", []) => PatternKind::Circulant,
            ("balanced", []) => PatternKind::Balanced,
            ("direct", []) => PatternKind::Direct,
            ("leader", []) => PatternKind::Leader,
            ("multiplying", &[max_radix]) => PatternKind::Multiplying { max_radix },
            ("multiplying", [_, _, ..]) => PatternKind::Radices(Arc::from(parameters)),
            ("knomial", &[radix]) => PatternKind::Knomial { radix },
            ("bruck", &[radix]) => PatternKind::Bruck { radix },
            ("kring", &[group]) => PatternKind::KRing { group },
            _ => return Err(unknown()),
        })
    }
}
