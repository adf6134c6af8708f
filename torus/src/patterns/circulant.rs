//! The circulant pattern: every rank sends by the same offset, +1, -2, +4, -8, ...
//!
//! The offsets keep the window of residues reached so far contiguous: each step shifts it
//! by its own length, in alternating direction; the last step shifts by just what is
//! missing. d = 7: 1, -2, 3; d = 23: 1, -2, 4, -8, 7. So odd and prime sizes need no folding
//! onto a power of two and no doubled traffic (algorithms.md section 1; ours, the papers use
//! extra steps: Bine appendix C, Swing section 3.2). ceil(log2 d) steps for every size.

use super::minus;

#[derive(Clone, Debug)]
pub(super) struct Circulant {
    size: u32,
    /// Offsets mod d.
    offsets: Vec<u32>,
}

impl Circulant {
    pub fn new(size: u32) -> Self {
        let mut offsets = Vec::new();
        let mut window = 1;
        while window < size {
            let shift = window.min(size - window);
            offsets.push(if offsets.len() % 2 == 0 { shift } else { size - shift });
            window += shift;
        }
        Circulant { size, offsets }
    }

    pub fn n_steps(&self) -> u32 {
        self.offsets.len() as u32
    }

    pub fn target(&self, t: u32, a: u32) -> u32 {
        (a + self.offsets[t as usize]) % self.size
    }

    pub fn source(&self, t: u32, a: u32) -> u32 {
        minus(a, self.offsets[t as usize], self.size)
    }
}
