//! Session mode: what is posted waits until others start it.
//!
//! Operations bring their session progress steps to the VCQ that they go to; there each step starts
//! the next operation, in the order of the posts, and a step that finds none starts a later one at
//! once. So nodes pass data on in a chain. Fujitsu's library says no more over its simulated device
//! than that nothing starts by itself; the rest is as public programs use it on Fugaku.
//!
//! The hardware starts an operation when its step arrives. Here the rank that has posted it does, when
//! it next posts to the VCQ or polls it.

use crate::desc::Op;
use crate::layout::VcqBlock;
use crate::ops::{self, Outcome};
use crate::sync::Ordering;
use crate::vcq::{Sender, Vcq};
use std::collections::VecDeque;
use utofu_sys::*;

/// The operations of a VCQ that wait.
pub(crate) struct Session {
    /// With their cbdata.
    waiting: VecDeque<(Op, usize)>,
    /// The steps that were used, ever; wraps.
    used: u32,
}

impl Session {
    /// For a VCQ to which others have brought `steps` so far.
    pub(crate) fn new(steps: u32) -> Session {
        Session { waiting: VecDeque::new(), used: steps }
    }
}

/// Brings the steps of an operation to its target, if it went well.
#[cold]
pub(crate) fn bring_steps(target: &VcqBlock, op: &Op, outcome: &Outcome) {
    if outcome.code == UTOFU_SUCCESS && op.steps > 0 {
        // Release pairs with the Acquire in `go_on`: what the operation has written is there.
        target.steps.fetch_add(op.steps.into(), Ordering::Release);
    }
}

/// Queues an operation for which the TOQ has room, and starts what may start.
///
/// # Safety
/// As [`go_on`].
#[cold]
pub(crate) unsafe fn post(vcq: &Vcq, sender: &mut Sender, op: Op, cbdata: usize) {
    sender.toq.hold(op.entries());
    sender.session.waiting.push_back((op, cbdata));
    // SAFETY: the caller's promise.
    unsafe { go_on(vcq, sender) };
}

/// Starts as many operations as there are steps for.
///
/// # Safety
/// `sender` is the VCQ's; registered memory is mapped.
#[cold]
pub(crate) unsafe fn go_on(vcq: &Vcq, sender: &mut Sender) {
    // Acquire pairs with the Release in `bring_steps`.
    while vcq.block().steps.load(Ordering::Acquire) != sender.session.used
        && let Some((op, cbdata)) = sender.session.waiting.pop_front()
    {
        sender.session.used = sender.session.used.wrapping_add(1);
        sender.toq.release(op.entries());
        // SAFETY: the caller's promise.
        unsafe { ops::start::<false>(vcq, sender, &op, cbdata) };
    }
}
