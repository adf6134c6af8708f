//! Recursive multiplying: at each step, groups of k exchange all with all; the stride of a
//! group is the product of the earlier radices.
//!
//! Source: the generalized-radix paper, section IV ("recursive multiplying"), there with one
//! radix for all steps; here the radices are the factors of the size, so 6 = 2x3, 12, 24 ...
//! are served as well as powers. Groups nest, so every send set is one contiguous run of
//! positions and the latency form of allreduce exists.

use smallvec::SmallVec;

use super::Peers;

/// Largest radix that a prime factor may force.
const MAX_FORCED_RADIX: u32 = 16;

/// A mixed-radix number system, least significant digit first; one digit per step.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    radices: Vec<u32>,
    strides: Vec<u32>,
}

pub(super) fn needs(size: u32, max_radix: u32) -> Option<String> {
    let limit = max_radix.max(MAX_FORCED_RADIX);
    radices(size, max_radix)
        .iter()
        .any(|&radix| radix > limit)
        .then(|| format!("prime factors of at most {limit}"))
}

/// Factors of `size`, each the largest divisor up to `max_radix`, or else the smallest prime
/// that is left.
pub(super) fn radices(size: u32, max_radix: u32) -> Vec<u32> {
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

impl Digits {
    pub fn new(radices: Vec<u32>) -> Self {
        let strides = radices
            .iter()
            .scan(1, |stride, &radix| {
                let here = *stride;
                *stride *= radix;
                Some(here)
            })
            .collect();
        Digits { radices, strides }
    }

    pub fn n_steps(&self) -> u32 {
        self.radices.len() as u32
    }

    fn digit(&self, t: usize, a: u32) -> u32 {
        a / self.strides[t] % self.radices[t]
    }

    /// `a` with `offset` added to digit `t`, without carry.
    fn turn(&self, t: usize, a: u32, offset: u32) -> u32 {
        let digit = self.digit(t, a);
        let turned = (digit + offset) % self.radices[t];
        a - digit * self.strides[t] + turned * self.strides[t]
    }

    /// In the order of the digit's offset, which digit-wise shifts preserve.
    pub fn targets(&self, t: u32, a: u32) -> Peers {
        let t = t as usize;
        (1..self.radices[t]).map(|offset| self.turn(t, a, offset)).collect()
    }

    pub fn sources(&self, t: u32, a: u32) -> Peers {
        let t = t as usize;
        let radix = self.radices[t];
        (1..radix).map(|offset| self.turn(t, a, radix - offset)).collect()
    }

    /// Digit-wise a - x, without borrow: the renumbering that moves x to 0.
    pub fn subtract(&self, a: u32, x: u32) -> u32 {
        self.zip(a, x, |digit, by, radix| (digit + radix - by) % radix)
    }

    /// Digit-wise b + x, without carry.
    pub fn add(&self, b: u32, x: u32) -> u32 {
        self.zip(b, x, |digit, by, radix| (digit + by) % radix)
    }

    fn zip(&self, a: u32, x: u32, combine: impl Fn(u32, u32, u32) -> u32) -> u32 {
        let digits: SmallVec<[u32; 8]> = (0..self.radices.len())
            .map(|t| combine(self.digit(t, a), self.digit(t, x), self.radices[t]))
            .collect();
        digits.iter().zip(&self.strides).map(|(digit, stride)| digit * stride).sum()
    }
}
