//! Barriers and small allreduces on the network's barrier gates.
//!
//! The gates combine up to 6 (the TNI says) words of 64 bits, and sum up to 3 doubles. What they can do exactly as a
//! plan would is a matter of [`WordMap`]. Sums of floats (BFPSUM) are rounded differently from a plan's, so they are
//! for callers who allow that.

use std::sync::Mutex;

use hopbine_torus::collectives::Collective;
use utofu::abi::{
    UTOFU_BARRIER_CAP_REDUCE_OP_BAND, UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER,
    UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM, UTOFU_BARRIER_CAP_REDUCE_OP_BOR,
    UTOFU_BARRIER_CAP_REDUCE_OP_BXOR, UTOFU_BARRIER_CAP_REDUCE_OP_MAX,
    UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC, UTOFU_BARRIER_CAP_REDUCE_OP_SUM,
};
use utofu::handles::{GateError, GateSet, ReduceOp};
use utofu::{BarrierCaps, Tni};

use super::topology::Arrangement;
use crate::comm::call::blocks::Form;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{GatesInfo, Refusal, SmallCollectives, Terms, Waiter};
use crate::error::{Error, WireError};
use crate::reduce::Op;
use crate::reduce::words::{RealSum, WordMap, WordOp};
use crate::sync::lock;

/// The most words that are handed to the gates; a TNI may do fewer.
const MOST_WORDS: usize = 6;
/// The most doubles.
const MOST_DOUBLES: usize = 3;

/// The barrier gates of one rank, connected with those of all others of a communicator.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) set: Mutex<GateSet>,
    pub(super) caps: BarrierCaps,
    pub(super) tni: Tni,
    pub(super) arrangement: Arrangement,
    pub(super) n_ranks: u32,
    /// The member that this one waits for as far as others can see, where ranks that are no members need not come: from
    /// each to the next, a chain of waits leads to whoever does not come. Without it this rank waits for all.
    pub(super) next: Option<usize>,
}

/// What the gates are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Barrier,
    Words(WordMap),
    Doubles(RealSum),
}

/// The gates' operator, and the capability for it.
fn operator(op: WordOp) -> (ReduceOp, u64) {
    match op {
        WordOp::And => (ReduceOp::And, UTOFU_BARRIER_CAP_REDUCE_OP_BAND),
        WordOp::Or => (ReduceOp::Or, UTOFU_BARRIER_CAP_REDUCE_OP_BOR),
        WordOp::Xor => (ReduceOp::Xor, UTOFU_BARRIER_CAP_REDUCE_OP_BXOR),
        WordOp::Max => (ReduceOp::Max, UTOFU_BARRIER_CAP_REDUCE_OP_MAX),
        WordOp::MaxLoc => (ReduceOp::MaxLoc, UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC),
        WordOp::Sum => (ReduceOp::Sum, UTOFU_BARRIER_CAP_REDUCE_OP_SUM),
    }
}

impl Gates {
    /// What to do for a call; the reason if it cannot be done. With `any_rounding` the result may
    /// differ in the last bits from that of a plan.
    fn task(&self, call: &Call, any_rounding: bool) -> Result<Task, Refusal> {
        if call.form != Form::Regular {
            return Err(Refusal::Sizes);
        }
        let can = |operation: u64| match self.caps.reduce_ops & operation {
            0 => Err(Refusal::Lacks { interface: self.tni, operation }),
            _ => Ok(()),
        };
        let (op, dtype) = match (call.collective, call.op) {
            (Collective::Barrier, _) => {
                can(UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER)?;
                return Ok(Task::Barrier);
            }
            (Collective::Allreduce, Some(op)) => (op, call.dtype),
            (Collective::Allreduce, None) => return Err(Refusal::Operator),
            (other, _) => return Err(Refusal::Collective(other)),
        };
        let (task, most) = if let Some(map) = WordMap::new(dtype, op, self.n_ranks) {
            can(operator(map.op()).1)?;
            (Task::Words(map), map.most(self.caps.max_uint64_reduction.min(MOST_WORDS)))
        } else if let (Op::Sum, Some(sum)) = (op, RealSum::new(dtype)) {
            can(UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM)?;
            (Task::Doubles(sum), sum.most(self.caps.max_double_reduction.min(MOST_DOUBLES)))
        } else {
            return Err(Refusal::Elements { op, dtype });
        };
        let is_rounded = matches!(task, Task::Doubles(_));
        match call.count {
            count if !(1..=most).contains(&count) => Err(Refusal::Count { most, count }),
            _ if is_rounded && !any_rounding => Err(Refusal::Rounding(dtype)),
            _ => Ok(task),
        }
    }
}

impl SmallCollectives for Gates {
    fn serves(&self, call: &Call, terms: Terms) -> Result<(), Refusal> {
        self.task(call, terms.any_rounding).map(drop)
    }

    fn between_calls(&self, f: &mut dyn FnMut()) {
        let _set = lock(&self.set);
        f();
    }

    fn describe(&self) -> GatesInfo {
        GatesInfo::Connected { tni: self.tni, arrangement: self.arrangement.name() }
    }

    unsafe fn perform(
        &self,
        call: &Call,
        caller: Caller,
        waiter: &mut dyn Waiter,
    ) -> Result<bool, Error> {
        let task = self.task(call, true).map_err(|reason| Error::NotServed {
            collective: call.collective,
            name: "barrier gates".to_owned(),
            reason: reason.to_string(),
        })?;
        // Gates that a panic left busy report so themselves.
        let mut set = lock(&self.set);
        waiter.may_start()?;
        let failed = |error: GateError| match error {
            GateError::Mismatch => {
                Error::GatesMismatch { rank: caller.rank, collective: call.collective }
            }
            error => Error::Wire {
                rank: caller.rank,
                port: 0,
                step: None,
                source: WireError { call: "barrier gates", reason: error.to_string(), peer: None },
            },
        };
        let mut wait = |poll: &mut dyn FnMut() -> Result<bool, GateError>| {
            while !poll().map_err(failed)? {
                if let Err(error) = waiter.idle(self.next) {
                    // What has come while the cause was looked for is no failure.
                    return if poll().map_err(failed)? { Ok(()) } else { Err(error) };
                }
            }
            Ok(())
        };
        let len = call.count as usize * call.dtype.size_bytes();
        let input = if call.in_place { call.recv.cast_const() } else { call.send };
        // SAFETY: by the caller's promise the input holds `count` elements, which is read before anything is written.
        let input = || unsafe { std::slice::from_raw_parts(input, len) };
        // SAFETY: the same for the output, once the input is not needed any more.
        let output = || unsafe { std::slice::from_raw_parts_mut(call.recv, len) };
        match task {
            Task::Barrier => {
                set.barrier().map_err(failed)?;
                wait(&mut || set.poll_barrier())?;
            }
            Task::Words(map) => {
                let mut words = [0; MOST_WORDS];
                let words = &mut words[..map.n_words(call.count)];
                map.encode(input(), words);
                set.reduce_u64(operator(map.op()).0, words).map_err(failed)?;
                wait(&mut || set.poll_reduce_u64(words))?;
                map.decode(words, output());
            }
            Task::Doubles(sum) => {
                let mut doubles = [0.0; MOST_DOUBLES];
                let doubles = &mut doubles[..sum.n_doubles(call.count)];
                sum.encode(input(), doubles);
                set.sum_f64(doubles).map_err(failed)?;
                wait(&mut || set.poll_sum_f64(doubles))?;
                sum.decode(doubles, output());
            }
        }
        Ok(true)
    }
}
