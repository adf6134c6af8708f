//! The device's limits, and the numbering of its parts: ids, coordinates, return codes.

pub(crate) mod coords;
pub(crate) mod error;
pub(crate) mod ids;

/// TNIs of a node.
pub(crate) const TNIS: usize = 6;
/// CQs of a TNI: 0 and 4..=10 are ordinary, 1..=3 are for session mode.
pub(crate) const CQS: usize = 11;
/// VCQs of an ordinary CQ.
pub(crate) const VCQS: usize = 8;
/// Extra value of a CQ's first VCQ.
pub(crate) const FIRST_EXTRA: u8 = 8;
/// Longest put or get, in bytes.
pub(crate) const MAX_LENGTH: usize = 16_777_215;
/// Longest piggybacked put, in bytes.
pub(crate) const MAX_PIGGYBACK: usize = 32;
/// Largest payload of one packet, in bytes.
pub(crate) const MAX_MTU: usize = 1920;
/// Largest gap between packets.
pub(crate) const MAX_GAP: usize = 255;
