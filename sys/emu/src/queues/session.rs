//! Session mode: posted operations wait until other ranks start them.
//!
//! An operation brings its session progress steps to its target VCQ. There each step starts the next waiting
//! operation, in the order of the posts; a step that finds no waiting operation starts a later one as soon as it is
//! posted. In this way nodes forward data along a chain. Fujitsu's library over its simulated device shows only that
//! no operation starts by itself; everything else follows the use by public programs on Fugaku.
//!
//! The hardware starts an operation when its step arrives. Here the rank that has posted the operation starts it when
//! it next posts to the VCQ or polls it.

use crate::queues::desc::Op;
use std::collections::VecDeque;

/// Waiting operations of a VCQ.
pub(crate) struct VcqSession {
    /// Operations, each with its cbdata.
    pub(crate) waiting: VecDeque<(Op, usize)>,
    /// Total of the steps used; wraps.
    pub(crate) used: u32,
}

impl VcqSession {
    /// Creates the state of a VCQ that has received `steps` steps so far.
    pub(crate) fn new(steps: u32) -> VcqSession {
        VcqSession { waiting: VecDeque::new(), used: steps }
    }
}
