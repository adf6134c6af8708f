//! Queues: the descriptors that are posted, the half of a VCQ that its own rank keeps, and where ids lead.

pub(crate) mod atomic_op;
pub(crate) mod desc;
pub(crate) mod late;
pub(crate) mod place;
pub(crate) mod session;
pub(crate) mod slots;
pub(crate) mod targets;
pub(crate) mod toq;
pub(crate) mod vcq;
