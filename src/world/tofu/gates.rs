//! Barriers and small allreduces on the network's barrier gates.
//!
//! The gates reduce up to 6 (as the TNI reports) words of 64 bits, and sum up to 3 doubles. [`WordMap`] has the
//! reductions that they perform exactly as a plan would. Sums of floats (BFPSUM) are rounded differently from a
//! plan's, so they are only for callers that allow that. Ranks compare the properties of a call that gates do not
//! see in the words that it leaves unused ([`agreement`](super::agreement)).

use std::sync::{Arc, Mutex};

use hopbine_torus::collectives::Collective;
use utofu::abi::{UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER, UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM};
use utofu::handles::{GateError, GateSet, ReduceOp};
use utofu::{BarrierCaps, Tni};

use super::agreement::{Check, History, check_doubles};
use super::topology::Arrangement;
use crate::Rank;
use crate::comm::call::blocks::Form;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::{GatesInfo, Refusal, SmallCollectives, Terms, Waiter};
use crate::error::{Error, WireError};
use crate::reduce::Op;
use crate::reduce::words::{RealSum, WordMap};
use crate::sync::lock;

/// The most words that the gates get; a TNI may support fewer.
const MOST_WORDS: usize = 6;
/// The most doubles that the gates get.
const MOST_DOUBLES: usize = 3;

/// Connected gates, `None` after the end of the world, and the calls that they have performed.
pub(super) type Connected = Mutex<(Option<GateSet>, History)>;

/// The barrier gates of one rank, connected with those of all others of a communicator.
#[derive(Debug)]
pub(super) struct Gates {
    pub(super) chain: Arc<Connected>,
    pub(super) caps: BarrierCaps,
    pub(super) tni: Tni,
    pub(super) arrangement: Arrangement,
    /// This rank in the world.
    pub(super) rank: Rank,
    pub(super) n_ranks: u32,
    /// The member that this rank reports to wait for, in a communicator that some ranks of the world are not in: the
    /// chain of these waits, from each member to the next, leads to a member that does not call. `None`: this rank
    /// waits for all ranks.
    pub(super) next: Option<usize>,
}

/// The operation that the gates perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateOperation {
    Barrier,
    Words(WordMap),
    Doubles(RealSum),
}

impl Gates {
    /// The operation for a call, or the reason why it cannot be performed. With `any_rounding` the result may differ
    /// in the last bits from that of a plan.
    fn task(&self, call: &Call, any_rounding: bool) -> Result<GateOperation, Refusal> {
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
                return Ok(GateOperation::Barrier);
            }
            (Collective::Allreduce, Some(op)) => (op, call.dtype),
            (Collective::Allreduce, None) => return Err(Refusal::Operator),
            (other, _) => return Err(Refusal::Collective(other)),
        };
        let (task, most) = if let Some(map) = WordMap::new(dtype, op, self.n_ranks) {
            can(map.op().capability())?;
            (
                GateOperation::Words(map),
                map.max_elements(self.caps.max_uint64_reduction.min(MOST_WORDS)),
            )
        } else if let (Op::Sum, Some(sum)) = (op, RealSum::new(dtype)) {
            can(UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM)?;
            (
                GateOperation::Doubles(sum),
                sum.max_elements(self.caps.max_double_reduction.min(MOST_DOUBLES)),
            )
        } else {
            return Err(Refusal::Elements { op, dtype });
        };
        let is_rounded = matches!(task, GateOperation::Doubles(_));
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
        let _chain = lock(&self.chain);
        f();
    }

    fn describe(&self) -> GatesInfo {
        GatesInfo::Connected { tni: self.tni, arrangement: self.arrangement.name() }
    }

    unsafe fn perform(&self, call: &Call, _: Caller, waiter: &mut dyn Waiter) -> Result<(), Error> {
        let task = self.task(call, true).map_err(|reason| Error::NotServed {
            collective: call.collective,
            name: "barrier gates".to_owned(),
            reason: reason.to_string(),
        })?;
        // Gates that a panic has left busy report that themselves.
        let (set, history) = &mut *lock(&self.chain);
        waiter.may_start()?;
        let Some(set) = set else { return Err(Error::Closed) };
        let mut under_way = GateCall { gates: self, set, call, waiter };
        // SAFETY: the caller's promise.
        let made = unsafe { under_way.perform(task, *history) };
        // After a mismatch all ranks begin a new history, since they may notice it at different calls.
        *history = *made.as_ref().unwrap_or(&History::default());
        made.map(drop)
    }
}

/// A call at the gates.
struct GateCall<'a> {
    gates: &'a Gates,
    set: &'a mut GateSet,
    call: &'a Call<'a>,
    waiter: &'a mut dyn Waiter,
}

impl GateCall<'_> {
    /// Performs the call, and returns the history with it.
    ///
    /// # Safety
    /// As [`SmallCollectives::perform`].
    unsafe fn perform(&mut self, task: GateOperation, history: History) -> Result<History, Error> {
        let (gates, call) = (self.gates, self.call);
        let len = call.count as usize * call.dtype.size_bytes();
        let input = if call.in_place { call.recv.cast_const() } else { call.send };
        // SAFETY: by the caller's promise the input holds `count` elements, which is read before anything is written.
        let input = || unsafe { std::slice::from_raw_parts(input, len) };
        // SAFETY: the same for the output, once the input is not needed any more.
        let output = || unsafe { std::slice::from_raw_parts_mut(call.recv, len) };
        match task {
            GateOperation::Barrier if history.is_unchecked() => self.check(history),
            GateOperation::Barrier => {
                self.set.barrier().map_err(|error| self.failed(error))?;
                self.wait(|set| set.poll_barrier())?;
                Ok(history)
            }
            GateOperation::Words(map) => {
                let n_words = map.n_words(call.count);
                let room = gates.caps.max_uint64_reduction.min(MOST_WORDS) - n_words;
                let with = history.after(call);
                let check = Check::of(with, map.op(), gates.n_ranks, room);
                let n_checked = check.contribution().len();
                let mut words = [0; MOST_WORDS];
                let words = &mut words[..n_checked + n_words];
                let (before, data) = words.split_at_mut(n_checked);
                before.copy_from_slice(check.contribution());
                map.encode(input(), data);
                self.reduce(map.op(), words)?;
                let (before, data) = words.split_at(n_checked);
                if !check.agrees(before) {
                    return Err(self.mismatch());
                }
                let with = self.agreed(with, n_checked > 0)?;
                map.decode(data, output());
                Ok(with)
            }
            GateOperation::Doubles(sum) => {
                let n_doubles = sum.n_doubles(call.count);
                let with = history.after(call);
                let (given, expected) = check_doubles(with, gates.n_ranks);
                let has_room = n_doubles < gates.caps.max_double_reduction.min(MOST_DOUBLES);
                let mut doubles = [given; MOST_DOUBLES];
                let doubles = &mut doubles[..n_doubles + usize::from(has_room)];
                sum.encode(input(), &mut doubles[usize::from(has_room)..]);
                self.set.sum_f64(doubles).map_err(|error| self.failed(error))?;
                self.wait(|set| set.poll_sum_f64(doubles))?;
                if has_room && doubles[0] != expected {
                    return Err(self.mismatch());
                }
                let with = self.agreed(with, has_room)?;
                sum.decode(&doubles[usize::from(has_room)..], output());
                Ok(with)
            }
        }
    }

    /// The history after a call. If the call had no room for a check, nor had many before it, checks in an operation
    /// of its own.
    fn agreed(&mut self, history: History, is_checked: bool) -> Result<History, Error> {
        match is_checked {
            true => Ok(history.checked()),
            false if history.is_due() => self.check(history),
            false => Ok(history),
        }
    }

    /// A check in an operation of its own, which is also a barrier.
    fn check(&mut self, history: History) -> Result<History, Error> {
        let check = Check::of(history, ReduceOp::Or, self.gates.n_ranks, 1);
        let mut word = [0];
        word.copy_from_slice(check.contribution());
        self.reduce(ReduceOp::Or, &mut word)?;
        if check.agrees(&word) { Ok(history.checked()) } else { Err(self.mismatch()) }
    }

    fn reduce(&mut self, op: ReduceOp, words: &mut [u64]) -> Result<(), Error> {
        self.set.reduce_u64(op, words).map_err(|error| self.failed(error))?;
        self.wait(|set| set.poll_reduce_u64(words))
    }

    fn wait(
        &mut self,
        mut poll: impl FnMut(&mut GateSet) -> Result<bool, GateError>,
    ) -> Result<(), Error> {
        while !poll(self.set).map_err(|error| self.failed(error))? {
            if let Err(error) = self.waiter.idle(self.gates.next) {
                // The result may arrive during the diagnosis: then there is no failure.
                let has_come = poll(self.set).map_err(|error| self.failed(error))?;
                return if has_come { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    }

    fn mismatch(&self) -> Error {
        Error::GatesMismatch { rank: self.gates.rank, collective: self.call.collective }
    }

    fn failed(&self, error: GateError) -> Error {
        match error {
            GateError::Mismatch => self.mismatch(),
            error => Error::Wire {
                rank: self.gates.rank,
                port: 0,
                step: None,
                source: WireError::new("barrier gates", error),
            },
        }
    }
}
