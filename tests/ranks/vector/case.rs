//! A call in vector form, and its expected result, computed by loops from the definition.

use crate::common::reference::input;
use hopbine::reduce::Op;
use hopbine::torus::Collective;
use hopbine::{Blocks, Communicator};

/// Number of elements that rank `from` of `p` has for rank `to`. For blocks without a particular receiver, `to` is 0.
pub type Size = fn(p: u64, from: u64, to: u64) -> u64;

/// A pseudo-random number.
fn random(from: u64, to: u64) -> u64 {
    input(from as u32, to as usize) >> 20
}

/// Equal sizes, the distributions of the papers, nearly all data in one place, and no data.
pub const DISTRIBUTIONS: [(&str, Size); 8] = [
    ("even", |_, _, _| 5),
    ("uniform", |_, from, to| random(from, to) % 24),
    ("normal", |_, from, to| (0..4).map(|part| random(from, to) >> (8 * part) & 7).sum()),
    ("power", |_, from, to| (random(from, to) % 100).pow(4) / 1_000_000),
    ("zipf", |p, from, to| 60 / (1 + random(from, to) % p)),
    ("sparse", |_, from, to| if random(from, to).is_multiple_of(8) { 9 } else { 0 }),
    ("skewed", |_, from, to| if (from, to % 3) == (1, 0) { 1000 } else { 1 }),
    ("nothing", |_, _, _| 0),
];

/// Placement of the blocks, and form of the call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// True if the blocks have gaps and are in reverse order, false if they are side by side.
    pub spread: bool,
    /// The call's other form: in place; for gather and scatter, with counts that all ranks know.
    pub other: bool,
}

impl Form {
    pub const ALL: [Form; 4] = [
        Form { spread: false, other: false },
        Form { spread: false, other: true },
        Form { spread: true, other: false },
        Form { spread: true, other: true },
    ];

    /// Displacements of the blocks (`None` if side by side), and the length of their buffer.
    fn places(self, counts: &[u64]) -> (Option<Vec<u64>>, usize) {
        if !self.spread {
            return (None, counts.iter().sum::<u64>() as usize);
        }
        let mut at = 0;
        let mut places = vec![0; counts.len()];
        for (place, count) in places.iter_mut().zip(counts).rev() {
            at += 2;
            *place = at;
            at += count;
        }
        (Some(places), at as usize + 3)
    }
}

/// Value of elements that no call writes.
pub const NONE: u64 = u64::MAX;

fn blocks<'a>(counts: &'a [u64], places: &'a Option<Vec<u64>>) -> Blocks<'a> {
    match places {
        None => Blocks::new(counts),
        Some(places) => Blocks::new(counts).at(places),
    }
}

/// A buffer with the given contents in its blocks.
fn filled(len: usize, blocks: Blocks<'_>, content: impl Fn(usize, usize) -> u64) -> Vec<u64> {
    let mut buffer = vec![NONE; len];
    let mut next = 0;
    for (rank, &count) in blocks.counts.iter().enumerate() {
        let start = blocks.displacements.map_or(next, |places| places[rank] as usize);
        next = start + count as usize;
        for index in 0..count as usize {
            buffer[start + index] = content(rank, index);
        }
    }
    buffer
}

pub struct Case<'a> {
    pub comm: &'a Communicator,
    pub size: Size,
    pub what: String,
    pub root: u32,
}

impl Case<'_> {
    fn p(&self) -> u64 {
        u64::from(self.comm.size())
    }

    fn me(&self) -> u64 {
        u64::from(self.comm.rank())
    }

    fn between(&self, from: u64, to: u64) -> u64 {
        (self.size)(self.p(), from, to)
    }

    /// Size of each rank's block, by rank.
    fn counts(&self) -> Vec<u64> {
        (0..self.p()).map(|rank| self.between(rank, 0)).collect()
    }

    fn vector(&self, rank: u64, len: u64) -> Vec<u64> {
        (0..len as usize).map(|index| input(rank as u32, index)).collect()
    }

    fn is(&self, got: &[u64], want: &[u64]) {
        assert!(got == want, "{}: rank {} is wrong", self.what, self.me());
    }

    /// Calls the vector form of a collective in the given form, and compares the result with the definition.
    pub fn call(&self, collective: Collective, form: Form) {
        match collective {
            Collective::Allgather => self.gathered(form),
            Collective::ReduceScatter => self.reduced(form),
            Collective::Gather => self.gathered_at_root(form),
            Collective::Scatter => self.scattered(form),
            Collective::Alltoall => self.exchanged(form),
            _ => panic!("{collective} has no vector form"),
        }
    }

    fn gathered(&self, form: Form) {
        let counts = self.counts();
        let me = self.me() as usize;
        let own = self.vector(self.me(), counts[me]);
        let (places, len) = form.places(&counts);
        let blocks = blocks(&counts, &places);
        let want = filled(len, blocks, |rank, index| input(rank as u32, index));
        let mut got = vec![NONE; len];
        if form.other {
            let content = |rank, index: usize| if rank == me { own[index] } else { NONE };
            got = filled(len, blocks, content);
            self.comm.allgatherv_in_place(&mut got, blocks).unwrap();
        } else {
            self.comm.allgatherv(&own, &mut got, blocks).unwrap();
        }
        self.is(&got, &want);
    }

    fn gathered_at_root(&self, form: Form) {
        let counts = self.counts();
        let own = self.vector(self.me(), counts[self.me() as usize]);
        let is_root = self.comm.rank() == self.root;
        let (places, len) = form.places(&counts);
        let blocks = blocks(&counts, &places);
        let want = filled(len, blocks, |rank, index| input(rank as u32, index));
        let mut got = vec![NONE; if is_root { len } else { 0 }];
        if form.other {
            self.comm.gatherv_known(&own, &mut got, blocks, self.root).unwrap();
        } else {
            self.comm.gatherv(&own, &mut got, is_root.then_some(blocks), self.root).unwrap();
        }
        self.is(&got, if is_root { &want } else { &[] });
    }

    fn scattered(&self, form: Form) {
        let counts = self.counts();
        let is_root = self.comm.rank() == self.root;
        let given = |rank: usize, index: usize| input(rank as u32 + 100, index);
        let me = self.me() as usize;
        let want: Vec<u64> = (0..counts[me] as usize).map(|index| given(me, index)).collect();
        let (places, len) = form.places(&counts);
        let blocks = blocks(&counts, &places);
        let send = if is_root { filled(len, blocks, given) } else { vec![] };
        let mut got = vec![NONE; want.len()];
        if form.other {
            self.comm.scatterv_known(&send, blocks, &mut got, self.root).unwrap();
        } else {
            let blocks = is_root.then_some(blocks);
            self.comm.scatterv(&send, blocks, &mut got, self.root).unwrap();
        }
        self.is(&got, &want);
    }

    /// The blocks of a reduction always lie side by side.
    fn reduced(&self, form: Form) {
        let counts = self.counts();
        let send = self.vector(self.me(), counts.iter().sum());
        let start: u64 = counts[..self.me() as usize].iter().sum();
        let own = start as usize..(start + counts[self.me() as usize]) as usize;
        let sum =
            |index| (0..self.p()).map(|rank| input(rank as u32, index)).fold(0, u64::wrapping_add);
        let want: Vec<u64> = own.map(sum).collect();
        let mut got = vec![NONE; want.len()];
        if form.other {
            got = send;
            self.comm.reduce_scatterv_in_place(&mut got, &counts, Op::Sum).unwrap();
        } else {
            self.comm.reduce_scatterv(&send, &mut got, &counts, Op::Sum).unwrap();
        }
        self.is(&got[..want.len()], &want);
    }

    fn exchanged(&self, form: Form) {
        let me = self.me();
        let value = |from: u64, to: u64, index: usize| input((from * 1000 + to) as u32, index);
        let given = |to: usize, at: usize| value(me, to as u64, at);
        let gotten = |from: usize, at: usize| value(from as u64, me, at);
        if form.other {
            // In place, a rank sends as many elements to a rank as it receives from it.
            let size = |other: u64| self.between(me.min(other), me.max(other));
            let sizes: Vec<u64> = (0..self.p()).map(size).collect();
            let (places, len) = form.places(&sizes);
            let blocks = blocks(&sizes, &places);
            let mut got = filled(len, blocks, given);
            self.comm.alltoallv_in_place(&mut got, blocks).unwrap();
            self.is(&got, &filled(len, blocks, gotten));
            return;
        }
        let sent: Vec<u64> = (0..self.p()).map(|to| self.between(me, to)).collect();
        let received: Vec<u64> = (0..self.p()).map(|from| self.between(from, me)).collect();
        let ((from, len), (to, room)) = (form.places(&sent), form.places(&received));
        let (send_blocks, recv_blocks) = (blocks(&sent, &from), blocks(&received, &to));
        let send = filled(len, send_blocks, given);
        let mut got = vec![NONE; room];
        self.comm.alltoallv(&send, send_blocks, &mut got, recv_blocks).unwrap();
        self.is(&got, &filled(room, recv_blocks, gotten));
    }
}
