//! The vector forms: every algorithm with blocks of any size at any place, compared with what the
//! definition says, element by element.

use crate::common::calls::config;
use crate::common::reference::input;
use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::torus::{Algorithm, Collective, registry};
use hopbine::{Blocks, CallOptions, Communicator, Drive, EmulationConfig, Wire, emulate};

/// How many elements rank `from` has for rank `to`; where nobody is meant in particular, rank 0.
type Size = fn(from: u64, to: u64) -> u64;

/// Even, uneven, mostly nothing, and nearly all at one place.
const SIZES: [(&str, Size); 5] = [
    ("even", |_, _| 5),
    ("ramp", |from, to| from + 2 * to),
    ("mixed", |from, to| (from * 7 + to * 13 + 5) % 11),
    ("sparse", |from, to| if (from + 3 * to) % 4 == 1 { 9 } else { 0 }),
    ("skewed", |from, to| if (from, to % 3) == (1, 0) { 1500 } else { u64::from(from == 2) }),
];

/// Untouched elements.
const NONE: u64 = u64::MAX;

/// Places with a gap before every block, in reverse order.
fn spread(counts: &[u64]) -> (Vec<u64>, usize) {
    let mut at = 0;
    let mut places = vec![0; counts.len()];
    for (place, count) in places.iter_mut().zip(counts).rev() {
        at += 2;
        *place = at;
        at += count;
    }
    (places, at as usize + 3)
}

/// Blocks side by side, and spread.
fn layouts(counts: &[u64]) -> [(Option<Vec<u64>>, usize); 2] {
    let (places, len) = spread(counts);
    [(None, counts.iter().sum::<u64>() as usize), (Some(places), len)]
}

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

struct Case<'a> {
    comm: &'a Communicator,
    size: Size,
    what: String,
    root: u32,
}

impl Case<'_> {
    fn p(&self) -> u64 {
        u64::from(self.comm.size())
    }

    fn me(&self) -> u64 {
        u64::from(self.comm.rank())
    }

    /// By rank, the size of its block.
    fn counts(&self) -> Vec<u64> {
        (0..self.p()).map(|rank| (self.size)(rank, 0)).collect()
    }

    fn vector(&self, rank: u64, len: u64) -> Vec<u64> {
        (0..len as usize).map(|index| input(rank as u32, index)).collect()
    }

    fn is(&self, got: &[u64], want: &[u64], form: &str) {
        assert!(got == want, "{} {form}: rank {} is wrong", self.what, self.me());
    }

    fn gathered(&self) {
        let counts = self.counts();
        let own = self.vector(self.me(), counts[self.me() as usize]);
        for (places, len) in layouts(&counts) {
            let blocks = blocks(&counts, &places);
            let want = filled(len, blocks, |rank, index| input(rank as u32, index));
            let mut got = vec![NONE; len];
            self.comm.allgatherv(&own, &mut got, blocks).unwrap();
            self.is(&got, &want, "allgatherv");
            let mut got =
                filled(
                    len,
                    blocks,
                    |rank, index| {
                        if rank as u64 == self.me() { own[index] } else { NONE }
                    },
                );
            self.comm.allgatherv_in_place(&mut got, blocks).unwrap();
            self.is(&got, &want, "allgatherv in place");
        }
    }

    fn gathered_at_root(&self, known: bool) {
        let counts = self.counts();
        let own = self.vector(self.me(), counts[self.me() as usize]);
        let is_root = self.comm.rank() == self.root;
        for (places, len) in layouts(&counts) {
            let blocks = blocks(&counts, &places);
            let want = filled(len, blocks, |rank, index| input(rank as u32, index));
            let mut got = vec![NONE; if is_root { len } else { 0 }];
            match known {
                true => self.comm.gatherv_known(&own, &mut got, blocks, self.root).unwrap(),
                false => {
                    let blocks = is_root.then_some(blocks);
                    self.comm.gatherv(&own, &mut got, blocks, self.root).unwrap();
                }
            }
            self.is(&got, if is_root { &want } else { &[] }, "gatherv");
        }
    }

    fn scattered(&self, known: bool) {
        let counts = self.counts();
        let is_root = self.comm.rank() == self.root;
        let want: Vec<u64> = (0..counts[self.me() as usize] as usize)
            .map(|index| input(self.comm.rank() + 100, index))
            .collect();
        for (places, len) in layouts(&counts) {
            let blocks = blocks(&counts, &places);
            let mut send = filled(len, blocks, |rank, index| input(rank as u32 + 100, index));
            if !is_root {
                send.clear();
            }
            let mut got = vec![NONE; want.len()];
            match known {
                true => self.comm.scatterv_known(&send, blocks, &mut got, self.root).unwrap(),
                false => {
                    let blocks = is_root.then_some(blocks);
                    self.comm.scatterv(&send, blocks, &mut got, self.root).unwrap();
                }
            }
            self.is(&got, &want, "scatterv");
        }
    }

    fn reduced(&self) {
        let counts = self.counts();
        let total: u64 = counts.iter().sum();
        let send = self.vector(self.me(), total);
        let start: u64 = counts[..self.me() as usize].iter().sum();
        let own = start as usize..(start + counts[self.me() as usize]) as usize;
        let sum =
            |index| (0..self.p()).map(|rank| input(rank as u32, index)).fold(0, u64::wrapping_add);
        let want: Vec<u64> = own.map(sum).collect();
        let mut got = vec![NONE; want.len()];
        self.comm.reduce_scatterv(&send, &mut got, &counts, Op::Sum).unwrap();
        self.is(&got, &want, "reduce_scatterv");
        let mut got = send;
        self.comm.reduce_scatterv_in_place(&mut got, &counts, Op::Sum).unwrap();
        self.is(&got[..want.len()], &want, "reduce_scatterv in place");
    }

    fn exchanged(&self) {
        let (me, size) = (self.me(), self.size);
        let value = |from: u64, to: u64, index: usize| input((from * 1000 + to) as u32, index);
        let sent: Vec<u64> = (0..self.p()).map(|to| size(me, to)).collect();
        let received: Vec<u64> = (0..self.p()).map(|from| size(from, me)).collect();
        for (send_layout, recv_layout) in layouts(&sent).iter().zip(layouts(&received).iter()) {
            let send_blocks = blocks(&sent, &send_layout.0);
            let recv_blocks = blocks(&received, &recv_layout.0);
            let send = filled(send_layout.1, send_blocks, |to, at| value(me, to as u64, at));
            let want = filled(recv_layout.1, recv_blocks, |from, at| value(from as u64, me, at));
            let mut got = vec![NONE; recv_layout.1];
            self.comm.alltoallv(&send, send_blocks, &mut got, recv_blocks).unwrap();
            self.is(&got, &want, "alltoallv");
        }
        // In place what is sent is as long as what is received.
        let sizes: Vec<u64> =
            (0..self.p()).map(|other| size(me.min(other), me.max(other))).collect();
        for (places, len) in layouts(&sizes) {
            let blocks = blocks(&sizes, &places);
            let mut got = filled(len, blocks, |to, at| value(me, to as u64, at));
            let want = filled(len, blocks, |from, at| value(from as u64, me, at));
            self.comm.alltoallv_in_place(&mut got, blocks).unwrap();
            self.is(&got, &want, "alltoallv in place");
        }
    }
}

/// Calls the vector forms that an algorithm serves.
fn vector_forms(comm: &Communicator, algorithm: &Algorithm, size: Size, what: &str, number: u32) {
    let p = comm.size();
    let root = [0, p / 2, p - 1][number as usize % 3];
    let ports = 1 + number % comm.n_ports();
    let options = CallOptions::new()
        .algorithm(&algorithm.name)
        .ports(ports)
        .segment_bytes([1 << 20, 4096, 100][number as usize % 3]);
    let comm = &comm.with(options);
    let what = format!("{} {what}, {ports} ports, root {root}", algorithm.name);
    let case = Case { comm, size, what, root };
    match algorithm.collective {
        Collective::Allgather => case.gathered(),
        Collective::ReduceScatter => case.reduced(),
        Collective::Gather => {
            case.gathered_at_root(true);
            case.gathered_at_root(false);
        }
        Collective::Scatter => {
            case.scattered(true);
            case.scattered(false);
        }
        Collective::Alltoall => case.exchanged(),
        _ => {}
    }
}

fn shapes(texts: &[&str]) {
    for text in texts {
        let shape: Shape = text.parse().unwrap();
        let algorithms: Vec<Algorithm> =
            registry::all().into_iter().filter(|a| a.serves(&shape).is_ok()).collect();
        let base = config(&[1], Drive::Inline);
        let config =
            EmulationConfig { wire: base.wire, drive: base.drive, ..EmulationConfig::new(shape) };
        emulate(&config, |comm| {
            let mut number = 0;
            for algorithm in &algorithms {
                // All sizes where sizes are all that there is, some elsewhere.
                let n_sizes = if algorithm.is_straight() { 5 } else { 1 };
                for turn in 0..n_sizes {
                    let (name, size) = SIZES[(turn + number as usize) % SIZES.len()];
                    vector_forms(comm, algorithm, size, &format!("{name} on {text}"), number);
                    number += 1;
                }
            }
        })
        .unwrap();
    }
}

#[test]
fn rings() {
    shapes(&["1", "3", "7", "12"]);
}

#[test]
fn more_dimensions() {
    shapes(&["2x3", "1x5", "3x3", "2x2x2"]);
}

#[test]
fn ranks_that_share_nodes() {
    shapes(&["2x3+2", "3+3"]);
}

#[test]
fn what_the_library_chooses() {
    emulate(&config(&[3, 2], Drive::Inline), |comm| {
        for (name, size) in SIZES {
            let case = Case { comm, size, what: format!("chosen {name}"), root: 4 };
            case.gathered();
            case.reduced();
            for known in [false, true] {
                case.gathered_at_root(known);
                case.scattered(known);
            }
            case.exchanged();
        }
    })
    .unwrap();
}

/// Within one host short blocks go by the board, and where one is long all take messages: that
/// call, and some after it.
#[test]
fn short_and_long_blocks_in_turn() {
    let base = config(&[5], Drive::Inline);
    emulate(&EmulationConfig { wire: Wire::Memory, ..base }, |comm| {
        for round in 0..60 {
            let size: Size = match round {
                7 | 20..24 => |from, to| if (from, to) == (3, 1) { 2000 } else { to },
                _ => SIZES[round % 4].1,
            };
            let case = Case { comm, size, what: format!("round {round}"), root: 0 };
            case.exchanged();
        }
    })
    .unwrap();
}

/// More ranks than talk to each other at once: what the library learns of the sizes decides.
#[test]
fn what_the_library_chooses_when_it_knows_the_sizes() {
    let base = config(&[17], Drive::Inline);
    let config = EmulationConfig { wire: Wire::Network, ..base };
    emulate(&config, |comm| {
        let p = u64::from(comm.size());
        let sizes: [Size; 4] = [
            |from, to| (from + 2 * to) % 9,
            |from, to| if (from, to) == (3, 5) { 1000 } else { from % 3 },
            |from, to| if (from, to) == (16, 0) { 5000 } else { to % 3 },
            |_, _| 0,
        ];
        for (at, size) in sizes.into_iter().enumerate() {
            let case = Case { comm, size, what: format!("learnt {at}"), root: 0 };
            case.exchanged();
        }
        // Again with other sizes on other ranks only: nothing here says so.
        for round in 0..4 {
            let send = vec![u64::from(comm.rank()); 40];
            let size = |from: u64, to: u64| u64::from(from == 4 && to == 7) * round;
            let sent: Vec<u64> = (0..p).map(|to| size(comm.rank().into(), to)).collect();
            let received: Vec<u64> = (0..p).map(|from| size(from, comm.rank().into())).collect();
            let mut recv = vec![NONE; 4];
            comm.alltoallv(&send, Blocks::new(&sent), &mut recv, Blocks::new(&received)).unwrap();
            let filled = if comm.rank() == 7 { round as usize } else { 0 };
            assert!(recv[..filled].iter().all(|&value| value == 4), "{recv:?}");
            assert!(recv[filled..].iter().all(|&value| value == NONE), "{recv:?}");
        }
    })
    .unwrap();
}

#[test]
fn non_blocking_and_persistent() {
    emulate(&config(&[5], Drive::Inline), |comm| {
        let me = comm.rank();
        let counts = [3, 0, 5, 1, 2];
        let blocks = Blocks::new(&counts);
        let own = vec![me; counts[me as usize] as usize];
        let want: Vec<u32> =
            (0..5).flat_map(|rank| vec![rank; counts[rank as usize] as usize]).collect();
        let given = vec![me; 5 * counts[me as usize] as usize];
        let taken = [counts[me as usize]; 5];
        let (mut gathered, mut exchanged) = (vec![0; 11], vec![0; 11]);
        comm.scope(|scope| {
            let first = scope.allgatherv(&own, &mut gathered, blocks)?;
            let second = scope.alltoallv(&given, Blocks::new(&taken), &mut exchanged, blocks)?;
            assert_eq!(first.wait()?, want);
            assert_eq!(second.wait()?, want);
            Ok(())
        })
        .unwrap();
        // Moved on by tests alone, two at a time, through all their stages.
        let passing = comm.with(CallOptions::new().algorithm("bruck:2"));
        let (mut one, mut other) = (vec![0; 11], vec![0; 11]);
        passing
            .scope(|scope| {
                let first = scope.alltoallv(&given, Blocks::new(&taken), &mut one, blocks)?;
                let second = scope.alltoallv(&given, Blocks::new(&taken), &mut other, blocks)?;
                while !(first.test() & second.test()) {}
                assert_eq!(first.wait()?, want);
                assert_eq!(second.wait()?, want);
                Ok(())
            })
            .unwrap();
        let mut all = comm.allgatherv_init(own.clone(), blocks).unwrap();
        let mut pairs = comm.alltoallv_init(given.clone(), Blocks::new(&taken), blocks).unwrap();
        let passing = comm.with(CallOptions::new().algorithm("bruck:2"));
        let mut passed = passing.alltoallv_init(given, Blocks::new(&taken), blocks).unwrap();
        let mut sums = comm.reduce_scatterv_init(vec![1u32; 11], &counts, Op::Sum).unwrap();
        let at_root = (me == 2).then_some(blocks);
        let mut gather = comm.gatherv_init(own.clone(), at_root, 2).unwrap();
        let send = if me == 2 { want.clone() } else { vec![] };
        let mut scatter = comm.scatterv_init(send, at_root, own.len(), 2).unwrap();
        for _ in 0..2 {
            for each in [&mut all, &mut passed, &mut pairs, &mut sums, &mut gather, &mut scatter] {
                each.start().unwrap();
                each.wait().unwrap();
            }
            assert_eq!(all.buffer().unwrap(), want);
            assert_eq!(pairs.buffer().unwrap(), want);
            assert_eq!(passed.buffer().unwrap(), want);
            assert_eq!(sums.buffer().unwrap(), vec![5; own.len()]);
            assert_eq!(gather.buffer().unwrap(), if me == 2 { &want[..] } else { &[] });
            assert_eq!(scatter.buffer().unwrap(), own);
        }
    })
    .unwrap();
}
