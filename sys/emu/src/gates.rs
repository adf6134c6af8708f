pub(crate) const MAX_INTEGERS: usize = 6;
pub(crate) const MAX_DOUBLES: usize = 3;
#[repr(C)]
pub(crate) struct GateTable { x: crate::sync::AtomicU64 }
