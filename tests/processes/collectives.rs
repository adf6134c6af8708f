//! Ranks as processes of this host, on the emulated device: the same collectives as with threads, and failures at
//! start-up. `lost` has the later failures.

use crate::common::ahead::{ahead_in_another, far_ahead};
use crate::common::calls::check;
use crate::common::processes::{ranks, run_scenario, start};
use crate::common::reference::Case;
use hopbine::reduce::Op;
use hopbine::torus::{Collective, registry};
use hopbine::{CallOptions, Error, init};
use hopbine_testing::cores::one_core;
use hopbine_testing::processes::wait;

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| {
        Some(match name {
            "every_algorithm" => every_algorithm,
            "splits" => splits,
            "root_ahead" => root_ahead,
            "near" => near,
            "defaults" => defaults,
            "types" => types,
            "persistent" => persistent,
            "shape" => shape,
            "denied" => denied,
            _ => return None,
        })
    });
}

fn every_algorithm() {
    let world = init().unwrap();
    let comm = world.communicator();
    for algorithm in registry::all() {
        if algorithm.serves(comm.shape()).is_err() {
            continue;
        }
        for (index, count) in [0, 1, 13, 1009].into_iter().enumerate() {
            let rooted = algorithm.collective.is_rooted();
            let root = if rooted { index as u32 % comm.size() } else { 0 };
            let case = Case { collective: algorithm.collective, n_ranks: comm.size(), count, root };
            let options = CallOptions::new()
                .algorithm(&algorithm.name)
                .ports(1 + index as u32 % comm.n_ports())
                .segment_bytes([1 << 20, 4096, 100][index % 3]);
            check(&comm.with(options), &case, &algorithm.name);
        }
    }
    world.finish().unwrap();
}

/// Lanes whose parts differ in size.
fn splits() {
    let world = init().unwrap();
    let comm = world.communicator();
    for (collective, name) in [
        (Collective::Allreduce, "mixed"),
        (Collective::Allreduce, "direct-l"),
        (Collective::Allgather, "bucket-dealt"),
        (Collective::Alltoall, "circulant"),
        (Collective::Bcast, "mixed-tree"),
    ] {
        let name = format!("{name}-split:3,1");
        for count in [0, 1, 13, 30_011] {
            let case = Case { collective, n_ranks: comm.size(), count, root: 0 };
            check(&comm.with(CallOptions::new().algorithm(&name)), &case, &name);
        }
    }
    world.finish().unwrap();
}

#[test]
fn splits_on_the_device_and_in_memory() {
    for backend in ["emu", "shm"] {
        ranks(5, "splits", &[("HOPBINE_BACKEND", backend), ("HOPBINE_PORTS", "2")]);
    }
}

#[test]
fn every_algorithm_on_several_shapes() {
    for (n, torus) in [(2, "2"), (3, "3"), (6, "2x3"), (6, "3mx2"), (8, "2x2x2")] {
        ranks(n, "every_algorithm", &[("HOPBINE_TORUS", torus)]);
    }
}

#[test]
fn every_algorithm_over_wires_on_which_messages_overtake_each_other() {
    let _core = one_core();
    ranks(5, "every_algorithm", &[("HOPBINE_EMU_JITTER_NS", "20000")]);
}

/// The device performs every transfer as late as allowed, and ends a process that uses memory too early.
#[test]
fn every_algorithm_on_a_late_device() {
    let _core = one_core();
    let late = [("HOPBINE_EMU_LATE", "5"), ("HOPBINE_EMU_CHECKED", "1")];
    ranks(5, "every_algorithm", &late);
}

#[test]
fn every_algorithm_with_several_ranks_on_each_node() {
    let _core = one_core();
    ranks(6, "every_algorithm", &[("HOPBINE_TORUS", "3"), ("HOPBINE_RANKS_PER_NODE", "2")]);
}

/// Prints whether this rank has a shared-memory wire to the ranks of its node.
fn near() {
    let world = init().unwrap();
    let case = Case {
        collective: Collective::Alltoall,
        n_ranks: world.communicator().size(),
        count: 5000,
        root: 0,
    };
    check(world.communicator(), &case, "default");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    println!("near: {}", maps.contains("/memfd:hopbine (deleted)"));
    world.finish().unwrap();
}

#[test]
fn ranks_of_a_node_speak_through_its_memory_unless_told_not_to() {
    // An emulated device between the nodes, whatever backend other tests use.
    let device = ("HOPBINE_BACKEND", "emu");
    let near = [device, ("HOPBINE_RANKS_PER_NODE", "2"), ("HOPBINE_DRIVE", "workers")];
    for (shm, is_near) in [("on", true), ("off", false)] {
        for ended in ranks(4, "near", &[&near[..], &[("HOPBINE_SHM", shm)]].concat()) {
            assert!(ended.text().contains(&format!("near: {is_near}")), "{}", ended.text());
        }
    }
    for ended in ranks(3, "near", &[device]) {
        assert!(ended.text().contains("near: false"), "{}", ended.text());
    }
}

#[test]
fn every_algorithm_with_workers() {
    ranks(3, "every_algorithm", &[("HOPBINE_DRIVE", "workers")]);
}

fn defaults() {
    let world = init().unwrap();
    let comm = world.communicator();
    for collective in Collective::ALL {
        for count in [0, 1, 100, 5000, 100_000] {
            let root = if collective.is_rooted() { comm.size() - 1 } else { 0 };
            check(comm, &Case { collective, n_ranks: comm.size(), count, root }, "default");
        }
    }
}

#[test]
fn defaults_choose_something_right() {
    ranks(4, "defaults", &[]);
    ranks(1, "defaults", &[]);
}

#[test]
fn without_the_registration_cache() {
    ranks(3, "defaults", &[("HOPBINE_REG_CACHE", "0")]);
}

/// Opens the emulated device at run time as a C library, as the vendor's library is opened.
#[test]
fn a_library_opened_at_run_time() {
    let library = library();
    let library = ("HOPBINE_UTOFU_LIB", &*library);
    ranks(4, "defaults", &[("HOPBINE_BACKEND", "tofu"), library]);
    // The library is found although the backend is `auto`.
    ranks(3, "every_algorithm", &[("HOPBINE_BACKEND", "auto"), library]);
}

/// The emulated device as a C library.
fn library() -> String {
    let library = std::env::current_exe().unwrap().with_file_name("libtofucom_emu.so");
    library.into_os_string().into_string().unwrap()
}

fn types() {
    let world = init().unwrap();
    let comm = world.communicator();
    let (rank, n) = (comm.rank(), comm.size());
    let mut floats: Vec<f32> = (0..5000).map(|at| (at + rank) as f32).collect();
    comm.allreduce_in_place(&mut floats, Op::Sum).unwrap();
    let want = |at: u32| (0..n).map(|rank| (at + rank) as f32).sum::<f32>();
    assert!((0..5000).zip(&floats).all(|(at, &sum)| sum == want(at)));
    let mut bytes: Vec<u8> = (0..3000).map(|at| (at as u8).wrapping_mul(3) ^ rank as u8).collect();
    comm.allreduce_in_place(&mut bytes, Op::Max).unwrap();
    let want = |at: usize| (0..n).map(|rank| (at as u8).wrapping_mul(3) ^ rank as u8).max();
    assert!((0..3000).zip(&bytes).all(|(at, &max)| Some(max) == want(at)));
    let mut halves = vec![half::f16::from_f32(0.5); 777];
    comm.allreduce_in_place(&mut halves, Op::Sum).unwrap();
    assert!(halves.iter().all(|half| half.to_f32() == 0.5 * n as f32));
    let error = comm.allreduce_in_place(&mut [1.0f32], Op::BitOr).unwrap_err();
    assert!(matches!(error, Error::Reduce(_)));
}

#[test]
fn several_types() {
    ranks(4, "types", &[]);
}

fn persistent() {
    let world = init().unwrap();
    let comm = world.communicator();
    let (rank, n) = (u64::from(comm.rank()), u64::from(comm.size()));
    let mut sum = comm.allreduce_init(vec![0u64; 3000], Op::Sum).unwrap();
    for round in 0..50 {
        for (at, value) in sum.input_mut().unwrap().iter_mut().enumerate() {
            *value = round * 7 + rank * at as u64;
        }
        sum.start().unwrap();
        sum.wait().unwrap();
        let of_ranks = n * (n - 1) / 2;
        let want = |at: u64| n * round * 7 + of_ranks * at;
        assert!((0..3000).zip(sum.buffer().unwrap()).all(|(at, &got)| got == want(at)));
    }
}

#[test]
fn persistent_collectives() {
    ranks(4, "persistent", &[]);
}

fn shape() {
    let world = init().unwrap_or_else(|error| panic!("{error}"));
    println!("shape {} at {}", world.communicator().shape(), world.communicator().coordinates());
}

#[test]
fn the_torus_is_the_one_asked_for_or_nearly_cubic() {
    let said = |n, env: &[(&str, &str)]| {
        let ended = ranks(n, "shape", env);
        let line = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("shape")).expect("is printed");
            line.to_owned()
        };
        ended.iter().map(|ended| line(&ended.text())).collect::<Vec<_>>()
    };
    assert_eq!(said(6, &[("HOPBINE_BACKEND", "emu")])[4], "shape 3x2 at (1,1)");
    // In shared memory every rank is a neighbour of every other.
    assert_eq!(said(6, &[("HOPBINE_BACKEND", "shm")])[4], "shape 6 at (4)");
    assert_eq!(said(6, &[("HOPBINE_TORUS", "2x3")])[1], "shape 2x3 at (1,0)");
    let per_node = [("HOPBINE_TORUS", "2"), ("HOPBINE_RANKS_PER_NODE", "2")];
    assert_eq!(said(4, &per_node)[2], "shape 2+2 at (1,0)");

    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("map");
    std::fs::write(&map, "(1,1)\n(0,0)\n(1,0)\n(0,1)\n").unwrap();
    let env = [("HOPBINE_TORUS", "2x2"), ("HOPBINE_RANK_MAP", map.to_str().unwrap())];
    assert_eq!(said(4, &env)[2], "shape 2x2 at (1,0)");
}

/// The device has started with one rank per node before the variable gives another number.
fn denied() {
    utofu::Api::vendor().unwrap().my_coords().unwrap();
    // SAFETY: no other thread of this process accesses the environment meanwhile.
    unsafe { std::env::set_var("HOPBINE_RANKS_PER_NODE", "2") };
    let text = init().err().expect("is refused").to_string();
    assert!(text.contains("HOPBINE_RANKS_PER_NODE: `2` is not valid; it must be 1"), "{text}");
}

#[test]
fn the_devices_ranks_per_node_are_not_overruled() {
    ranks(2, "denied", &[("HOPBINE_BACKEND", "tofu"), ("HOPBINE_UTOFU_LIB", &library())]);
}

/// The error text of a single rank that cannot start.
fn refusal(env: &[(&str, &str)]) -> String {
    let (_dir, children) = start(1, "shape", env);
    let ended = wait(children).remove(0);
    assert!(!ended.status.success(), "{}", ended.text());
    ended.text()
}

#[test]
fn what_cannot_be_is_named() {
    let text = refusal(&[("HOPBINE_TORUS", "2x3")]);
    assert!(text.contains("HOPBINE_TORUS=2x3 is not valid; it must be of 1 nodes"), "{text}");
    let text = refusal(&[("HOPBINE_BACKEND", "mpi")]);
    assert!(text.contains("no MPI backend"), "{text}");
    let text = refusal(&[("HOPBINE_BACKEND", "tofu"), ("HOPBINE_UTOFU_LIB", "/nowhere/lib.so")]);
    assert!(text.contains("no tofu backend") && text.contains("/nowhere/lib.so"), "{text}");
    let text = refusal(&[("HOPBINE_BACKEND", "tcp")]);
    assert!(text.contains("tofu, shm, emu, mpi or auto"), "{text}");
    let text = refusal(&[("HOPBINE_REG_CACHE", "maybe")]);
    assert!(text.contains("HOPBINE_REG_CACHE"), "{text}");
    let text = refusal(&[("HOPBINE_CORES", "4294967296")]);
    assert!(text.contains("HOPBINE_CORES") && text.contains("below 1024"), "{text}");
    let text = refusal(&[("HOPBINE_RANK_MAP", "/dev/zero")]);
    assert!(text.contains("it is not a regular file"), "{text}");
    // The other rank never starts.
    let text = refusal(&[("HOPBINE_SIZE", "2"), ("HOPBINE_TIMEOUT", "1")]);
    assert!(text.contains("rank(s) 1 of 2"), "{text}");
}

fn root_ahead() {
    let world = init().unwrap();
    far_ahead(world.communicator(), 100_000);
    ahead_in_another(world.communicator(), 300);
    world.finish().unwrap();
}

/// Messages that the root sends ahead, also in shared memory, where receivers read them from the root's memory or
/// it sends them in pieces.
#[test]
fn a_root_is_far_ahead_of_other_processes() {
    let kept = ("HOPBINE_UNEXPECTED_BYTES", "16384");
    ranks(4, "root_ahead", &[kept]);
    for read in ["on", "off"] {
        ranks(4, "root_ahead", &[kept, ("HOPBINE_BACKEND", "shm"), ("HOPBINE_SHM_READ", read)]);
    }
}

/// A port keeps almost no messages that arrive too early.
#[test]
fn every_algorithm_without_room_for_early_messages() {
    let kept = ("HOPBINE_UNEXPECTED_BYTES", "1");
    ranks(5, "every_algorithm", &[kept, ("HOPBINE_EMU_JITTER_NS", "20000")]);
    for read in ["on", "off"] {
        ranks(
            6,
            "every_algorithm",
            &[kept, ("HOPBINE_BACKEND", "shm"), ("HOPBINE_SHM_READ", read)],
        );
    }
}
