//! What another implementation of the same equations (numpy and numba) predicts with the parameters that it
//! had been fitted with, for every family of timings that is modelled.
//!
//! It played a representative rank of its own tables of loads; `torus/study` of this repository's history
//! (model.py, commit f601226) is that implementation. Of each family a short call, a long one and, where
//! there are, one with segments.

use hopbine_torus::Collective::{
    self, Allgather, Allreduce, Alltoall, Bcast, Gather, Reduce, ReduceScatter, Scatter,
};
use hopbine_torus::sim::Api::{self, FujitsuMpi, Mpi, Utofu};

/// `tofu-d` with those parameters.
pub const MACHINE: &str = "tofu-d,network.latency=1617,node.poll=303,node.ack=705,node.reduce=17.86,\
    node.reduce_all=68.03,node.reduce_ramp=261.3,node.copy=23.99,node.copy_all=68.03,node.block=17.1,\
    node.copy_ramp=60.65,paper.base=2530,paper.entry=5.45,paper.mpi=1272,paper.eager=5.736,\
    paper.rendezvous=11360,paper.fork=2556,paper.fork_each=1725,paper.heap=282.5,paper.heap_all=869.4,\
    paper.heap_wake=3016,paper.timer=2279,paper.critical=629.7,paper.team=10640";

/// Torus, software, collective, algorithm, bytes, bytes of a segment, ports, microseconds.
pub type Row = (&'static str, Api, Collective, &'static str, u64, u64, u32, f64);

#[rustfmt::skip]
pub static ROWS: &[Row] = &[
    ("4x4x4", FujitsuMpi, Allgather, "bruck", 2 << 10, 0, 1, 19.0),
    ("8x8x8", FujitsuMpi, Allgather, "bruck", 2 << 10, 0, 1, 29.2),
    ("4x4x4", FujitsuMpi, Allgather, "recursive-doubling", 2 << 10, 0, 1, 18.3),
    ("8x8x8", FujitsuMpi, Allgather, "recursive-doubling", 8 << 20, 0, 1, 2735.2),
    ("2x2x2", FujitsuMpi, Allgather, "ring", 2 << 10, 0, 1, 22.2),
    ("8x8x8", FujitsuMpi, Allgather, "ring", 128 << 10, 0, 1, 1622.2),
    ("4x4x4", Utofu, Allgather, "bine-vec_doubling_blocks", 2 << 10, 0, 3, 355.8),
    ("8x8x8", Utofu, Allgather, "bine-vec_doubling_blocks", 8 << 20, 0, 6, 4325.4),
    ("4x4x4", Utofu, Allgather, "bine-vec_doubling_cont_permute", 2 << 10, 0, 3, 59.4),
    ("8x8x8", Utofu, Allgather, "bine-vec_doubling_cont_permute", 8 << 20, 0, 6, 579.3),
    ("4x4x4", Utofu, Allgather, "bine-vec_doubling_cont_send", 2 << 10, 0, 1, 39.3),
    ("8x8x8", Utofu, Allgather, "bine-vec_doubling_cont_send", 8 << 20, 0, 1, 1402.6),
    ("4x4x4", Utofu, Allgather, "ring-vec_doubling_cont_permute", 2 << 10, 0, 6, 140.3),
    ("2x2x2", Utofu, Allgather, "ring-vec_doubling_cont_permute", 8 << 20, 0, 6, 523.6),
    ("4x4x4", FujitsuMpi, Allreduce, "recursive_doubling", 2 << 10, 0, 1, 22.4),
    ("8x8x8", FujitsuMpi, Allreduce, "recursive_doubling", 8 << 20, 0, 1, 26868.1),
    ("4x4x4", Utofu, Allreduce, "bine-l", 2 << 10, 0, 3, 45.4),
    ("8x8x8", Utofu, Allreduce, "bine-l", 16 << 10, 0, 6, 125.4),
    ("2x2x2", Utofu, Allreduce, "bine-l", 1 << 20, 64 << 10, 6, 366.1),
    ("4x4x4", Utofu, Allreduce, "bine-b_cont", 2 << 10, 0, 3, 347.0),
    ("8x8x8", Utofu, Allreduce, "bine-b_cont", 8 << 20, 0, 6, 1572.3),
    ("4x4x4", Utofu, Allreduce, "bine-b_cont", 1 << 20, 64 << 10, 6, 696.3),
    ("4x4x4", Utofu, Allreduce, "ring-b_cont", 128 << 10, 0, 6, 307.4),
    ("8x8x8", Utofu, Allreduce, "ring-b_cont", 8 << 20, 0, 6, 1817.0),
    ("2x2x2", FujitsuMpi, Allreduce, "ring", 2 << 10, 0, 1, 44.5),
    ("8x8x8", FujitsuMpi, Allreduce, "ring", 128 << 10, 0, 1, 3251.7),
    ("4x4x4", Mpi, Alltoall, "bruck-log", 256, 0, 1, 27.3),
    ("8x8x8", Mpi, Alltoall, "bruck-log", 2 << 10, 0, 1, 129.8),
    ("4x4x4", Utofu, Alltoall, "bine-log", 2 << 10, 0, 1, 43.0),
    ("8x8x8", Utofu, Alltoall, "bine-log", 8 << 20, 0, 1, 10604.4),
    ("4x4x4", FujitsuMpi, Bcast, "binomial", 8 << 20, 0, 1, 8030.8),
    ("8x8x8", FujitsuMpi, Bcast, "binomial", 8 << 20, 0, 1, 22640.3),
    ("4x4x4", Utofu, Bcast, "bine-binomial_tree", 8 << 20, 0, 3, 2708.4),
    ("8x8x8", Utofu, Bcast, "bine-binomial_tree", 8 << 20, 0, 6, 3922.8),
    ("2x2x2", Utofu, Bcast, "bine-binomial_tree", 1 << 20, 64 << 10, 6, 227.3),
    ("4x4x4", Utofu, Bcast, "bine-binomial_tree_tmpbuf", 8 << 20, 0, 3, 3036.6),
    ("8x8x8", Utofu, Bcast, "bine-binomial_tree_tmpbuf", 8 << 20, 0, 6, 4179.9),
    ("2x2x2", Utofu, Bcast, "bine-binomial_tree_tmpbuf", 1 << 20, 64 << 10, 6, 261.3),
    ("4x4x4", Utofu, Bcast, "bine-scatter_allgather", 8 << 20, 0, 3, 1202.9),
    ("8x8x8", Utofu, Bcast, "bine-scatter_allgather", 8 << 20, 0, 6, 948.9),
    ("4x4x4", FujitsuMpi, Gather, "binomial", 2 << 10, 0, 1, 18.3),
    ("8x8x8", FujitsuMpi, Gather, "binomial", 8 << 20, 0, 1, 1436.9),
    ("4x4x4", Utofu, Gather, "bine-binomial_tree_cont_permute-dec", 2 << 10, 0, 3, 52.5),
    ("8x8x8", Utofu, Gather, "bine-binomial_tree_cont_permute-dec", 8 << 20, 0, 6, 566.8),
    ("4x4x4", Utofu, Gather, "bine-binomial_tree_cont_permute-inc", 2 << 10, 0, 3, 52.5),
    ("8x8x8", Utofu, Gather, "bine-binomial_tree_cont_permute-inc", 8 << 20, 0, 6, 567.1),
    ("4x4x4", FujitsuMpi, Reduce, "binomial", 1 << 20, 0, 1, 1431.2),
    ("8x8x8", FujitsuMpi, Reduce, "binomial", 8 << 20, 0, 1, 16274.8),
    ("4x4x4", Utofu, Reduce, "bine-binomial_tree", 1 << 20, 0, 3, 1374.6),
    ("8x8x8", Utofu, Reduce, "bine-binomial_tree", 8 << 20, 0, 6, 13893.1),
    ("2x2x2", Utofu, Reduce, "bine-binomial_tree", 1 << 20, 64 << 10, 6, 928.6),
    ("4x4x4", Utofu, Reduce, "bine-reduce_scatter_gather", 1 << 20, 0, 3, 282.2),
    ("8x8x8", Utofu, Reduce, "bine-reduce_scatter_gather", 8 << 20, 0, 6, 1200.2),
    ("4x4x4", FujitsuMpi, ReduceScatter, "recursive-halving", 2 << 10, 0, 1, 18.4),
    ("8x8x8", FujitsuMpi, ReduceScatter, "recursive-halving", 8 << 20, 0, 1, 3204.1),
    ("4x4x4", FujitsuMpi, ReduceScatter, "ring", 2 << 10, 0, 1, 195.4),
    ("8x8x8", FujitsuMpi, ReduceScatter, "ring", 128 << 10, 0, 1, 1629.5),
    ("4x4x4", Utofu, ReduceScatter, "bine-vec_halving_cont_permute", 2 << 10, 0, 3, 59.6),
    ("8x8x8", Utofu, ReduceScatter, "bine-vec_halving_cont_permute", 8 << 20, 0, 6, 1048.8),
    ("4x4x4", Utofu, ReduceScatter, "ring-vec_halving_cont_permute", 128 << 10, 0, 6, 192.0),
    ("8x8x8", Utofu, ReduceScatter, "ring-vec_halving_cont_permute", 8 << 20, 0, 6, 1433.9),
    ("4x4x4", FujitsuMpi, Scatter, "binomial", 2 << 10, 0, 1, 18.3),
    ("8x8x8", FujitsuMpi, Scatter, "binomial", 8 << 20, 0, 1, 1436.9),
    ("4x4x4", Utofu, Scatter, "bine-binomial_tree_cont_permute-dec", 2 << 10, 0, 3, 42.1),
    ("8x8x8", Utofu, Scatter, "bine-binomial_tree_cont_permute-dec", 8 << 20, 0, 6, 847.2),
    ("4x4x4", Utofu, Scatter, "bine-binomial_tree_cont_permute-inc", 2 << 10, 0, 3, 42.1),
    ("8x8x8", Utofu, Scatter, "bine-binomial_tree_cont_permute-inc", 8 << 20, 0, 6, 568.2),
    ("4x4x4", Mpi, Allgather, "bine-vec_doubling_cont_permute", 2 << 10, 0, 1, 19.2),
    ("8x8x8", Mpi, Allgather, "bine-vec_doubling_cont_permute", 128 << 10, 0, 1, 84.4),
    ("4x4x4", Mpi, Allgather, "bine-vec_doubling_cont_send", 2 << 10, 0, 1, 21.4),
    ("8x8x8", Mpi, Allgather, "bine-vec_doubling_cont_send", 128 << 10, 0, 1, 74.5),
    ("4x4x4", Utofu, Allreduce, "recdoub-l", 2 << 10, 0, 3, 45.9),
    ("4x4x4", Utofu, Allreduce, "recdoub-l", 16 << 10, 0, 6, 79.8),
    ("4x4x4", Utofu, Allreduce, "recdoub-b_cont", 2 << 10, 0, 3, 347.1),
    ("4x4x4", Utofu, Allreduce, "recdoub-b_cont", 8 << 20, 0, 6, 1249.1),
    ("4x4x4", Utofu, Allreduce, "recdoub-b_cont", 1 << 20, 64 << 10, 6, 696.3),
    ("4x4x4", Mpi, Gather, "bine-binomial_tree_cont_permute", 2 << 10, 0, 1, 18.0),
    ("4x4x4", Mpi, Gather, "bine-binomial_tree_cont_permute", 8 << 20, 0, 1, 1389.0),
    ("4x4x4", Mpi, Reduce, "bine-binomial_tree", 1 << 20, 1 << 20, 1, 1430.9),
    ("4x4x4", Mpi, ReduceScatter, "bine-vec_halving_cont_permute", 2 << 10, 0, 1, 19.3),
    ("4x4x4", Mpi, ReduceScatter, "bine-vec_halving_cont_permute", 8 << 20, 0, 1, 2202.2),
    ("4x4x4", Mpi, Scatter, "bine-binomial_tree_cont_permute", 2 << 10, 0, 1, 18.0),
    ("4x4x4", Mpi, Scatter, "bine-binomial_tree_cont_permute", 8 << 20, 0, 1, 1389.0),
    ("8x8x8", Utofu, Scatter, "ring-vec_doubling_cont_permute", 16 << 10, 0, 6, 258.4),
    ("8x8x8", Utofu, Scatter, "ring-vec_doubling_cont_permute", 8 << 20, 0, 6, 478.9),
    ("64x64", Utofu, Allreduce, "bine-b_cont", 1 << 20, 0, 6, 1435.2),
    ("64x64", Utofu, Allreduce, "bine-l", 1 << 20, 0, 6, 2599.0),
    ("64x64", Utofu, Allreduce, "recdoub-b_cont", 1 << 20, 0, 6, 1435.2),
    ("64x64", Utofu, Allgather, "bine-vec_doubling_cont_permute", 1 << 20, 0, 6, 482.8),
    ("64x64", Utofu, Allgather, "bine-vec_doubling_blocks", 1 << 20, 0, 6, 34064.4),
    ("64x64", Utofu, ReduceScatter, "bine-vec_halving_cont_permute", 1 << 20, 0, 6, 568.2),
    ("64x64", Utofu, Reduce, "bine-binomial_tree", 1 << 20, 0, 6, 3351.2),
    ("64x64", Utofu, Reduce, "bine-reduce_scatter_gather", 1 << 20, 0, 6, 1051.4),
    ("64x64", Utofu, Gather, "bine-binomial_tree_cont_permute-inc", 1 << 20, 0, 6, 479.2),
    ("64x64", Utofu, Scatter, "bine-binomial_tree_cont_permute-dec", 1 << 20, 0, 6, 465.3),
    ("64x64", Utofu, Scatter, "bine-binomial_tree_cont_permute-inc", 1 << 20, 0, 6, 430.0),
];
