//! Flag words and operators as types of their own, so that they cannot be swapped.

use core::ffi::{c_uint, c_ulong};
use core::ops::BitOr;

use utofu_sys::*;

/// How a VCQ is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcqFlags(pub(super) c_ulong);

impl VcqFlags {
    /// Nothing special.
    pub const NONE: VcqFlags = VcqFlags(0);
    /// A control queue of its own.
    pub const EXCLUSIVE: VcqFlags = VcqFlags(UTOFU_VCQ_FLAG_EXCLUSIVE);
    /// The library locks its CQ. Needed where several threads use VCQs of one TNI at once, even
    /// each its own: VCQs without [`EXCLUSIVE`](VcqFlags::EXCLUSIVE) share CQs.
    pub const THREAD_SAFE: VcqFlags = VcqFlags(UTOFU_VCQ_FLAG_THREAD_SAFE);
}

impl BitOr for VcqFlags {
    type Output = VcqFlags;

    fn bitor(self, other: VcqFlags) -> VcqFlags {
        VcqFlags(self.0 | other.0)
    }
}

/// Which notices an operation gives, and how it travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostFlags(pub(super) c_ulong);

impl PostFlags {
    /// No notice, and no demand on the transfer.
    pub const NONE: PostFlags = PostFlags(0);
    /// A completion in the own TCQ when the descriptor has been executed.
    pub const TCQ: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_TCQ_NOTICE);
    /// A notice in the own MRQ when the operation is complete at the target.
    pub const LOCAL: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE);
    /// A notice in the target's MRQ when the data are there.
    pub const REMOTE: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE);
    /// Stay in order behind earlier operations of this VCQ to the same target.
    pub const STRONG_ORDER: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_STRONG_ORDER);
    /// Deliver into the target's cache.
    pub const CACHE_INJECTION: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_CACHE_INJECTION);
    /// Allow the last cache line to be padded.
    pub const PADDING: PostFlags = PostFlags(UTOFU_ONESIDED_FLAG_PADDING);

    /// Both.
    #[must_use]
    pub const fn and(self, other: PostFlags) -> PostFlags {
        PostFlags(self.0 | other.0)
    }

    /// Along this path instead of the target id's own.
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
