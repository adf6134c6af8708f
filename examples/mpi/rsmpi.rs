//! A program that calls MPI by the crate `mpi` (rsmpi), with hopbine for its collectives: on all ranks, and on the
//! even and the odd ones. Both give the same sums.
//!
//! ```sh
//! cargo build --release -p hopbine-mpi --features rsmpi --example rsmpi
//! mpirun -n 4 target/release/examples/rsmpi
//! ```

use hopbine::Communicator;
use hopbine::reduce::Op;
use hopbine_mpi::rsmpi;
use mpi::collective::SystemOperation;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let universe = mpi::initialize().ok_or("MPI cannot be initialised")?;
    let ranks = universe.world();
    let world = rsmpi::init(&ranks)?;
    same_sums(world.communicator(), &ranks)?;

    let half = ranks.split_by_color(Color::with_value(ranks.rank() % 2)).ok_or("no half")?;
    same_sums(&rsmpi::communicator_of(&world, &half)?, &half)?;

    // Before MPI is finalised.
    world.finish()?;
    if ranks.rank() == 0 {
        println!("{} ranks: well", ranks.size());
    }
    Ok(())
}

/// Sums of whole numbers, which have no order.
fn same_sums(ours: &Communicator, theirs: &SimpleCommunicator) -> Outcome {
    let own: Vec<u64> = (0..1000).map(|at| at * theirs.rank() as u64 + at).collect();
    let mut expected = vec![0; own.len()];
    theirs.all_reduce_into(&own, &mut expected, SystemOperation::sum());
    let mut sums = own;
    ours.allreduce_in_place(&mut sums, Op::Sum)?;
    if sums != expected {
        return Err(format!("rank {}: {sums:?} instead of {expected:?}", theirs.rank()).into());
    }
    Ok(())
}
