//! Queues: descriptors, the private half of a VCQ, and the look-up of VCQs by id and by handle.

pub(crate) mod atomic_op;
pub(crate) mod desc;
pub(crate) mod late;
pub(crate) mod place;
pub(crate) mod session;
pub(crate) mod slots;
pub(crate) mod targets;
pub(crate) mod toq;
pub(crate) mod vcq;
