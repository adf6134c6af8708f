//! Session mode: what is posted waits until others start it.
//!
//! Operations bring their session progress steps to the VCQ that they go to; there each step starts
//! the next operation, in the order of the posts, and a step that finds none starts a later one at
//! once. So nodes pass data on in a chain. Fujitsu's library says no more over its simulated device
//! than that nothing starts by itself; the rest is as public programs use it on Fugaku.
//!
//! The hardware starts an operation when its step arrives. Here the rank that has posted it does, when
//! it next posts to the VCQ or polls it.

use crate::queues::desc::Op;
use std::collections::VecDeque;

/// The operations of a VCQ that wait.
pub(crate) struct Session {
    /// With their cbdata.
    pub(crate) waiting: VecDeque<(Op, usize)>,
    /// The steps that were used, ever; wraps.
    pub(crate) used: u32,
}

impl Session {
    /// For a VCQ to which others have brought `steps` so far.
    pub(crate) fn new(steps: u32) -> Session {
        Session { waiting: VecDeque::new(), used: steps }
    }
}
