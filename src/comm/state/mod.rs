//! The parts of a communicator: its members and their torus, the order of their calls, the small collectives of the
//! hardware, and what all communicators of a world share.

pub(super) mod inner;
pub(super) mod labels;
pub(crate) mod members;
pub(crate) mod small;
pub(super) mod ticket_lock;
pub(crate) mod world_state;
