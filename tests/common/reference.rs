//! Expected results of collectives, computed without any code of the library.

use hopbine_torus::collectives::Collective;

/// Sizes of one call.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub collective: Collective,
    pub n_ranks: u32,
    /// Elements of the vector, or of a block.
    pub count: usize,
    pub root: u32,
}

impl Case {
    /// Elements of the send buffer of `rank`; 0 for bcast, whose only buffer is the receive buffer.
    pub fn send_len(&self, rank: u32) -> usize {
        let p = self.n_ranks as usize;
        match self.collective {
            Collective::Allreduce | Collective::Reduce => self.count,
            Collective::Scan | Collective::Exscan => self.count,
            Collective::Allgather | Collective::Gather => self.count,
            Collective::ReduceScatter | Collective::Alltoall => p * self.count,
            Collective::Scatter if rank == self.root => p * self.count,
            Collective::Scatter | Collective::Bcast | Collective::Barrier => 0,
        }
    }

    /// Elements of the receive buffer of `rank`.
    pub fn recv_len(&self, rank: u32) -> usize {
        let p = self.n_ranks as usize;
        match self.collective {
            Collective::Allreduce | Collective::Bcast => self.count,
            Collective::Scan | Collective::Exscan => self.count,
            Collective::ReduceScatter | Collective::Scatter => self.count,
            Collective::Reduce if rank == self.root => self.count,
            Collective::Gather if rank == self.root => p * self.count,
            Collective::Allgather | Collective::Alltoall => p * self.count,
            Collective::Reduce | Collective::Gather | Collective::Barrier => 0,
        }
    }
}

/// Element `index` of the input of `rank`.
pub fn input(rank: u32, index: usize) -> u64 {
    let mixed = (u64::from(rank) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (index as u64 + 11).wrapping_mul(0xd1b5_4a32_d192_ed03)).rotate_left(17)
}

/// The input of `rank`; for bcast, the root's vector.
pub fn inputs(case: &Case, rank: u32) -> Vec<u64> {
    let len = if case.collective == Collective::Bcast { case.count } else { case.send_len(rank) };
    (0..len).map(|index| input(rank, index)).collect()
}

/// The elements that `rank` must receive; reductions apply `combine` in rank order.
pub fn expected(case: &Case, rank: u32, combine: impl Fn(u64, u64) -> u64) -> Vec<u64> {
    let count = case.count;
    let ranks = 0..case.n_ranks;
    let reduced = |index: usize| {
        ranks.clone().map(|rank| input(rank, index)).reduce(&combine).unwrap_or_default()
    };
    let own = rank as usize * count;
    match case.collective {
        _ if case.recv_len(rank) == 0 => Vec::new(),
        Collective::Allreduce | Collective::Reduce => (0..count).map(reduced).collect(),
        Collective::ReduceScatter => (own..own + count).map(reduced).collect(),
        Collective::Bcast => (0..count).map(|index| input(case.root, index)).collect(),
        Collective::Scatter => (own..own + count).map(|index| input(case.root, index)).collect(),
        Collective::Allgather | Collective::Gather => {
            ranks.flat_map(|from| (0..count).map(move |index| input(from, index))).collect()
        }
        Collective::Alltoall => {
            ranks.flat_map(|from| (own..own + count).map(move |index| input(from, index))).collect()
        }
        Collective::Scan | Collective::Exscan => {
            let end = rank + u32::from(case.collective == Collective::Scan);
            // Rank 0 receives nothing in an exscan.
            let of = |index| (0..end).map(|from| input(from, index)).reduce(&combine);
            (0..count).map(|index| of(index).unwrap_or(u64::MAX)).collect()
        }
        Collective::Barrier => Vec::new(),
    }
}
