//! What collectives on the flat buffer write and read, counted on 2, 3, 4 and 8 ranks: counts do not depend on the
//! cores of the machine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hopbine_meet::LocalExchange;
use hopbine_testing::ranks::ranks;
use hopbine_torus::Collective;
use hopbine_torus::choose::ShmLimits;

use super::flat_buffer::SharedFlatBuffer;
use super::regular::SHORT_BYTES;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{SmallCollectives, Waiter};
use crate::endpoint::shm::{ShmConfig, connect};
use crate::error::Error;
use crate::reduce::{Dtype, Op};
use crate::sync::lock;

struct Yields;

impl Waiter for Yields {
    fn may_start(&mut self) -> Result<u32, Error> {
        Ok(0)
    }

    fn hand_back(&mut self) -> Result<(), Error> {
        unreachable!("only an alltoallv is handed back")
    }

    fn idle(&mut self, _: Option<usize>) -> Result<(), Error> {
        std::thread::yield_now();
        Ok(())
    }
}

/// What one rank has done in a call.
#[derive(Debug, PartialEq)]
struct Counts {
    n_contributions: usize,
    /// Bytes that it has written to the flat buffer, and bytes of other ranks that it has read there.
    written: usize,
    read: usize,
    /// Cache lines of other ranks' contributions.
    lines: usize,
}

const ROOT: usize = 1;

/// The counts of all ranks for a collective with vectors or blocks of `n` bytes.
fn counted(collective: Collective, n_ranks: usize, n: usize) -> Vec<Counts> {
    ranks(LocalExchange::group(n_ranks, Duration::from_secs(60)), |me, mut exchange| {
        let limits = ShmLimits::default();
        let config = ShmConfig { n_ports: 1, node: 0, may_read: true, own_cores: false, limits };
        let flat = connect(&mut exchange, config).unwrap().flat.unwrap();
        let flat = SharedFlatBuffer::of_world(flat, limits).unwrap();
        let (send, mut recv) = (vec![1u8; n_ranks * n], vec![1u8; n_ranks * n]);
        let mut call = Call::new(collective, n as u64, Dtype::U8);
        call.op = collective.is_reduction().then_some(Op::Sum);
        call.root = if collective.is_rooted() { ROOT as u32 } else { 0 };
        (call.send, call.send_count) = (send.as_ptr(), send.len() as u64);
        (call.recv, call.recv_count) = (recv.as_mut_ptr(), recv.len() as u64);
        assert!(flat.serves_regular(&call).is_ok(), "{collective} of {n} B on {n_ranks}");
        let caller = Caller { rank: me as u32, n_ranks: n_ranks as u32 };
        // SAFETY: both buffers have room for a block of each rank, and nobody else uses them.
        unsafe { flat.perform(&call, caller, &mut Yields) }.unwrap();
        let of = lock(&flat.flat).buffer.counts;
        Counts {
            n_contributions: of.n_contributions,
            written: of.n_written,
            read: flat.n_read.load(Ordering::Relaxed) as usize,
            lines: of.n_lines,
        }
    })
}

/// The bytes that a rank writes and reads, as the table of docs/performance.md has them.
fn stated(collective: Collective, n_ranks: usize, n: usize, me: usize) -> (usize, usize) {
    let (others, is_root, is_last) = ((n_ranks - 1) * n, me == ROOT, me == n_ranks - 1);
    // Short blocks are written with the one that nobody reads.
    let own = if n_ranks * n <= SHORT_BYTES { n } else { 0 };
    let only = |is: bool, bytes: usize| if is { bytes } else { 0 };
    match collective {
        Collective::Barrier => (0, 0),
        Collective::Bcast => (only(is_root, n), only(!is_root, n)),
        Collective::Reduce | Collective::Gather => (only(!is_root, n), only(is_root, others)),
        Collective::Scatter => (only(is_root, others + own), only(!is_root, n)),
        Collective::Allreduce | Collective::Allgather => (n, others),
        Collective::ReduceScatter => (others + own, others),
        Collective::Alltoall => (others, others),
        Collective::Scan | Collective::Exscan => (only(!is_last, n), me * n),
    }
}

#[test]
fn a_byte_is_written_once_and_read_once_by_each_rank_that_needs_it() {
    for n_ranks in [2, 3, 4, 8] {
        for collective in Collective::ALL {
            for n in [8, 200, 2048] {
                for (me, found) in counted(collective, n_ranks, n).into_iter().enumerate() {
                    let (written, read) = stated(collective, n_ranks, n, me);
                    let case = format!("{collective} of {n} B, rank {me} of {n_ranks}: {found:?}");
                    assert_eq!((found.written, found.read), (written, read), "{case}");
                    let is_barrier = collective == Collective::Barrier;
                    assert_eq!(found.n_contributions > 0, is_barrier || written > 0, "{case}");
                    assert!(found.n_contributions <= 1, "{case}");
                    // Bytes of up to 56 are in the line of the stamp: one line of each rank that is read.
                    if n == 8
                        && !matches!(collective, Collective::Scatter | Collective::ReduceScatter)
                    {
                        let lines = if is_barrier { n_ranks - 1 } else { read / n };
                        assert_eq!(found.lines, lines, "{case}");
                    }
                }
            }
        }
    }
}
