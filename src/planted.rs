//! Faults that are planted, one at a time, to see whether chaos finds them.
//!
//! Only builds with `RUSTFLAGS="--cfg planted"` contain them (`ci/planted.sh`).

/// A fault that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Planted {
    /// Credits are given back twice.
    CreditsTwice = 1,
    /// Operations post however far they are ahead.
    NoWindow,
    /// A message that came before its call is taken by another operation's receive.
    EarlyToAnother,
    /// A run that something has happened to is not looked at.
    LostWake,
    /// A fold does not wait for its last operand.
    FoldBeforeOperand,
    /// What a port has lent can be read after it has given up.
    RevokedRead,
    /// The end does not wait until all that was written has arrived.
    NoFence,
    /// A message of another call is taken for that of this one.
    AnyCall,
    /// Operations are numbered modulo 16.
    NumbersWrap,
    /// A stage starts before the one that it needs has ended.
    StageEarly,
    /// A rank that gives up does not tell others why.
    NotSpread,
    /// A number is free twice.
    FreedTwice,
    /// The registration cache does not hear of memory that goes.
    EventMissed,
}

impl Planted {
    /// All of them.
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

/// Plants a fault in this process, in place of the one before.
#[cfg(planted)]
pub fn plant(fault: Planted) {
    // Relaxed: planted before there are ranks.
    PLANTED.store(fault as u32, std::sync::atomic::Ordering::Relaxed);
}

/// Whether this fault is planted.
#[cfg(planted)]
pub(crate) fn is(fault: Planted) -> bool {
    // Relaxed: as above.
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == fault as u32
}

/// Whether this fault is planted: it is not.
#[cfg(not(planted))]
#[inline(always)]
pub(crate) const fn is(_: Planted) -> bool {
    false
}
