//! Barriers and small allreduces on the network's barrier gates.
//!
//! What the gates can do exactly as a plan would: a barrier; up to 6 (the TNI says) elements
//! of `u64` or `i64` with sum (modulo 2^64), max, min and the bitwise operators. The gates know
//! only an unsigned maximum: `i64` is offset by 2^63, a minimum is the maximum of complements.
//! Sums of `f64` (BFPSUM) are rounded differently from a plan's, so they are a caller's choice.

use std::sync::Mutex;

use hopbine_meet::Exchange;
use hopbine_torus::collectives::Collective;
use hopbine_torus::geometry::Vertex;
use utofu::abi::{
    UTOFU_BARRIER_CAP_REDUCE_OP_BAND, UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER,
    UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM, UTOFU_BARRIER_CAP_REDUCE_OP_BOR,
    UTOFU_BARRIER_CAP_REDUCE_OP_BXOR, UTOFU_BARRIER_CAP_REDUCE_OP_MAX,
    UTOFU_BARRIER_CAP_REDUCE_OP_SUM,
};
use utofu::handles::{GateError, GateId, GateLink, GateSet, ReduceOp};
use utofu::{Api, BarrierCaps, Tni};

use super::topology::{Arrangement, Wires};
use crate::comm::call::blocks::Form;
use crate::comm::call::{Call, Caller};
use crate::comm::state::small::GatesInfo;
use crate::comm::state::small::{Refusal, SmallCollectives, Waiter};
use crate::error::{Error, WireError};
use crate::reduce::{Dtype, Op};
use crate::sync::lock;
use crate::world::backend::Layout;

/// The most elements that are handed to the gates; a TNI may do fewer.
const MOST_ELEMENTS: usize = 6;
const SIGN: u64 = 1 << 63;

/// The barrier gates of one rank, connected with those of all others.
#[derive(Debug)]
pub(super) struct Gates {
    set: Mutex<GateSet>,
    caps: BarrierCaps,
    tni: Tni,
    arrangement: Arrangement,
}

/// What the gates are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Barrier,
    /// On elements that are exclusive-ored with `flip` before and after.
    Uint64 {
        op: ReduceOp,
        flip: u64,
    },
    /// Sum of doubles.
    Double,
}

impl Gates {
    /// Allocates and connects the gates of all ranks; collective over `exchange`. The ranks of a
    /// node use different TNIs. If gates cannot be had on some rank, nobody has any, and
    /// everybody gets the reason.
    ///
    /// # Errors
    /// [`WireError`] if the exchange fails.
    pub(super) fn open(
        api: Api,
        exchange: &mut dyn Exchange,
        layout: &Layout<'_>,
    ) -> Result<Result<Gates, String>, WireError> {
        let Layout { shape, map, place, .. } = *layout;
        let arrangement = Arrangement::of(shape);
        let rank = exchange.rank() as u32;
        let wires = arrangement.wires(shape, map.vertex_of(shape, hopbine_torus::Rank(rank)));
        let mut mine = allocate(api, place, wires.len());
        let told = mine.as_ref().map(|(set, ..)| {
            set.ids().iter().flat_map(|id| id.0.to_le_bytes()).collect::<Vec<u8>>()
        });
        let all = match exchange.agree(told.as_deref().map_err(|reason| (*reason).clone())) {
            Ok(Ok(all)) => all,
            Ok(Err(refusal)) => return Ok(Err(refusal.to_string())),
            Err(error) => return Err(lost(error)),
        };
        let id_of = |(node, gate): (Vertex, usize)| {
            let (ids, _) = all[map.rank_of(shape, node).index()].as_chunks::<8>();
            GateId(u64::from_le_bytes(ids[gate]))
        };
        let connected = mine.as_mut().map_err(|reason| reason.clone()).and_then(|(set, ..)| {
            let own = set.ids();
            let link = |wires: &Wires| GateLink {
                from_local: wires.from_local.map(|gate| own[gate]),
                from_remote: wires.from_remote.map(id_of),
                to_local: wires.to_local.map(|gate| own[gate]),
                to_remote: wires.to_remote.map(id_of),
                path: None,
            };
            let links: Vec<GateLink> = wires.iter().map(link).collect();
            set.connect(&links).map_err(|error| error.to_string())
        });
        if let Err(refusal) = exchange.agree(connected.map(|()| [].as_slice())).map_err(lost)? {
            return Ok(Err(refusal.to_string()));
        }
        Ok(mine.map(|(set, caps, tni)| Gates { set: Mutex::new(set), caps, tni, arrangement }))
    }

    /// What to do for a call; the reason if it cannot be done. With `any_bits` the result may
    /// differ in the last bits from that of a plan.
    fn task(&self, call: &Call, any_bits: bool) -> Result<Task, Refusal> {
        if call.form != Form::Regular {
            return Err(Refusal::Sizes);
        }
        let can = |operation: u64| match self.caps.reduce_ops & operation {
            0 => Err(Refusal::Lacks { interface: self.tni, operation }),
            _ => Ok(()),
        };
        match call.collective {
            Collective::Barrier => {
                can(UTOFU_BARRIER_CAP_REDUCE_OP_BARRIER)?;
                return Ok(Task::Barrier);
            }
            Collective::Allreduce => {}
            other => return Err(Refusal::Collective(other)),
        }
        let (task, most) = match (call.dtype, call.op) {
            (Dtype::U64 | Dtype::I64, Some(op)) => {
                let offset = if call.dtype == Dtype::I64 { SIGN } else { 0 };
                let (op, flip, cap) = match op {
                    Op::Sum => (ReduceOp::Sum, 0, UTOFU_BARRIER_CAP_REDUCE_OP_SUM),
                    Op::Max => (ReduceOp::Max, offset, UTOFU_BARRIER_CAP_REDUCE_OP_MAX),
                    Op::Min => (ReduceOp::Max, !offset, UTOFU_BARRIER_CAP_REDUCE_OP_MAX),
                    Op::BitAnd => (ReduceOp::And, 0, UTOFU_BARRIER_CAP_REDUCE_OP_BAND),
                    Op::BitOr => (ReduceOp::Or, 0, UTOFU_BARRIER_CAP_REDUCE_OP_BOR),
                    Op::BitXor => (ReduceOp::Xor, 0, UTOFU_BARRIER_CAP_REDUCE_OP_BXOR),
                    _ => return Err(Refusal::Elements { op: call.op, dtype: call.dtype }),
                };
                can(cap)?;
                (Task::Uint64 { op, flip }, self.caps.max_uint64_reduction)
            }
            (Dtype::F64, Some(Op::Sum)) if any_bits => {
                can(UTOFU_BARRIER_CAP_REDUCE_OP_BFPSUM)?;
                (Task::Double, self.caps.max_double_reduction)
            }
            (dtype, op) => return Err(Refusal::Elements { op, dtype }),
        };
        let most = most.min(MOST_ELEMENTS) as u64;
        if (1..=most).contains(&call.count) {
            Ok(task)
        } else {
            Err(Refusal::Count { most, count: call.count })
        }
    }
}

impl SmallCollectives for Gates {
    fn serves(&self, call: &Call, always: bool) -> Result<(), Refusal> {
        self.task(call, always).map(drop)
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
                if let Err(error) = waiter.idle(None) {
                    // What has come while the cause was looked for is no failure.
                    return if poll().map_err(failed)? { Ok(()) } else { Err(error) };
                }
            }
            Ok(())
        };
        let count = call.count as usize;
        let input = if call.in_place { call.recv.cast_const() } else { call.send };
        match task {
            Task::Barrier => {
                set.barrier().map_err(failed)?;
                wait(&mut || set.poll_barrier())?;
            }
            Task::Uint64 { op, flip } => {
                let mut values = [0; MOST_ELEMENTS];
                // SAFETY: by the caller's promise the input holds `count` elements of 8 bytes,
                // which `task` has found to be few enough.
                unsafe { load(input, &mut values[..count]) };
                values.iter_mut().for_each(|value| *value ^= flip);
                set.reduce_u64(op, &values[..count]).map_err(failed)?;
                wait(&mut || set.poll_reduce_u64(&mut values))?;
                values.iter_mut().for_each(|value| *value ^= flip);
                // SAFETY: as above, for the output.
                unsafe { store(call.recv, &values[..count]) };
            }
            Task::Double => {
                let mut values = [0.0; MOST_ELEMENTS];
                // SAFETY: as above.
                unsafe { load(input, &mut values[..count]) };
                set.sum_f64(&values[..count]).map_err(failed)?;
                wait(&mut || set.poll_sum_f64(&mut values))?;
                // SAFETY: as above.
                unsafe { store(call.recv, &values[..count]) };
            }
        }
        Ok(true)
    }
}

/// # Safety
/// `from` must be valid for reads of as many elements as `to` has; it need not be aligned.
unsafe fn load<T: Copy>(from: *const u8, to: &mut [T]) {
    // SAFETY: the caller's promise; `to` is no memory of the user.
    unsafe {
        from.copy_to_nonoverlapping(to.as_mut_ptr().cast(), size_of_val(to));
    }
}

/// # Safety
/// `to` must be valid for writes of as many elements as `from` has; it need not be aligned.
unsafe fn store<T: Copy>(to: *mut u8, from: &[T]) {
    // SAFETY: the caller's promise; `from` is no memory of the user.
    unsafe {
        from.as_ptr().cast::<u8>().copy_to_nonoverlapping(to, size_of_val(from));
    }
}

fn allocate(api: Api, place: usize, n_gates: usize) -> Result<(GateSet, BarrierCaps, Tni), String> {
    let tnis = api.barrier_tnis().map_err(|error| error.to_string())?;
    let Some(&tni) = tnis.get(place % tnis.len().max(1)) else {
        return Err("no TNI has barrier gates".to_owned());
    };
    let caps = api.barrier_caps(tni).map_err(|error| error.to_string())?;
    let set = GateSet::alloc(api, tni, n_gates)
        .map_err(|error| format!("{n_gates} gates on TNI {tni}: {error}"))?;
    Ok((set, caps, tni))
}

fn lost(error: hopbine_meet::BootstrapError) -> WireError {
    WireError { call: "connecting the barrier gates", reason: error.to_string(), peer: None }
}
