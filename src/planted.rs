//! Deliberate faults (mutations), enabled one at a time, to check that the chaos tests detect them.
//!
//! Only builds with `RUSTFLAGS="--cfg planted"` contain them (`ci/planted.sh`).

/// A fault that can be enabled.
// Code of a wire that is not built has faults, too.
#[cfg_attr(not(planted), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Planted {
    /// A sender's credits are returned twice.
    CreditsTwice = 1,
    /// Operations post without regard to the window of operations (`Tag::WINDOW`).
    NoWindow,
    /// A receive of another operation takes an unexpected message.
    EarlyToAnother,
    /// A run is not advanced although one of its tasks has finished.
    LostWake,
    /// A fold starts before its last operand is complete.
    FoldBeforeOperand,
    /// Peers can still read a port's memory after the port was abandoned.
    RevokedRead,
    /// Tear-down does not wait until all writes to peers have arrived.
    NoFence,
    /// A receive accepts the message of another call.
    AnyCall,
    /// Operations are numbered modulo 16.
    NumbersWrap,
    /// A stage starts before the stage that it depends on has ended.
    StageEarly,
    /// A rank that gives up does not tell the other ranks why.
    NotSpread,
    /// A number is put on the free list twice.
    FreedTwice,
    /// The registration cache misses the event that memory was unmapped.
    EventMissed,
}

#[cfg(planted)]
impl Planted {
    /// All faults.
    pub const ALL: [Planted; 13] = [
        Planted::CreditsTwice,
        Planted::NoWindow,
        Planted::EarlyToAnother,
        Planted::LostWake,
        Planted::FoldBeforeOperand,
        Planted::RevokedRead,
        Planted::NoFence,
        Planted::AnyCall,
        Planted::NumbersWrap,
        Planted::StageEarly,
        Planted::NotSpread,
        Planted::FreedTwice,
        Planted::EventMissed,
    ];
}

#[cfg(planted)]
static PLANTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Enables a fault in this process, in place of the previous one.
#[cfg(planted)]
pub fn plant(fault: Planted) {
    // Relaxed: the fault is set before ranks start.
    PLANTED.store(fault as u32, std::sync::atomic::Ordering::Relaxed);
}

/// Whether `fault` is enabled.
#[cfg(planted)]
pub(crate) fn is(fault: Planted) -> bool {
    // Relaxed: see `plant`.
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == fault as u32
}

/// Whether the fault is enabled: never in this build.
#[cfg(not(planted))]
#[inline(always)]
pub(crate) const fn is(_: Planted) -> bool {
    false
}
