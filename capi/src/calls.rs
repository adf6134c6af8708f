//! Converts the arguments of a C function to a checked [`Call`].

use std::ffi::{c_int, c_void};

use hopbine::Communicator;
use hopbine::reduce::{Dtype, Op};
use hopbine::torus::collectives::Collective;
use hopbine::{Blocks, Call, Form};

use crate::failure::{
    Failure, HOPBINE_ERR_BUFFER, HOPBINE_ERR_COUNT, HOPBINE_ERR_OP, HOPBINE_ERR_ROOT,
    HOPBINE_ERR_TYPE,
};

/// Signed integer of 8 bits.
pub const HOPBINE_INT8: c_int = 0;
/// Signed integer of 16 bits.
pub const HOPBINE_INT16: c_int = 1;
/// Signed integer of 32 bits.
pub const HOPBINE_INT32: c_int = 2;
/// Signed integer of 64 bits.
pub const HOPBINE_INT64: c_int = 3;
/// Unsigned integer of 8 bits; also bytes of any meaning.
pub const HOPBINE_UINT8: c_int = 4;
/// Unsigned integer of 16 bits.
pub const HOPBINE_UINT16: c_int = 5;
/// Unsigned integer of 32 bits.
pub const HOPBINE_UINT32: c_int = 6;
/// Unsigned integer of 64 bits.
pub const HOPBINE_UINT64: c_int = 7;
/// IEEE 754 binary16.
pub const HOPBINE_FLOAT16: c_int = 8;
/// bfloat16, the upper half of a float.
pub const HOPBINE_BFLOAT16: c_int = 9;
/// float, real(4).
pub const HOPBINE_FLOAT: c_int = 10;
/// double, real(8).
pub const HOPBINE_DOUBLE: c_int = 11;
/// Two floats, real part first: float _Complex, complex(4).
pub const HOPBINE_FLOAT_COMPLEX: c_int = 12;
/// Two doubles, real part first: double _Complex, complex(8).
pub const HOPBINE_DOUBLE_COMPLEX: c_int = 13;
/// A value and its location, both int32_t: MPI_2INT, MPI_2INTEGER. Pairs are for HOPBINE_MINLOC and HOPBINE_MAXLOC.
pub const HOPBINE_PAIR_INT32: c_int = 14;
/// A value and its location, both int64_t.
pub const HOPBINE_PAIR_INT64: c_int = 15;
/// A value and its location, both float: MPI_2REAL.
pub const HOPBINE_PAIR_FLOAT: c_int = 16;
/// A value and its location, both double: MPI_2DOUBLE_PRECISION.
pub const HOPBINE_PAIR_DOUBLE: c_int = 17;
/// A value, float, and its location, int32_t: MPI_FLOAT_INT.
pub const HOPBINE_PAIR_FLOAT_INT32: c_int = 18;

/// Sum; integers wrap around.
pub const HOPBINE_SUM: c_int = 0;
/// Product; integers wrap around.
pub const HOPBINE_PROD: c_int = 1;
/// Minimum; NaN if either operand is NaN.
pub const HOPBINE_MIN: c_int = 2;
/// Maximum; NaN if either operand is NaN.
pub const HOPBINE_MAX: c_int = 3;
/// Logical and: 1 if both operands are nonzero, else 0.
pub const HOPBINE_LAND: c_int = 4;
/// Logical or: 1 if either operand is nonzero, else 0.
pub const HOPBINE_LOR: c_int = 5;
/// Logical exclusive or: 1 if exactly one operand is nonzero, else 0.
pub const HOPBINE_LXOR: c_int = 6;
/// Bitwise and.
pub const HOPBINE_BAND: c_int = 7;
/// Bitwise or.
pub const HOPBINE_BOR: c_int = 8;
/// Bitwise exclusive or.
pub const HOPBINE_BXOR: c_int = 9;
/// Of two pairs the one with the smaller value; at equal values the one with the lower location. A NaN value wins.
pub const HOPBINE_MINLOC: c_int = 10;
/// Of two pairs the one with the larger value; at equal values the one with the lower location. A NaN value wins.
pub const HOPBINE_MAXLOC: c_int = 11;

/// Address of HOPBINE_IN_PLACE in the header.
const IN_PLACE: usize = usize::MAX;

/// Lists of counts and displacements as C passes them.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub(crate) counts: *const i64,
    pub(crate) displacements: *const i64,
}

/// Arguments of a call as C passes them. Arguments that a collective does not have keep their value of `new`.
#[derive(Clone, Copy)]
pub(crate) struct Arguments {
    pub(crate) collective: Collective,
    pub(crate) send: *const c_void,
    pub(crate) recv: *mut c_void,
    pub(crate) count: i64,
    pub(crate) dtype: c_int,
    pub(crate) op: Option<c_int>,
    pub(crate) root: c_int,
    /// Lists for the blocks to send and for the blocks to receive.
    pub(crate) lists: [Option<Lists>; 2],
}

/// The setters have the names of the arguments in the table of the collectives.
impl Arguments {
    #[inline]
    pub(crate) fn new(collective: Collective) -> Self {
        Arguments {
            collective,
            send: std::ptr::null(),
            recv: std::ptr::null_mut(),
            count: 0,
            dtype: HOPBINE_UINT8,
            op: None,
            root: 0,
            lists: [None, None],
        }
    }

    #[inline]
    pub(crate) fn sendbuf(self, send: *const c_void) -> Self {
        Arguments { send, ..self }
    }

    #[inline]
    pub(crate) fn recvbuf(self, recv: *mut c_void) -> Self {
        Arguments { recv, ..self }
    }

    #[inline]
    pub(crate) fn buffer(self, buffer: *mut c_void) -> Self {
        self.recvbuf(buffer)
    }

    #[inline]
    pub(crate) fn count(self, count: i64) -> Self {
        Arguments { count, ..self }
    }

    #[inline]
    pub(crate) fn datatype(self, dtype: c_int) -> Self {
        Arguments { dtype, ..self }
    }

    #[inline]
    pub(crate) fn op(self, op: c_int) -> Self {
        Arguments { op: Some(op), ..self }
    }

    #[inline]
    pub(crate) fn root(self, root: c_int) -> Self {
        Arguments { root, ..self }
    }

    pub(crate) fn sendcounts(mut self, counts: *const i64) -> Self {
        self.lists[0] = Some(Lists { counts, displacements: std::ptr::null() });
        self
    }

    pub(crate) fn recvcounts(mut self, counts: *const i64) -> Self {
        self.lists[1] = Some(Lists { counts, displacements: std::ptr::null() });
        self
    }

    pub(crate) fn sdispls(mut self, displacements: *const i64) -> Self {
        self.lists[0] = self.lists[0].map(|lists| Lists { displacements, ..lists });
        self
    }

    pub(crate) fn rdispls(mut self, displacements: *const i64) -> Self {
        self.lists[1] = self.lists[1].map(|lists| Lists { displacements, ..lists });
        self
    }

    /// Whether a single list of counts describes the send buffer; otherwise it describes the receive buffer.
    fn has_blocks_to_send(&self) -> bool {
        matches!(self.collective, Collective::Scatter | Collective::ReduceScatter)
    }

    pub(crate) fn counts(self, counts: *const i64) -> Self {
        if self.has_blocks_to_send() { self.sendcounts(counts) } else { self.recvcounts(counts) }
    }

    pub(crate) fn displs(self, displs: *const i64) -> Self {
        if self.has_blocks_to_send() { self.sdispls(displs) } else { self.rdispls(displs) }
    }

    /// Whether the call is in place.
    #[inline]
    pub(crate) fn is_in_place(&self) -> bool {
        let at_recv = self.collective == Collective::Scatter && self.recv.addr() == IN_PLACE;
        at_recv || self.send.addr() == IN_PLACE
    }

    /// Whether two calls with equal blocks differ at most in root and addresses.
    #[inline]
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.collective == other.collective
            && self.count == other.count
            && self.dtype == other.dtype
            && self.op == other.op
            && self.is_in_place() == other.is_in_place()
    }

    /// The call, if the arguments are valid on this rank.
    pub(crate) fn call(&self, comm: &Communicator) -> Result<Call<'static>, Failure> {
        let bytes = u64::from(comm.size()).saturating_mul(self.count.max(0) as u64);
        if bytes.saturating_mul(dtype(self.dtype)?.size_bytes() as u64) > isize::MAX as u64 {
            let what = format!(
                "{}: {} elements are more than memory can hold",
                self.collective, self.count
            );
            return Err(Failure::new(HOPBINE_ERR_COUNT, what));
        }
        self.vector(comm, Form::Regular, self.count, [None, None])
    }

    /// The call with this form and count, and with these blocks in its send and receive buffers.
    pub(crate) fn vector<'a>(
        &self,
        comm: &Communicator,
        form: Form,
        count: i64,
        [send_blocks, recv_blocks]: [Option<Blocks<'a>>; 2],
    ) -> Result<Call<'a>, Failure> {
        let Arguments { collective, send, recv, .. } = *self;
        let wrong = |code, what: String| Err(Failure::new(code, format!("{collective}: {what}")));
        let Ok(count) = u64::try_from(count) else {
            return wrong(HOPBINE_ERR_COUNT, format!("a count of {count} is negative"));
        };
        let dtype = dtype(self.dtype)?;
        let op = self.op.map(operator).transpose()?;
        let Some(root) = u32::try_from(self.root).ok().filter(|&root| root < comm.size()) else {
            let last = comm.size() - 1;
            return wrong(HOPBINE_ERR_ROOT, format!("root {}: ranks are 0 to {last}", self.root));
        };
        let mut call = Call::new(collective, count, dtype);
        (call.op, call.root, call.in_place) = (op, root, self.is_in_place());
        (call.form, call.send_blocks, call.recv_blocks) = (form, send_blocks, recv_blocks);
        let call = call.at(comm, send.cast(), recv.cast());
        for (which, ptr, count) in [
            ("send", call.send, call.send_count),
            ("receive", call.recv.cast_const(), call.recv_count),
        ] {
            let bytes = count.saturating_mul(dtype.size_bytes() as u64);
            if bytes > isize::MAX as u64 {
                return wrong(
                    HOPBINE_ERR_COUNT,
                    format!("{count} elements are more than memory can hold"),
                );
            }
            if count > 0 && ptr.addr() == IN_PLACE {
                let what = format!("HOPBINE_IN_PLACE cannot be the {which} buffer of this call");
                return wrong(HOPBINE_ERR_BUFFER, what);
            }
        }
        Ok(call)
    }
}

/// The element type with this number.
pub(crate) fn dtype(number: c_int) -> Result<Dtype, Failure> {
    let all = || Dtype::ALL.into_iter().chain(Dtype::PAIRS);
    usize::try_from(number).ok().and_then(|at| all().nth(at)).ok_or_else(|| {
        Failure::new(HOPBINE_ERR_TYPE, format!("{number} is not a hopbine element type"))
    })
}

/// The operator with this number.
pub(crate) fn operator(number: c_int) -> Result<Op, Failure> {
    let all = || Op::ALL.into_iter().chain(Op::LOCATIONS);
    usize::try_from(number)
        .ok()
        .and_then(|at| all().nth(at))
        .ok_or_else(|| Failure::new(HOPBINE_ERR_OP, format!("{number} is not a hopbine operator")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_lists() {
        for (number, name) in [
            (HOPBINE_INT8, "i8"),
            (HOPBINE_INT16, "i16"),
            (HOPBINE_INT32, "i32"),
            (HOPBINE_INT64, "i64"),
            (HOPBINE_UINT8, "u8"),
            (HOPBINE_UINT16, "u16"),
            (HOPBINE_UINT32, "u32"),
            (HOPBINE_UINT64, "u64"),
            (HOPBINE_FLOAT16, "f16"),
            (HOPBINE_BFLOAT16, "bf16"),
            (HOPBINE_FLOAT, "f32"),
            (HOPBINE_DOUBLE, "f64"),
            (HOPBINE_FLOAT_COMPLEX, "c32"),
            (HOPBINE_DOUBLE_COMPLEX, "c64"),
            (HOPBINE_PAIR_INT32, "i32i32"),
            (HOPBINE_PAIR_INT64, "i64i64"),
            (HOPBINE_PAIR_FLOAT, "f32f32"),
            (HOPBINE_PAIR_DOUBLE, "f64f64"),
            (HOPBINE_PAIR_FLOAT_INT32, "f32i32"),
        ] {
            assert_eq!(dtype(number).ok().map(Dtype::name), Some(name));
        }
        for (number, name) in [
            (HOPBINE_SUM, "sum"),
            (HOPBINE_PROD, "prod"),
            (HOPBINE_MIN, "min"),
            (HOPBINE_MAX, "max"),
            (HOPBINE_LAND, "land"),
            (HOPBINE_LOR, "lor"),
            (HOPBINE_LXOR, "lxor"),
            (HOPBINE_BAND, "band"),
            (HOPBINE_BOR, "bor"),
            (HOPBINE_BXOR, "bxor"),
            (HOPBINE_MINLOC, "minloc"),
            (HOPBINE_MAXLOC, "maxloc"),
        ] {
            assert_eq!(operator(number).ok().map(Op::name), Some(name));
        }
        assert!(dtype(19).is_err() && dtype(-1).is_err() && operator(12).is_err());
    }
}
