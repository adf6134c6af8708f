//! Communicators of some of the world's ranks.

use super::DRIVES;
use crate::common::calls::{checked, config};
use hopbine::Call;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::torus::geometry::Shape;
use hopbine::{CallOptions, Communicator, Drive, EmulationConfig, Error, Hardware, emulate};

/// Threads of every rank create, use and drop duplicates of their own communicators at the same time: their
/// agreements do not mix.
#[test]
fn threads_make_communicators_at_once() {
    for drive in DRIVES {
        emulate(&config(&[3, 2], drive), |comm| {
            let own: Vec<Communicator> = (0..4).map(|_| comm.duplicate().unwrap()).collect();
            std::thread::scope(|threads| {
                for (thread, mine) in own.into_iter().enumerate() {
                    threads.spawn(move || {
                        let mut kept = Vec::new();
                        for round in 0..50 {
                            let made = match (round + thread) % 3 {
                                0 => mine.duplicate().unwrap(),
                                1 => mine.sub_box(&[round % 2]).unwrap(),
                                _ => mine.split(Some(mine.rank() / 2), 0).unwrap().unwrap(),
                            };
                            checked(&made, 10 * round);
                            if round % 3 == 0 {
                                kept.push(made);
                            }
                        }
                        kept.iter().for_each(|made| checked(made, 33));
                    });
                }
            });
        })
        .unwrap();
    }
}

/// Rows, columns and planes, used in turn and at the same time.
pub fn rows_and_columns(comm: &Communicator) {
    let n_dims = comm.shape().n_dims();
    let world = comm.coordinates();
    let mut boxes = Vec::new();
    for dim in 0..n_dims {
        let line = comm.sub_box(&[dim]).unwrap();
        assert_eq!(line.size(), comm.shape().size(dim));
        // A communicator of a node's ranks has the shape of a torus of one node.
        let (axes, at) = (line.shape().axes(), line.coordinates());
        assert_eq!(axes.last(), Some(&comm.shape().axes()[dim]));
        assert_eq!(at.as_slice().last(), Some(&world[dim]));
        let is_node = comm.shape().node_dim() == Some(dim);
        assert!(axes.len() == 1 + usize::from(is_node) && (!is_node || axes[0].size == 1));
        assert_eq!(line.rank(), world[dim]);
        boxes.push(line);
    }
    boxes.push(comm.sub_box(&[]).unwrap());
    assert_eq!(boxes[n_dims].size(), 1);
    boxes.push(comm.sub_box(&(0..n_dims).collect::<Vec<_>>()).unwrap());
    assert_eq!(boxes[n_dims + 1].shape(), comm.shape());
    for round in 0..3 {
        for (index, one) in boxes.iter().enumerate() {
            checked(one, 100 * round + index);
        }
    }
    // All requests at the same time, started in different orders on different ranks.
    let mut running: Vec<_> = boxes
        .iter()
        .map(|one| (u64::from(one.size()), one.allreduce_init(vec![1u64; 900], Op::Sum).unwrap()))
        .collect();
    let n = running.len();
    running.rotate_left(comm.rank() as usize % n);
    running.iter_mut().for_each(|(_, allreduce)| allreduce.start().unwrap());
    for (size, allreduce) in &mut running {
        allreduce.wait().unwrap();
        assert_eq!(allreduce.buffer().unwrap(), vec![*size; 900]);
    }
    assert!(matches!(comm.sub_box(&[n_dims]), Err(Error::Group { .. })));
    assert!(matches!(comm.sub_box(&[0, 0]), Err(Error::Group { .. })));
}

#[test]
fn rows_columns_and_planes_keep_their_shape() {
    for drive in DRIVES {
        for sizes in [&[4][..], &[3, 2], &[2, 3, 2], &[1, 4]] {
            emulate(&config(sizes, drive), rows_and_columns).unwrap();
        }
    }
    // With a user-defined rank map.
    let map = "0,1\n1,1\n0,0\n1,0\n0,2\n1,2\n".replace(',', " ");
    let shape = Shape::torus(&[2, 3]).unwrap();
    let map = hopbine::torus::geometry::RankMap::parse(&shape, &map).unwrap();
    let config = EmulationConfig::new(shape).with(|config| config.map = map);
    emulate(&config, rows_and_columns).unwrap();
}

#[test]
fn groups_are_what_their_lists_say() {
    emulate(&config(&[3, 4], Drive::Inline), |comm| {
        let rank = comm.rank();
        // Two groups at the same time, each with its own order of ranks, and a rank in neither group.
        let lists: [&[u32]; 2] = [&[7, 2, 11, 0, 5], &[1, 3, 4, 6, 8, 9]];
        let list = lists.iter().find(|list| list.contains(&rank)).copied().unwrap_or(&[]);
        let group = comm.group(list).unwrap();
        assert_eq!(group.is_some(), rank != 10);
        if let Some(group) = group {
            assert_eq!(list[group.rank() as usize], rank);
            assert_eq!(group.size() as usize, list.len());
            (0..4).for_each(|count| checked(&group, 500 * count));
            // A group of a group.
            let half = group.split(Some(group.rank() / 3), 0).unwrap().unwrap();
            checked(&half, 70);
        }
        // Two neighbouring columns are a box of the torus; one of the box's dimensions is not a ring.
        let within = (1..=2).contains(&comm.coordinates()[1]);
        let square = comm.split(within.then_some(3), 0).unwrap();
        if let Some(square) = square {
            assert_eq!(square.size(), 6);
            assert_eq!(square.shape().sizes(), [3, 2]);
            assert!(square.shape().axes()[0] == comm.shape().axes()[0]);
            assert_ne!(square.shape().axes()[1].link, comm.shape().axes()[1].link);
            checked(&square, 5000);
        }
        // A wrong call returns an error, and harms no other rank.
        assert!(matches!(comm.group(&[0, 0]), Err(Error::Group { .. })));
        assert!(matches!(comm.group(&[12]), Err(Error::Group { .. })));
        let disagreeing: &[u32] = if rank == 0 { &[0, 1] } else { &[0, 1, 2] };
        let made = comm.group(disagreeing);
        assert_eq!(made.is_err(), rank < 3, "rank {rank}");
        checked(comm, 100);
        assert!(comm.split(None, 5).unwrap().is_none());
    })
    .unwrap();
}

#[test]
fn any_thread_can_make_and_drop() {
    let config = config(&[2, 2], Drive::Inline).with(|config| config.ports = Some(1));
    emulate(&config, |comm| {
        std::thread::scope(|threads| {
            // Both threads differ from the rank's own thread.
            let second = threads.spawn(|| comm.duplicate()).join().unwrap().unwrap();
            checked(&second, 3000);
            let third = second.with(CallOptions::new().ports(1));
            threads.spawn(move || drop(second)).join().unwrap();
            checked(&third, 3000);
        });
        let here = comm.duplicate().unwrap();
        checked(&here, 10);
    })
    .unwrap();
}

#[test]
fn options_are_inherited() {
    emulate(&config(&[3], Drive::Inline), |comm| {
        let barrier = Call::new(Collective::Barrier, 0, Dtype::U8);
        let by_plan = comm.with(CallOptions::new().hardware(Hardware::Never));
        let second = by_plan.duplicate().unwrap();
        assert!(comm.uses_gates(&barrier) && !second.uses_gates(&barrier));
        let magic = comm.with(CallOptions::new().algorithm("magic"));
        let unknown = magic.duplicate().unwrap();
        let error = unknown.allreduce_in_place(&mut [0u64; 9], Op::Sum).unwrap_err();
        assert!(matches!(error, Error::UnknownAlgorithm { .. }));
        // A duplicate has its own gates, or its own flat buffer.
        let always = second.with(CallOptions::new().hardware(Hardware::Always));
        always.barrier().unwrap();
    })
    .unwrap();
}
