//! A program that uses MPI through the crate `mpi` (rsmpi) and hopbine for collectives: on all ranks, and separately
//! on the even and the odd ranks. It verifies that MPI and hopbine compute the same sums.
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

    // hopbine must finish before MPI is finalised.
    world.finish()?;
    if ranks.rank() == 0 {
        println!("{} ranks: well", ranks.size());
    }
    Ok(())
}

/// Compares sums of integers, which do not depend on the order of the operands.
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
