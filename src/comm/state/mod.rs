//! What a communicator consists of: its members and their torus, the order of their calls, the small
//! collectives of the hardware, and what it shares with the others of its world.

pub(super) mod inner;
pub(crate) mod members;
pub(crate) mod rank;
pub(crate) mod small;
pub(super) mod turns;
