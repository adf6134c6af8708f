//! Barrier gates: synchronisation and small reductions done by the network.

use core::cell::Cell;
use core::ffi::{c_int, c_uint};
use core::fmt;
use core::marker::PhantomData;

use utofu_sys::*;

use crate::{Api, Tni, UtofuError};

/// System-wide name of a barrier gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GateId(pub utofu_vbg_id_t);

/// How one gate is connected; None is not connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateLink {
    /// Gate of this set that it waits for.
    pub from_local: Option<GateId>,
    /// Another rank's gate that it waits for.
    pub from_remote: Option<GateId>,
    /// Gate of this set that it signals.
    pub to_local: Option<GateId>,
    /// Another rank's gate that it signals.
    pub to_remote: Option<GateId>,
    /// Path coordinates a, b, c towards `to_remote`; None is the default path.
    pub path: Option<[u8; 3]>,
}

/// The elements in memory that the library may write to.
fn copied<'a, T: Copy>(copy: &'a mut Vec<T>, data: &[T]) -> &'a mut Vec<T> {
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
    /// Pairs (value, location): the largest value, at ties the smallest location.
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

    /// The bit of [`BarrierCaps::reduce_ops`](crate::BarrierCaps) that says whether a TNI has it.
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
    /// An operation is in flight: poll it to its end first. Nothing was started.
    #[error("the gates are busy with a {0}; poll it to its end first")]
    Busy(Operation),
    /// The poll is for another operation than the one in flight, and would crash the library.
    #[error("a {polled} was polled, but {}", InFlight(*running))]
    NotRunning {
        /// What was polled.
        polled: Operation,
        /// What is in flight.
        running: Option<Operation>,
    },
    /// The TNI cannot reduce so many elements at once. Nothing was started.
    #[error("a {operation}, but the TNI can do at most {max} elements")]
    TooMany {
        /// The operation.
        operation: Operation,
        /// Most elements possible.
        max: usize,
    },
    /// The result of the operation in flight does not fit; it can be polled again.
    #[error("room for {room} elements, but a {running} is in flight")]
    ShortResult {
        /// What is in flight.
        running: Operation,
        /// Elements that the caller has room for.
        room: usize,
    },
    /// The ranks started different operations; the gates can be used again.
    #[error("the ranks of this gate set started different operations")]
    Mismatch,
    /// The library refused or failed.
    #[error(transparent)]
    Utofu(#[from] UtofuError),
}

/// An operation of gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Synchronisation without data.
    Barrier,
    /// Reduction of this many `u64`.
    Uint64(usize),
    /// Reduction of this many `f64`.
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

/// A start/end gate and its relay gates on one TNI. May move to another thread; freed on drop, unless an
/// operation is in flight: signals of other ranks may still come, and would reach whoever has the gates next.
#[derive(Debug)]
pub struct GateSet {
    api: Api,
    ids: Vec<utofu_vbg_id_t>,
    max_uint64: usize,
    max_double: usize,
    running: Option<Operation>,
    /// Copies of what is reduced, since the interface may write to it; with room for the most.
    words: Vec<u64>,
    doubles: Vec<f64>,
    not_sync: PhantomData<Cell<()>>,
}

impl GateSet {
    /// Allocates one start/end gate, element 0, and `n - 1` relay gates.
    ///
    /// # Errors
    /// `INVALID_TNI_ID`, `INVALID_NUMBER` (n = 0), `FULL` (then nothing is taken).
    pub fn alloc(api: Api, tni: Tni, n: usize) -> Result<GateSet, UtofuError> {
        let caps = api.barrier_caps(tni)?;
        let mut ids = vec![UTOFU_VBG_ID_NULL; n];
        // Sets may be in the hands of different threads, and share a TNI all the same.
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

    /// The gates' names, to be told to the ranks they are connected with.
    #[must_use]
    pub fn ids(&self) -> Vec<GateId> {
        self.ids.iter().copied().map(GateId).collect()
    }

    /// Connects gate `i` as `links[i]` says, for the first `links.len()` gates. All ranks must have
    /// connected theirs before anyone starts an operation.
    ///
    /// # Errors
    /// `INVALID_NUMBER` if there are more links than gates; what the library returns.
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
        // SAFETY: settings has as many elements as are announced.
        let code = unsafe { (self.api.utofu_set_vbg)(settings.as_mut_ptr(), settings.len()) };
        self.api.check(CALL, code)
    }

    /// Starts a barrier.
    ///
    /// # Errors
    /// [`GateError::Busy`]; what the library returns.
    pub fn barrier(&mut self) -> Result<(), GateError> {
        self.free_to(Operation::Barrier, usize::MAX, 0)?;
        // SAFETY: the gate is allocated.
        let code = unsafe { (self.api.utofu_barrier)(self.ids[0], 0) };
        self.started("utofu_barrier", code, Operation::Barrier)
    }

    /// Starts a reduction of `data`, of the same length on all ranks.
    ///
    /// # Errors
    /// [`GateError::Busy`], [`GateError::TooMany`]; what the library returns.
    pub fn reduce_u64(&mut self, op: ReduceOp, data: &[u64]) -> Result<(), GateError> {
        let what = Operation::Uint64(data.len());
        self.free_to(what, self.max_uint64, data.len())?;
        let copy = copied(&mut self.words, data);
        // SAFETY: the gate is allocated and copy has as many elements as are announced.
        let code = unsafe {
            (self.api.utofu_reduce_uint64)(self.ids[0], op.code(), copy.as_mut_ptr(), copy.len(), 0)
        };
        self.started("utofu_reduce_uint64", code, what)
    }

    /// Starts a sum of doubles that does not depend on the order of the ranks (BFPSUM).
    ///
    /// # Errors
    /// [`GateError::Busy`], [`GateError::TooMany`]; what the library returns.
    pub fn sum_f64(&mut self, data: &[f64]) -> Result<(), GateError> {
        let what = Operation::Double(data.len());
        self.free_to(what, self.max_double, data.len())?;
        let copy = copied(&mut self.doubles, data);
        // SAFETY: the gate is allocated and copy has as many elements as are announced.
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

    /// Whether the barrier is over.
    ///
    /// # Errors
    /// [`GateError::NotRunning`], [`GateError::Mismatch`]; what the library returns.
    pub fn poll_barrier(&mut self) -> Result<bool, GateError> {
        self.ready_for(Operation::Barrier)?;
        // SAFETY: the gate is allocated and a barrier is what it is busy with.
        let code = unsafe { (self.api.utofu_poll_barrier)(self.ids[0], 0) };
        self.finished("utofu_poll_barrier", code)
    }

    /// Whether the reduction is over; writes the result to the first elements of `out` when it is.
    ///
    /// # Errors
    /// [`GateError::NotRunning`], [`GateError::ShortResult`],
    /// [`GateError::Mismatch`]; what the library returns.
    pub fn poll_reduce_u64(&mut self, out: &mut [u64]) -> Result<bool, GateError> {
        self.ready_for(Operation::Uint64(out.len()))?;
        // SAFETY: a reduction of u64 is in flight and out has room for its elements.
        let code = unsafe { (self.api.utofu_poll_reduce_uint64)(self.ids[0], 0, out.as_mut_ptr()) };
        self.finished("utofu_poll_reduce_uint64", code)
    }

    /// Whether the sum is over; writes the result to the first elements of `out` when it is.
    ///
    /// # Errors
    /// As [`GateSet::poll_reduce_u64`].
    pub fn poll_sum_f64(&mut self, out: &mut [f64]) -> Result<bool, GateError> {
        self.ready_for(Operation::Double(out.len()))?;
        // SAFETY: a reduction of f64 is in flight and out has room for its elements.
        let code = unsafe { (self.api.utofu_poll_reduce_double)(self.ids[0], 0, out.as_mut_ptr()) };
        self.finished("utofu_poll_reduce_double", code)
    }

    fn free_to(&self, operation: Operation, max: usize, count: usize) -> Result<(), GateError> {
        if let Some(running) = self.running {
            return Err(GateError::Busy(running));
        }
        if count > max {
            return Err(GateError::TooMany { operation, max });
        }
        Ok(())
    }

    /// Whether what is in flight may be polled as `polled`, which says for how many elements there is room.
    fn ready_for(&self, polled: Operation) -> Result<(), GateError> {
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
        // SAFETY: these are the gates of one allocation, freed once. A failure cannot be reported
        // from here.
        let _ = unsafe { (self.api.utofu_free_vbg)(self.ids.as_mut_ptr(), self.ids.len()) };
    }
}
