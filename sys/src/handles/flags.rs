//! Flag words and operators as distinct types, so that they cannot be mixed up.

use core::ffi::{c_uint, c_ulong};
use core::ops::BitOr;

use utofu_sys::*;

/// Options for creating a VCQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcqFlags(pub(super) c_ulong);

impl VcqFlags {
    /// No option.
    pub const NONE: VcqFlags = VcqFlags(0);
    /// The VCQ has a control queue (CQ) to itself.
    pub const EXCLUSIVE: VcqFlags = VcqFlags(UTOFU_VCQ_FLAG_EXCLUSIVE);
    /// The library locks the VCQ's CQ. Needed if several threads use VCQs of one TNI at once, even if each thread has
    /// a VCQ of its own: VCQs without [`EXCLUSIVE`](VcqFlags::EXCLUSIVE) share CQs.
    pub const THREAD_SAFE: VcqFlags = VcqFlags(UTOFU_VCQ_FLAG_THREAD_SAFE);
}

impl BitOr for VcqFlags {
    type Output = VcqFlags;

    fn bitor(self, other: VcqFlags) -> VcqFlags {
        VcqFlags(self.0 | other.0)
    }
}

/// Notices of an operation, and options of its transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostFlags(pub(super) c_ulong);

impl PostFlags {
    /// No notice and no transfer option.
    pub const NONE: PostFlags = PostFlags(0);
    /// A completion in the initiator's TCQ when the descriptor has been executed.
    pub const TCQ: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
    /// A notice in the initiator's MRQ when the operation is complete at the target.
    pub const LOCAL: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    /// A notice in the target's MRQ when the data have arrived.
    pub const REMOTE: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
    /// Execute in order after earlier operations of this VCQ to the same target.
    pub const STRONG_ORDER: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_STRONG_ORDER);
    /// Deliver into the target's cache.
    pub const CACHE_INJECTION: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_CACHE_INJECTION);
    /// Allow the last cache line to be padded.
    pub const PADDING: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_PADDING);

    /// The flags of `self` and `other`.
    #[must_use]
    pub const fn and(self, other: PostFlags) -> PostFlags {
        PostFlags(self.0 | other.0)
    }

    /// Use this path instead of the path in the target's id.
    #[must_use]
    pub const fn path(id: u8) -> PostFlags {
        PostFlags(UTOFU_ONESIDED_FLAG_PATH(id))
    }
}

impl BitOr for PostFlags {
    type Output = PostFlags;

    fn bitor(self, other: PostFlags) -> PostFlags {
        PostFlags(self.0 | other.0)
    }
}

/// Operators of the atomic read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmwOp {
    /// Store the operand.
    Swap,
    /// Add the operand, wrapping.
    Add,
    /// Bitwise exclusive or.
    Xor,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
}

impl ArmwOp {
    pub(super) const fn code(self) -> c_uint {
        match self {
            ArmwOp::Swap => UTOFU_ARMW_OP_SWAP,
            ArmwOp::Add => UTOFU_ARMW_OP_ADD,
            ArmwOp::Xor => UTOFU_ARMW_OP_XOR,
            ArmwOp::And => UTOFU_ARMW_OP_AND,
            ArmwOp::Or => UTOFU_ARMW_OP_OR,
        }
    }
}
