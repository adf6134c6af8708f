//! Collectives by name, with their inputs and the check of their results.

use hopbine::reduce::Op;
use hopbine::torus::collectives::Collective;
use hopbine::{Communicator, Error};

use super::reference::{Case, expected, inputs};

/// Calls a collective on u64 sums and returns what this rank has received.
pub fn call(comm: &Communicator, case: &Case) -> Result<Vec<u64>, Error> {
    let rank = comm.rank();
    let send = inputs(case, rank);
    let mut recv = vec![u64::MAX; case.recv_len(rank)];
    match case.collective {
        Collective::Allreduce => comm.allreduce(&send, &mut recv, Op::Sum)?,
        Collective::ReduceScatter => comm.reduce_scatter(&send, &mut recv, Op::Sum)?,
        Collective::Allgather => comm.allgather(&send, &mut recv)?,
        Collective::Bcast => {
            if rank == case.root {
                recv.copy_from_slice(&send);
            }
            comm.bcast(&mut recv, case.root)?;
        }
        Collective::Reduce => comm.reduce(&send, &mut recv, Op::Sum, case.root)?,
        Collective::Gather => comm.gather(&send, &mut recv, case.root)?,
        Collective::Scatter => comm.scatter(&send, &mut recv, case.root)?,
        Collective::Alltoall => comm.alltoall(&send, &mut recv)?,
        Collective::Barrier => comm.barrier()?,
    }
    Ok(recv)
}

/// As `call`, but with input and output in one buffer where the collective has such a form.
fn call_in_place(comm: &Communicator, case: &Case, what: &str) -> Result<Vec<u64>, Error> {
    let rank = comm.rank();
    let mut buffer = inputs(case, rank);
    match case.collective {
        Collective::Allreduce => comm.allreduce_in_place(&mut buffer, Op::Sum)?,
        Collective::ReduceScatter => {
            comm.reduce_scatter_in_place(&mut buffer, Op::Sum)?;
            buffer.truncate(case.count);
        }
        Collective::Allgather => {
            let mut all = vec![u64::MAX; case.recv_len(rank)];
            let at = rank as usize * case.count;
            all[at..at + case.count].copy_from_slice(&buffer);
            comm.allgather_in_place(&mut all)?;
            buffer = all;
        }
        Collective::Reduce => {
            comm.reduce_in_place(&mut buffer, Op::Sum, case.root)?;
            assert!(rank == case.root || buffer == inputs(case, rank), "only the root's changes");
            buffer.truncate(case.recv_len(rank));
        }
        Collective::Alltoall => match comm.alltoall_in_place(&mut buffer) {
            // Ports that share blocks cannot permute them in place, and say so.
            Err(Error::Plan { .. }) if what == "pairwise" => return call(comm, case),
            outcome => outcome?,
        },
        _ => return call(comm, case),
    }
    Ok(buffer)
}

/// Checks the call with two buffers and in place; panics naming `what` if it is wrong.
pub fn check(comm: &Communicator, case: &Case, what: &str) {
    let want = expected(case, comm.rank(), u64::wrapping_add);
    let got = call(comm, case).unwrap_or_else(|error| panic!("{what} {case:?}: {error}"));
    assert!(got == want, "{what} {case:?}: rank {} is wrong", comm.rank());
    let got =
        call_in_place(comm, case, what).unwrap_or_else(|error| panic!("{what} {case:?}: {error}"));
    assert!(got == want, "{what} {case:?} in place: rank {} is wrong", comm.rank());
}
