//! The names of messages.

/// Names a message between two ranks, uniquely among those under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The communicator: below 2^[`CONTEXT_BITS`](Tag::CONTEXT_BITS).
    pub context: u64,
    /// The operation of the communicator: the same on all ranks, different for each, below
    /// 2^[`OPERATION_BITS`](Tag::OPERATION_BITS).
    pub operation: u32,
    /// Number of the message within the operation, from this sender to this receiver through
    /// this port; see also [`LATE`](Tag::LATE).
    pub message: u32,
    /// The signature of the call that the operation belongs to: the same on all ranks that make the
    /// same call. Wires need not look at it; one that does can tell ranks that disagree.
    ///
    /// The upper byte stands for the messages of the call: where ranks agree in it, every message
    /// meets its receive, whatever else differs.
    pub call: u16,
}

impl Tag {
    /// Bits of a context.
    pub const CONTEXT_BITS: u32 = 40;
    /// Bits of an operation's number.
    pub const OPERATION_BITS: u32 = 24;
    /// Operations are numbered modulo this.
    pub const OPERATIONS: u32 = 1 << Tag::OPERATION_BITS;
    /// Messages of operations of one communicator whose numbers differ by this or more are not posted
    /// at the same time, by any rank: those of the earlier operation are done first.
    pub const WINDOW: u32 = 64;
    /// Set in the numbers of all messages of an operation for which this does not hold: it starts when
    /// what it needs has been learnt, perhaps after later ones.
    pub const LATE: u32 = 1 << 31;

    /// Context and operation in one number.
    pub fn operation_id(self) -> u64 {
        self.context << Tag::OPERATION_BITS | u64::from(self.operation)
    }

    /// Whether the messages of two calls meet each other; see [`call`](Tag::call).
    pub fn do_meet(one: u16, other: u16) -> bool {
        one >> 8 == other >> 8
    }

    /// A signature that is not `call`, but whose messages meet those of `call`. A rank that has
    /// found out that others make another call sends under it.
    pub fn not(call: u16) -> u16 {
        call ^ 0xff
    }

    /// Whether two tags name one message, whatever call it belongs to.
    #[inline]
    pub fn names_same(self, other: Tag) -> bool {
        (self.message, self.operation, self.context)
            == (other.message, other.operation, other.context)
    }

    /// The tag of which [`operation_id`](Tag::operation_id) made `id`.
    pub fn of_operation(id: u64, message: u32, call: u16) -> Self {
        let operation = (id % u64::from(Tag::OPERATIONS)) as u32;
        Tag { context: id >> Tag::OPERATION_BITS, operation, message, call }
    }
}
