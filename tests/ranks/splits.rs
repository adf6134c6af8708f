//! Lanes with parts of different sizes, with random weights: compiled programs, and calls on every wire.

use super::interpreter::{How, SIZE, interpret_one};
use crate::common::calls::{check, config};
use crate::common::reference::Case;
use hopbine::torus::plan::{Flow, Schedule, Split, max_ports};
use hopbine::torus::{Algorithm, Collective, RankMap, Request, Shape, registry};
use hopbine::{CallOptions, Drive, Error, Hardware, Wire, emulate};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Schedule of an algorithm on all ports of a shape, with a random weight for each part; `None` if it has only one
/// part.
fn split(algorithm: &Algorithm, shape: &Shape, root: u32, rng: &mut SmallRng) -> Option<Schedule> {
    let (map, root) = (RankMap::ColumnMajor, hopbine::torus::Rank(root));
    let request = Request { shape: shape.clone(), map, root, ports: Some(max_ports(shape)) };
    let schedule = algorithm.schedule(&request).ok()?;
    let most = if rng.random_bool(0.5) { 2 } else { 5 };
    let weights: Vec<u32> = (0..schedule.n_parts()).map(|_| rng.random_range(1..=most)).collect();
    let split = Split::new(&weights).ok()?;
    Some(Schedule { split, ..schedule })
}

/// Shapes with more ranks run only one count each.
const FEW: u32 = 8;

/// Executes the programs of every algorithm symbolically in a random order. Counts are 0, fewer elements than lanes,
/// and larger numbers, some of them odd.
fn interpret(collective: Collective) {
    let can = !collective.is_rooted() && collective != Collective::Barrier;
    let mut rng = SmallRng::seed_from_u64(34);
    let mut n_run = 0;
    for text in ["4", "7", "2x3", "4x3", "5x3", "2x2x2", "3x2x4", "2x3+4", "4x3mx2"] {
        let shape: Shape = text.parse().unwrap();
        let n_ranks = shape.n_ranks();
        let root = if collective.is_rooted() { n_ranks - 1 } else { 0 };
        for algorithm in registry::algorithms(collective) {
            let Some(schedule) = split(&algorithm, &shape, root, &mut rng) else { continue };
            let flow = schedule.expand().unwrap();
            let counts = [0, 1, 2, rng.random_range(3..40), 1 + 2 * rng.random_range(20..100)];
            // With many ranks, only one of the counts, in rotation.
            let turn = n_run % counts.len();
            let counts = if n_ranks > FEW { &counts[turn..=turn] } else { &counts[..] };
            for &count in counts {
                let segment_bytes = [None, Some(8), Some(48)][n_run % 3];
                let case = Case { collective, n_ranks, count, root };
                let what = format!("{collective} {} on {text}, {}", algorithm.name, schedule.split);
                let in_place = can && n_run % 2 == 1;
                let how = How { in_place, segment_bytes, elem_bytes: SIZE, number: n_run };
                interpret_one(&flow as &dyn Flow, &case, how, &mut rng, &what);
                n_run += 1;
            }
        }
    }
    println!("{collective}: {n_run} sets of programs");
}

crate::for_every_collective!(interpret);

/// Calls that name the algorithm or give the text of its schedule, in place and out of place.
#[test]
fn calls_are_performed_on_every_wire() {
    for wire in Wire::ALL {
        let config = config(&[4, 3], Drive::Inline).with(|config| config.wire = wire);
        emulate(&config, |comm| {
            let ports = max_ports(comm.shape()).min(comm.n_ports());
            let weights = &["5,3", "5,3,1", "5,3,1,2"][ports as usize - 2];
            for (collective, name) in [
                (Collective::Allreduce, "mixed"),
                (Collective::Allreduce, "mixed-l"),
                (Collective::Allgather, "bucket"),
                (Collective::Allgather, "mixed-dealt"),
                (Collective::ReduceScatter, "mixed"),
                (Collective::ReduceScatter, "bucket-dealt"),
                (Collective::Bcast, "mixed-tree"),
                (Collective::Alltoall, "dimensions"),
                (Collective::Gather, "mixed"),
                (Collective::Scan, "chain"),
            ] {
                let name = format!("{name}-split:{weights}");
                let algorithm = registry::find(collective, &name).unwrap();
                let (shape, map) = (comm.shape().clone(), RankMap::RowMajor);
                let root = hopbine::torus::Rank(0);
                let request = Request { shape, map, root, ports: None };
                let text = algorithm.schedule(&request).unwrap().to_string();
                for count in [0, 1, 3, 1009] {
                    let root = if collective.is_rooted() { 5 } else { 0 };
                    let case = Case { collective, n_ranks: comm.size(), count, root };
                    for by in [&name, &text] {
                        let options = CallOptions::new().algorithm(by).hardware(Hardware::Never);
                        check(&comm.with(options), &case, &name);
                    }
                }
            }
        })
        .unwrap();
    }
}

#[test]
fn a_split_for_other_ports_is_refused() {
    emulate(&config(&[4, 3], Drive::Inline), |comm| {
        let options = CallOptions::new().algorithm("mixed-split:3,1").hardware(Hardware::Never);
        let refused = comm.with(options.ports(1)).allgather(&[1u8], &mut [0; 12]).unwrap_err();
        assert!(matches!(refused, Error::NotServed { .. }), "{refused}");
        let said = refused.to_string();
        assert!(said.contains("a split into 2 parts, but allgather in butterfly form"), "{said}");
    })
    .unwrap();
}
