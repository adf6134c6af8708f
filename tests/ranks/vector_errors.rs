//! Vector forms with invalid or mismatched arguments return specific errors, and no rank waits for ever.

use std::time::Duration;

use crate::common::calls::{config, config_on};
use hopbine::reduce::Op;
use hopbine::{BlockProblem, Blocks, CallOptions, Communicator, Drive, Error, Wire, emulate};

#[test]
fn blocks_that_make_no_sense() {
    emulate(&config(&[2], Drive::Inline), |comm| {
        let problem = |outcome: Result<(), Error>| match outcome {
            Err(Error::Blocks { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        let (send, mut recv) = ([0u8; 2], [0u8; 4]);
        let short = comm.allgatherv(&send, &mut recv, Blocks::new(&[2]));
        let list = BlockProblem::List { which: "receive", what: "counts", found: 1, n_ranks: 2 };
        assert_eq!(problem(short), list);
        let beyond = comm.allgatherv(&send, &mut recv, Blocks::new(&[2, 2]).at(&[0, 3]));
        let too_far = BlockProblem::Beyond { which: "receive", found: 4, needed: 5 };
        assert_eq!(problem(beyond), too_far);
        let huge = [u64::MAX, 2];
        let beyond = comm.alltoallv(&send, Blocks::new(&huge), &mut recv, Blocks::new(&huge));
        assert!(matches!(problem(beyond), BlockProblem::Beyond { which: "send", .. }));
        let overlap = comm.allgatherv(&send, &mut recv, Blocks::new(&[2, 2]).at(&[0, 1]));
        assert_eq!(problem(overlap), BlockProblem::Overlap { first: 0, second: 1 });
        let own = comm.allgatherv(&send, &mut recv, Blocks::new(&[1, 1]));
        let rank = comm.rank();
        assert_eq!(problem(own), BlockProblem::Own { rank, given: 2, taken: 1 });
        let missing = comm.gatherv(&send, &mut recv, None, rank);
        assert_eq!(problem(missing), BlockProblem::Missing { which: "receive" });
        // The communicator stays usable.
        comm.barrier().unwrap();
    })
    .unwrap();
}

/// Programs may leave the displacements of empty blocks unset.
#[test]
fn empty_blocks_may_start_anywhere() {
    for wire in [Wire::Memory, Wire::Network] {
        let config = config(&[3], Drive::Inline).with(|config| config.wire = wire);
        emulate(&config, |comm| {
            let (me, odd) = (u64::from(comm.rank()), u64::MAX - 3);
            // Rank 1 has an empty block.
            let (counts, starts) = ([2, 0, 1], [1, odd, 0]);
            let blocks = Blocks::new(&counts).at(&starts);
            let mine = vec![me + 10; counts[me as usize] as usize];
            let mut all = [0; 3];
            comm.allgatherv(&mine, &mut all, blocks).unwrap();
            assert_eq!(all, [12, 10, 10]);
            let mut at_root = [0; 3];
            let is_root = me == 2;
            comm.gatherv(&mine, &mut at_root, is_root.then_some(blocks), 2).unwrap();
            assert_eq!(at_root, if is_root { all } else { [0; 3] });
            let mut back = vec![0; mine.len()];
            comm.scatterv(&all, is_root.then_some(blocks), &mut back, 2).unwrap();
            assert_eq!(back, mine);
            // Every rank sends to every other rank, except to and from rank 1.
            let given: [u64; 3] = std::array::from_fn(|to| u64::from(me != 1 && to as u64 != me));
            let taken: [u64; 3] = std::array::from_fn(|at| u64::from(at != 1 && at as u64 != me));
            let places = |counts: [u64; 3]| counts.map(|count| if count == 0 { odd } else { 0 });
            let (given_at, mut taken_at) = (places(given), places(taken));
            if me == 1 {
                taken_at[2] = 1;
            }
            let mut got = [0; 2];
            comm.alltoallv(
                &[me + 20],
                Blocks::new(&given).at(&given_at),
                &mut got,
                Blocks::new(&taken).at(&taken_at),
            )
            .unwrap();
            assert_eq!(got, [[22, 0], [20, 22], [20, 0]][me as usize]);
        })
        .unwrap();
    }
}

/// The text of each rank's error.
fn texts(outcomes: Vec<Result<(), Error>>) -> Vec<String> {
    outcomes.into_iter().map(|outcome| outcome.expect_err("calls differ").to_string()).collect()
}

/// Rank 2 sends `sent` elements to rank 0, which expects `expected`. Both get an error, and no rank waits for ever.
fn disagree(wire: Wire, shape: &str, algorithm: &str, sent: u64, expected: u64) {
    let base = config_on(shape.parse().unwrap(), Drive::Inline);
    let config = base.with(|config| {
        config.wire = wire;
        config.timeout = Duration::from_secs(600);
    });
    let outcomes = emulate(&config, |comm| {
        let me = comm.rank();
        let n = comm.size() as usize;
        let (mut given, mut taken) = (vec![3u64; n], vec![3u64; n]);
        if me == 2 {
            given[0] = sent;
        }
        if me == 0 {
            taken[2] = expected;
        }
        let send = vec![me; given.iter().sum::<u64>() as usize];
        let len = taken.iter().sum::<u64>() as usize;
        // Guard elements after the last block.
        let mut recv = vec![77; len + 10];
        let blocks = (Blocks::new(&given), Blocks::new(&taken));
        let named = match algorithm {
            "auto" => comm.with(CallOptions::new()),
            name => comm.with(CallOptions::new().algorithm(name)),
        };
        let outcome = named.alltoallv(&send, blocks.0, &mut recv[..len], blocks.1);
        assert!(recv[len..].iter().all(|&value| value == 77), "rank {me}: overwritten");
        // Ranks that exchange data with neither may get further.
        outcome.and_then(|()| comm.with(CallOptions::new().algorithm("mixed")).barrier())
    });
    let texts = texts(outcomes.unwrap());
    let what = format!("{wire:?} {shape} {algorithm} {sent} {expected}: {texts:?}");
    assert!(texts[0].contains("2") && texts[2].contains("rank 0"), "{what}");
    for text in &texts {
        assert!(!text.contains("HOPBINE_TIMEOUT"), "{what}");
    }
}

#[test]
fn ranks_that_disagree_about_a_block() {
    for wire in [Wire::Memory, Wire::Network] {
        for (sent, expected) in
            [(5, 4), (4, 5), (5, 0), (0, 5), (300_000, 0), (0, 300_000), (300_000, 8)]
        {
            disagree(wire, "4", "pairwise", sent, expected);
        }
        for (sent, expected) in [(5, 4), (0, 5), (5, 0), (300_000, 8)] {
            disagree(wire, "4", "bruck:2", sent, expected);
            disagree(wire, "4", "auto", sent, expected);
        }
        // Leaders: one has a group of two ranks, the other only itself.
        for algorithm in ["multi-leader:2", "parlinna", "node-aware-nonblocking"] {
            disagree(wire, "2+3", algorithm, 5, 4);
            disagree(wire, "2+3", algorithm, 0, 5);
        }
    }
}

/// A rank sends or expects another number of elements than the root. Both get an error.
#[test]
fn ranks_that_disagree_with_the_root() {
    for wire in [Wire::Memory, Wire::Network] {
        for algorithm in ["linear", "mixed", "knomial:2"] {
            for (at_root, own) in [(5, 4), (0, 5), (5, 0), (8, 300_000)] {
                for gathers in [true, false] {
                    root_disagrees(wire, algorithm, at_root, own, gathers);
                }
            }
        }
    }
}

fn root_disagrees(wire: Wire, algorithm: &str, at_root: u64, own: u64, gathers: bool) {
    let base = config(&[5], Drive::Inline);
    let config = base.with(|config| {
        config.wire = wire;
        config.timeout = Duration::from_secs(600);
    });
    let (root, other) = (1, 4);
    let outcomes = emulate(&config, |comm| {
        let (me, mut counts) = (comm.rank(), [3u64; 5]);
        counts[other as usize] = at_root;
        let own = if me == other { own } else { counts[me as usize] };
        let one = vec![me; own as usize];
        let all = vec![me; if me == root { counts.iter().sum::<u64>() as usize } else { 0 }];
        let blocks = (me == root).then_some(Blocks::new(&counts));
        let named = comm.with(CallOptions::new().algorithm(algorithm));
        let outcome = match gathers {
            true => named.gatherv(&one, &mut all.clone(), blocks, root),
            false => named.scatterv(&all, blocks, &mut one.clone(), root),
        };
        // Ranks that exchange data with neither may get further.
        outcome.and_then(|()| comm.with(CallOptions::new().algorithm("mixed")).barrier())
    });
    let texts = texts(outcomes.unwrap());
    let what = format!("{wire:?} {algorithm} {at_root} {own} {gathers}: {texts:?}");
    let is_named = |text: &str, rank: u32| text.contains(&rank.to_string());
    assert!(
        is_named(&texts[root as usize], other) && is_named(&texts[other as usize], root),
        "{what}"
    );
    assert!(texts.iter().all(|text| !text.contains("HOPBINE_TIMEOUT")), "{what}");
}

#[test]
fn counts_that_differ_between_ranks() {
    type Form = fn(&Communicator, &mut [u16], &mut [u16], Blocks<'_>) -> Result<(), Error>;
    let forms: [(&str, Form); 4] = [
        ("allgatherv", |comm, own, all, blocks| comm.allgatherv(own, all, blocks)),
        ("gatherv_known", |comm, own, all, blocks| comm.gatherv_known(own, all, blocks, 3)),
        ("scatterv_known", |comm, own, all, blocks| comm.scatterv_known(all, blocks, own, 3)),
        ("reduce_scatterv", |comm, own, all, blocks| {
            comm.reduce_scatterv(all, own, blocks.counts, Op::Sum)
        }),
    ];
    for (name, call) in forms {
        for wire in [Wire::Memory, Wire::Network] {
            let config = config(&[4], Drive::Inline).with(|config| config.wire = wire);
            let outcomes = emulate(&config, |comm| {
                let counts = if comm.rank() == 1 { [4, 4, 4, 5] } else { [4; 4] };
                let mut own = vec![0u16; counts[comm.rank() as usize] as usize];
                let mut all = vec![0u16; counts.iter().sum::<u64>() as usize];
                call(comm, &mut own, &mut all, Blocks::new(&counts))?;
                comm.with(CallOptions::new().algorithm("mixed")).barrier()
            });
            for outcome in outcomes.unwrap() {
                let error = outcome.expect_err("counts differ").to_string();
                assert!(error.contains("another call"), "{name} over {wire:?}: {error}");
            }
        }
    }
}
