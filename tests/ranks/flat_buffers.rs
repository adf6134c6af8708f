//! Small collectives over shared memory on communicators other than the world's. They use flat buffers as long as any
//! are free.

use std::time::Duration;

use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::torus::geometry::Shape;
use hopbine::{Blocks, Communicator, EmulationConfig, Error, Wire, emulate};
use hopbine::{Call, Form};

fn config(sizes: &[u32]) -> EmulationConfig {
    let mut config = EmulationConfig::new(Shape::torus(sizes).unwrap());
    config.wire = Wire::Memory;
    config
}

fn has_flat(comm: &Communicator) -> bool {
    let sum = Call { op: Some(Op::Sum), ..Call::new(Collective::Allreduce, 1, Dtype::U64) };
    let has_flat = comm.uses_gates(&sum);
    let counts: Vec<u64> = (0..u64::from(comm.size())).collect();
    let blocks = Some(Blocks::new(&counts));
    let gathered = Call::new(Collective::Allgather, u64::from(comm.rank()), Dtype::U64);
    let gathered = Call { form: Form::Vector, recv_blocks: blocks, ..gathered };
    let reduced = Call { collective: Collective::ReduceScatter, send_blocks: blocks, ..sum };
    let reduced = Call { form: Form::Vector, count: gathered.count, ..reduced };
    let exchanged = Call { collective: Collective::Alltoall, send_blocks: blocks, ..gathered };
    let scans = [Collective::Scan, Collective::Exscan].map(|collective| Call { collective, ..sum });
    for call in [gathered, reduced, exchanged].into_iter().chain(scans) {
        assert_eq!(comm.uses_gates(&call), has_flat, "{call:?}");
    }
    // The flat buffer performs this alltoall only if its blocks turn out to be short.
    let by = comm.explain(&exchanged).unwrap();
    assert_eq!(by.by.starts_with("flat buffer or "), has_flat, "{by}");
    assert_ne!(by.how, "", "{by}");
    has_flat
}

/// Makes calls of every kind that flat buffers perform, and one call that is too long for them.
fn calls(comm: &Communicator, seed: u64) -> Result<(), Error> {
    let (me, n) = (u64::from(comm.rank()), u64::from(comm.size()));
    for round in 0..6 {
        let root = (seed + round) % n;
        let of = |rank: u64| 1000 * seed + 10 * round + rank;
        let mut sum = [of(me)];
        comm.allreduce_in_place(&mut sum, Op::Sum)?;
        assert_eq!(sum[0], (0..n).map(of).sum::<u64>());
        let mut up_to_me = [of(me)];
        comm.scan_in_place(&mut up_to_me, Op::Sum)?;
        assert_eq!(up_to_me[0], (0..=me).map(of).sum::<u64>());
        let mut before_me = [7];
        comm.exscan(&[of(me)], &mut before_me, Op::Sum)?;
        assert_eq!(before_me[0], if me == 0 { 7 } else { (0..me).map(of).sum::<u64>() });
        let mut told = [if me == root { of(77) } else { 0 }];
        comm.bcast(&mut told, root as u32)?;
        assert_eq!(told, [of(77)]);
        let mut all = vec![0; n as usize];
        comm.allgather(&[of(me)], &mut all)?;
        assert_eq!(all, (0..n).map(of).collect::<Vec<_>>());
        let mut long = vec![of(me); 3000];
        comm.allreduce_in_place(&mut long, Op::Max)?;
        assert_eq!(long, vec![of(n - 1); 3000]);
        // A rank does not copy its own block to the flat buffer, because only this rank reads it.
        let (start, end) = (me as usize * 200, (me as usize + 1) * 200);
        let given = |rank: u64| (0..n * 200).map(move |at| at + of(rank));
        let sums = (start as u64..end as u64).map(|at| (0..n).map(|rank| at + of(rank)).sum());
        let sums: Vec<u64> = sums.collect();
        let (mut input, mut block) = (given(me).collect::<Vec<_>>(), [0; 200]);
        comm.scatter(if me == root { &input } else { &[] }, &mut block, root as u32)?;
        assert!(block.into_iter().eq(given(root).take(end).skip(start)));
        comm.reduce_scatter(&input, &mut block, Op::Sum)?;
        assert_eq!(block[..], sums);
        comm.reduce_scatter_in_place(&mut input, Op::Sum)?;
        assert_eq!(input[..200], sums);
        let counts = vec![1u64; n as usize];
        let blocks = Blocks { counts: &counts, displacements: None };
        let (sent, mut got) = (vec![of(me); n as usize], vec![0; n as usize]);
        comm.alltoallv(&sent, blocks, &mut got, blocks)?;
        assert_eq!(got, (0..n).map(of).collect::<Vec<_>>());
        let counts: Vec<u64> = (0..n).map(|rank| rank * 3 % 5).collect();
        let mut got = vec![0; counts.iter().sum::<u64>() as usize];
        comm.allgatherv(
            &vec![of(me); counts[me as usize] as usize],
            &mut got,
            Blocks::new(&counts),
        )?;
        let all = (0..n).flat_map(|rank| vec![of(rank); counts[rank as usize] as usize]);
        assert_eq!(got, all.collect::<Vec<_>>());
        let given: Vec<u64> = (0..got.len() as u64).map(|at| at + of(me)).collect();
        let (start, len) = (counts[..me as usize].iter().sum::<u64>(), counts[me as usize]);
        let mut part = vec![0; len as usize];
        comm.reduce_scatterv(&given, &mut part, &counts, Op::Sum)?;
        let sums = (start..start + len).map(|at| (0..n).map(|rank| at + of(rank)).sum());
        assert_eq!(part, sums.collect::<Vec<u64>>());
        comm.barrier()?;
    }
    Ok(())
}

#[test]
fn rows_columns_duplicates_and_groups_have_flat_buffers() {
    let results = emulate(&config(&[3, 2]), |comm| {
        for round in 0..20 {
            let made = [
                comm.duplicate()?,
                comm.sub_box(&[0])?,
                comm.sub_box(&[1])?,
                comm.group(&[5, 3, 1, 0, 2, 4])?.expect("all are in it"),
                comm.split(Some(comm.rank() % 2), -i64::from(comm.rank()))?.expect("a colour"),
            ];
            for (index, one) in made.iter().enumerate() {
                // The rounds make 100 communicators, and a rank has 32 flat buffers, so the buffers are reused.
                assert!(has_flat(one), "communicator {index} of round {round}");
                calls(one, round + index as u64)?;
            }
            let mut made = Vec::from(made);
            // Each rank drops them in its own order, some of them late.
            made.rotate_left(comm.rank() as usize % 5);
            while let Some(one) = made.pop() {
                drop(one);
                if made.len() == 2 {
                    calls(comm, round)?;
                }
            }
        }
        Ok(())
    });
    assert!(results.unwrap().iter().all(Result::<(), Error>::is_ok));
}

#[test]
fn who_finds_no_flat_buffer_goes_by_plan() {
    let results = emulate(&config(&[4]), |comm| {
        let made: Result<Vec<_>, _> = (0..36).map(|_| comm.duplicate()).collect();
        let mut made = made?;
        let flats: Vec<bool> = made.iter().map(has_flat).collect();
        assert_eq!(flats, [[true; 32].as_slice(), &[false; 4]].concat());
        for (index, one) in made.iter().enumerate() {
            calls(one, index as u64)?;
        }
        // A flat buffer that only one rank has released is not free.
        let first = made.remove(0);
        if comm.rank() == 0 {
            drop(first);
            assert!(!has_flat(&comm.duplicate()?));
            comm.barrier()?;
        } else {
            assert!(!has_flat(&comm.duplicate()?));
            drop(first);
            comm.barrier()?;
        }
        assert!(has_flat(&comm.duplicate()?));
        Ok(())
    });
    assert!(results.unwrap().iter().all(Result::<(), Error>::is_ok));
}

#[test]
fn threads_use_flat_buffers_at_once() {
    let results = emulate(&config(&[2, 2]), |comm| {
        let made = [comm.duplicate()?, comm.sub_box(&[0])?, comm.sub_box(&[1])?];
        std::thread::scope(|threads| {
            let made = &made;
            let each = made.iter().enumerate().map(|(index, one)| {
                threads.spawn(move || (0..30).try_for_each(|seed| calls(one, seed + index as u64)))
            });
            let each: Vec<_> = each.collect();
            each.into_iter().try_for_each(|thread| thread.join().unwrap())
        })
    });
    assert!(results.unwrap().iter().all(Result::<(), Error>::is_ok));
}

#[test]
fn a_rank_that_fails_ends_the_calls_of_a_row() {
    let results = emulate(&config(&[2, 2]), |comm| {
        let row = comm.sub_box(&[0])?;
        calls(&row, 1)?;
        if comm.rank() == 3 {
            return Err(Error::Closed);
        }
        calls(&row, 2)?;
        comm.barrier()
    });
    let failed = results.unwrap();
    assert!(failed.iter().all(Result::is_err), "{failed:?}");
}

/// The root's first call goes by a plan and its second by the flat buffer; both calls of the other rank go by the
/// flat buffer.
#[test]
fn the_next_call_of_another_rank_is_not_taken_for_this_one() {
    let results = emulate(&config(&[2]), |comm| {
        let is_root = comm.rank() == 0;
        let mut vector = vec![if is_root { 1.0 } else { 0.0 }; 6000];
        let first = comm.bcast(&mut vector[..if is_root { 6000 } else { 100 }], 0);
        if is_root {
            // The root has already given its data, or learns of the other rank's failure.
            let _ = comm.bcast(&mut vec![2.0; 100], 0);
        } else {
            assert!(first.is_err() && vector[0] == 0.0, "{first:?}, {}", vector[0]);
        }
        Ok(())
    });
    assert!(results.unwrap().iter().all(Result::<(), Error>::is_ok));
}

/// Each rank of a cycle waits for the next on one communicator and computes before its call on another. Ranks that
/// see one wait of each other do not take that for calls that differ, not even a rank that has only one communicator.
#[test]
fn waits_on_several_communicators_are_no_cycle() {
    let (timeout, late) = (Duration::from_millis(300), Duration::from_secs(3));
    for n_ranks in [2, 3] {
        let config = config(&[n_ranks]).with(|config| config.timeout = timeout);
        let results = emulate(&config, |world| {
            let me = world.rank();
            let part = world.split((me + 2 >= n_ranks).then_some(0), 0)?;
            std::thread::scope(|threads| {
                let in_part = threads.spawn(|| {
                    let Some(part) = part else { return Ok(()) };
                    if part.rank() == n_ranks - 2 {
                        std::thread::sleep(late);
                    }
                    part.barrier()
                });
                if me == 1 {
                    std::thread::sleep(late);
                }
                world.barrier().and(in_part.join().unwrap())
            })
        });
        assert_eq!(results.unwrap(), vec![Ok(()); n_ranks as usize]);
    }
}
