//! The vector forms: every algorithm with blocks of any size at any place, compared element by element with the
//! definition.

mod case;
mod product;

use crate::common::calls::config;
use case::{Case, DISTRIBUTIONS, Form, NONE, Size};
use hopbine::reduce::Op;
use hopbine::torus::Collective;
use hopbine::{Blocks, CallOptions, Drive, Wire, emulate};

/// Makes a case in every form.
fn in_all_forms<'a>(of: Collective, case: impl Fn(Form) -> Case<'a>) {
    Form::ALL.into_iter().for_each(|form| case(form).call(of, form));
}

#[test]
fn what_the_library_chooses() {
    emulate(&config(&[3, 2], Drive::Inline), |comm| {
        for (name, size) in DISTRIBUTIONS {
            let collectives = [
                Collective::Allgather,
                Collective::ReduceScatter,
                Collective::Gather,
                Collective::Scatter,
                Collective::Alltoall,
            ];
            for collective in collectives {
                in_all_forms(collective, |form| {
                    let what = format!("{collective}, chosen, {name}, {form:?}");
                    Case { comm, size, what, root: 4 }
                });
            }
        }
    })
    .unwrap();
}

/// Within one host, short blocks go by the flat buffer. If one block is long, all ranks use messages, for this call
/// and some later calls.
#[test]
fn short_and_long_blocks_in_turn() {
    let base = config(&[5], Drive::Inline);
    emulate(&base.with(|config| config.wire = Wire::Memory), |comm| {
        for round in 0..30 {
            let size: Size = match round {
                7 | 20..24 => |_, from, to| if (from, to / 2) == (3, 0) { 2000 } else { to },
                _ => DISTRIBUTIONS[round % 6].1,
            };
            for of in [Collective::Alltoall, Collective::Allgather, Collective::ReduceScatter] {
                let what = |form| format!("round {round}, {of}, {form:?}");
                in_all_forms(of, |form| Case { comm, size, what: what(form), root: 0 });
            }
        }
    })
    .unwrap();
}

/// More ranks than communicate directly at the same time, so the choice depends on the sizes that the library learns.
#[test]
fn what_the_library_chooses_when_it_knows_the_sizes() {
    let base = config(&[17], Drive::Inline);
    let config = base.with(|config| config.wire = Wire::Network);
    emulate(&config, |comm| {
        let p = u64::from(comm.size());
        let sizes: [Size; 4] = [
            |_, from, to| (from + 2 * to) % 9,
            |_, from, to| if (from, to) == (3, 5) { 1000 } else { from % 3 },
            |_, from, to| if (from, to) == (16, 0) { 5000 } else { to % 3 },
            |_, _, _| 0,
        ];
        for (at, size) in sizes.into_iter().enumerate() {
            for form in Form::ALL {
                let what = format!("learnt {at}, {form:?}");
                Case { comm, size, what, root: 0 }.call(Collective::Alltoall, form);
            }
        }
        // Repeats the call with sizes that differ on other ranks only; the arguments of most ranks stay the same.
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
        // Two operations progress through all their stages by tests alone.
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
