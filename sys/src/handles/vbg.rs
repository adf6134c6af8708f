//! Barrier gates: synchronisation and small reductions in the network hardware.

use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use core::fmt;
use core::marker::PhantomData;

use utofu_sys::*;

use crate::{Api, Tni, UtofuError};

/// System-wide identifier of a barrier gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GateId(pub utofu_vbg_id_t);

/// Connections of one gate; None means not connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateLink {
    /// Gate of this set whose signal the gate waits for.
    pub from_local: Option<GateId>,
    /// Gate of another rank whose signal the gate waits for.
    pub from_remote: Option<GateId>,
    /// Gate of this set that the gate signals.
    pub to_local: Option<GateId>,
    /// Gate of another rank that the gate signals.
    pub to_remote: Option<GateId>,
    /// Path coordinates a, b, c towards `to_remote`; None selects the default path.
    pub path: Option<[u8; 3]>,
}

/// Copies the elements to memory that the library may write to.
fn copy_into<'a, T: Copy>(copy: &'a mut Vec<T>, data: &[T]) -> &'a mut Vec<T> {
    copy.clear();
    copy.extend_from_slice(data);
    copy
}

/// Operators on `u64` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Unsigned maximum.
    Max,
    /// Pairs (value, location): the largest value; the smallest location among equal values.
    MaxLoc,
    /// Sum modulo 2^64.
    Sum,
}

impl ReduceOp {
    const fn code(self) -> c_uint {
        match self {
            ReduceOp::And => UTOFU_REDUCE_OP_BAND,
            ReduceOp::Or => UTOFU_REDUCE_OP_BOR,
            ReduceOp::Xor => UTOFU_REDUCE_OP_BXOR,
            ReduceOp::Max => UTOFU_REDUCE_OP_MAX,
            ReduceOp::MaxLoc => UTOFU_REDUCE_OP_MAXLOC,
            ReduceOp::Sum => UTOFU_REDUCE_OP_SUM,
        }
    }

    /// The bit of [`BarrierCaps::reduce_ops`](crate::BarrierCaps) that is set if a TNI supports the operator.
    pub const fn capability(self) -> u64 {
        match self {
            ReduceOp::And => UTOFU_BARRIER_CAP_REDUCE_OP_BAND,
            ReduceOp::Or => UTOFU_BARRIER_CAP_REDUCE_OP_BOR,
            ReduceOp::Xor => UTOFU_BARRIER_CAP_REDUCE_OP_BXOR,
            ReduceOp::Max => UTOFU_BARRIER_CAP_REDUCE_OP_MAX,
            ReduceOp::MaxLoc => UTOFU_BARRIER_CAP_REDUCE_OP_MAXLOC,
            ReduceOp::Sum => UTOFU_BARRIER_CAP_REDUCE_OP_SUM,
        }
    }
}

/// Why a gate operation was not started or not finished.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// An operation is in flight and must first be polled until it completes. Nothing was started.
    #[error("the gates are busy with a {0}; poll it to its end first")]
    Busy(Operation),
    /// The poll is for another operation than the one in flight; it would crash the library.
    #[error("a {polled} was polled, but {}", InFlight(*running))]
    NotRunning {
        /// The operation that was polled.
        polled: Operation,
        /// The operation in flight.
        running: Option<Operation>,
    },
    /// The TNI cannot reduce this number of elements in one operation. Nothing was started.
    #[error("a {operation}, but the TNI can do at most {max} elements")]
    TooMany {
        /// The refused operation.
        operation: Operation,
        /// Largest number of elements.
        max: usize,
    },
    /// The caller's buffer is too short for the result of the operation in flight, which can be polled again.
    #[error("room for {room} elements, but a {running} is in flight")]
    ShortResult {
        /// The operation in flight.
        running: Operation,
        /// Elements that fit in the caller's buffer.
        room: usize,
    },
    /// The ranks started different operations; the gates can be used again.
    #[error("the ranks of this gate set started different operations")]
    Mismatch,
    /// The library's error.
    #[error(transparent)]
    Utofu(#[from] UtofuError),
}

/// An operation of a gate set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Synchronisation without data.
    Barrier,
    /// Reduction of this number of `u64` elements.
    Uint64(usize),
    /// Reduction of this number of `f64` elements.
    Double(usize),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Barrier => f.write_str("barrier"),
            Operation::Uint64(n) => write!(f, "reduction of {n} u64"),
            Operation::Double(n) => write!(f, "reduction of {n} f64"),
        }
    }
}

struct InFlight(Option<Operation>);

impl fmt::Display for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(op) => write!(f, "a {op} is in flight"),
            None => f.write_str("nothing is in flight"),
        }
    }
}

/// A start/end gate and its relay gates on one TNI. May move to another thread. Dropping it frees the gates, unless
/// an operation is in flight: signals of other ranks may still arrive and would reach the next owner of the gates.
#[derive(Debug)]
pub struct GateSet {
    api: Api,
    ids: Vec<utofu_vbg_id_t>,
    max_uint64: usize,
    max_double: usize,
    running: Option<Operation>,
    /// Copies of the elements to reduce, since the library may write to its input; their capacity is the TNI's
    /// maximum.
    words: Vec<u64>,
    doubles: Vec<f64>,
    not_sync: PhantomData<Cell<()>>,
}

impl GateSet {
    /// Allocates one start/end gate, element 0, and `n - 1` relay gates.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`, `INVALID_NUMBER` (n = 0), `FULL` (then no gate is allocated).
    pub fn alloc(api: Api, tni: Tni, n: usize) -> Result<GateSet, UtofuError> {
        let caps = api.barrier_caps(tni)?;
        let mut ids = vec![UTOFU_VBG_ID_NULL; n];
        // Different threads may own gate sets of the same TNI.
        let flags = UTOFU_VBG_FLAG_THREAD_SAFE;
        // SAFETY: ids has room for the n results.
        let code = unsafe { (api.utofu_alloc_vbg)(tni, n, flags, ids.as_mut_ptr()) };
        api.check("utofu_alloc_vbg", code)?;
        Ok(GateSet {
            api,
            ids,
            max_uint64: caps.max_uint64_reduction,
            max_double: caps.max_double_reduction,
            running: None,
            words: Vec::with_capacity(caps.max_uint64_reduction),
            doubles: Vec::with_capacity(caps.max_double_reduction),
            not_sync: PhantomData,
        })
    }

    /// The gates' ids, to be sent to the ranks with connected gates.
    #[must_use]
    pub fn ids(&self) -> Vec<GateId> {
        self.ids.iter().copied().map(GateId).collect()
    }

    /// Connects gate `i` according to `links[i]`, for the first `links.len()` gates. All ranks must have connected
    /// their gates before any rank starts an operation.
    ///
    /// # Errors
    /// `INVALID_NUMBER` if there are more links than gates; otherwise the library's code.
    pub fn connect(&mut self, links: &[GateLink]) -> Result<(), UtofuError> {
        const CALL: &str = "utofu_set_vbg";
        if links.len() > self.ids.len() {
            return Err(UtofuError::new(CALL, UTOFU_ERR_INVALID_NUMBER));
        }
        let id = |g: Option<GateId>| g.map_or(UTOFU_VBG_ID_NULL, |g| g.0);
        let mut settings: Vec<_> = links
            .iter()
            .zip(&self.ids)
            .map(|(l, &vbg_id)| utofu_vbg_setting {
                vbg_id,
                src_lcl_vbg_id: id(l.from_local),
                src_rmt_vbg_id: id(l.from_remote),
                dst_lcl_vbg_id: id(l.to_local),
                dst_rmt_vbg_id: id(l.to_remote),
                dst_path_coords: l.path.unwrap_or([UTOFU_PATH_COORD_NULL; 3]),
            })
            .collect();
        // SAFETY: settings has the stated number of elements.
        let code = unsafe { (self.api.utofu_set_vbg)(settings.as_mut_ptr(), settings.len()) };
        self.api.check(CALL, code)
    }

    /// Starts a barrier.
    ///
    /// # Errors
    /// [`GateError::Busy`], or the library's error.
    pub fn barrier(&mut self) -> Result<(), GateError> {
        self.check_idle(Operation::Barrier, usize::MAX, 0)?;
        // SAFETY: the gate is allocated.
        let code = unsafe { (self.api.utofu_barrier)(self.ids[0], 0) };
        self.started("utofu_barrier", code, Operation::Barrier)
    }

    /// Starts a reduction of `data`, whose length must be the same on all ranks.
    ///
    /// # Errors
    /// [`GateError::Busy`], [`GateError::TooMany`], or the library's error.
    pub fn reduce_u64(&mut self, op: ReduceOp, data: &[u64]) -> Result<(), GateError> {
        let what = Operation::Uint64(data.len());
        self.check_idle(what, self.max_uint64, data.len())?;
        let copy = copy_into(&mut self.words, data);
        // SAFETY: the gate is allocated and copy has the stated number of elements.
        let code = unsafe {
            (self.api.utofu_reduce_uint64)(self.ids[0], op.code(), copy.as_mut_ptr(), copy.len(), 0)
        };
        self.started("utofu_reduce_uint64", code, what)
    }

    /// Starts a sum of doubles whose result does not depend on the order of the ranks (BFPSUM).
    ///
    /// # Errors
    /// [`GateError::Busy`], [`GateError::TooMany`], or the library's error.
    pub fn sum_f64(&mut self, data: &[f64]) -> Result<(), GateError> {
        let what = Operation::Double(data.len());
        self.check_idle(what, self.max_double, data.len())?;
        let copy = copy_into(&mut self.doubles, data);
        // SAFETY: the gate is allocated and copy has the stated number of elements.
        let code = unsafe {
            (self.api.utofu_reduce_double)(
                self.ids[0],
                UTOFU_REDUCE_OP_BFPSUM,
                copy.as_mut_ptr(),
                copy.len(),
                0,
            )
        };
        self.started("utofu_reduce_double", code, what)
    }

    /// Whether the barrier has completed.
    ///
    /// # Errors
    /// [`GateError::NotRunning`], [`GateError::Mismatch`], or the library's error.
    pub fn poll_barrier(&mut self) -> Result<bool, GateError> {
        self.check_running(Operation::Barrier)?;
        // SAFETY: the gate is allocated and a barrier is in flight on it.
        let code = unsafe { (self.api.utofu_poll_barrier)(self.ids[0], 0) };
        self.finished("utofu_poll_barrier", code)
    }

    /// Whether the reduction has completed; if so, writes the result to the first elements of `out`.
    ///
    /// # Errors
    /// [`GateError::NotRunning`], [`GateError::ShortResult`], [`GateError::Mismatch`], or the library's error.
    pub fn poll_reduce_u64(&mut self, out: &mut [u64]) -> Result<bool, GateError> {
        self.check_running(Operation::Uint64(out.len()))?;
        // SAFETY: a reduction of u64 is in flight and out has room for its elements.
        let code = unsafe { (self.api.utofu_poll_reduce_uint64)(self.ids[0], 0, out.as_mut_ptr()) };
        self.finished("utofu_poll_reduce_uint64", code)
    }

    /// Whether the sum has completed; if so, writes the result to the first elements of `out`.
    ///
    /// # Errors
    /// As [`GateSet::poll_reduce_u64`].
    pub fn poll_sum_f64(&mut self, out: &mut [f64]) -> Result<bool, GateError> {
        self.check_running(Operation::Double(out.len()))?;
        // SAFETY: a reduction of f64 is in flight and out has room for its elements.
        let code = unsafe { (self.api.utofu_poll_reduce_double)(self.ids[0], 0, out.as_mut_ptr()) };
        self.finished("utofu_poll_reduce_double", code)
    }

    fn check_idle(&self, operation: Operation, max: usize, count: usize) -> Result<(), GateError> {
        if let Some(running) = self.running {
            return Err(GateError::Busy(running));
        }
        if count > max {
            return Err(GateError::TooMany { operation, max });
        }
        Ok(())
    }

    /// Checks that `polled` is the kind of the operation in flight and that its number of elements suffices for the
    /// result.
    fn check_running(&self, polled: Operation) -> Result<(), GateError> {
        use Operation::{Barrier, Double, Uint64};
        match (self.running, polled) {
            (Some(Barrier), Barrier) => Ok(()),
            (Some(running @ Uint64(n)), Uint64(room))
            | (Some(running @ Double(n)), Double(room)) => match n <= room {
                true => Ok(()),
                false => Err(GateError::ShortResult { running, room }),
            },
            (running, polled) => Err(GateError::NotRunning { polled, running }),
        }
    }

    fn started(&mut self, call: &'static str, code: c_int, op: Operation) -> Result<(), GateError> {
        self.api.check(call, code)?;
        self.running = Some(op);
        Ok(())
    }

    fn finished(&mut self, call: &'static str, code: c_int) -> Result<bool, GateError> {
        if code == UTOFU_ERR_NOT_COMPLETED {
            return Ok(false);
        }
        self.running = None;
        match code {
            UTOFU_ERR_BARRIER_MISMATCH => Err(GateError::Mismatch),
            code => Ok(self.api.check(call, code).map(|()| true)?),
        }
    }
}

impl Drop for GateSet {
    fn drop(&mut self) {
        if self.running.is_some() {
            return;
        }
        // SAFETY: these are the gates of one allocation, freed once. A failure cannot be reported from here.
        let _ = unsafe { (self.api.utofu_free_vbg)(self.ids.as_mut_ptr(), self.ids.len()) };
    }
}
