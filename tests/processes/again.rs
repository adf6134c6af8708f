//! Worlds one after another in the same processes.

use crate::common::processes::{four_at_a_time, ranks, run_scenario};
use hopbine::init;
use hopbine::reduce::Op;

/// The entry of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| (name == "again").then_some(again as fn()));
}

fn again() {
    for round in 0..20 {
        let world = init().unwrap();
        let mut sum = [round + world.communicator().rank()];
        world.communicator().allreduce_in_place(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [3 * round + 3]);
        world.finish().unwrap();
    }
}

/// Some ranks begin the next world while others have yet to see that all are at the end of the last.
#[test]
fn ranks_meet_again_and_again() {
    four_at_a_time(["emu", "shm"], |backend| {
        ranks(3, "again", &[("HOPBINE_BACKEND", backend), ("HOPBINE_TIMEOUT", "10")]);
    });
}
