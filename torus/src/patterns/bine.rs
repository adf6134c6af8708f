//! Bine (binomial negabinary) steps: even coordinates go one way, odd ones the other, by
//! rho(t) = sum over i <= t of (-2)^i = 1, -1, 3, -5, 11, ...
//!
//! Sources: Bine trees, Eq. 4-5; Swing, Eq. 2. Needs an even size; for even sizes that are
//! not powers of two the toward table drops the subtree reached later (Bine, appendix C).
//! Cost: ceil(log2 d) steps; hop-bytes of a reduce-scatter 2.11 per vector byte at d = 64,
//! where doubling has 3.0 (algorithms.md section 6).

use super::minus;

#[derive(Clone, Debug)]
pub(super) struct Bine {
    size: u32,
    /// rho(t) mod d, for even coordinates.
    offsets: Vec<u32>,
}

pub(super) fn needs(size: u32) -> Option<String> {
    (!size.is_multiple_of(2)).then(|| "an even size".to_owned())
}

impl Bine {
    pub fn new(size: u32) -> Self {
        let n_steps = size.next_power_of_two().trailing_zeros();
        let mut rho = 0i64;
        let offsets = (0..n_steps)
            .map(|t| {
                rho += (-2i64).pow(t);
                rho.rem_euclid(i64::from(size)) as u32
            })
            .collect();
        Bine { size, offsets }
    }

    pub fn n_steps(&self) -> u32 {
        self.offsets.len() as u32
    }

    /// Symmetric: the partner's partner is `a`, as rho is odd and flips the parity.
    pub fn partner(&self, t: u32, a: u32) -> u32 {
        let offset = self.offsets[t as usize];
        if a.is_multiple_of(2) { (a + offset) % self.size } else { minus(a, offset, self.size) }
    }

    /// A shift by an even x keeps parities; for odd x the reflection a -> x - a swaps them
    /// and the directions with them.
    pub fn normalise(&self, a: u32, x: u32) -> u32 {
        if x.is_multiple_of(2) { minus(a, x, self.size) } else { minus(x, a, self.size) }
    }

    pub fn denormalise(&self, b: u32, x: u32) -> u32 {
        if x.is_multiple_of(2) { (b + x) % self.size } else { minus(x, b, self.size) }
    }

    /// The x with `normalise(a, x) == b`: the shift by a - b and the reflection at a + b have
    /// the same parity, and just the one that fits its parity counts.
    pub fn solve(&self, a: u32, b: u32) -> u32 {
        let shift = minus(a, b, self.size);
        if shift.is_multiple_of(2) { shift } else { (a + b) % self.size }
    }
}
