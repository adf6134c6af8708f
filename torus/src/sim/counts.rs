//! Sparse counts, for the messages that a step of many ranks puts on the links of a network.

/// Counts of which few are not 0.
#[derive(Debug, Default)]
pub struct SparseCounts {
    all: Vec<u64>,
    /// Indices of the counts that are not 0.
    counted: Vec<u32>,
}

impl SparseCounts {
    pub fn resize(&mut self, n: usize) {
        self.all.resize(n, 0);
    }

    /// Adds to a count, and returns the new count.
    pub fn add(&mut self, at: usize, more: u64) -> u64 {
        let count = &mut self.all[at];
        if *count == 0 && more > 0 {
            self.counted.push(at as u32);
        }
        *count += more;
        *count
    }

    /// Returns the counts that are not 0, and resets them to 0.
    pub fn drain(&mut self) -> impl Iterator<Item = (u32, u64)> {
        let SparseCounts { all, counted } = self;
        counted.drain(..).map(|at| (at, std::mem::take(&mut all[at as usize])))
    }
}
