//! The table of the collectives' signatures. The methods of this crate (`methods`), the C interface, MPI's names for
//! the same calls and the Fortran modules are generated from it.

/// Passes the table to the macro `$with`.
///
/// A row has the name of the collective; `regular` for blocks of one size, or `vector` if each has its own; the
/// methods with their arguments; and the blocking, the non-blocking and the persistent C function with their
/// arguments, except the communicator and the request, which are the last arguments of each function. The Fortran
/// procedures have the same names and arguments as the C functions.
#[doc(hidden)]
#[macro_export]
macro_rules! collectives {
    ($with:ident) => {
        $with! {
            Allreduce regular
            rust {
                /// Combines the vectors of all ranks; everyone gets the result, bit for bit the same.
                allreduce(send: In, recv: Out, op: Op)
                /// Prepares [`allreduce_in_place`](Communicator::allreduce_in_place) on `buffer`.
                allreduce_init(buffer: Own, op: Op)
            }
            c {
                /// Combines the vectors of `count` elements of all ranks; everyone gets the result, bit for bit the
                /// same.
                hopbine_allreduce, hopbine_iallreduce, hopbine_allreduce_init(sendbuf, recvbuf, count, datatype, op)
            }
            fortran { /// Everyone gets the combination of all vectors.
            }

            Reduce regular
            rust {
                /// Combines the vectors of all ranks; the root gets the result. `recv` may be empty on the
                /// others.
                reduce(send: In, recv: Out, op: Op, root: Rank)
                /// Prepares [`reduce`](Communicator::reduce) of `send`.
                reduce_init(send: Own, op: Op, root: Rank)
            }
            c {
                /// Combines the vectors of `count` elements of all ranks; the root gets the result. `recvbuf` matters on
                /// the root only, HOPBINE_IN_PLACE there only.
                hopbine_reduce, hopbine_ireduce, hopbine_reduce_init(sendbuf, recvbuf, count, datatype, op, root)
            }
            fortran { /// The root gets the combination of all vectors.
            }

            ReduceScatter regular
            rust {
                /// Combines all ranks' `p` blocks; rank x gets block x of the result.
                reduce_scatter(send: In, recv: Out, op: Op)
                /// Prepares [`reduce_scatter`](Communicator::reduce_scatter) of `send`.
                reduce_scatter_init(send: Own, op: Op)
            }
            c {
                /// Combines blocks of `count` elements, one for each rank; rank x gets block x of the result
                /// (MPI_Reduce_scatter_block). In place, the blocks are in `recvbuf`, and the result at its start.
                hopbine_reduce_scatter_block, hopbine_ireduce_scatter_block, hopbine_reduce_scatter_block_init(
                    sendbuf, recvbuf, count, datatype, op
                )
            }
            fortran { /// Rank x gets the combination of all blocks x.
            }

            Scan regular
            rust {
                /// Combines the vectors of the ranks up to this one, in their order.
                scan(send: In, recv: Out, op: Op)
                /// Prepares [`scan`](Communicator::scan) of `send`.
                scan_init(send: Own, op: Op)
            }
            c {
                /// Combines vectors of `count` elements: rank x gets the combination of those of ranks 0 to x.
                hopbine_scan, hopbine_iscan, hopbine_scan_init(sendbuf, recvbuf, count, datatype, op)
            }
            fortran { /// Rank x gets the combination of the vectors of ranks 0 to x.
            }

            Exscan regular
            rust {
                /// Combines the vectors of the ranks before this one, in their order. The receive buffer of rank 0
                /// is unchanged, and may have any length.
                exscan(send: In, recv: Out, op: Op)
                /// Prepares [`exscan`](Communicator::exscan) of `send`; rank 0 has an empty buffer.
                exscan_init(send: Own, op: Op)
            }
            c {
                /// As hopbine_scan(), without the rank's own vector: rank x gets the combination of those of ranks 0 to
                /// x - 1, and `recvbuf` of rank 0 stays as it is; it may be null unless the call is in place.
                hopbine_exscan, hopbine_iexscan, hopbine_exscan_init(sendbuf, recvbuf, count, datatype, op)
            }
            fortran { /// The same without its own; the buffer of rank 0 stays as it is.
            }

            Bcast regular
            rust {
                /// Everyone gets the root's vector.
                bcast(buffer: Out, root: Rank)
                /// Prepares [`bcast`](Communicator::bcast) on `buffer`.
                bcast_init(buffer: Own, root: Rank)
            }
            c {
                /// Gives everyone the root's vector of `count` elements.
                hopbine_bcast, hopbine_ibcast, hopbine_bcast_init(buffer, count, datatype, root)
            }
            fortran { /// Everyone gets the root's vector.
            }

            Allgather regular
            rust {
                /// Everyone gets everyone's block.
                allgather(send: In, recv: Out)
                /// Prepares [`allgather`](Communicator::allgather) of `send`.
                allgather_init(send: Own)
            }
            c {
                /// Gives everyone the blocks of `count` elements of all ranks, in rank order. In place, a rank's own
                /// block is where it belongs in `recvbuf`.
                hopbine_allgather, hopbine_iallgather, hopbine_allgather_init(sendbuf, recvbuf, count, datatype)
            }
            fortran { /// Everyone gets everyone's block.
            }

            Gather regular
            rust {
                /// The root gets everyone's block. `recv` may be empty on the others.
                gather(send: In, recv: Out, root: Rank)
                /// Prepares [`gather`](Communicator::gather) of `send`.
                gather_init(send: Own, root: Rank)
            }
            c {
                /// Gives the root the blocks of `count` elements of all ranks, in rank order. `recvbuf` matters on the
                /// root only, HOPBINE_IN_PLACE there only.
                hopbine_gather, hopbine_igather, hopbine_gather_init(sendbuf, recvbuf, count, datatype, root)
            }
            fortran { /// The root gets everyone's block.
            }

            Scatter regular
            rust {
                /// Rank x gets the root's block x. `send` may be empty on the others.
                scatter(send: In, recv: Out, root: Rank)
                /// Prepares [`scatter`](Communicator::scatter) of `send`, which only the root gives, into
                /// blocks of `count` elements.
                scatter_init(send: Own, count: Count, root: Rank)
            }
            c {
                /// Gives rank x the root's block x of `count` elements. `sendbuf` matters on the root only, which may
                /// have HOPBINE_IN_PLACE for `recvbuf`: its own block then stays where it is.
                hopbine_scatter, hopbine_iscatter, hopbine_scatter_init(sendbuf, recvbuf, count, datatype, root)
            }
            fortran { /// Rank x gets the root's block x.
            }

            Alltoall regular
            rust {
                /// Rank x gets everyone's block x, in rank order.
                alltoall(send: In, recv: Out)
                /// Prepares [`alltoall`](Communicator::alltoall) of `send`.
                alltoall_init(send: Own)
            }
            c {
                /// Gives rank x the block x of `count` elements of all ranks, in rank order. In place, the blocks to
                /// send are in `recvbuf`; then on all ranks.
                hopbine_alltoall, hopbine_ialltoall, hopbine_alltoall_init(sendbuf, recvbuf, count, datatype)
            }
            fortran { /// Rank x gets everyone's block x.
            }

            Barrier regular
            rust {
                /// Returns when all ranks have called it.
                barrier()
                /// Prepares [`barrier`](Communicator::barrier).
                barrier_init()
            }
            c {
                /// Ends when all ranks have called it.
                hopbine_barrier, hopbine_ibarrier, hopbine_barrier_init()
            }
            fortran { /// Ends when all ranks have called it.
            }

            Allgather vector
            rust {
                /// Everyone gets everyone's block, into its place in `recv`. All ranks must give the same
                /// counts.
                allgatherv(send: In, recv: Out, blocks: Blocks)
                /// Prepares [`allgatherv`](Communicator::allgatherv) of `send`.
                allgatherv_init(send: Own, blocks: Blocks)
            }
            c {
                /// Gives everyone the blocks of all ranks, which may differ in size: `count` elements from this one,
                /// `counts[x]` from rank x, to `displs[x]` in `recvbuf`. Counts are the same on all ranks; displacements
                /// need not be, and are one block after the other if null. Those of blocks without elements do not
                /// matter.
                hopbine_allgatherv, hopbine_iallgatherv, hopbine_allgatherv_init(
                    sendbuf, count, recvbuf, counts, displs, datatype
                )
            }
            fortran { /// Everyone gets everyone's block: counts(x) elements at displs(x), from 0, of recv.
            }

            Gather vector
            rust {
                /// The root gets everyone's block, into its place in `recv`. Only the root gives `blocks`; if blocks
                /// pass through other ranks, it sends these the sizes first.
                gatherv(send: In, recv: Out, blocks: BlocksOfRoot, root: Rank)
                /// Prepares [`gatherv`](Communicator::gatherv) of `send`.
                gatherv_init(send: Own, blocks: BlocksOfRoot, root: Rank)
            }
            c {
                /// Gives the root the blocks of all ranks: `count` elements from this one. `recvbuf`, `counts` and `displs`
                /// matter on the root only.
                hopbine_gatherv, hopbine_igatherv, hopbine_gatherv_init(
                    sendbuf, count, recvbuf, counts, displs, datatype, root
                )
            }
            fortran { /// The root gets everyone's block.
            }

            Scatter vector
            rust {
                /// Rank x gets the root's block x. Only the root gives `blocks`; if blocks pass through other ranks,
                /// all ranks first send the sizes that they expect.
                scatterv(send: In, blocks: BlocksOfRoot, recv: Out, root: Rank)
                /// Prepares [`scatterv`](Communicator::scatterv) of `send`, which only the root gives, into
                /// a block of `count` elements.
                scatterv_init(send: Own, blocks: BlocksOfRoot, count: Count, root: Rank)
            }
            c {
                /// Gives rank x the root's block x, of `counts[x]` elements at `displs[x]` of `sendbuf`; `count` elements to
                /// this one. `sendbuf`, `counts` and `displs` matter on the root only.
                hopbine_scatterv, hopbine_iscatterv, hopbine_scatterv_init(
                    sendbuf, counts, displs, recvbuf, count, datatype, root
                )
            }
            fortran { /// Rank x gets the root's block x.
            }

            ReduceScatter vector
            rust {
                /// Combines all ranks' vectors; rank x gets block x of the result, of `counts[x]` elements.
                /// All ranks must give the same counts.
                reduce_scatterv(send: In, recv: Out, counts: Counts, op: Op)
                /// Prepares [`reduce_scatterv`](Communicator::reduce_scatterv) of `send`.
                reduce_scatterv_init(send: Own, counts: Counts, op: Op)
            }
            c {
                /// Combines vectors of blocks, of `counts[x]` elements for rank x, which gets block x of the result
                /// (MPI_Reduce_scatter). In place, the vector is in `recvbuf`, and the result at its start.
                hopbine_reduce_scatter, hopbine_ireduce_scatter, hopbine_reduce_scatter_init(
                    sendbuf, recvbuf, counts, datatype, op
                )
            }
            fortran { /// Rank x gets the combination of all blocks x, of counts(x) elements.
            }

            Alltoall vector
            rust {
                /// Rank x gets everyone's block x, each into its place in `recv`. The two ranks of every pair must
                /// give the same size for the block from one to the other.
                alltoallv(send: In, send_blocks: Blocks, recv: Out, recv_blocks: Blocks)
                /// Prepares [`alltoallv`](Communicator::alltoallv) of `send`.
                alltoallv_init(send: Own, send_blocks: Blocks, recv_blocks: Blocks)
            }
            c {
                /// Gives rank x `sendcounts[x]` elements at `sdispls[x]` of `sendbuf`, and gets `recvcounts[x]`
                /// elements from it to `rdispls[x]` of `recvbuf`. In place (on all ranks), the second lists count for
                /// both.
                hopbine_alltoallv, hopbine_ialltoallv, hopbine_alltoallv_init(
                    sendbuf, sendcounts, sdispls, recvbuf, recvcounts, rdispls, datatype
                )
            }
            fortran { /// Rank x gets everyone's block x.
            }
        }
    };
}
